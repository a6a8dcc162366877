#include "common/cluster/shard_map.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

namespace dt {
namespace {

std::vector<ServerInfo> Servers(uint32_t count) {
  std::vector<ServerInfo> servers;
  for (uint32_t i = count; i > 0; --i) servers.push_back({ProcessId(10 * i), {"tcp://x:1"}});
  return servers;
}

TEST(MakeShardMap, SharesEvenlyInContiguousRanges) {
  for (uint32_t servers : {1u, 2u, 3u, 7u, 64u}) {
    const ShardMap map = MakeShardMap(MapVersion(1), 64, Servers(servers));
    EXPECT_TRUE(CheckShardMap(map).ok());
    std::map<ProcessId, uint32_t> held;
    for (size_t s = 0; s < map.chains.size(); ++s) {
      EXPECT_EQ(map.chains[s].since, map.version);
      ++held[map.chains[s].head()];
      EXPECT_LE(map.chains[s > 0 ? s - 1 : 0].head(), map.chains[s].head());
    }
    EXPECT_EQ(held.size(), servers);
    for (const auto& [id, count] : held) EXPECT_NEAR(count, 64.0 / servers, 1.0);
  }
}

TEST(CheckShardMap, RefusesWhatCannotBeServed) {
  const ShardMap good = MakeShardMap(MapVersion(1), 4, Servers(2));
  ShardMap map = good;
  map.chains.pop_back();
  EXPECT_FALSE(CheckShardMap(map).ok()) << "three shards";
  map = good;
  map.chains[1].members.clear();
  EXPECT_FALSE(CheckShardMap(map).ok()) << "an empty chain";
  map = good;
  map.chains[1].members = {ProcessId(3)};
  EXPECT_FALSE(CheckShardMap(map).ok()) << "an unknown server";
  map = good;
  map.chains[1].syncing = {ProcessId(3)};
  EXPECT_FALSE(CheckShardMap(map).ok()) << "an unknown newcomer";
  map = good;
  std::swap(map.servers[0], map.servers[1]);
  EXPECT_FALSE(CheckShardMap(map).ok()) << "not in order";
  map = good;
  map.servers[0].endpoints.clear();
  EXPECT_FALSE(CheckShardMap(map).ok()) << "no endpoint";
  EXPECT_FALSE(CheckShardMap({}).ok());
}

// The map after this shard moved to another server.
ShardMap Moved(ShardMap map, uint32_t shard, const ServerInfo& to) {
  map.version = MapVersion(map.version.value() + 1);
  map.chains[shard] = {map.version, {to.id}};
  if (map.FindServer(to.id) == nullptr) map.servers.push_back(to);
  std::erase_if(map.servers, [&](const ServerInfo& server) {
    return std::ranges::none_of(map.chains, [&](const Chain& c) { return c.Has(server.id); });
  });
  return map;
}

TEST(MapChange, LeadsFromAnyOlderMapToTheNewOne) {
  const ServerInfo third{ProcessId(30), {"tcp://y:1", "tcp://y:2"}};
  std::vector<ShardMap> maps = {MakeShardMap(MapVersion(1), 4, Servers(2))};
  maps.push_back(Moved(maps.back(), 0, third));
  maps.push_back(Moved(maps.back(), 3, maps[0].servers[0]));
  maps.push_back(Moved(maps.back(), 2, third));  // The second server has no shard left.
  for (size_t from = 0; from < maps.size(); ++from) {
    for (size_t to = from; to < maps.size(); ++to) {
      const MapChange change = ChangeSince(maps[to], maps[from].version);
      EXPECT_EQ(change.chains.size(), to - from);
      for (size_t known = 0; known < maps.size(); ++known) {
        const Result<ShardMap> next = Changed(maps[known], change);
        if (known < from && to > known) {
          EXPECT_EQ(next.status().code(), StatusCode::kOutOfRange) << from << to << known;
        } else {
          ASSERT_TRUE(next.ok()) << next.status();
          EXPECT_EQ(*next, maps[std::max(known, to)]) << from << to << known;
        }
      }
    }
  }
}

// Who is copied to serves nothing, so clients need not know.
TEST(MapChange, SaysNothingOfNewcomers) {
  ShardMap map = MakeShardMap(MapVersion(1), 4, Servers(2));
  map.version = MapVersion(2);
  map.chains[0].syncing = {map.servers[1].id};
  map.chains[3].since = map.version;
  map.chains[3].members = {map.servers[1].id, map.servers[0].id};
  map.chains[3].syncing = {map.servers[0].id};
  EXPECT_TRUE(map.chains[0].IsSyncing(map.servers[1].id));
  EXPECT_FALSE(map.chains[0].Has(map.servers[1].id));
  const MapChange change = ChangeSince(map, MapVersion(1));
  ASSERT_EQ(change.chains.size(), 1u);
  EXPECT_EQ(change.chains[0].shard, ShardId(3));
  EXPECT_EQ(change.chains[0].chain.members, map.chains[3].members);
  EXPECT_TRUE(change.chains[0].chain.syncing.empty());
}

TEST(MapChange, ThatMakesNoMapIsRefused) {
  const ShardMap map = MakeShardMap(MapVersion(1), 4, Servers(2));
  MapChange change{
      MapVersion(1), MapVersion(2), {{ShardId(0), {MapVersion(2), {ProcessId(30)}}}}, {}};
  EXPECT_FALSE(Changed(map, change).ok()) << "an unknown server";
  change.servers = {{ProcessId(30), {"x"}}};
  EXPECT_TRUE(Changed(map, change).ok());
  change.chains[0].chain.members.clear();
  EXPECT_FALSE(Changed(map, change).ok()) << "an empty chain";
  change.chains[0] = {ShardId(4), {MapVersion(2), {ProcessId(30)}}};
  EXPECT_FALSE(Changed(map, change).ok()) << "no such shard";
}

}  // namespace
}  // namespace dt
