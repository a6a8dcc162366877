#include "scheduler/shards/chains.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

constexpr uint32_t kChainShards = 64;

// Servers 1, 2, …, one for each host name.
std::vector<ServerPlace> PlacesOn(const std::vector<std::string>& hosts) {
  std::vector<ServerPlace> places;
  for (const std::string& host : hosts) {
    const ProcessId id(static_cast<uint32_t>(places.size()) + 1);
    places.push_back({{id, {fmt::format("tcp://{}:{}", host, id.value())}}, host});
  }
  return places;
}
size_t HostsOf(const Chain& chain, const std::vector<ServerPlace>& places) {
  std::set<std::string> hosts;
  for (const ProcessId member : chain.members) hosts.insert(places[member.value() - 1].host);
  return hosts.size();
}

TEST(MakeChains, EveryServerIsHeadOfItsShareAndInItsShareOfChains) {
  for (const uint32_t servers : {1u, 2u, 3u, 7u, 16u}) {
    for (const uint32_t replicas : {1u, 2u, 3u}) {
      SCOPED_TRACE(testing::Message() << servers << " servers, " << replicas << " replicas");
      std::vector<std::string> hosts;
      for (uint32_t i = 0; i < servers; ++i) hosts.push_back(fmt::format("h{}", i));
      const ShardMap map = MakeChains(MapVersion(1), kChainShards, replicas, PlacesOn(hosts));
      ASSERT_TRUE(CheckShardMap(map).ok());
      const uint32_t length = std::min(replicas, servers);
      std::map<ProcessId, uint32_t> heads, members;
      for (const Chain& chain : map.chains) {
        EXPECT_EQ(chain.since, map.version);
        EXPECT_EQ(std::set(chain.members.begin(), chain.members.end()).size(), length);
        EXPECT_EQ(chain.members.size(), length);
        EXPECT_TRUE(chain.syncing.empty());
        ++heads[chain.head()];
        for (const ProcessId member : chain.members) ++members[member];
      }
      EXPECT_EQ(heads.size(), servers);
      for (const auto& [id, count] : heads) EXPECT_NEAR(count, kChainShards / servers, 1.0);
      for (const auto& [id, count] : members) {
        EXPECT_NEAR(count, length * kChainShards / servers, 1.0 * length);
      }
    }
  }
}

TEST(MakeChains, OneReplicaIsTheMapWithoutChains) {
  const std::vector<ServerPlace> places = PlacesOn({"a", "b", "b"});
  std::vector<ServerInfo> infos;
  for (const ServerPlace& place : places) infos.push_back(place.server);
  EXPECT_EQ(MakeChains(MapVersion(3), kChainShards, 1, places),
            MakeShardMap(MapVersion(3), kChainShards, infos));
}

TEST(MakeChains, MembersAreOnDifferentHostsAsFarAsThereAreEnough) {
  struct Case {
    std::vector<std::string> hosts;
    uint32_t replicas, want;
  };
  const Case cases[] = {
      {{"a", "a", "b", "b"}, 2, 2},      {{"a", "a", "a", "b"}, 2, 2},
      {{"a", "b", "a", "b", "c"}, 3, 3}, {{"a", "a", "a"}, 2, 1},
      {{"a", "a", "b"}, 3, 2},           {{"a", "a", "a", "b", "b", "b", "c"}, 3, 3},
  };
  for (const Case& c : cases) {
    const std::vector<ServerPlace> places = PlacesOn(c.hosts);
    for (const Chain& chain : MakeChains(MapVersion(1), kChainShards, c.replicas, places).chains) {
      EXPECT_EQ(chain.members.size(), c.replicas);
      EXPECT_EQ(HostsOf(chain, places), c.want) << "head " << chain.head().value();
    }
  }
}

TEST(MakeChains, MoreReplicasThanServersMeansAllServers) {
  for (const Chain& chain : MakeChains(MapVersion(1), 8, 16, PlacesOn({"a", "b"})).chains) {
    EXPECT_EQ(chain.members.size(), 2u);
  }
}

