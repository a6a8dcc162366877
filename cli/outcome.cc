#include "cli/outcome.h"

#include <cstdio>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/storage/files.h"
#include "worker/data/input/remote_files.h"

namespace dt::cli {

void PrintText(std::string_view text) {
  const std::string printable = Printable(text);
  std::fwrite(printable.data(), 1, printable.size(), stdout);
}

void PrintError(const Status& status) {
  const Problem problem = ProblemOf(status);
  if (LogsJson()) {
    return LogEnd("error",
                  {{"what", problem.what}, {"where", problem.where}, {"hint", problem.hint}});
  }
  std::string text = "dovetail: " + problem.what;
  // A list of problems names the position of each.
  const bool named = problem.what.find(problem.where) != std::string::npos;
  if (!named) text += fmt::format(" ({})", problem.where);
  if (!problem.hint.empty()) text += "\n  " + problem.hint;
  std::fprintf(stderr, "%s\n", Printable(text).c_str());
}

std::string Counted(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

int EndWithError(const CommandLine& line, const std::string& job, const Status& status) {
  if (!line.child) PrintError(status);
  if (!line.result_path.empty()) {
    JobResult result;
    result.job = job;
    result.status = status;
    if (Status s = WriteWholeFile(line.result_path, ToJson(result)); !s.ok()) PrintError(s);
  }
  return ExitCodeOf(status);
}

int EndJob(const CommandLine& line, const JobResult& result, const StopSignals& signals) {
  return EndJobWith(line, result.status, ToJson(result), signals);
}

int EndJobWith(const CommandLine& line, const Status& status, const std::string& result_json,
               const StopSignals& signals) {
  int code = ExitCodeOf(status);
  if (signals.received() != 0 && !status.ok()) {
    code = signals.exit_code();
    if (!line.child) PrintError(Prefixed(status, fmt::format("signal {}", signals.received())));
  } else if (!status.ok() && !line.child) {
    PrintError(status);
  }
  if (!line.result_path.empty()) {
    if (Status s = WriteWholeFile(line.result_path, result_json); !s.ok()) {
      PrintError(s);
      if (code == 0) code = 1;
    }
  }
  return code;
}

int EndProcess(int code) {
  if (worker::CloseRemoteFiles()) return code;
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace dt::cli
