#include "cli/launch/launch_result.h"

#include <algorithm>
#include <cstdio>

#include "cli/outcome.h"
#include "common/base/log.h"
#include "common/base/text.h"

namespace dt::cli {
namespace {

// Name of the process whose loss ended the job; "" if there was none.
std::string NameOfLost(const std::vector<ChildProcess>& children, const Json& result) {
  if (children.empty()) return "";
  if (children.front().exit().has_value() && children.front().exit()->signal != 0) {
    return children.front().name();
  }
  if (!MemberOf(result, "error").is_object()) return "";
  std::string name;
  for (const Json& event : MemberOf(result, "events")) {
    const std::string kind = TextOf(event, "kind");
    if (kind == "recovered" || kind == "returned") name.clear();
    if (!kind.ends_with("_lost")) continue;
    name = fmt::format("{} {}", kind.substr(0, kind.size() - 5), CountOf(event, "id"));
  }
  return name;
}

}  // namespace

std::string ResultText(Json scheduler, const JobResult& without, double seconds_total) {
  if (!scheduler.is_object()) scheduler = Json::parse(ToJson(without));
  scheduler["seconds_total"] = seconds_total;
  return scheduler.dump(2) + "\n";
}

Status SchedulerEnd(const std::vector<ChildProcess>& children, const ChildResults& results) {
  const ChildProcess& scheduler = children.front();
  if (scheduler.exit()->code == 0 && scheduler.exit()->signal == 0) return OkStatus();
  if (Status said = results.ErrorOf(scheduler); !said.ok()) return said;
  if (scheduler.exit()->signal != 0 && results.ResultOf(kSchedulerName).is_object()) {
    return OkStatus();
  }
  return Unavailable("the scheduler (pid {}) {}", scheduler.pid(), scheduler.exit()->Text());
}

void PrintLostLog(const std::vector<ChildProcess>& children, const Json& result) {
  const auto lost = std::ranges::find(children, NameOfLost(children, result), &ChildProcess::name);
  if (lost == children.end()) return;
  const std::deque<std::string>& lines = lost->last_lines();
  const char* const between = LogsJson() ? "\n" : "\n    ";
  const std::string text = JoinText(std::vector(lines.begin(), lines.end()), between);
  if (LogsJson()) {
    LogEnd("launch.last_lines", {{"name", lost->name()}, {"text", text}});
  } else if (lines.empty()) {
    std::fprintf(stderr, "  %s has logged nothing; --log-level info makes it log more\n",
                 lost->name().c_str());
  } else {
    std::fprintf(stderr, "  the last lines of %s:\n    %s\n", lost->name().c_str(),
                 Printable(text).c_str());
  }
}

}  // namespace dt::cli
