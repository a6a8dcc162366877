// How commands find and reach the scheduler of a job that runs.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "common/base/status.h"
#include "common/net/socket.h"

namespace dt::cli {

// The scheduler's endpoint: --scheduler, or what the job's run.json says. Errors: Unavailable, if
// the job does not run here.
Result<std::string> SchedulerOf(const CommandLine& line);

// Connection options with the key given by --key, or with the job's.
Result<ZmqOptions> SocketsOf(const CommandLine& line);

}  // namespace dt::cli
