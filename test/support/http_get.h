// GET over a real loopback socket, by hand.
#pragma once

#include <string>

namespace dt::test {

// The body at `path` of a server whose address is "http://127.0.0.1:PORT/". "" if no answer comes
// within a second.
std::string HttpGet(const std::string& address, const std::string& path);

}  // namespace dt::test
