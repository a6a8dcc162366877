// `dovetail eval` and `dovetail predict`: apply a checkpoint to data, in one process.
#include <algorithm>
#include <cstring>
#include <errno.h>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/local_job.h"
#include "cli/outcome.h"
#include "cli/summary.h"
#include "common/base/log.h"
#include "common/base/written_paths.h"
#include "common/config/load_job.h"
#include "common/storage/files.h"
#include "scheduler/checkpoint/checkpoint_store.h"
#include "scheduler/checkpoint/model_json.h"

namespace dt::cli {
namespace {

// Copies standard input, which can be read only once, to an unnamed file. The file takes space on
// disk and disappears when this process ends.
Result<OpenFile> CopyOfInput(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  std::string path = folder + "/input.XXXXXX";
  OpenFile copy(mkostemp(path.data(), O_CLOEXEC));
  if (!copy.ok()) return DiskError("keeping standard input in", folder, errno);
  unlink(path.c_str());
  std::string bytes(1 << 20, '\0');
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Unavailable("standard input: {}", std::strerror(errno));
    if (got == 0) return copy;
    for (ssize_t done = 0; done < got;) {
      const ssize_t put =
          write(copy.descriptor(), bytes.data() + done, static_cast<size_t>(got - done));
      if (put < 0) return DiskError("keeping standard input in", folder, errno);
      done += put;
    }
  }
}

// Sets the samples to predict. Fills `input` if standard input is among them.
Status SetData(const CommandLine& line, JobConfig& job, std::optional<OpenFile>& input) {
  job.data.labels_optional = true;
  job.train.slices = 1;  // A stripe is then a whole file, whose rows are predicted in order.
  job.data.kept_columns = line.kept_columns;
  job.data.test.clear();
  for (const std::string& given : line.data_paths) {
    if (given != "-") {
      for (std::string& file : ExpandGlob(given)) job.data.test.push_back(std::move(file));
      continue;
    }
    if (input.has_value()) return Invalid("--data: \"-\" is there twice");
    DT_TRY(OpenFile copy, CopyOfInput(job.data.cache_dir));
    input.emplace(std::move(copy));
    job.data.test.push_back(fmt::format("/dev/fd/{}", input->descriptor()));
    NoteWrittenPath({.completed = job.data.test.back(), .written = "standard input"});
  }
  return OkStatus();
}

// Removes the settings of asynchronous training. They do not matter for predictions: one worker has
// all dense parameters, and every checkpoint contains them as such.
void EvaluateHere(JobConfig& job) {
  const auto forget = [](Device& device) {
    if (device == Device::kPs) device = Device::kAuto;
  };
  job.data.stream.reset();  // Only files are evaluated.
  job.train.staleness = 0;
  job.train.cached_rows = 0;
  forget(job.optimizer.device);
  for (NodeConfig& node : job.model.nodes) forget(node.device);
  std::erase_if(job.parallel.place, [](const PlaceRule& rule) {
    return rule.of == Placed::kWeights && rule.device == Device::kPs;
  });
  job.data.stats.clear();     // The checkpoint has the constants, and the file may be gone.
  job.observe.trace.reset();  // No step is trained, and existing traces must not be replaced.
}

// Columns have the constants that the checkpoint was trained with, whatever data.stats says now.
Status SetConstants(const std::string& checkpoint, JobConfig& job) {
  if (std::ranges::none_of(job.data.columns, &ColumnSpec::needs_constants)) return OkStatus();
  DT_TRY(const scheduler::Manifest manifest, scheduler::ReadManifest(checkpoint));
  DT_TRY_STATUS(scheduler::CheckSameModel(manifest, job, checkpoint));
  return scheduler::TakeConstants(manifest.model, checkpoint, job.data.columns);
}

}  // namespace

int RunEvaluate(const CommandLine& line, StopSignals& signals) {
  Result<JobConfig> job =
      LoadJob(line.job_path, {.overrides = line.overrides, .auto_slices = 1, .constants = false});
  if (!job.ok()) return EndWithError(line, "", job.status());
  if (Status s = SetConstants(line.checkpoint, *job); !s.ok()) {
    return EndWithError(line, job->job, s);
  }
  if (job->observe.log_json) SetLogFormat(LogFormat::kJson);
  std::optional<OpenFile> input;  // Must stay open until the job has ended.
  if (line.command == "predict") {
    if (Status s = SetData(line, *job, input); !s.ok()) return EndWithError(line, job->job, s);
  }
  EvaluateHere(*job);
  const TimePoint begin = SystemClock().Now();
  JobResult result = RunLocalJob(*job, {.goal = scheduler::Goal::kEvaluate,
                                        .checkpoint = line.checkpoint,
                                        .predictions_path = line.out_path,
                                        .stop = signals.token()});
  result.seconds_total = SecondsBetween(begin, SystemClock().Now());
  if (result.status.ok()) {
    PrintSummary(result);
    if (!line.out_path.empty()) Print("predictions: {}\n", line.out_path);
  }
  return EndJob(line, result, signals);
}

}  // namespace dt::cli
