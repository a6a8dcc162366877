#include "common/base/open_files.h"

#include <sys/resource.h>

namespace dt {
namespace {

constexpr uint64_t kUnknown = 1024;

}  // namespace

void RaiseOpenFilesMax() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // On failure the limit stays as it is.
}

uint64_t OpenFilesMax() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : kUnknown;
}

}  // namespace dt
