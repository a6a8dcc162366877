// The members of a job: the servers and workers that it asks for, and later also others. A member
// that is silent for a lease counts as lost. A plain state machine: time is passed in.
#pragma once

#include <limits>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/control/reports.h"

namespace dt::scheduler {

struct Member {
  ProcessId id;
  JoinMessage join;
  bool read = false;   // A worker has read its data.
  bool ready = false;  // The member has carried out Start.
  // It has the place of a server that was lost, and goes on with that server's log.
  bool returned = false;
  // Asked to leave: the shards of a server go to others first.
  bool draining = false;
  DT_FIELDS(id, join, read, ready, returned, draining)

  Role role() const { return join.role; }
  Incarnation incarnation() const { return join.incarnation; }
  // The member's computing device besides the CPU; null if there is none.
  const DeviceInfo* accelerator() const;
  // The name in error texts: "worker 3 (pid 4711 on host7)".
  std::string Name() const;
};

// Signs of life of a member. A scheduler that has just started has none, and gives every member a
// new lease.
struct Presence {
  TimePoint heard{};        // Last sign of life.
  HeartbeatMessage report;  // The last heartbeat.
  bool reported = false;    // Whether this process has sent a heartbeat.
  // Another process has had its addresses since then, and it has not been heard of.
  std::optional<TimePoint> claimed_since;
  std::optional<TimePoint> away_since;  // Set while the job waits for the member to return.
};

struct MembershipNeeds {
  uint32_t servers = 1, workers = 1;
  uint64_t job_fingerprint = 0;
  uint64_t run = 0;
  uint32_t wire_version = 0;
  Duration lease{};
};

// Members on one machine, which share its cores.
struct MachineMembers {
  uint32_t servers = 0, workers = 0;
};

class Membership {
 public:
  // `members` are in order of id; only Membership changes them from now on. They count as heard at
  // `now`. REQUIRES: `members` outlives this object.
  Membership(const MembershipNeeds& needs, std::list<Member>& members, TimePoint now);

  // Servers are numbered from 1, workers after the servers, those that join later after both. A
  // member gets the number that it asks for, or the lowest free one of its role. The same
  // incarnation again returns the same member.
  // Errors: Invalid, for another job, version or role, and if the role is full. The pointer is
  // valid as long as the Membership.
  Result<const Member*> Join(TimePoint now, const JoinMessage& join);
  // The member with this server token, which a process with the token may replace; null if none.
  const Member* FindToken(uint64_t token) const;
  // The process in `join` replaces the member's process: same id, not ready. Errors: Invalid, if it
  // is of another job or version, or has other addresses than before.
  Status Return(TimePoint now, ProcessId id, const JoinMessage& join);
  // The job goes on without this member. Pointers to it are invalid afterwards.
  void Remove(ProcessId id);
  // The server that had the host and the addresses of a process that joins; null if none.
  const Member* FindClaimed(const JoinMessage& join) const;
  // If it still lives it will be heard of soon: half a lease is enough.
  void SetClaimed(TimePoint now, ProcessId id);
  // Stops checking the member's lease until it is heard again.
  void SetAway(TimePoint now, ProcessId id);
  const Member* Find(Incarnation incarnation) const;
  const Member* Find(ProcessId id) const;
  // The member that is this process; null if there is none.
  const Member* FindProcess(const std::string& host, int64_t pid) const;
  void Heard(TimePoint now, Incarnation from);
  void Report(Incarnation from, const HeartbeatMessage& report);
  void SetRead(ProcessId id) { FindMutable(id)->read = true; }
  void SetReady(ProcessId id) { FindMutable(id)->ready = true; }
  void SetDraining(ProcessId id) { FindMutable(id)->draining = true; }
  // From now on processes may join beyond those that the job began with: servers up to `servers` in
  // all, workers without a limit.
  void AdmitLater(uint32_t servers) {
    servers_max_ = servers;
    workers_max_ = std::numeric_limits<uint32_t>::max();
  }

  bool complete() const;
  // The members so far, as text: "1 of 2 servers and 0 of 2 workers".
  std::string Present() const;
  // The member whose lease ran out longest ago, members that are away excluded; null if there is
  // none. One whose addresses another process has, has half a lease. Before its first heartbeat a
  // member has two leases, since it may not know yet that it was welcomed.
  const Member* Lost(TimePoint now) const;
  // The members on the machine that has the most of them.
  MachineMembers OnFullestMachine() const;
  // The scheduler itself was suspended for `by` until `now`, when it could not hear its members.
  void ExtendLeases(TimePoint now, Duration by);

  const std::list<Member>& members() const { return members_; }
  // REQUIRES: `id` is a member's.
  const Presence& presence(ProcessId id) const { return presence_.at(id); }
  // In order of id.
  std::vector<const Member*> OfRole(Role role) const;

 private:
  Member* FindMutable(ProcessId id);
  ProcessId NumberFor(const JoinMessage& join) const;
  Status CheckJoin(const JoinMessage& join) const;
  Status CheckSameJob(const JoinMessage& join) const;

  const MembershipNeeds needs_;
  uint32_t servers_max_, workers_max_;
  std::list<Member>& members_;  // A list, so that pointers to members stay valid.
  std::map<ProcessId, Presence> presence_;
};

}  // namespace dt::scheduler
