// `dovetail drain`: takes a server out of a running job.
#include "cli/commands.h"
#include "cli/inspect/running_job.h"
#include "cli/outcome.h"
#include "common/base/text.h"
#include "common/control/control_link.h"

namespace dt::cli {
namespace {

Status Drain(const CommandLine& line) {
  DT_TRY(const std::string scheduler, SchedulerOf(line));
  DT_TRY(const ZmqOptions sockets, SocketsOf(line));
  const std::unique_ptr<Network> network = MakeZmqNetwork(sockets);
  return RequestDrain(*network, scheduler, ProcessId(line.server), seconds(5));
}

}  // namespace

int RunDrain(const CommandLine& line) {
  const Status begun = Drain(line);
  if (!begun.ok()) return EndWithError(line, "", begun);
  Print(
      "server {} gives its shards to the others, and then ends; `dovetail status` shows how far it "
      "is\n",
      line.server);
  return 0;
}

}  // namespace dt::cli
