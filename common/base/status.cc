#include "common/base/status.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "common/base/written_paths.h"

namespace dt {
namespace {

constexpr char kWhere[] = "dovetail/where";
constexpr char kHint[] = "dovetail/hint";

std::string Payload(const Status& status, const char* key) {
  const auto cord = status.GetPayload(key);
  return cord.has_value() ? std::string(*cord) : std::string();
}

Status WithPayload(Status status, const char* key, std::string_view text) {
  if (!status.ok() && !text.empty() && !status.GetPayload(key).has_value()) {
    status.SetPayload(key, absl::Cord(absl::string_view(text.data(), text.size())));
  }
  return status;
}

}  // namespace

Status MakeStatus(StatusCode code, std::string_view message) {
  return Status(code, absl::string_view(message.data(), message.size()));
}

std::string_view MessageOf(const Status& status) {
  return {status.message().data(), status.message().size()};
}

Status WithWhere(Status status, std::string_view where) {
  return WithPayload(std::move(status), kWhere, where);
}

Status WithHint(Status status, std::string_view hint) {
  return WithPayload(std::move(status), kHint, hint);
}

Status Prefixed(Status status, std::string_view before) {
  if (status.ok()) return status;
  Status longer = MakeStatus(status.code(), fmt::format("{}: {}", before, MessageOf(status)));
  status.ForEachPayload(
      [&longer](absl::string_view key, const absl::Cord& value) { longer.SetPayload(key, value); });
  return longer;
}

Problem ProblemOf(const Status& status) {
  return {WithWrittenPaths(MessageOf(status)), WithWrittenPaths(Payload(status, kWhere)),
          WithWrittenPaths(Payload(status, kHint))};
}

std::string ToText(const Status& status) {
  const Problem problem = ProblemOf(status);
  std::string text = problem.what;
  if (!problem.where.empty()) text += fmt::format(" ({})", problem.where);
  if (!problem.hint.empty()) text += fmt::format("; {}", problem.hint);
  return text;
}

Status Combined(std::span<const Status> problems) {
  std::string text;
  for (const Status& status : problems) {
    const Problem problem = ProblemOf(status);
    if (!problem.where.empty()) text += problem.where + ": ";
    text += problem.what + (problem.hint.empty() ? "" : "; " + problem.hint) + "\n";
  }
  text += fmt::format("{} problem{}, nothing started", problems.size(),
                      problems.size() == 1 ? "" : "s");
  const bool all_not_yet = std::ranges::all_of(
      problems, [](const Status& status) { return status.code() == StatusCode::kUnimplemented; });
  const StatusCode code = all_not_yet ? StatusCode::kUnimplemented : StatusCode::kInvalidArgument;
  return WithWhere(MakeStatus(code, text), ProblemOf(problems.front()).where);
}

int ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kUnimplemented:
      return 2;
    case StatusCode::kOutOfRange:
      return 3;
    default:
      return 1;
  }
}

}  // namespace dt
