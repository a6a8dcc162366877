// Which servers hold which shards: the chains of a job, and how they change. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/cluster/shard_map.h"

namespace dt::scheduler {

struct ServerPlace {
  ServerInfo server;
  std::string host;
};

// Chains of `replicas` servers each, or of all servers if there are fewer. Every server is the head
// of about as many shards as any other, of neighbouring numbers. The members of a chain are on
// different hosts as far as there are enough hosts. REQUIRES: servers not empty, ascending by id.
ShardMap MakeChains(MapVersion version, uint32_t shards, uint32_t replicas,
                    const std::vector<ServerPlace>& servers);

// The next version of the map, without this server; the other members of its chains keep their
// order. It stays in chains that have no other member, and nothing is copied from there. The map
// itself, if the server has no part in it that could go.
ShardMap Without(const ShardMap& map, ProcessId server);

// Whether a chain names the server, as a member or newcomer.
bool HasShards(const ShardMap& map, ProcessId server);

}  // namespace dt::scheduler
