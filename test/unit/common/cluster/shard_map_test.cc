#include "common/cluster/shard_map.h"

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
      ++held[map.chains[s].at(0)];
      EXPECT_LE(map.chains[s > 0 ? s - 1 : 0], map.chains[s]);
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
  map.chains[1].clear();
  EXPECT_FALSE(CheckShardMap(map).ok()) << "an empty chain";
  map = good;
  map.chains[1] = {ProcessId(3)};
  EXPECT_FALSE(CheckShardMap(map).ok()) << "an unknown server";
  map = good;
  std::swap(map.servers[0], map.servers[1]);
  EXPECT_FALSE(CheckShardMap(map).ok()) << "not in order";
  map = good;
  map.servers[0].endpoints.clear();
  EXPECT_FALSE(CheckShardMap(map).ok()) << "no endpoint";
  EXPECT_FALSE(CheckShardMap({}).ok());
}

}  // namespace
}  // namespace dt
