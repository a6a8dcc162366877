// Finds the run that goes on without its scheduler: the last scheduler left it unfinished, and its
// members still look for one at the same address.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/config/job_config.h"
#include "common/net/socket.h"
#include "scheduler/service/run_store.h"

namespace dt::scheduler {

struct FoundRun {
  std::unique_ptr<ServerSocket> socket;
  std::optional<UnfinishedRun> run;  // Empty: another run is to begin.
};

// Binds the socket: to the address of the unfinished run, if `listen` allows it and it is free,
// because processes that have not joined yet may know that address; otherwise to `listen`. The run
// goes on if a member speaks at its address within a lease, or if its scheduler was killed just now
// (`follows_killed`): should all members be lost, too, it returns to its last checkpoint; or it has
// ended, and only its result is not written.
// Errors: DataLoss (damaged record), Unavailable (port in use).
Result<FoundRun> BindAndFindRun(const JobConfig& job, Network& network, const std::string& listen,
                                bool follows_killed, RunStore& runs);

}  // namespace dt::scheduler
