// Goal: a server is suspected when it hangs, or when most of those that talk to it get no answers;
// never on the word of one process, and never if it says why. Method: members, maps and heartbeats
// made by the test.
#include "scheduler/membership/suspects.h"

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

constexpr Duration kLease = seconds(3);
using Ids = std::vector<uint32_t>;

class SuspectsTest : public ::testing::Test {
 protected:
  // Servers 1, 2, …, then workers. Each shard is on two servers, its own and the next one.
  void Make(uint32_t servers, uint32_t workers) {
    servers_ = servers;
    needs_ = {servers, workers, 99, 7, 1, kLease};
    members_.emplace(needs_, list_, now_);
    for (uint32_t i = 1; i <= servers + workers; ++i) {
      JoinMessage join;
      join.role = i <= servers ? Role::kServer : Role::kWorker;
      join.incarnation = Incarnation(i);
      join.wire_version = 1;
      join.job_fingerprint = 99;
      join.endpoints = {fmt::format("tcp://a:{}", i)};
      ASSERT_TRUE(members_->Join(now_, join).ok());
      Report(i, {.waiting = join.role == Role::kWorker});
    }
    map_.version = MapVersion(1);
    for (uint32_t s = 1; s <= servers; ++s) {
      map_.servers.push_back({ProcessId(s), {fmt::format("tcp://a:{}", s)}});
      map_.chains.push_back({MapVersion(1), {ProcessId(s), ProcessId(s % servers + 1)}});
    }
  }
  void Report(uint32_t from, const HeartbeatMessage& report) {
    members_->Heard(now_, Incarnation(from));
    members_->Report(Incarnation(from), report);
  }
  void Complain(uint32_t from, const Ids& of) {
    HeartbeatMessage report{.waiting = true};
    for (const uint32_t id : of) report.unreachable.push_back(ProcessId(id));
    Report(from, report);
  }
  std::vector<Suspect> All() const { return SuspectsOf(*members_, map_, now_, kLease); }
  static Ids IdsOf(const std::vector<Suspect>& suspects) {
    Ids ids;
    for (const Suspect& suspect : suspects) ids.push_back(suspect.id.value());
    return ids;
  }
  Ids Suspected() const { return IdsOf(All()); }
  Ids ToRemove() const { return IdsOf(Removable(All(), map_)); }

  TimePoint now_ = TimePoint() + seconds(100);
  uint32_t servers_ = 0;
  MembershipNeeds needs_;
  std::list<Member> list_;
  std::optional<Membership> members_;
  ShardMap map_;
};

TEST_F(SuspectsTest, AnExecutorThatHangsIsNamed) {
  Make(2, 1);
  Report(2, {.executors = {{0.1, ""}, {2.9, ""}}});
  EXPECT_EQ(Suspected(), Ids{});
  Report(2, {.executors = {{0.1, ""}, {3.4, ""}}});
  ASSERT_EQ(Suspected(), Ids{2});
  EXPECT_EQ(All()[0].how, "hangs: its executor 1 has not turned for 3.4 s");
  EXPECT_EQ(ToRemove(), Ids{2});
}

TEST_F(SuspectsTest, OneThatSaysWhyIsNoSuspect) {
  Make(2, 1);
  Complain(1, {2});
  Complain(3, {2});
  EXPECT_EQ(Suspected(), Ids{2});
  Report(2, {.executors = {{60, "a write to its log"}, {0.1, ""}}});
  EXPECT_EQ(Suspected(), Ids{}) << "not for its own age, nor because it does not answer";
}

// Whoever is right, the job needs both.
TEST_F(SuspectsTest, TwoThatComplainOfEachOtherStay) {
  Make(2, 1);
  Complain(1, {2});
  Complain(2, {1});
  EXPECT_EQ(Suspected(), Ids{}) << "the worker reaches both";
}

TEST_F(SuspectsTest, OneIsNoMajority) {
  Make(2, 1);
  Complain(3, {1, 2});
  EXPECT_EQ(Suspected(), Ids{}) << "a worker that reaches nobody";
  map_.chains.resize(1);  // Server 2 is the tail, and only server 1 and the worker talk to it.
  Complain(1, {2});
  EXPECT_EQ(Suspected(), Ids{2});
}

TEST_F(SuspectsTest, AServerThatNobodyReachesIsFound) {
  Make(2, 1);
  Complain(1, {2});
  Complain(2, {1});
  Complain(3, {2});
  EXPECT_EQ(Suspected(), Ids{2}) << "what it complains of itself is one voice";
  EXPECT_EQ(All()[0].how, "does not answer 2 of the 2 processes that talk to it");
}

TEST_F(SuspectsTest, MostMustComplain) {
  Make(4, 4);  // To each server talk four workers and the server before it.
  for (const uint32_t worker : {5, 6}) Complain(worker, {3});
  EXPECT_EQ(Suspected(), Ids{});
  Complain(2, {3});
  EXPECT_EQ(Suspected(), Ids{3});
  Complain(5, {});
  EXPECT_EQ(Suspected(), Ids{}) << "it answers one of them again";
}

// Workers that wait for one that waits for the server.
TEST_F(SuspectsTest, WorkersThatWaitForOthersHaveNothingToSay) {
  Make(4, 4);
  Complain(5, {3});
  Complain(2, {3});
  EXPECT_EQ(Suspected(), Ids{});
  for (const uint32_t worker : {6, 7, 8}) Report(worker, {.waiting = false});
  EXPECT_EQ(Suspected(), Ids{3});
}

TEST_F(SuspectsTest, OldReportsDoNotCount) {
  Make(2, 1);
  Complain(1, {2});
  Complain(3, {2});
  now_ += seconds(4);
  Report(2, {});
  Complain(3, {2});
  EXPECT_EQ(Suspected(), Ids{}) << "server 1 has not been heard of for four seconds";
  Complain(1, {2});
  EXPECT_EQ(Suspected(), Ids{2});
  now_ += seconds(4);
  Complain(1, {2});
  Complain(3, {2});
  EXPECT_EQ(Suspected(), Ids{}) << "its lease has run out, which is another matter";
}

// A network of which nothing works: removing any server would only make it worse.
TEST_F(SuspectsTest, AShardKeepsAMemberThatIsNoSuspect) {
  Make(2, 2);
  Complain(1, {2});
  Complain(2, {1});
  for (const uint32_t worker : {3, 4}) Complain(worker, {1, 2});
  EXPECT_EQ(Suspected(), (Ids{1, 2}));
  EXPECT_EQ(ToRemove(), Ids{});
  Complain(2, {});
  Complain(3, {2});
  EXPECT_EQ(ToRemove(), Ids{2});
  map_.chains[0].members = {ProcessId(2)};
  EXPECT_EQ(Suspected(), Ids{2});
  EXPECT_EQ(ToRemove(), Ids{}) << "the last member";
}

}  // namespace
}  // namespace dt::scheduler
