// How chains get from what they are to what they should be: as many members as the job asks for,
// none of them draining, and every server with about as many shards as any other. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "scheduler/shards/chains.h"

namespace dt::scheduler {

struct BalanceInput {
  uint32_t replicas = 1;
  struct Server {
    ServerPlace place;
    bool draining = false;
    bool away = false;  // Or reads its log. Nothing is copied to it or from it.
  };
  std::vector<Server> servers;  // Those that may hold shards, ascending by id.
};

// At most so many shards are copied to, and from, one server at a time.
inline constexpr uint32_t kCopiesPerServer = 4;

// The next version of the map; nothing if nothing is to change now. A newcomer (Chain::syncing) is
// added to chains that are too short, or that go to a server with fewer shards; members are removed
// from chains that are too long, those that drain first. Chains that are copied stay as they are
// until they have caught up (WithMember). REQUIRES: the map's servers are among `input.servers`.
std::optional<ShardMap> NextMap(const ShardMap& map, const BalanceInput& input);

// How many shards are copied, those under way included, until NextMap has nothing to change;
// about, since it matters which copies end first.
uint32_t CopiesLeft(ShardMap map, const BalanceInput& input);

// Chains with fewer members than that.
uint32_t ShortChains(const ShardMap& map, uint32_t replicas);

// The next version of the map, in which the newcomer of this shard is a member, and the tail.
ShardMap WithMember(const ShardMap& map, ShardId shard);

}  // namespace dt::scheduler
