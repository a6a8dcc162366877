// The name of this machine; "unknown" where it has none. Any thread.
#pragma once

#include <string>

namespace dt {

std::string HostName();

}  // namespace dt
