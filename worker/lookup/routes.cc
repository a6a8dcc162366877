#include "worker/lookup/routes.h"

#include "common/base/check.h"

namespace dt::worker {

Routes MakeRoutes(const ShardMap& map) {
  Routes routes;
  routes.version = map.version;
  routes.place.resize(map.shards());
  uint32_t placed = 0;
  for (const ServerInfo& server : map.servers) {
    std::vector<ExecutorRoute> executors(server.endpoints.size());
    for (uint32_t s = 0; s < map.shards(); ++s) {
      // Pushes enter at a chain's head and pulls are served by its tail; chains have one member
      // today.
      DT_CHECK(map.chains[s].size() == 1);
      if (map.chains[s].front() != server.id) continue;
      executors[ShardMap::ExecutorOf(ShardId(s), executors.size())].shards.push_back(ShardId(s));
    }
    for (size_t e = 0; e < executors.size(); ++e) {
      if (executors[e].shards.empty()) continue;
      executors[e].server = server.id;
      executors[e].endpoint = server.endpoints[e];
      for (const ShardId shard : executors[e].shards) {
        routes.place[shard.value()] = placed++;
      }
      routes.executors.push_back(std::move(executors[e]));
    }
  }
  DT_CHECK(placed == map.shards());
  return routes;
}

}  // namespace dt::worker
