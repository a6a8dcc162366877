// Servers that send heartbeats, and are of no use all the same: an executor does not turn, or those
// that talk to the server get no answers.
//
// Nobody is a suspect on one process's word: the way between the two may be cut, and the scheduler
// reaches both. Of those that talk to the server, two and more than half must complain; each of
// them says in every heartbeat who has not answered it for a lease. Pure functions of what the
// members have reported.
#pragma once

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/cluster/shard_map.h"
#include "scheduler/membership/membership.h"

namespace dt::scheduler {

struct Suspect {
  ProcessId id;
  std::string how;  // "executor 1 has not turned for 3.4 s"
};

// In order of id. `lease`: how long an executor may not turn, and how old a report may be.
std::vector<Suspect> SuspectsOf(const Membership& members, const ShardMap& map, TimePoint now,
                                Duration lease);

// Those without which each of their shards keeps a member that is no suspect.
std::vector<Suspect> Removable(const std::vector<Suspect>& suspects, const ShardMap& map);

}  // namespace dt::scheduler
