// Asking a scheduler how its job is, without joining.
#pragma once

#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/net/socket.h"

namespace dt {

// The scheduler's status as one JSON object. Timeout naming the address when nobody answers in time.
Result<std::string> QueryStatus(Network& network, const std::string& scheduler, Duration patience);

}  // namespace dt