TEST(Without, OnlyChainsThatHadTheServerAreOfTheNextVersion) {
  const ShardMap map = MakeChains(MapVersion(4), kChainShards, 2, PlacesOn({"a", "b", "c", "d"}));
  const ProcessId lost(2);
  const ShardMap next = Without(map, lost);
  EXPECT_TRUE(CheckShardMap(next).ok());
  EXPECT_EQ(next.version, MapVersion(5));
  EXPECT_EQ(next.FindServer(lost), nullptr);
  EXPECT_EQ(next.servers.size(), 3u);
  uint32_t changed = 0;
  for (size_t s = 0; s < kChainShards; ++s) {
    Chain want = map.chains[s];
    if (want.Has(lost)) {
      std::erase(want.members, lost);
      want.since = MapVersion(5);
      ++changed;
    }
    EXPECT_EQ(next.chains[s], want) << s;
  }
  EXPECT_EQ(changed, kChainShards / 2);
}

TEST(Without, TheOthersKeepTheirOrder) {
  ShardMap map = MakeChains(MapVersion(1), 1, 3, PlacesOn({"a", "b", "c"}));
  map.chains[0].members = {ProcessId(3), ProcessId(1), ProcessId(2)};
  EXPECT_EQ(Without(map, ProcessId(1)).chains[0].members,
            (std::vector{ProcessId(3), ProcessId(2)}));
}

TEST(Without, WhoeverIsCopiedToIsNoMember) {
  ShardMap map = MakeChains(MapVersion(1), 2, 1, PlacesOn({"a", "b"}));
  ASSERT_EQ(map.chains[0].head(), ProcessId(1));
  map.chains[0].syncing = {ProcessId(2)};
  map.chains[1].members = {ProcessId(1)};
  const ShardMap next = Without(map, ProcessId(2));
  EXPECT_TRUE(next.chains[0].syncing.empty());
  EXPECT_EQ(next.chains[0].since, MapVersion(1)) << "its members are the same";
  const ShardMap giver_lost = Without(map, ProcessId(1));
  EXPECT_EQ(giver_lost.chains[0].members, std::vector{ProcessId(1)}) << "the copy is not complete";
  EXPECT_TRUE(giver_lost.chains[0].syncing.empty()) << "nobody sends the rest of it";
  EXPECT_GT(giver_lost.version, map.version);
}

TEST(Without, TheLastMemberIsNeverLeftOut) {
  const ShardMap map = MakeChains(MapVersion(1), 4, 2, PlacesOn({"a", "b"}));
  const ShardMap next = Without(map, ProcessId(1));
  EXPECT_FALSE(HasShards(next, ProcessId(1)));
  EXPECT_EQ(Without(next, ProcessId(2)), next);
  const ShardMap alone = MakeChains(MapVersion(1), 4, 1, PlacesOn({"a", "b"}));
  EXPECT_EQ(Without(alone, ProcessId(1)), alone);
}

TEST(Without, AServerStaysOnlyWhereNobodyElseIs) {
  ShardMap map = MakeChains(MapVersion(1), 2, 2, PlacesOn({"a", "b"}));
  map.chains[0].members = {ProcessId(1)};
  map.chains[1].members = {ProcessId(1), ProcessId(2)};
  const ShardMap next = Without(map, ProcessId(1));
  EXPECT_EQ(next.chains[0], map.chains[0]);
  EXPECT_EQ(next.chains[1].members, std::vector{ProcessId(2)});
  EXPECT_EQ(next.chains[1].since, next.version);
  EXPECT_TRUE(HasShards(next, ProcessId(1)));
}

TEST(Without, AServerWithoutShardsChangesNoChain) {
  const ShardMap map = MakeChains(MapVersion(1), 4, 2, PlacesOn({"a", "b"}));
  EXPECT_EQ(Without(map, ProcessId(9)), map);
}

}  // namespace
}  // namespace dt::scheduler
