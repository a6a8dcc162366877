// Goal: step by step, chains become what they should be, never lose a member too early, and then
// rest. Method: each copy that NextMap begins is let catch up, until nothing changes any more; for
// servers that were lost, have joined or drain.
#include "scheduler/shards/balance.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

constexpr uint32_t kBalanceShards = 32;

BalanceInput InputOf(const std::vector<std::string>& hosts, uint32_t replicas) {
  BalanceInput input{.replicas = replicas};
  for (const std::string& host : hosts) {
    const ProcessId id(static_cast<uint32_t>(input.servers.size()) + 1);
    input.servers.push_back({{{id, {fmt::format("tcp://{}:{}", host, id.value())}}, host}});
  }
  return input;
}
ShardMap MapOf(const BalanceInput& input) {
  std::vector<ServerPlace> places;
  for (const BalanceInput::Server& server : input.servers) places.push_back(server.place);
  return MakeChains(MapVersion(1), kBalanceShards, input.replicas, places);
}
std::map<ProcessId, uint32_t> LoadOf(const ShardMap& map) {
  std::map<ProcessId, uint32_t> load;
  for (const Chain& chain : map.chains) {
    for (const ProcessId member : chain.members) ++load[member];
  }
  return load;
}

// A copy of one server to another at a time is little; the limit holds for each server.
void ExpectCopiesWithinLimits(const ShardMap& map) {
  std::map<ProcessId, uint32_t> to, from;
  for (const Chain& chain : map.chains) {
    ASSERT_LE(chain.syncing.size(), 1u);
    if (chain.syncing.empty()) continue;
    EXPECT_FALSE(chain.Has(chain.syncing[0]));
    EXPECT_LE(++to[chain.syncing[0]], kCopiesPerServer);
    EXPECT_LE(++from[chain.tail()], kCopiesPerServer);
  }
}

// Every step of the way to the map that stays; copies catch up one by one.
ShardMap Balanced(ShardMap map, const BalanceInput& input) {
  for (int step = 0; step < 2000; ++step) {
    const MapVersion before = map.version;
    if (std::optional<ShardMap> next = NextMap(map, input)) map = *std::move(next);
    EXPECT_TRUE(CheckShardMap(map).ok());
    ExpectCopiesWithinLimits(map);
    const auto copied =
        std::ranges::find_if(map.chains, [](const Chain& c) { return !c.syncing.empty(); });
    if (copied != map.chains.end()) {
      map = WithMember(map, ShardId(static_cast<uint32_t>(copied - map.chains.begin())));
    }
    if (map.version == before) return map;
  }
  ADD_FAILURE() << "it never rests";
  return map;
}

void ExpectGood(const ShardMap& map, const BalanceInput& input) {
  size_t staying = 0;
  for (const BalanceInput::Server& server : input.servers) staying += !server.draining;
  const std::map<ProcessId, uint32_t> load = LoadOf(map);
  for (const Chain& chain : map.chains) {
    EXPECT_EQ(chain.members.size(), std::min<size_t>(input.replicas, staying));
    EXPECT_TRUE(chain.syncing.empty());
  }
  const double each = static_cast<double>(map.chains.size() * map.chains[0].members.size()) /
                      static_cast<double>(staying);
  for (const BalanceInput::Server& server : input.servers) {
    const ProcessId id = server.place.server.id;
    EXPECT_EQ(HasShards(map, id), !server.draining) << id.value();
    EXPECT_EQ(map.FindServer(id) != nullptr, !server.draining) << id.value();
    if (server.draining) continue;
    EXPECT_NEAR(load.at(id), each, 2.0) << id.value();
  }
}

TEST(Balance, WhatIsAsItShouldBeStays) {
  for (const uint32_t replicas : {1u, 2u, 3u}) {
    const BalanceInput input = InputOf({"a", "b", "c", "d"}, replicas);
    EXPECT_FALSE(NextMap(MapOf(input), input).has_value()) << replicas;
  }
}

TEST(Balance, AServerThatJoinsGetsItsShare) {
  for (const uint32_t replicas : {1u, 2u}) {
    const ShardMap before = MapOf(InputOf({"a", "b", "c"}, replicas));
    const BalanceInput input = InputOf({"a", "b", "c", "d"}, replicas);
    ExpectGood(Balanced(before, input), input);
  }
}

TEST(Balance, WhatALostServerHadIsCopiedToTheOthers) {
  BalanceInput input = InputOf({"a", "b", "c"}, 2);
  const ShardMap without = Without(MapOf(input), ProcessId(2));
  input.servers.erase(input.servers.begin() + 1);
  ExpectGood(Balanced(without, input), input);
}

TEST(Balance, AServerThatDrainsIsLeftWithNothing) {
  for (const uint32_t replicas : {1u, 2u}) {
    BalanceInput input = InputOf({"a", "b", "c"}, replicas);
    const ShardMap before = MapOf(input);
    input.servers[0].draining = true;
    ExpectGood(Balanced(before, input), input);
  }
}

