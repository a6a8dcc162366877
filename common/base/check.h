// DT_CHECK is for our own bugs. If the condition is false, it prints the condition, the source line
// and a stack, then aborts, also in release builds. It is never for an error that a user, a peer or
// a disk can cause.
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
// DT_CHECK_MSG(cond, "format {}", value) also prints the formatted values.
#define DT_CHECK_MSG(condition, ...)                                                 \
  do {                                                                               \
    if (!(condition)) [[unlikely]]                                                   \
      ::dt::CheckFailed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
#define DT_UNREACHABLE() ::dt::CheckFailed(__FILE__, __LINE__, "unreachable", {})

// Checks only in debug builds. For loops over rows, where a DT_CHECK would cost too much.
#ifdef NDEBUG
#define DT_DCHECK(condition) static_cast<void>(0)
#else
#define DT_DCHECK(condition) DT_CHECK(condition)
#endif
