// Shards of one executor, and the stamp of requests to them.
#pragma once

#include <algorithm>
#include <vector>

#include "server/shard/shard_set.h"

namespace dt::test {

// The stamp that the sets below accept: server 1, by the first map of the first view.
inline const Stamp kFirstStamp{Generation(1), ViewNumber(1), MapVersion(1), ProcessId(1)};

// A view in which `ours` are on server 1, which has one executor, and all other shards on server 2.
inline View ViewOf(uint32_t shards_of_job, const std::vector<ShardId>& ours) {
  ShardMap map = MakeShardMap(MapVersion(1), shards_of_job, {{ProcessId(1), {"inproc://one"}}});
  map.servers.push_back({ProcessId(2), {"inproc://two"}});
  for (uint32_t s = 0; s < shards_of_job; ++s) {
    if (!std::ranges::count(ours, ShardId(s))) map.chains[s].members = {ProcessId(2)};
  }
  return {Generation(1), ViewNumber(1), std::move(map), {}};
}

inline server::ShardSetOptions SetOf(std::vector<server::TableSpec> tables, uint32_t slices,
                                     uint32_t shards_of_job, const std::vector<ShardId>& ours) {
  return {.tables = std::move(tables),
          .slices = slices,
          .view = ViewOf(shards_of_job, ours),
          .self = ProcessId(1)};
}

}  // namespace dt::test
