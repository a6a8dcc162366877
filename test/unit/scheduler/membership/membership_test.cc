#include "scheduler/membership/membership.h"

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

JoinMessage Joiner(Role role, uint64_t incarnation) {
  JoinMessage join;
  join.role = role;
  join.incarnation = Incarnation(incarnation);
  join.wire_version = 1;
  join.pid = 4711;
  join.host = "host";
  join.job_fingerprint = 99;
  if (role == Role::kServer) join.endpoints = {"tcp://a:1"};
  return join;
}

MembershipNeeds Needs() { return {1, 2, 99, 7, 1, seconds(3)}; }

TEST(Membership, IsCompleteWithExactlyWhatTheJobNeeds) {
  std::list<Member> joined;
  Membership members(Needs(), joined, {});
  EXPECT_EQ(members.Present(), "0 of 1 server and 0 of 2 workers");
  EXPECT_TRUE(members.Join({}, Joiner(Role::kWorker, 1)).ok());
  EXPECT_TRUE(members.Join({}, Joiner(Role::kServer, 2)).ok());
  EXPECT_FALSE(members.complete());
  EXPECT_TRUE(members.Join({}, Joiner(Role::kWorker, 3)).ok());
  EXPECT_TRUE(members.complete());
  EXPECT_EQ(members.OfRole(Role::kWorker).size(), 2u);
  EXPECT_EQ(members.Find(ProcessId(1))->Name(), "server 1 (pid 4711 on host)");
  EXPECT_EQ(members.Find(ProcessId(0)), nullptr);
  EXPECT_EQ(members.Find(ProcessId(4)), nullptr);
}

TEST(Membership, ServersAreNumberedFromOneAndWorkersAfterThem) {
  std::list<Member> joined;
  Membership members({2, 3, 99, 7, 1, seconds(3)}, joined, {});
  const auto join = [&](Role role, uint64_t incarnation, uint32_t asked) {
    JoinMessage message = Joiner(role, incarnation);
    message.id = ProcessId(asked);
    return (*members.Join({}, message))->id.value();
  };
  EXPECT_EQ(join(Role::kWorker, 1, 0), 3u);
  EXPECT_EQ(join(Role::kWorker, 2, 5), 5u) << "as it asks";
  EXPECT_EQ(join(Role::kServer, 3, 2), 2u);
  EXPECT_EQ(join(Role::kWorker, 4, 5), 4u) << "another has that";
  EXPECT_EQ(join(Role::kServer, 5, 4), 1u) << "a worker's number";
  std::vector<uint32_t> in_order;
  for (const Member& member : members.members()) in_order.push_back(member.id.value());
  EXPECT_EQ(in_order, (std::vector<uint32_t>{1, 2, 3, 4, 5}));
}

TEST(Membership, AProcessIsFoundByItsHostAndPid) {
  std::list<Member> joined;
  Membership members(Needs(), joined, {});
  const Member* const worker = *members.Join({}, Joiner(Role::kWorker, 1));
  EXPECT_EQ(members.FindProcess("host", 4711), worker);
  EXPECT_EQ(members.FindProcess("elsewhere", 4711), nullptr);
  EXPECT_EQ(members.FindProcess("host", 4712), nullptr);
}

TEST(Membership, TheSameIncarnationIsTheSameMember) {
  std::list<Member> joined;
  Membership members(Needs(), joined, {});
  const Member* first = *members.Join({}, Joiner(Role::kWorker, 1));
  EXPECT_EQ(*members.Join({}, Joiner(Role::kWorker, 1)), first);
  EXPECT_EQ(members.members().size(), 1u);
}

TEST(Membership, AMembersAcceleratorIsTheFirstDeviceThatIsNoCpu) {
  std::list<Member> joined;
  Membership members(Needs(), joined, {});
  JoinMessage join = Joiner(Role::kWorker, 1);
  EXPECT_EQ((*members.Join({}, join))->accelerator(), nullptr);
  join.incarnation = Incarnation(2);
  join.devices = {{.kind = DeviceKind::kCpu, .index = 0, .name = "cpu", .memory_bytes = 1},
                  {.kind = DeviceKind::kCuda, .index = 0, .name = "card", .memory_bytes = 2}};
  EXPECT_EQ(*(*members.Join({}, join))->accelerator(), join.devices[1]);
}

struct Refusal {
  std::string name;
  void (*change)(JoinMessage&);
  std::string sentence;
};

