// Who takes part in a job: exactly the servers and workers that it asks for. A member that is
// silent for a lease counts as lost. A plain state machine: time is passed in.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/control/messages.h"

namespace dt::scheduler {

struct Member {
  ProcessId id;
  JoinMessage join;
  TimePoint heard{};                         // Last sign of life.
  HeartbeatMessage report;                   // Its last heartbeat.
  bool reported = false;                     // Whether there was one.
  std::optional<TimePoint> away_since = {};  // Waited for, until it returns.

  Role role() const { return join.role; }
  Incarnation incarnation() const { return join.incarnation; }
  // What it computes on beside its CPU; null: nothing.
  const DeviceInfo* accelerator() const;
  // "worker 3 (pid 4711 on host7)": how errors name it.
  std::string Name() const;
};

struct MembershipNeeds {
  uint32_t servers = 1, workers = 1;
  uint64_t job_fingerprint = 0;
  uint32_t wire_version = 0;
  Duration lease{};
};

// Members on one machine: they share its cores.
struct MachineMembers {
  uint32_t servers = 0, workers = 0;
};

class Membership {
 public:
  explicit Membership(const MembershipNeeds& needs) : needs_(needs) {}

  // Servers are numbered from 1, workers after the servers. A member gets the number that it asks
  // for, or the lowest one of its role that is free. The same incarnation again is the same member.
  // Invalid: another job, version or role; a surplus process. The reference holds as long as the
  // Membership.
  Result<const Member*> Join(TimePoint now, const JoinMessage& join);
  // The member whose place a process with this claim would take; null if there is none.
  const Member* FindClaim(uint64_t claim) const;
  // `join` takes its place: same id, another process. Invalid: of another job or version, or at
  // other addresses than before.
  Status Return(TimePoint now, ProcessId id, const JoinMessage& join);
  // Not asked for its lease until it is heard of again.
  void SetAway(TimePoint now, ProcessId id);
  const Member* Find(Incarnation incarnation) const;
  const Member* Find(ProcessId id) const;
  // The member that is this process; null if there is none.
  const Member* FindProcess(const std::string& host, int64_t pid) const;
  void Heard(TimePoint now, Incarnation from);
  void Report(Incarnation from, const HeartbeatMessage& report);

  bool complete() const;
  // "1 of 2 servers and 0 of 2 workers": who is there.
  std::string Present() const;
  // The member whose lease has run out for the longest time, if any has, but for those away. Until
  // its first heartbeat a member has two leases: it does not know of its welcome yet.
  const Member* Lost(TimePoint now) const;
  // The members on the machine that has the most of them.
  MachineMembers OnFullestMachine() const;
  // The scheduler itself stood still for so long until `now`: its pause is not their silence.
  void ExtendLeases(TimePoint now, Duration by);

  const std::list<Member>& members() const { return members_; }
  // In order of id.
  std::vector<const Member*> OfRole(Role role) const;

 private:
  Member* FindMutable(Incarnation incarnation);
  ProcessId NumberFor(const JoinMessage& join) const;
  Status CheckJoin(const JoinMessage& join) const;
  Status CheckSameJob(const JoinMessage& join) const;

  const MembershipNeeds needs_;
  std::list<Member> members_;  // In order of id; a list, so that references hold.
};

}  // namespace dt::scheduler
