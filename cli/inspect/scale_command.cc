// `dovetail scale`: changes how many servers or workers a running job has.
#include "cli/commands.h"
#include "cli/inspect/running_job.h"
#include "cli/outcome.h"
#include "common/base/text.h"
#include "common/control/control_link.h"

namespace dt::cli {
namespace {

Status Scale(const CommandLine& line) {
  DT_TRY(const std::string scheduler, SchedulerOf(line));
  DT_TRY(const ZmqOptions sockets, SocketsOf(line));
  const std::unique_ptr<Network> network = MakeZmqNetwork(sockets);
  const Role role = line.role == "servers" ? Role::kServer : Role::kWorker;
  return RequestScale(*network, scheduler, role, line.count, seconds(5));
}

}  // namespace

int RunScale(const CommandLine& line) {
  const Status begun = Scale(line);
  if (!begun.ok()) return EndWithError(line, "", begun);
  Print(
      "the job is to have {} {}: `launch` starts those that are missing, elsewhere `dovetail {}` "
      "does; `dovetail status` shows how far it is\n",
      line.count, line.count == 1 ? line.role.substr(0, line.role.size() - 1) : line.role,
      line.role.substr(0, line.role.size() - 1));
  return 0;
}

}  // namespace dt::cli
