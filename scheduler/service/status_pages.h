// What the scheduler shows while it runs: the status as a page, as JSON and for Prometheus, the
// plan, the timeline.
#pragma once

#include <functional>
#include <string>

#include "common/base/clock.h"
#include "common/net/http/http_server.h"
#include "scheduler/job/job.h"
#include "scheduler/report/status.h"
#include "scheduler/service/longest_turn.h"

namespace dt::scheduler {

class StatusPages {
 public:
  struct Options {
    const JobConfig& job;
    bool one_process = false;             // The other roles are threads of this process.
    std::function<uint64_t()> malformed;  // Packets that were dropped so far.
    const LongestTurn* turns = nullptr;   // The scheduler's loop; null: unknown.
  };
  // REQUIRES: `job` outlives the pages.
  StatusPages(const Job& job, Options options) : job_(job), options_(std::move(options)) {}

  JobStatus StatusNow() const;
  HttpReply Page(const std::string& path);
  // Whether the page or its status was requested lately, at `now`: an open page asks every second.
  bool IsOpen(TimePoint now) const;

 private:
  const std::string& PlanHtml();

  const Job& job_;
  const Options options_;
  std::string plan_page_;
  TimePoint asked_{};  // When the page or its status was last requested.
};

}  // namespace dt::scheduler
