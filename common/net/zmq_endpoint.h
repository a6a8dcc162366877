// What may be written as an endpoint, checked before ZeroMQ sees it. Pure functions, but for the
// name service.
#pragma once

#include <string>

#include "common/base/status.h"

namespace dt {

struct EndpointParts {
  std::string scheme;  // tcp, inproc, ipc
  std::string host;    // tcp only; without brackets.
  std::string port;    // tcp only; digits, "0": any free one.
};

// Invalid, naming the text, unless it is tcp://HOST:PORT, inproc://NAME or ipc://PATH.
Result<EndpointParts> ParseEndpoint(const std::string& endpoint);
// Unavailable, naming the endpoint, when the host's name is not known here. Asks the name service
// for names, not for addresses.
Status CheckHost(const EndpointParts& parts, const std::string& endpoint);
// As ZeroMQ wants it: "localhost" is an address, IPv6 in brackets.
std::string EndpointText(const EndpointParts& parts);

}  // namespace dt
