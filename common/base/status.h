// Errors as values. `Status` and `Result` are Abseil's. Only this file makes errors, so each kind
// of failure has one code, and each code tells the caller what to do next.
//
//   Invalid      the user's configuration or flags are wrong: fix the input          (exit 2)
//   NotFound     the named thing does not exist: fix the name                        (exit 2)
//   Malformed    a data line, file or message cannot be read: refuse it whole        (exit 3)
//   Stale        sent under an old generation, term or map version: refresh, resend
//   Busy         a limit is reached: wait, then try again
//   Unavailable  the environment fails (disk, peer, port): try elsewhere, or stop
//   Timeout      a deadline passed: handle it like Unavailable
//   DataLoss     stored bytes are damaged: stop, name the file
//   Cancelled    stopped on request
//   Again        what was done up to here is given up: begin anew, from a checkpoint
//   NotYet       valid, but its mechanism is not available yet                        (exit 2)
//   Internal     the other side of a boundary broke its contract: a bug
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/fields.h"

namespace dt {

using Status = absl::Status;
using StatusCode = absl::StatusCode;
template <class T>
using Result = absl::StatusOr<T>;

// What a person reads: the sentence, where the error is (a file and line, for example), and what to
// do. Paths are shown as the job file writes them (written_paths.h). `where` and `hint` may be
// empty.
struct Problem {
  std::string what;
  std::string where;
  std::string hint;
  DT_FIELDS(what, where, hint)
};

Status MakeStatus(StatusCode code, std::string_view message);
std::string_view MessageOf(const Status& status);

// Adds `where` or `hint` unless it is empty or the status already has one. An OK status stays as it
// is.
Status WithWhere(Status status, std::string_view where);
Status WithHint(Status status, std::string_view hint);
// Puts "<before>: " before the message and keeps code, `where` and `hint`.
Status Prefixed(Status status, std::string_view before);
Problem ProblemOf(const Status& status);
// One line: "what (where); hint".
std::string ToText(const Status& status);
// Several errors as one: one line for each, with its `where` and `hint`, then their number.
Status Combined(std::span<const Status> problems);
// 0 for OK; 2 for Invalid, NotFound and NotYet; 3 for Malformed; otherwise 1.
int ExitCodeOf(const Status& status);

inline Status OkStatus() { return absl::OkStatus(); }

#define DT_STATUS_MAKER(Name, code)                                            \
  template <class... Args>                                                     \
  Status Name(fmt::format_string<Args...> format, Args&&... args) {            \
    return MakeStatus(code, fmt::format(format, std::forward<Args>(args)...)); \
  }
DT_STATUS_MAKER(Invalid, StatusCode::kInvalidArgument)
DT_STATUS_MAKER(Malformed, StatusCode::kOutOfRange)
DT_STATUS_MAKER(NotFound, StatusCode::kNotFound)
DT_STATUS_MAKER(Stale, StatusCode::kFailedPrecondition)
DT_STATUS_MAKER(Busy, StatusCode::kResourceExhausted)
DT_STATUS_MAKER(Unavailable, StatusCode::kUnavailable)
DT_STATUS_MAKER(Timeout, StatusCode::kDeadlineExceeded)
DT_STATUS_MAKER(DataLoss, StatusCode::kDataLoss)
DT_STATUS_MAKER(Cancelled, StatusCode::kCancelled)
DT_STATUS_MAKER(Again, StatusCode::kAborted)
DT_STATUS_MAKER(NotYet, StatusCode::kUnimplemented)
DT_STATUS_MAKER(Internal, StatusCode::kInternal)
#undef DT_STATUS_MAKER

}  // namespace dt

#define DT_CONCAT_INNER(a, b) a##b
#define DT_CONCAT(a, b) DT_CONCAT_INNER(a, b)
#define DT_TRY_INNER(result, declaration, expression)  \
  auto result = (expression);                          \
  if (!result.ok()) return std::move(result).status(); \
  declaration = *std::move(result)

// Binds the value, or returns the error from the enclosing function.
#define DT_TRY(declaration, expression) \
  DT_TRY_INNER(DT_CONCAT(dt_result_, __LINE__), declaration, expression)
// Returns the error from the enclosing function.
#define DT_TRY_STATUS(expression)                                                 \
  do {                                                                            \
    if (::dt::Status dt_status = (expression); !dt_status.ok()) return dt_status; \
  } while (false)
