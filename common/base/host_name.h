// The name of this machine, or "unknown" if the system gives none. Any thread.
#pragma once

#include <string>

namespace dt {

std::string HostName();

}  // namespace dt
