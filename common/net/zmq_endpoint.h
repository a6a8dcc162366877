// Parses endpoints and checks them before ZeroMQ sees them. Pure functions, except that CheckHost
// asks the name service.
#pragma once

#include <string>

#include "common/base/status.h"

namespace dt {

struct EndpointParts {
  std::string scheme;  // tcp, inproc, ipc
  std::string host;    // tcp only; without brackets.
  std::string port;    // tcp only; digits. "0" means any free port.
};

// Invalid, with the text, unless it is tcp://HOST:PORT, inproc://NAME or ipc://PATH.
Result<EndpointParts> ParseEndpoint(const std::string& endpoint);
// Unavailable, with the endpoint, if the name of its host cannot be resolved. Asks the name service
// only for names, not for numeric addresses.
Status CheckHost(const EndpointParts& parts, const std::string& endpoint);
// The endpoint as ZeroMQ needs it: with an address instead of "localhost", and IPv6 in brackets.
std::string EndpointText(const EndpointParts& parts);

}  // namespace dt
