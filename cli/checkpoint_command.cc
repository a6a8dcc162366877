// `dovetail checkpoint list|verify`.
#include <cstdio>

#include "cli/commands.h"
#include "cli/outcome.h"
#include "common/base/text.h"
#include "common/config/load_job.h"
#include "scheduler/checkpoint/checkpoint_store.h"

namespace dt::cli {
namespace {

int List(const CommandLine& line) {
  const Result<JobConfig> job = LoadJob(line.job_path, {.overrides = line.overrides});
  if (!job.ok()) return EndWithError(line, "", job.status());
  const auto checkpoints = scheduler::ListCheckpoints(job->checkpoint.dir);
  if (checkpoints.empty())
    std::printf("no complete checkpoint in %s\n", job->checkpoint.dir.c_str());
  for (const scheduler::CheckpointInfo& info : checkpoints) {
    std::printf("%s  %s  %s%s%s\n", info.folder.c_str(), BytesText(info.bytes).c_str(),
                info.written.c_str(), info.best ? "  best" : "",
                info.status.ok() ? "" : ("  " + ToText(info.status)).c_str());
  }
  return 0;
}

int Verify(const CommandLine& line) {
  const Status status = scheduler::VerifyCheckpoint(line.checkpoint);
  if (!status.ok()) return EndWithError(line, "", status);
  std::printf("%s: every file agrees with its digest\n", line.checkpoint.c_str());
  return 0;
}

}  // namespace

int RunCheckpoint(const CommandLine& line) {
  return line.command == "checkpoint list" ? List(line) : Verify(line);
}

}  // namespace dt::cli
