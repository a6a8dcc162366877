// Where requests for a shard go, by the newest chains that this worker knows. Owned by the train
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/cluster/shard_map.h"

namespace dt::worker {

class Routes {
 public:
  struct Executor {
    ProcessId server;
    std::string endpoint;
    friend bool operator==(const Executor&, const Executor&) = default;
  };

  // REQUIRES: CheckShardMap(map) is OK.
  explicit Routes(ShardMap map);

  const ShardMap& map() const { return map_; }
  // Executors keep their index when chains change, even when they get no requests any more.
  std::span<const Executor> executors() const { return executors_; }
  // For each shard: the index of an executor.
  std::span<const uint32_t> for_push() const { return push_; }
  std::span<const uint32_t> for_pull() const { return pull_; }
  // Whether an executor's server is a member of the shard's chain, or of any chain.
  bool Holds(uint32_t executor, ShardId shard) const;
  bool InUse(uint32_t executor) const;

  // Returns true if `change` makes the map newer. Errors: as Changed (common/cluster/shard_map.h).
  Result<bool> Take(const MapChange& change);
  // Takes a newer map of the same job; an older one is passed over, and false returned.
  bool Take(const ShardMap& map);

 private:
  void FindRoutes();
  uint32_t IndexOf(const ServerInfo& server, ShardId shard);

  ShardMap map_;
  std::vector<Executor> executors_;
  std::vector<uint32_t> push_, pull_;  // By shard.
};

}  // namespace dt::worker
