// Admits processes that join a job, and refuses those that the job does not need.
#pragma once

#include "scheduler/state/job_context.h"

namespace dt::scheduler {

class Admission {
 public:
  explicit Admission(JobContext& job) : job_(job) {}

  // Admits the sender as a new member, or answers a member that asks again, or refuses it.
  void Join(TimePoint now, const JoinMessage& join);
  // Also again, when the member begins a new session.
  void Welcome(const Member& member);
  void Refuse(TimePoint now, Incarnation to, Role role, const Status& why);

 private:
  JobContext& job_;
  uint64_t refused_ = 0;  // Number of refused joins.
  TimePoint log_again_{};
};

}  // namespace dt::scheduler
