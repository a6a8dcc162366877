// Processes that end or fall silent. The loss of a worker ends the job. So does the loss of a
// server that has shards which nobody else has, unless it keeps a log: then the job waits for a
// successor, which is a process with the same server token (the random name of the server's
// directory). A member that is present is never replaced, so that a process that has learned its
// token cannot displace it.
//
//   member ──ended, silent for a lease, stopped──▶ away ──successor joins, is Ready──▶ member
//                                                   └─wait_for_server──▶ lost
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/elastic/admission.h"
#include "scheduler/state/job_context.h"

namespace dt::scheduler {

class ServerRecovery {
 public:
  // The scheduler knows this of a process that is lost.
  enum class Fate : uint8_t {
    kSilent,    // It may wake, and whoever looks after it may start another.
    kReplaced,  // It has ended, and another is started in its place.
    kUseless,   // It was waited for in vain, or lives and is of no use.
    kEnded,     // It has ended, and none is started in its place.
  };
  // A process that is lost, and how it was lost.
  struct Loss {
    ProcessId id;
    std::string how;
    Fate fate = Fate::kUseless;
  };

  ServerRecovery(JobContext& job, Admission& admission) : job_(job), admission_(admission) {}

  // Whether the job can replace this member by a successor.
  bool CanReplace(const Member& member) const;
  bool MayComeBack(const Member& member, const Loss& loss) const;
  // A member whose lease has run out, or that has been away for too long. Call it again when it is
  // away, or no member any more.
  std::optional<Loss> CheckLeases(TimePoint now) const;
  // Servers that live and are of no use (membership/suspects.h). Returns one that has been so for
  // half a lease, if others have all that it has; or for as long as a lost server is waited for.
  std::optional<Loss> CheckSuspects(TimePoint now);
  void SetAway(TimePoint now, const Member& member, std::string_view why);
  // The member was away, and has been heard again, or its successor is ready.
  void OnRecovered(TimePoint now, const Member& member);
  // Whether the member went away, and has neither come back nor been replaced by a ready successor.
  bool IsGone(ProcessId id) const { return gone_since_.contains(id); }
  void Forget(ProcessId id) { gone_since_.erase(id), starting_since_.erase(id); }

  // The process has the token of a member; it waits until that member is away.
  void AddSuccessor(TimePoint now, const JoinMessage& join);
  void ForgetSuccessor(const std::string& host, int64_t pid);
  // Those that wait for the place of a member that was removed: they may join as others do.
  std::vector<JoinMessage> TakeSuccessorsOfNobody();
  std::vector<JoinMessage> TakeSuccessors();
  // Lets successors replace the members that are away, and returns those members; each must be sent
  // what its predecessor had. Refuses successors that have waited for too long.
  std::vector<ProcessId> SettleSuccessors(TimePoint now);
  void RefuseSuccessors(TimePoint now, const Status& why);

 private:
  struct Successor {
    JoinMessage join;
    TimePoint since{};          // The time at which it began to wait for `predecessor`.
    Incarnation predecessor{};  // The member's process.
  };
  std::optional<Loss> AwayTooLong(TimePoint now) const;
  // A server without shards that has joined a running job: orders wait for it, too.
  std::optional<Loss> StartsTooLong(TimePoint now);
  void NoteGone(TimePoint now, const Member& member, Outbox::Details details);
  Status Replace(TimePoint now, const Member& member, const JoinMessage& join);

  JobContext& job_;
  Admission& admission_;
  std::vector<Successor> successors_;
  std::map<ProcessId, TimePoint> gone_since_, suspected_since_, starting_since_;
};

}  // namespace dt::scheduler
