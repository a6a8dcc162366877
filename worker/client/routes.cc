#include "worker/client/routes.h"

#include <algorithm>
#include <utility>

namespace dt::worker {

Routes::Routes(ShardMap map) : map_(std::move(map)) { FindRoutes(); }

void Routes::FindRoutes() {
  push_.resize(map_.shards());
  pull_.resize(map_.shards());
  for (uint32_t s = 0; s < map_.shards(); ++s) {
    const Chain& chain = map_.chains[s];
    push_[s] = IndexOf(*map_.FindServer(chain.head()), ShardId(s));
    pull_[s] = chain.head() == chain.tail() ? push_[s]
                                            : IndexOf(*map_.FindServer(chain.tail()), ShardId(s));
  }
}

uint32_t Routes::IndexOf(const ServerInfo& server, ShardId shard) {
  const uint32_t number = ShardMap::ExecutorOf(shard, server.endpoints.size());
  const Executor executor{server.id, server.endpoints[number]};
  const auto at = std::ranges::find(executors_, executor);
  const auto index = static_cast<uint32_t>(at - executors_.begin());
  if (at == executors_.end()) executors_.push_back(executor);
  return index;
}

bool Routes::Holds(uint32_t executor, ShardId shard) const {
  return map_.chains[shard.value()].Has(executors_[executor].server);
}

bool Routes::InUse(uint32_t executor) const {
  return map_.FindServer(executors_[executor].server) != nullptr;
}

Result<bool> Routes::Take(const MapChange& change) {
  DT_TRY(ShardMap next, Changed(map_, change));
  if (next.version == map_.version) return false;
  map_ = std::move(next);
  FindRoutes();
  return true;
}

bool Routes::Take(const ShardMap& map) {
  if (map.version <= map_.version || map.shards() != map_.shards()) return false;
  map_ = map;
  FindRoutes();
  return true;
}

}  // namespace dt::worker
