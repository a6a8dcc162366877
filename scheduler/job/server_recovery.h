// Processes that end or fall silent. The loss of a worker ends the job. So does the loss of a
// server, unless it keeps a log: then the job waits for a successor, which is a process with the
// same server token (the random name of the server's directory). A member that is present is never
// replaced, so that nobody who has learned its token can displace it.
//
//   member ──ended, silent for a lease, stopped──▶ away ──successor joins, is Ready──▶ member
//                                                   └─wait_for_server──▶ lost
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/job/admission.h"
#include "scheduler/job/job_context.h"

namespace dt::scheduler {

class ServerRecovery {
 public:
  // A process without which the job cannot go on, and what has become of it.
  struct Loss {
    ProcessId id;
    std::string how;
  };

  ServerRecovery(JobContext& job, Admission& admission) : job_(job), admission_(admission) {}

  // Whether the job can go on after this member with a successor.
  bool CanReplace(const Member& member) const;
  // Members whose leases have run out become away, or are lost; so are those that were away for too
  // long.
  std::optional<Loss> CheckLeases(TimePoint now);
  void SetAway(TimePoint now, const Member& member, std::string_view why);
  // It was away, and has been heard of, or its successor is ready.
  void OnRecovered(TimePoint now, const Member& member);
  // Whether it has gone away, and neither come back nor been replaced by one that is ready.
  bool IsGone(ProcessId id) const { return gone_since_.contains(id); }

  // A process with a member's token waits until that member is away.
  void AddSuccessor(TimePoint now, const JoinMessage& join) { successors_.push_back({join, now}); }
  void ForgetSuccessor(const std::string& host, int64_t pid);
  // Gives successors the places of members that are away, and returns those members: each is to be
  // given what its predecessor had. Refuses successors that have waited for too long.
  std::vector<ProcessId> SettleSuccessors(TimePoint now);
  void RefuseSuccessors(TimePoint now, const Status& why);

 private:
  struct Successor {
    JoinMessage join;
    TimePoint since{};
  };
  std::optional<Loss> AwayTooLong(TimePoint now) const;
  void NoteGone(TimePoint now, const Member& member, Outbox::Details details);
  Status Replace(TimePoint now, const Member& member, const JoinMessage& join);

  JobContext& job_;
  Admission& admission_;
  std::vector<Successor> successors_;
  std::map<ProcessId, TimePoint> gone_since_;
};

}  // namespace dt::scheduler
