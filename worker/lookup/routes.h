// The shard map as a sender sees it: which executor endpoint serves which shards. Immutable once
// made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/cluster/shard_map.h"

namespace dt::worker {

struct ExecutorRoute {
  ProcessId server;
  std::string endpoint;
  std::vector<ShardId> shards;  // Ascending; never empty.
};

struct Routes {
  MapVersion version;
  std::vector<ExecutorRoute> executors;  // By server, then by executor number.
  // By shard: its position in wire order, executor by executor, shards ascending within one.
  std::vector<uint32_t> place;

  uint32_t shards() const { return static_cast<uint32_t>(place.size()); }
};

// REQUIRES: CheckShardMap(map) is OK.
Routes MakeRoutes(const ShardMap& map);

}  // namespace dt::worker
