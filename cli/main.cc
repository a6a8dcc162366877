// `dovetail`: parses the command line and runs one subcommand.
#include <string>

#include <malloc.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/outcome.h"
#include "common/base/log.h"
#include "common/base/memory_end.h"
#include "common/base/open_files.h"
#include "common/storage/files.h"

namespace dt::cli {
namespace {

bool RunsAJob(const std::string& command) {
  for (const char* runs : {"train", "launch", "scheduler", "server", "worker", "eval", "predict"}) {
    if (command == runs) return true;
  }
  return false;
}

int Run(const CommandLine& line, StopSignals& signals) {
  const std::string first = line.command.substr(0, line.command.find(' '));
  // For `report` it is an input.
  const std::string result = first == "report" ? "" : line.result_path;
  const std::string out = first == "data" ? "" : line.out_path;  // For `data` it is a folder.
  for (const std::string& path : {result, out}) {
    if (path.empty()) continue;
    if (const Status s = CheckWritable(path); !s.ok()) {
      PrintError(s);
      return ExitCodeOf(s);
    }
  }
  if (RunsAJob(first)) {
    if (const Status s = CheckAddresses(); !s.ok()) {
      PrintError(s);
      return ExitCodeOf(s);
    }
  }
  if (first == "train") return RunTrain(line, signals);
  if (first == "launch") return RunLaunch(line, signals);
  if (first == "scheduler" || first == "server" || first == "worker") return RunRole(line, signals);
  if (first == "eval" || first == "predict") return RunEvaluate(line, signals);
  if (line.command == "plan query") return RunPlanQuery();
  if (first == "plan") return RunPlan(line);
  if (first == "status") return RunStatus(line);
  if (first == "drain") return RunDrain(line);
  if (first == "scale") return RunScale(line);
  if (first == "checkpoint") return RunCheckpoint(line);
  if (first == "export") return RunExport(line);
  if (first == "report") return RunReport(line);
  if (first == "schema") return RunSchema(line);
  if (first == "keygen") return RunKeygen(line);
  if (first == "data") return RunData(line);
  return RunBench(line, signals);
}

}  // namespace
}  // namespace dt::cli

int main(int argc, char** argv) {
  using namespace dt::cli;
  dt::InstallMemoryEnd();
  // Otherwise glibc would give large message buffers back to the kernel at every free.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);

  dt::RaiseOpenFilesMax();

  CommandLine line;
  if (const int code = ParseCommandLine(argc, argv, line); code >= 0) return code;
  dt::InitLog({.level = line.log_level, .role = ""});
  StopSignals signals;
  return EndProcess(Run(line, signals));
}
