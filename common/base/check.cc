#include "common/base/check.h"

#include <cstdio>
#include <cstdlib>

#include "absl/debugging/stacktrace.h"
#include "absl/debugging/symbolize.h"
#include "common/base/text.h"

namespace dt {

void CheckFailed(const char* file, int line, const char* condition, std::string_view values) {
  std::fprintf(stderr, "%s:%d: check failed: %s %s\n", file, line, condition,
               Printable(values).c_str());
  void* frames[32];
  const int count = absl::GetStackTrace(frames, 32, 1);
  for (int i = 0; i < count; ++i) {
    char symbol[512] = "?";
    absl::Symbolize(frames[i], symbol, sizeof(symbol));
    std::fprintf(stderr, "  %p %s\n", frames[i], symbol);
  }
  std::fflush(stderr);
  std::abort();
}

}  // namespace dt
