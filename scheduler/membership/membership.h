// Who takes part in a job: exactly the servers and workers that it asks for. A member that is
// silent for a lease counts as lost. A plain state machine: time is passed in.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/control/messages.h"

namespace dt::scheduler {

struct Member {
  ProcessId id;
  JoinMessage join;
  bool read = false;   // A worker that has read its data.
  bool ready = false;  // It has carried out Start.
  DT_FIELDS(id, join, read, ready)

  Role role() const { return join.role; }
  Incarnation incarnation() const { return join.incarnation; }
  // The device beside its CPU that it computes on; null if there is none.
  const DeviceInfo* accelerator() const;
  // "worker 3 (pid 4711 on host7)": how errors name it.
  std::string Name() const;
};

// What is known of a member's life. A scheduler that has just started knows nothing of it, and
// gives every member a new lease.
struct Presence {
  TimePoint heard{};                    // Last sign of life.
  HeartbeatMessage report;              // Its last heartbeat.
  bool reported = false;                // Whether there was one.
  std::optional<TimePoint> away_since;  // Waited for, until it returns.
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
  // `members`, in order of id, outlive the Membership, which alone changes them. Those that are in
  // it are heard of `now`.
  Membership(const MembershipNeeds& needs, std::list<Member>& members, TimePoint now);

  // Servers are numbered from 1, workers after the servers. A member gets the number that it asks
  // for, or the lowest one of its role that is free. The same incarnation again is the same member.
  // Invalid: another job, version or role; a surplus process. The reference holds as long as the
  // Membership.
  Result<const Member*> Join(TimePoint now, const JoinMessage& join);
  // The member whose place a process with this server token would take; null if there is none.
  const Member* FindToken(uint64_t token) const;
  // `join` takes the member's place: same id, another process, not ready. Invalid: it is of another
  // job or version, or at other addresses than before.
  Status Return(TimePoint now, ProcessId id, const JoinMessage& join);
  // Its lease is not checked until it is heard of again.
  void SetAway(TimePoint now, ProcessId id);
  const Member* Find(Incarnation incarnation) const;
  const Member* Find(ProcessId id) const;
  // The member that is this process; null if there is none.
  const Member* FindProcess(const std::string& host, int64_t pid) const;
  void Heard(TimePoint now, Incarnation from);
  void Report(Incarnation from, const HeartbeatMessage& report);
  void SetRead(ProcessId id) { FindMutable(id)->read = true; }
  void SetReady(ProcessId id) { FindMutable(id)->ready = true; }

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
  // REQUIRES: a member.
  const Presence& presence(ProcessId id) const { return presence_.at(id); }
  // In order of id.
  std::vector<const Member*> OfRole(Role role) const;

 private:
  Member* FindMutable(ProcessId id);
  ProcessId NumberFor(const JoinMessage& join) const;
  Status CheckJoin(const JoinMessage& join) const;
  Status CheckSameJob(const JoinMessage& join) const;

  const MembershipNeeds needs_;
  std::list<Member>& members_;  // A list, so that references hold.
  std::map<ProcessId, Presence> presence_;
};

}  // namespace dt::scheduler
