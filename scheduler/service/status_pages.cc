#include "scheduler/service/status_pages.h"

#include "scheduler/report/dump_plan.h"
#include "scheduler/report/page.h"
#include "scheduler/report/status_of.h"
#include "scheduler/report/timeline_files.h"

namespace dt::scheduler {
namespace {

constexpr Duration kPageIsOpen = seconds(3);

}  // namespace

bool StatusPages::IsOpen(TimePoint now) const { return asked_ + kPageIsOpen > now; }

HttpReply StatusPages::Page(const std::string& path) {
  if (path == "/" || path == "/status") asked_ = SystemClock().Now();
  if (path == "/") return {200, "text/html; charset=utf-8", StatusPage()};
  if (path == "/status") return {200, "application/json", StatusJson(StatusNow())};
  if (path == "/metrics") return {200, "text/plain; version=0.0.4", StatusMetrics(StatusNow())};
  constexpr const char* kText = "text/plain; charset=utf-8";
  if (path == "/healthz") return {200, kText, "ok\n"};
  if (path == "/readyz") {
    const bool ready = job_.phase() == JobPhase::kRunning;
    return {ready ? 200 : 503, kText, fmt::format("{}\n", NameOf(job_.phase()))};
  }
  if (path == "/plan" && !PlanHtml().empty()) return {200, "text/html; charset=utf-8", PlanHtml()};
  if (options_.job.observe.trace) {
    const std::string folder = options_.job.run_dir + "/trace";
    if (std::optional<HttpReply> reply = TimelineReply(folder, path)) return *std::move(reply);
  }
  return {404, kText, "there is /, /status, /metrics, /healthz, /readyz, /plan and /timeline\n"};
}

// Made once, because it is slow and every process on this machine may ask. Empty before the plan.
const std::string& StatusPages::PlanHtml() {
  if (plan_page_.empty() && job_.plan().has_value()) {
    plan_page_ =
        DumpPlan(*job_.plan(), DumpFormat::kHtml, options_.job.job, job_.record().plan.explanation);
  }
  return plan_page_;
}

JobStatus StatusPages::StatusNow() const {
  const TimePoint now = SystemClock().Now();
  JobStatus status = StatusOf(job_, now);
  if (options_.one_process) MergeProcesses(status);
  const auto wall = [&](std::optional<TimePoint> at) {
    return at.has_value() ? std::optional(WallSeconds() - SecondsBetween(*at, now)) : std::nullopt;
  };
  if (const TrainingRun* const training = job_.training(); training != nullptr) {
    status.last_step_time = wall(training->last_step_at());
    status.last_checkpoint_time = wall(training->last_checkpoint_at());
  }
  status.malformed = options_.malformed();
  if (options_.turns != nullptr) status.longest_turn = options_.turns->seconds();
  return status;
}

}  // namespace dt::scheduler
