#include <algorithm>
#include <utility>

#include "common/config/read_sections.h"

namespace dt {

void ReadStream(const MapReader& in, DataConfig& data) {
  StreamConfig& stream = data.stream.emplace();
  in.Read("brokers", stream.brokers);
  in.Read("topic", stream.topic);
  if (const ConfigNode* const from = in.Find("from")) stream.from_end = from->text == "end";
  in.Read("wait", stream.wait);
  in.Read("patience", stream.patience);
  for (const std::string& text : in.Texts("settings")) {
    const size_t at = text.find('=');
    if (at == text.npos || at == 0) {
      in.Report("settings", fmt::format("found \"{}\", expected name=value", text));
      return;
    }
    stream.settings.emplace_back(text.substr(0, at), text.substr(at + 1));
  }
}

void ReadCommandStream(const MapReader& root, DataConfig& data) {
  const ConfigNode* const train = root.node() != nullptr ? root.node()->Find("train") : nullptr;
  const ConfigNode* const until = train != nullptr ? train->Find("until") : nullptr;
  if (data.command.empty() || until == nullptr || until->text != "forever") return;
  StreamConfig& stream = data.stream.emplace();
  stream.command = std::exchange(data.command, "");
  stream.partitions = 1;
  root.Sub("data").Read("partitions", stream.partitions);
}

void CheckStream(const MapReader& root, const JobConfig& job) {
  const auto report = [&](std::string_view section, std::string_view key, std::string_view text) {
    const std::string path = JoinPath(section, key);
    root.problems().Add(root.node()->MarkOf(path), path, text);
  };
  const auto has = [&](std::string_view section, std::string_view key) {
    const ConfigNode* const of = root.node()->Find(section);
    return of != nullptr && of->Find(key) != nullptr;
  };
  if (!job.data.stream.has_value()) {
    if (has("train", "until")) {
      report("train", "until",
             job.data.command.empty() ? "is for formats kafka and pipe only"
                                      : "found \"drained\", which is for format kafka: without it "
                                        "a pipe is read to its end");
    }
    if (has("data", "partitions")) {
      report("data", "partitions", "is for format pipe with train.until: forever only");
    }
    return;
  }
  if (has("data", "partitions") && job.data.stream->command.empty()) {
    report("data", "partitions", "is for format pipe only: a topic has its own");
  }
  if (has("train", "epochs")) {
    report("train", "epochs", "is for files: a stream is trained once, see train.until");
  }
  if (has("data", "shuffle")) {
    report("data", "shuffle", "is for files: messages are trained in the order in which they come");
  }
  for (const ColumnSpec& column : DerivedColumns(job.data.columns)) {
    report("data", "columns",
           fmt::format("column \"{}\" is computed from all samples of a split, and a stream has no "
                       "end",
                       column.name));
  }
  if (job.team_size() > 1) {
    report("parallel", "data",
           "found teams of several workers, which cannot train on a stream yet");
  }
  if (job.optimizer.schedule.needs_job_steps() && job.train.max_steps == 0) {
    report("optimizer", "schedule",
           "needs optimizer.schedule.steps or train.max_steps: a stream has no end");
  }
}

}  // namespace dt
