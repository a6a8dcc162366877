#include "common/cluster/shard_map.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"

namespace dt {
namespace {

constexpr size_t kMaxShards = 1 << 20;

bool ById(const ServerInfo& a, const ServerInfo& b) { return a.id < b.id; }

// Adds or replaces a server. REQUIRES: `servers` ascend by id; they still do afterwards.
void AddServer(const ServerInfo& server, std::vector<ServerInfo>& servers) {
  const auto at = std::lower_bound(servers.begin(), servers.end(), server, ById);
  if (at != servers.end() && at->id == server.id) {
    *at = server;
  } else {
    servers.insert(at, server);
  }
}

}  // namespace

bool Chain::Has(ProcessId server) const {
  return std::find(members.begin(), members.end(), server) != members.end();
}

bool Chain::IsSyncing(ProcessId server) const {
  return std::find(syncing.begin(), syncing.end(), server) != syncing.end();
}

const ServerInfo* ShardMap::FindServer(ProcessId id) const {
  const auto found = std::lower_bound(servers.begin(), servers.end(), ServerInfo{id, {}}, ById);
  return found != servers.end() && found->id == id ? &*found : nullptr;
}

ShardMap MakeShardMap(MapVersion version, uint32_t shards, std::vector<ServerInfo> servers) {
  DT_CHECK(!servers.empty());
  std::sort(servers.begin(), servers.end(), ById);
  ShardMap map{version, {}, std::move(servers)};
  for (uint64_t shard = 0; shard < shards; ++shard) {
    const ServerInfo& server = map.servers[shard * map.servers.size() / shards];
    map.chains.push_back({version, {server.id}});
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
    const std::vector<ProcessId>& members = map.chains[shard].members;
    if (members.empty()) return Malformed("shard {} has no server", shard);
    std::vector<ProcessId> all = members;
    all.insert(all.end(), map.chains[shard].syncing.begin(), map.chains[shard].syncing.end());
    for (const ProcessId member : all) {
      if (map.FindServer(member) == nullptr) {
        return Malformed("shard {} is on server {}, which is unknown", shard, member.value());
      }
    }
  }
  return OkStatus();
}

MapChange ChangeSince(const ShardMap& map, MapVersion from) {
  MapChange change{from, map.version, {}, {}};
  for (uint32_t s = 0; s < map.shards(); ++s) {
    const Chain& chain = map.chains[s];
    if (chain.since <= from) continue;
    change.chains.push_back({ShardId(s), {chain.since, chain.members}});
    for (const ProcessId member : chain.members) {
      AddServer(*map.FindServer(member), change.servers);
    }
  }
  return change;
}

Result<ShardMap> Changed(const ShardMap& map, const MapChange& change) {
  if (change.to <= map.version) return map;
  if (change.from > map.version) {
    return Malformed("a change of the shard map since version {}; version {} is known",
                     change.from.value(), map.version.value());
  }
  ShardMap next = map;
  next.version = change.to;
  for (const ShardChain& changed : change.chains) {
    if (changed.shard.value() >= next.shards()) {
      return Malformed("a change of shard {} of {}", changed.shard.value(), next.shards());
    }
    next.chains[changed.shard.value()] = changed.chain;
  }
  for (const ServerInfo& server : change.servers) AddServer(server, next.servers);
  // Servers without any shard are removed.
  std::erase_if(next.servers, [&next](const ServerInfo& server) {
    return std::ranges::none_of(next.chains, [&](const Chain& chain) {
      return chain.Has(server.id) || chain.IsSyncing(server.id);
    });
  });
  DT_TRY_STATUS(CheckShardMap(next));
  return next;
}

bool ShardMap::IsSound() const { return CheckShardMap(*this).ok(); }

}  // namespace dt
