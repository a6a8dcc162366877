// Which servers hold which shard. A map is a value; a change is a new map with a higher version.
#pragma once

#include <algorithm>
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

// The servers that hold a shard, head first: pushes enter at the head, the tail serves pulls.
struct Chain {
  MapVersion since;  // The version of the map at which the members last changed.
  std::vector<ProcessId> members;
  // Servers to which the tail copies the shard. They are no members yet, and serve nothing. At most
  // one.
  std::vector<ProcessId> syncing = {};
  MapVersion syncing_since = {};  // The version at which this copying was ordered.
  DT_FIELDS(since, members, syncing, syncing_since)

  // Names the copying that is under way: it begins anew with another number.
  MapVersion copied_since() const { return std::max(since, syncing_since); }
  ProcessId head() const { return members.front(); }
  ProcessId tail() const { return members.back(); }
  bool Has(ProcessId server) const;  // As a member.
  bool IsSyncing(ProcessId server) const;
  friend bool operator==(const Chain&, const Chain&) = default;
};

struct ShardMap {
  MapVersion version;
  std::vector<Chain> chains;        // By shard.
  std::vector<ServerInfo> servers;  // All that a chain names, ascending id.
  DT_FIELDS(version, chains, servers)

  bool IsSound() const;  // Runs CheckShardMap; called when a message is read.
  uint32_t shards() const { return static_cast<uint32_t>(chains.size()); }
  const ServerInfo* FindServer(ProcessId id) const;
  // The executor thread, on any server, that owns a shard.
  static uint32_t ExecutorOf(ShardId shard, size_t executors) {
    return shard.value() % static_cast<uint32_t>(executors);
  }
  friend bool operator==(const ShardMap&, const ShardMap&) = default;
};

// The difference between two versions of the map.
struct ShardChain {
  ShardId shard;
  Chain chain;
  DT_FIELDS(shard, chain)
  friend bool operator==(const ShardChain&, const ShardChain&) = default;
};
struct MapChange {
  MapVersion from, to;
  std::vector<ShardChain> chains;
  std::vector<ServerInfo> servers;  // Every member of these chains, ascending id.
  DT_FIELDS(from, to, chains, servers)
  friend bool operator==(const MapChange&, const MapChange&) = default;
};

// Distributes the shards evenly, in contiguous ranges. REQUIRES: servers not empty.
ShardMap MakeShardMap(MapVersion version, uint32_t shards, std::vector<ServerInfo> servers);
// Requires that no chain is empty, that all its servers are known, that the number of shards is a
// power of two, and that servers ascend by id. Error: Malformed.
Status CheckShardMap(const ShardMap& map);
MapChange ChangeSince(const ShardMap& map, MapVersion from);
// The map after the change; the map itself if it already has the change's version. Errors,
// Malformed: the change starts from a later version than the map's, or the result would fail
// CheckShardMap.
Result<ShardMap> Changed(const ShardMap& map, const MapChange& change);

}  // namespace dt