TEST(Membership, TheFullestMachineHasTheMostMembers) {
  std::list<Member> joined;
  Membership members({2, 3, 99, 7, 1, seconds(3)}, joined, {});
  uint64_t number = 0;
  const auto join = [&](Role role, const char* host) {
    JoinMessage message = Joiner(role, ++number);
    message.host = host;
    EXPECT_TRUE(members.Join({}, message).ok());
  };
  join(Role::kServer, "a");
  join(Role::kWorker, "b");
  join(Role::kServer, "c");
  join(Role::kWorker, "c");
  join(Role::kWorker, "c");
  const MachineMembers fullest = members.OnFullestMachine();
  EXPECT_EQ(fullest.servers, 1u);
  EXPECT_EQ(fullest.workers, 2u);
}

TEST(Membership, RefusesWithASentence) {
  const Refusal refusals[] = {
      {"version", [](JoinMessage& j) { j.wire_version = 2; }, "speaks version 2"},
      {"job", [](JoinMessage& j) { j.job_fingerprint = 1; }, "another job"},
      {"run", [](JoinMessage& j) { j.run = 8; }, "this server is of an earlier run of the job"},
      {"role", [](JoinMessage& j) { j.role = Role::kScheduler; }, "scheduler cannot join"},
      {"endpoints", [](JoinMessage& j) { j.endpoints.clear(); }, "no endpoint"},
  };
  for (const Refusal& refusal : refusals) {
    std::list<Member> joined;
    Membership members(Needs(), joined, {});
    JoinMessage join = Joiner(Role::kServer, 1);
    refusal.change(join);
    const auto result = members.Join({}, join);
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument) << refusal.name;
    EXPECT_NE(ToText(result.status()).find(refusal.sentence), std::string::npos)
        << ToText(result.status());
    EXPECT_TRUE(members.members().empty());
  }
  std::list<Member> joined;
  Membership members(Needs(), joined, {});
  ASSERT_TRUE(members.Join({}, Joiner(Role::kServer, 1)).ok());
  const auto surplus = members.Join({}, Joiner(Role::kServer, 2));
  EXPECT_EQ(ToText(surplus.status()),
            "the job already has its 1 server; cluster.servers says how many it has");
}

TEST(Membership, SilenceOfALeaseIsLoss) {
  std::list<Member> joined;
  Membership members(Needs(), joined, {});
  const TimePoint start{};
  ASSERT_TRUE(members.Join(start, Joiner(Role::kServer, 1)).ok());
  ASSERT_TRUE(members.Join(start, Joiner(Role::kWorker, 2)).ok());
  EXPECT_EQ(members.Lost(start + seconds(6)), nullptr) << "none has reported yet";
  EXPECT_NE(members.Lost(start + milliseconds(6001)), nullptr);
  for (uint64_t i : {1, 2}) members.Report(Incarnation(i), {});
  members.Heard(start + seconds(2), Incarnation(2));
  EXPECT_EQ(members.Lost(start + seconds(3)), nullptr) << "a lease is not over at its end";
  EXPECT_EQ(members.Lost(start + milliseconds(3001))->id, ProcessId(1));
  members.Heard(start + seconds(1), Incarnation(2));
  EXPECT_EQ(members.Lost(start + seconds(9))->id, ProcessId(1)) << "the longest silent first";
  members.ExtendLeases(start + seconds(9), seconds(6));
  EXPECT_EQ(members.Lost(start + seconds(9)), nullptr);
  // Worker 2 was heard at 2 s, so after the pause this counts as 8 s; another pause does not move
  // it into the future.
  members.ExtendLeases(start + seconds(10), seconds(60));
  EXPECT_EQ(members.Lost(start + seconds(13)), nullptr);
  EXPECT_NE(members.Lost(start + milliseconds(13001)), nullptr);
}

