#include "scheduler/shards/chains.h"

#include <algorithm>

namespace dt::scheduler {
namespace {

bool Has(const std::vector<size_t>& chosen, size_t server) {
  return std::ranges::find(chosen, server) != chosen.end();
}

// The servers of the chain that begins with `head`: the next ones in the ring of servers, first
// those on hosts that the chain does not have yet.
std::vector<size_t> ChainFrom(size_t head, size_t length, const std::vector<ServerPlace>& servers) {
  std::vector<size_t> chosen = {head};
  for (const bool only_new_hosts : {true, false}) {
    for (size_t i = 1; i < servers.size() && chosen.size() < length; ++i) {
      const size_t next = (head + i) % servers.size();
      const bool host_taken = std::ranges::any_of(
          chosen, [&](size_t other) { return servers[other].host == servers[next].host; });
      if (!Has(chosen, next) && !(only_new_hosts && host_taken)) chosen.push_back(next);
    }
  }
  return chosen;
}

}  // namespace

ShardMap MakeChains(MapVersion version, uint32_t shards, uint32_t replicas,
                    const std::vector<ServerPlace>& servers) {
  std::vector<ServerInfo> infos;
  for (const ServerPlace& place : servers) infos.push_back(place.server);
  ShardMap map = MakeShardMap(version, shards, std::move(infos));
  const size_t length = std::min<size_t>(replicas, servers.size());
  for (Chain& chain : map.chains) {
    const auto head = std::ranges::find(servers, chain.head(),
                                        [](const ServerPlace& place) { return place.server.id; });
    chain.members.clear();
    for (const size_t member :
         ChainFrom(static_cast<size_t>(head - servers.begin()), length, servers)) {
      chain.members.push_back(servers[member].server.id);
    }
  }
  return map;
}

ShardMap Without(const ShardMap& map, ProcessId server) {
  ShardMap next = map;
  next.version = MapVersion(map.version.value() + 1);
  for (Chain& chain : next.chains) {
    std::erase(chain.syncing, server);
    if (!chain.Has(server)) continue;
    if (chain.members.size() == 1) {
      chain.syncing.clear();
      continue;
    }
    std::erase(chain.members, server);
    chain.since = next.version;
  }
  if (next.chains == map.chains) return map;
  std::erase_if(next.servers, [&](const ServerInfo& info) { return !HasShards(next, info.id); });
  return next;
}

bool HasShards(const ShardMap& map, ProcessId server) {
  return std::ranges::any_of(map.chains, [server](const Chain& chain) {
    return chain.Has(server) || chain.IsSyncing(server);
  });
}

}  // namespace dt::scheduler
