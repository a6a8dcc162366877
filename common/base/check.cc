#include "common/base/check.h"

#include <cstdio>
#include <cstdlib>

#include "absl/debugging/stacktrace.h"
#include "absl/debugging/symbolize.h"
#include "common/base/log.h"
#include "common/base/text.h"

namespace dt {

void CheckFailed(const char* file, int line, const char* condition, std::string_view values) {
  std::string stack;
  void* frames[32];
  const int count = absl::GetStackTrace(frames, 32, 1);
  for (int i = 0; i < count; ++i) {
    char symbol[512] = "?";
    absl::Symbolize(frames[i], symbol, sizeof(symbol));
    stack += fmt::format("  {} {}\n", frames[i], symbol);
  }
  if (LogsJson()) {
    LogEnd("check.failed", {{"where", fmt::format("{}:{}", file, line)},
                            {"condition", condition},
                            {"values", values},
                            {"stack", stack}});
  } else {
    std::fprintf(stderr, "%s:%d: check failed: %s %s\n%s", file, line, condition,
                 Printable(values).c_str(), stack.c_str());
  }
  std::fflush(stderr);
  std::abort();
}

}  // namespace dt
