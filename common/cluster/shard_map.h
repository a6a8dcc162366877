// Which servers hold which shard. Immutable once made; a change is a new map with a higher version.
#pragma once

#include <string>
#include <vector>

#include "common/base/fields.h"
#include "common/base/ids.h"
#include "common/base/status.h"

namespace dt {

struct ServerInfo {
  ProcessId id;
  std::vector<std::string> endpoints;  // One per executor thread.
  DT_FIELDS(id, endpoints)
  friend bool operator==(const ServerInfo&, const ServerInfo&) = default;
};

// Head first. Pushes enter at the head, pulls are served by the tail. Length one today.
using Chain = std::vector<ProcessId>;

struct ShardMap {
  MapVersion version;
  std::vector<Chain> chains;        // By shard.
  std::vector<ServerInfo> servers;  // Every member of a chain, ascending id.
  DT_FIELDS(version, chains, servers)

  bool IsSound() const;  // CheckShardMap, as a message is read.
  uint32_t shards() const { return static_cast<uint32_t>(chains.size()); }
  const ServerInfo* FindServer(ProcessId id) const;
  // The executor thread of its server that owns a shard.
  static uint32_t ExecutorOf(ShardId shard, size_t executors) {
    return shard.value() % static_cast<uint32_t>(executors);
  }
  friend bool operator==(const ShardMap&, const ShardMap&) = default;
};

// Even over the servers, contiguous ranges of shards. REQUIRES: servers not empty.
ShardMap MakeShardMap(MapVersion version, uint32_t shards, std::vector<ServerInfo> servers);
// Every chain not empty and made of known servers, a power of two of shards. Error: Malformed.
Status CheckShardMap(const ShardMap& map);

}  // namespace dt
