// Goal: a push goes to the head of its shard's chain, a pull to the tail, and an executor keeps its
// index whatever moves, since requests under way name it. Method: chains by hand, and random moves
// against a search through the map.
#include "worker/client/routes.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/philox.h"

namespace dt::worker {
namespace {

constexpr uint32_t kRouteShards = 8;

ServerInfo ServerOf(uint32_t id) {
  ServerInfo server{ProcessId(id), {}};
  // Executors of a server differ in number, too.
  for (uint32_t e = 0; e <= id % 3; ++e) server.endpoints.push_back(fmt::format("s{}e{}", id, e));
  return server;
}

// Of the shard's executor on a server.
std::string EndpointOf(const ShardMap& map, ProcessId server, uint32_t shard) {
  const std::vector<std::string>& endpoints = map.FindServer(server)->endpoints;
  return endpoints[shard % endpoints.size()];
}

// The map with the shard on other servers.
ShardMap Moved(ShardMap map, uint32_t shard, const std::vector<uint32_t>& members) {
  const MapVersion next(map.version.value() + 1);
  Chain chain{next, {}};
  MapChange change{map.version, next, {}, {}};
  for (const uint32_t id : members) {
    chain.members.emplace_back(id);
    change.servers.push_back(ServerOf(id));
  }
  std::ranges::sort(change.servers, {}, &ServerInfo::id);
  change.chains = {{ShardId(shard), chain}};
  return Changed(map, change).value();
}

void ExpectRoutesOf(const ShardMap& map, const Routes& routes) {
  ASSERT_EQ(routes.for_push().size(), map.shards());
  ASSERT_EQ(routes.for_pull().size(), map.shards());
  for (uint32_t s = 0; s < map.shards(); ++s) {
    const auto executor = [&](uint32_t index) { return routes.executors()[index]; };
    const ProcessId head = map.chains[s].head(), tail = map.chains[s].tail();
    EXPECT_EQ(executor(routes.for_push()[s]), (Routes::Executor{head, EndpointOf(map, head, s)}));
    EXPECT_EQ(executor(routes.for_pull()[s]), (Routes::Executor{tail, EndpointOf(map, tail, s)}));
  }
}

TEST(Routes, PushesEnterAtTheHeadAndPullsAreServedByTheTail) {
  const ShardMap map =
      Moved(MakeShardMap(MapVersion(1), kRouteShards, {ServerOf(3)}), 5, {6, 3, 9});
  const Routes routes(map);
  ExpectRoutesOf(map, routes);
  EXPECT_NE(routes.for_push()[5], routes.for_pull()[5]);
  EXPECT_EQ(routes.for_push()[4], routes.for_pull()[4]);
}

TEST(Routes, EveryMemberOfAChainHoldsItsShardAndNobodyElse) {
  const ShardMap map = Moved(MakeShardMap(MapVersion(1), kRouteShards, {ServerOf(3)}), 5, {6, 9});
  const Routes routes(map);
  for (uint32_t e = 0; e < routes.executors().size(); ++e) {
    const ProcessId server = routes.executors()[e].server;
    EXPECT_EQ(routes.Holds(e, ShardId(5)), server != ProcessId(3)) << e;
    EXPECT_EQ(routes.Holds(e, ShardId(4)), server == ProcessId(3)) << e;
    EXPECT_TRUE(routes.InUse(e));
  }
}

TEST(Routes, AServerThatHasLeftKeepsItsIndicesAndIsNotInUse) {
  ShardMap map = MakeShardMap(MapVersion(1), 2, {ServerOf(1), ServerOf(2)});
  Routes routes(map);
  const uint32_t left = routes.for_push()[1];
  ASSERT_EQ(routes.executors()[left].server, ProcessId(2));
  const ShardMap without = Moved(map, 1, {1});
  EXPECT_TRUE(*routes.Take(ChangeSince(without, MapVersion(1))));
  EXPECT_EQ(routes.executors()[left].server, ProcessId(2));
  EXPECT_FALSE(routes.InUse(left));
  EXPECT_FALSE(routes.Holds(left, ShardId(1)));
  // When it comes back it is the same again.
  const ShardMap back = Moved(without, 1, {2});
  EXPECT_TRUE(*routes.Take(ChangeSince(back, MapVersion(2))));
  EXPECT_EQ(routes.for_push()[1], left);
  EXPECT_TRUE(routes.InUse(left));
}

TEST(Routes, WhatIsKnownAlreadyChangesNothing) {
  const ShardMap first = MakeShardMap(MapVersion(4), kRouteShards, {ServerOf(1), ServerOf(2)});
  const ShardMap second = Moved(first, 0, {2});
  Routes routes(second);
  const std::vector<uint32_t> push(routes.for_push().begin(), routes.for_push().end());
  EXPECT_FALSE(*routes.Take(ChangeSince(second, MapVersion(4)))) << "the same version";
  EXPECT_FALSE(*routes.Take(ChangeSince(first, MapVersion(1)))) << "an older one";
  EXPECT_EQ(routes.map(), second);
  EXPECT_TRUE(std::ranges::equal(routes.for_push(), push));
}

TEST(Routes, AChangeThatLeavesAGapOrIsWrongIsRefusedWhole) {
  const ShardMap first = MakeShardMap(MapVersion(1), kRouteShards, {ServerOf(1)});
  Routes routes(first);
  const ShardMap third = Moved(Moved(first, 0, {2}), 1, {2});
  EXPECT_EQ(routes.Take(ChangeSince(third, MapVersion(2))).status().code(),
            StatusCode::kOutOfRange);
  MapChange unknown = ChangeSince(third, MapVersion(1));
  unknown.servers.clear();
  EXPECT_EQ(routes.Take(unknown).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(routes.map(), first);
  ExpectRoutesOf(first, routes);
  EXPECT_TRUE(*routes.Take(ChangeSince(third, MapVersion(1)))) << "and then the right one";
  ExpectRoutesOf(third, routes);
}

TEST(Routes, FollowAnyMovesAndNeverRenumber) {
  const char* const given = std::getenv("DT_ROUTES_SEED");
  const uint64_t first_seed = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  for (uint64_t seed = first_seed; seed < first_seed + (given == nullptr ? 20 : 1); ++seed) {
    SCOPED_TRACE(
        fmt::format("DT_ROUTES_SEED={} worker_client_test "
                    "--gtest_filter=Routes.FollowAnyMovesAndNeverRenumber",
                    seed));
    ShardMap map = MakeShardMap(MapVersion(1), kRouteShards, {ServerOf(1), ServerOf(2)});
    Routes routes(map);
    for (uint64_t move = 0; move < 60; ++move) {
      const PhiloxBlock draw = Philox(seed, 0, move);
      std::vector<uint32_t> members = {1 + draw[0] % 7};
      if (draw[1] % 2 == 0) members.push_back(8);
      const std::vector<Routes::Executor> before(routes.executors().begin(),
                                                 routes.executors().end());
      const MapVersion known = map.version;
      map = Moved(map, draw[2] % kRouteShards, members);
      if (draw[3] % 3 == 0) map = Moved(map, draw[3] % kRouteShards, {members[0]});
      ASSERT_TRUE(*routes.Take(ChangeSince(map, known)));
      ASSERT_EQ(routes.map(), map);
      ExpectRoutesOf(map, routes);
      ASSERT_GE(routes.executors().size(), before.size());
      EXPECT_TRUE(std::ranges::equal(before, routes.executors().first(before.size())));
    }
  }
}

}  // namespace
}  // namespace dt::worker
