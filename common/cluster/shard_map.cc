#include "common/cluster/shard_map.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"

namespace dt {
namespace {

constexpr size_t kMaxShards = 1 << 20;

bool ById(const ServerInfo& a, const ServerInfo& b) { return a.id < b.id; }

}  // namespace

const ServerInfo* ShardMap::FindServer(ProcessId id) const {
  const auto found = std::lower_bound(servers.begin(), servers.end(), ServerInfo{id, {}}, ById);
  return found != servers.end() && found->id == id ? &*found : nullptr;
}

ShardMap MakeShardMap(MapVersion version, uint32_t shards, std::vector<ServerInfo> servers) {
  DT_CHECK(!servers.empty());
  std::sort(servers.begin(), servers.end(), ById);
  ShardMap map{version, {}, std::move(servers)};
  for (uint64_t shard = 0; shard < shards; ++shard) {
    map.chains.push_back({map.servers[shard * map.servers.size() / shards].id});
  }
  return map;
}

Status CheckShardMap(const ShardMap& map) {
  if (!std::has_single_bit(map.chains.size()) || map.chains.size() > kMaxShards) {
    return Malformed("a shard map of {} shards; a power of two is needed", map.chains.size());
  }
  for (size_t i = 0; i < map.servers.size(); ++i) {
    if (i > 0 && !ById(map.servers[i - 1], map.servers[i])) {
      return Malformed("a shard map whose servers are not in ascending order");
    }
    if (map.servers[i].endpoints.empty()) {
      return Malformed("a shard map in which server {} has no endpoint", map.servers[i].id.value());
    }
  }
  for (size_t shard = 0; shard < map.chains.size(); ++shard) {
    if (map.chains[shard].empty()) return Malformed("shard {} has no server", shard);
    for (ProcessId member : map.chains[shard]) {
      if (map.FindServer(member) == nullptr) {
        return Malformed("shard {} is on server {}, which is unknown", shard, member.value());
      }
    }
  }
  return OkStatus();
}

bool ShardMap::IsSound() const { return CheckShardMap(*this).ok(); }

}  // namespace dt
