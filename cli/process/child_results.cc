#include "cli/process/child_results.h"

namespace dt::cli {

Result<ChildResults> ChildResults::Make(const std::string& run_dir) {
  Result<ScratchDir> made = ScratchDir::Make(run_dir, "launch");
  if (!made.ok()) {
    return WithHint(made.status(), "start the job in a working directory that this user can write");
  }
  return ChildResults(*std::move(made));
}

std::string ChildResults::PathOf(const std::string& name) const {
  return fmt::format("{}/{}.json", folder_.path(), name);
}

Json ChildResults::ResultOf(const std::string& name) const {
  Result<Json> json = ReadJsonFile(PathOf(name));
  return json.ok() && json->is_object() ? *std::move(json) : Json(nullptr);
}

Status ChildResults::ErrorOf(const ChildProcess& child) const {
  const Json result = ResultOf(child.name());
  const Json& error = MemberOf(result, "error");
  if (!error.is_object()) return OkStatus();
  const StatusCode code = child.exit()->code == 2   ? StatusCode::kInvalidArgument
                          : child.exit()->code == 3 ? StatusCode::kOutOfRange
                                                    : StatusCode::kUnavailable;
  Status status = MakeStatus(code, TextOf(error, "what"));
  return WithHint(WithWhere(std::move(status), TextOf(error, "where")), TextOf(error, "hint"));
}

}  // namespace dt::cli
