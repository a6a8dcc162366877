#include "cli/inspect/running_job.h"

#include "common/config/load_job.h"
#include "common/control/key_files.h"
#include "common/storage/json_file.h"

namespace dt::cli {

Result<std::string> SchedulerOf(const CommandLine& line) {
  if (!line.scheduler.empty()) return line.scheduler;
  if (line.job_path.empty())
    return Invalid("{} needs JOB.yaml or --scheduler tcp://HOST:PORT", line.command);
  DT_TRY(const JobConfig job,
         LoadJob(line.job_path, {.overrides = line.overrides, .constants = false}));
  const std::string path = job.run_dir + "/run.json";
  const Result<Json> json = ReadJsonFile(path);
  if (json.status().code() == StatusCode::kNotFound) {
    return WithHint(Unavailable("job {} is not running here: there is no {}", job.job, path),
                    "give --scheduler tcp://HOST:PORT for a job on another machine");
  }
  DT_TRY_STATUS(json.status());
  std::string scheduler = TextOf(*json, "scheduler");
  if (scheduler.empty()) return Malformed("{} is damaged: it names no scheduler", path);
  if (scheduler.starts_with("inproc:")) {
    return WithHint(
        Unavailable("job {} runs in one process, which only its page can be asked", job.job),
        fmt::format("open {}, or {}status for JSON", TextOf(*json, "http", "its page"),
                    TextOf(*json, "http")));
  }
  return scheduler;
}

Result<ZmqOptions> SocketsOf(const CommandLine& line) {
  JobConfig job;
  if (!line.job_path.empty()) {
    DT_TRY(job, LoadJob(line.job_path, {.overrides = line.overrides, .constants = false}));
  } else if (line.key_path.empty()) {
    return WithHint(Invalid("{} --scheduler needs the key of the job", line.command),
                    "give --key FILE, or JOB.yaml beside --scheduler");
  }
  if (!line.key_path.empty()) job.security = {.curve = {.key = line.key_path}};
  return SocketOptionsOf(job, {});
}

}  // namespace dt::cli