// Only one process at a time has an address; but this may be a mistake, or a lie.
TEST(Membership, AProcessWithAServersAddressesHalvesItsLease) {
  std::list<Member> joined;
  Membership members(Needs(), joined, {});
  const TimePoint start{};
  const Member& server = **members.Join(start, Joiner(Role::kServer, 1));
  members.Report(Incarnation(1), {});
  EXPECT_EQ(members.FindClaimed(Joiner(Role::kServer, 1)), nullptr) << "it is the same process";
  EXPECT_EQ(members.FindClaimed(Joiner(Role::kWorker, 2)), nullptr);
  JoinMessage other = Joiner(Role::kServer, 2);
  EXPECT_EQ(members.FindClaimed(other), &server);
  other.host = "elsewhere";
  EXPECT_EQ(members.FindClaimed(other), nullptr) << "a loopback address, perhaps";
  other = Joiner(Role::kServer, 2);
  other.endpoints = {"tcp://a:2"};
  EXPECT_EQ(members.FindClaimed(other), nullptr);

  members.SetClaimed(start + seconds(1), server.id);
  members.SetClaimed(start + seconds(2), server.id);
  EXPECT_EQ(members.Lost(start + milliseconds(2500)), nullptr);
  EXPECT_EQ(members.Lost(start + milliseconds(2501)), &server);
  members.Heard(start + milliseconds(2400), Incarnation(1));
  EXPECT_EQ(members.Lost(start + milliseconds(5400)), nullptr) << "it lives";
  EXPECT_EQ(members.Lost(start + milliseconds(5401)), &server) << "its lease, as usual";
}

TEST(Membership, AProcessWithAMembersTokenTakesItsPlace) {
  std::list<Member> joined;
  Membership members(Needs(), joined, {});
  JoinMessage join = Joiner(Role::kServer, 1);
  join.server_token = 70;
  ASSERT_TRUE(members.Join({}, join).ok());
  EXPECT_EQ(members.FindToken(0), nullptr);
  EXPECT_EQ(members.FindToken(71), nullptr);
  const Member* const member = members.FindToken(70);
  ASSERT_NE(member, nullptr);
  members.SetAway(TimePoint() + seconds(10), member->id);
  EXPECT_EQ(members.Lost(TimePoint() + seconds(1000)), nullptr) << "it is waited for";
  JoinMessage again = join;
  again.incarnation = Incarnation(2);
  again.endpoints = {"tcp://a:2"};
  EXPECT_EQ(ToText(members.Return({}, member->id, again)),
            "server 1 (pid 4711 on host) has come back at other addresses; start it as before, "
            "with the same --listen");
  again.endpoints = join.endpoints;
  ASSERT_TRUE(members.Return(TimePoint() + seconds(20), member->id, again).ok());
  EXPECT_EQ(members.Find(Incarnation(1)), nullptr);
  EXPECT_EQ(members.Find(Incarnation(2)), member);
  EXPECT_EQ(members.Lost(TimePoint() + seconds(26)), nullptr);
  EXPECT_EQ(members.Lost(TimePoint() + seconds(27)), member);
}

// A server that does not know that it has returned would begin a new log in place of its own.
TEST(Membership, ThatAServerHasReturnedStaysKnown) {
  std::list<Member> joined;
  Membership members(Needs(), joined, {});
  const Member& member = **members.Join({}, Joiner(Role::kServer, 1));
  EXPECT_FALSE(member.returned);
  const JoinMessage again = Joiner(Role::kServer, 2);
  ASSERT_TRUE(members.Return({}, member.id, again).ok());
  Membership of_another_scheduler(Needs(), joined, {});
  const Result<const Member*> known = of_another_scheduler.Join({}, again);
  ASSERT_TRUE(known.ok());
  EXPECT_TRUE((*known)->returned);
}

TEST(Membership, ASuccessorIsNotReadyUntilItSaysSo) {
  std::list<Member> joined;
  Membership members(Needs(), joined, {});
  const Member& member = **members.Join({}, Joiner(Role::kServer, 1));
  members.SetReady(member.id);
  EXPECT_TRUE(member.ready);
  JoinMessage again = Joiner(Role::kServer, 2);
  ASSERT_TRUE(members.Return({}, member.id, again).ok());
  EXPECT_FALSE(member.ready);
}

// A scheduler that takes over the job of another has such members.
TEST(Membership, MembersThatAreThereFromTheBeginningHaveTheirLeaseFromThen) {
  std::list<Member> joined = {{ProcessId(1), Joiner(Role::kServer, 1)}};
  Membership members(Needs(), joined, TimePoint() + seconds(50));
  EXPECT_EQ(members.Lost(TimePoint() + seconds(56)), nullptr);
  EXPECT_EQ(members.Lost(TimePoint() + seconds(57))->id, ProcessId(1));
}

}  // namespace
}  // namespace dt::scheduler