TEST(Balance, TheCopiesLeftAreThoseThatCome) {
  BalanceInput input = InputOf({"a", "b", "c", "d"}, 2);
  ShardMap map = MapOf(InputOf({"a", "b", "c"}, 2));
  EXPECT_EQ(CopiesLeft(map, InputOf({"a", "b", "c"}, 2)), 0u);
  input.servers[0].draining = true;
  const uint32_t in_all = CopiesLeft(map, input);
  EXPECT_GE(in_all, LoadOf(map)[ProcessId(1)]);
  uint32_t done = 0;
  for (; done <= in_all; ++done) {
    while (std::optional<ShardMap> next = NextMap(map, input)) map = *std::move(next);
    EXPECT_NEAR(CopiesLeft(map, input), in_all - done, in_all / 4.0);
    const auto copied =
        std::ranges::find_if(map.chains, [](const Chain& c) { return !c.syncing.empty(); });
    if (copied == map.chains.end()) break;
    map = WithMember(map, ShardId(static_cast<uint32_t>(copied - map.chains.begin())));
  }
  EXPECT_NEAR(done, in_all, in_all / 4.0) << "the order in which copies end changes little";
  EXPECT_EQ(CopiesLeft(map, input), 0u);
}

TEST(Balance, ChainsAreShortWithoutALostServer) {
  const ShardMap map = MapOf(InputOf({"a", "b", "c"}, 2));
  EXPECT_EQ(ShortChains(map, 2), 0u);
  const std::optional<ShardMap> without = Without(map, ProcessId(2));
  ASSERT_TRUE(without.has_value());
  EXPECT_EQ(ShortChains(*without, 2), LoadOf(map)[ProcessId(2)]);
}

TEST(Balance, AMemberIsRemovedOnlyWhenEnoughOthersHaveTheShard) {
  BalanceInput input = InputOf({"a", "b", "c"}, 2);
  ShardMap map = MapOf(input);
  input.servers[1].draining = true;
  for (int step = 0; step < 2000; ++step) {
    std::optional<ShardMap> next = NextMap(map, input);
    if (!next.has_value()) {
      const auto copied = std::ranges::find_if(
          map.chains, [](const Chain& chain) { return !chain.syncing.empty(); });
      if (copied == map.chains.end()) break;
      next = WithMember(map, ShardId(static_cast<uint32_t>(copied - map.chains.begin())));
    }
    for (const Chain& chain : next->chains) EXPECT_GE(chain.members.size(), 2u);
    map = *std::move(next);
  }
  ExpectGood(map, input);
}

// Only as far as the limit of copies allows: redundancy soon is worth more than the better host.
TEST(Balance, NewMembersAreOnHostsOfTheirOwnFirst) {
  BalanceInput input = InputOf({"a", "b", "b", "a"}, 2);
  const ShardMap without = Without(MapOf(input), ProcessId(2));
  input.servers.erase(input.servers.begin() + 1);
  const std::optional<ShardMap> next = NextMap(without, input);
  ASSERT_TRUE(next.has_value());
  uint32_t to_other_host = 0;
  for (const Chain& chain : next->chains) {
    if (chain.syncing.empty() || chain.Has(ProcessId(3))) continue;
    if (chain.syncing[0] == ProcessId(3)) {
      ++to_other_host;
      continue;
    }
    EXPECT_EQ(to_other_host, kCopiesPerServer) << "3 is the only one that is not on host a";
  }
  EXPECT_EQ(to_other_host, kCopiesPerServer);
}

TEST(Balance, TheServersOfAMapAreThoseThatItNames) {
  const ShardMap before = MapOf(InputOf({"a", "b"}, 1));
  const BalanceInput input = InputOf({"a", "b", "c"}, 1);
  const std::optional<ShardMap> next = NextMap(before, input);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->version, MapVersion(2));
  EXPECT_TRUE(HasShards(*next, ProcessId(3)));
  EXPECT_EQ(next->servers.size(), 3u);
  for (const Chain& chain : next->chains) EXPECT_EQ(chain.since, MapVersion(1));
  const ShardMap ended = Without(*next, ProcessId(3));
  EXPECT_EQ(ended.version, MapVersion(3));
  EXPECT_FALSE(HasShards(ended, ProcessId(3)));
  for (const Chain& chain : ended.chains) EXPECT_TRUE(chain.syncing.empty());
  EXPECT_EQ(ended.servers, before.servers);
}

TEST(Balance, AMemberComesInAsTheTail) {
  ShardMap map = MapOf(InputOf({"a", "b"}, 1));
  map.chains[0].syncing = {ProcessId(2)};
  const ShardMap next = WithMember(map, ShardId(0));
  EXPECT_EQ(next.chains[0], (Chain{MapVersion(2), {ProcessId(1), ProcessId(2)}}));
  EXPECT_EQ(next.chains[1], map.chains[1]);
}

}  // namespace
}  // namespace dt::scheduler
