// `dovetail status`: asks a running scheduler.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/outcome.h"
#include "common/config/load_job.h"
#include "common/control/control_link.h"

namespace dt::cli {
namespace {

Result<std::string> SchedulerOf(const CommandLine& line) {
  if (!line.scheduler.empty()) return line.scheduler;
  if (line.job_path.empty()) return Invalid("status needs JOB.yaml or --scheduler tcp://HOST:PORT");
  DT_TRY(const JobConfig job, LoadJob(line.job_path, {.overrides = line.overrides}));
  const std::string path = job.run_dir + "/run.json";
  const Result<std::string> text = ReadWholeFile(path);
  if (!text.ok()) {
    return WithHint(Unavailable("job {} is not running here: there is no {}", job.job, path),
                    "give --scheduler tcp://HOST:PORT for a job on another machine");
  }
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("scheduler")) return Malformed("{} is damaged", path);
  return json["scheduler"].get<std::string>();
}

void PrintText(const nlohmann::json& status) {
  std::printf("job %s: %s, epoch %s, step %s\n", status.value("job", "?").c_str(),
              status.value("phase", "?").c_str(),
              status.value("epoch", nlohmann::json()).dump().c_str(),
              status.value("step", nlohmann::json()).dump().c_str());
  for (const auto& process : status.value("processes", nlohmann::json::array())) {
    std::printf("  %s\n", process.dump().c_str());
  }
}

}  // namespace

int RunStatus(const CommandLine& line) {
  const Result<std::string> scheduler = SchedulerOf(line);
  if (!scheduler.ok()) return EndWithError(line, "", scheduler.status());
  const std::unique_ptr<Network> network = MakeZmqNetwork({});
  const Result<std::string> json = RequestStatus(*network, *scheduler, seconds(5));
  if (!json.ok()) return EndWithError(line, "", json.status());
  if (line.json) {
    std::printf("%s\n", json->c_str());
  } else {
    PrintText(nlohmann::json::parse(*json, nullptr, false));
  }
  return 0;
}

}  // namespace dt::cli
