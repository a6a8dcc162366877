#include "common/base/host_name.h"

#include <unistd.h>

namespace dt {

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

}  // namespace dt
