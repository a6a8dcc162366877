// DT_CHECK: our bugs. Prints the condition, the place and a stack, then aborts; also in release
// builds. Never for what a user, a peer or a disk can cause.
#pragma once

#include <string_view>

#include <fmt/core.h>

namespace dt {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              std::string_view values);
}  // namespace dt

#define DT_CHECK(condition)                                  \
  do {                                                       \
    if (!(condition)) [[unlikely]]                           \
      ::dt::CheckFailed(__FILE__, __LINE__, #condition, {}); \
  } while (false)
// DT_CHECK_MSG(cond, "format {}", value): with the values that explain it.
#define DT_CHECK_MSG(condition, ...)                                                 \
  do {                                                                               \
    if (!(condition)) [[unlikely]]                                                   \
      ::dt::CheckFailed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
#define DT_UNREACHABLE() ::dt::CheckFailed(__FILE__, __LINE__, "unreachable", {})

// Only inside loops per row.
#ifdef NDEBUG
#define DT_DCHECK(condition) static_cast<void>(0)
#else
#define DT_DCHECK(condition) DT_CHECK(condition)
#endif
