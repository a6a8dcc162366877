// Lets processes in that join a job, and refuses those that it has no place for.
#pragma once

#include "scheduler/job/job_context.h"

namespace dt::scheduler {

class Admission {
 public:
  explicit Admission(JobContext& job) : job_(job) {}

  // Welcomes it as a new member, or as one that asks again, or refuses it.
  void Join(TimePoint now, const JoinMessage& join);
  // `returned`: it has taken the place of a member, and gets what that one was given.
  void Welcome(const Member& member, bool returned);
  void Refuse(TimePoint now, Incarnation to, Role role, const Status& why);

 private:
  JobContext& job_;
  uint64_t refused_ = 0;  // Number of refused joins.
  TimePoint log_again_{};
};

}  // namespace dt::scheduler
