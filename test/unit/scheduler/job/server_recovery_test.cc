// Goal: which process may replace a server, and when a loss ends the job. Method: members made by
// the test.
#include "scheduler/elastic/server_recovery.h"

#include <gtest/gtest.h>

#include "test/unit/scheduler/job/job_parts.h"

namespace dt::scheduler {
namespace {

using Names = std::vector<std::string>;
constexpr uint64_t kToken = 70;

TimePoint At(int64_t second) { return TimePoint() + seconds(second); }

class ServerRecoveryTest : public ::testing::Test {
 protected:
  // All members except `silent` have sent something.
  void OthersLive(TimePoint now, const Member& silent) {
    for (const Member& member : job_.members.members()) {
      if (&member != &silent) job_.members.Heard(now, member.incarnation());
    }
  }

  JobParts job_;
  Admission admission_{job_.context};
  ServerRecovery recovery_{job_.context, admission_};
  const Member& logged_ = job_.Join(Role::kServer, 1, kToken);
  const Member& plain_ = job_.Join(Role::kServer, 2);
  const Member& worker_ = job_.Join(Role::kWorker, 3);
};

TEST_F(ServerRecoveryTest, OnlyServersThatKeepALogCanBeReplaced) {
  EXPECT_TRUE(recovery_.CanReplace(logged_));
  EXPECT_FALSE(recovery_.CanReplace(plain_));
  EXPECT_FALSE(recovery_.CanReplace(worker_));
}

TEST_F(ServerRecoveryTest, TheSilenceOfOthersIsALoss) {
  OthersLive(At(5), worker_);
  const auto loss = recovery_.CheckLeases(At(7));
  ASSERT_TRUE(loss.has_value());
  EXPECT_EQ(loss->id, worker_.id);
  EXPECT_EQ(loss->how, "has not been heard of for 7.0 s");
}

TEST_F(ServerRecoveryTest, AServerThatHangsIsLostAfterHalfALeaseIfAnotherHasItsShards) {
  ShardMap& map = job_.record.map;
  map.chains = {{MapVersion(1), {logged_.id, plain_.id}}};
  const auto check = [&](TimePoint now, double age) {
    OthersLive(now, worker_);
    job_.members.Report(plain_.incarnation(), {.executors = {{age, ""}}});
    return recovery_.CheckSuspects(now);
  };
  EXPECT_FALSE(check(At(5), 4).has_value());
  EXPECT_FALSE(check(At(6), 0.1).has_value()) << "it goes on";
  EXPECT_FALSE(check(At(7), 4).has_value());
  EXPECT_FALSE(check(At(8), 5).has_value());
  const auto loss = check(At(9), 6);
  ASSERT_TRUE(loss.has_value());
  EXPECT_EQ(loss->id, plain_.id);
  EXPECT_EQ(loss->how, "hangs: its executor 0 has not turned for 6.0 s");
  map.chains[0].members = {plain_.id};
  EXPECT_FALSE(check(At(10), 7).has_value()) << "it has all that there is";
  const Duration waits = job_.context.options.job.cluster.wait_for_server;
  EXPECT_FALSE(check(At(7) + waits, 64).has_value());
  EXPECT_TRUE(check(At(8) + waits, 65).has_value()) << "it is waited for like one that is lost";
}

TEST_F(ServerRecoveryTest, AServerThatNeverStartsIsLost) {
  job_.members.SetReady(logged_.id);
  EXPECT_FALSE(recovery_.CheckSuspects(At(1)).has_value());
  EXPECT_FALSE(recovery_.CheckSuspects(At(61)).has_value());
  const auto loss = recovery_.CheckSuspects(At(62));
  ASSERT_TRUE(loss.has_value());
  EXPECT_EQ(loss->id, plain_.id);
  EXPECT_EQ(loss->how, "has not started in 61.0 s");
  job_.members.SetReady(plain_.id);
  EXPECT_FALSE(recovery_.CheckSuspects(At(62)).has_value());
}

TEST_F(ServerRecoveryTest, AServerIsWaitedForAndThenLost) {
  OthersLive(At(7), logged_);
  const auto loss = recovery_.CheckLeases(At(7));
  ASSERT_TRUE(loss.has_value());
  EXPECT_EQ(loss->fate, ServerRecovery::Fate::kSilent);
  recovery_.SetAway(At(7), logged_, loss->how);
  EXPECT_FALSE(recovery_.CheckLeases(At(7)).has_value());
  EXPECT_TRUE(recovery_.IsGone(logged_.id));
  EXPECT_EQ(job_.EventKinds(), Names{"server_lost"});
  OthersLive(At(67), logged_);
  EXPECT_FALSE(recovery_.CheckLeases(At(67)).has_value());
  OthersLive(At(68), logged_);
  const auto end = recovery_.CheckLeases(At(68));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->id, logged_.id);
  EXPECT_EQ(end->fate, ServerRecovery::Fate::kUseless);
}

TEST_F(ServerRecoveryTest, OneThatWasOnlySilentHasRecoveredWhenItIsHeardOf) {
  recovery_.SetAway(At(1), logged_, "was stopped");
  recovery_.OnRecovered(At(4), logged_);
  EXPECT_FALSE(recovery_.IsGone(logged_.id));
  EXPECT_EQ(job_.EventKinds(), (Names{"server_lost", "recovered"}));
  EXPECT_EQ(job_.record.events.back().details.back().second, JobResult::Detail(3.0));
  recovery_.OnRecovered(At(5), logged_);
  EXPECT_EQ(job_.record.events.size(), 2u) << "once";
}

TEST_F(ServerRecoveryTest, ASuccessorWaitsUntilTheMemberIsAway) {
  recovery_.AddSuccessor(At(1), job_.Joiner(Role::kServer, 4, kToken));
  EXPECT_TRUE(recovery_.SettleSuccessors(At(2)).empty());
  EXPECT_EQ(logged_.incarnation(), Incarnation(1));
  recovery_.SetAway(At(3), logged_, "was killed");
  EXPECT_EQ(recovery_.SettleSuccessors(At(3)), std::vector<ProcessId>{logged_.id});
  EXPECT_EQ(logged_.incarnation(), Incarnation(4));
  EXPECT_EQ(job_.NamesSentTo(4), Names{"Welcome"});
  EXPECT_TRUE(recovery_.IsGone(logged_.id)) << "until it is ready";
}

TEST_F(ServerRecoveryTest, APredecessorThatLivesStillIsStopped) {
  recovery_.SetAway(At(1), logged_, "has not been heard of");
  recovery_.AddSuccessor(At(1), job_.Joiner(Role::kServer, 4, kToken));
  recovery_.SettleSuccessors(At(1));
  EXPECT_EQ(job_.NamesSentTo(1), (Names{"Stop", "Refused"}));
}

TEST_F(ServerRecoveryTest, ASuccessorOfAMemberThatStaysIsRefused) {
  recovery_.AddSuccessor(At(0), job_.Joiner(Role::kServer, 4, kToken));
  recovery_.SettleSuccessors(At(9));
  EXPECT_TRUE(job_.NamesSentTo(4).empty()) << "three leases";
  recovery_.SettleSuccessors(At(10));
  EXPECT_EQ(job_.NamesSentTo(4), Names{"Refused"});
}

// A server that is killed twice in a row leaves a successor behind that is dead, too.
TEST_F(ServerRecoveryTest, ASuccessorBehindADeadOneWaitsForItsLease) {
  for (uint64_t id : {4, 5}) {
    recovery_.AddSuccessor(At(0), job_.Joiner(Role::kServer, id, kToken));
  }
  recovery_.SetAway(At(7), logged_, "was killed");
  recovery_.SettleSuccessors(At(7));
  EXPECT_EQ(logged_.incarnation(), Incarnation(4));
  recovery_.SettleSuccessors(At(13));
  EXPECT_TRUE(job_.NamesSentTo(5).empty()) << "it waits for the dead one since second 7";
  recovery_.SetAway(At(13), logged_, "has not been heard of");
  recovery_.SettleSuccessors(At(13));
  EXPECT_EQ(logged_.incarnation(), Incarnation(5));
}

TEST_F(ServerRecoveryTest, ASuccessorAtOtherAddressesIsRefused) {
  recovery_.SetAway(At(1), logged_, "was killed");
  JoinMessage join = job_.Joiner(Role::kServer, 4, kToken);
  join.endpoints = {"inproc://y"};
  recovery_.AddSuccessor(At(1), join);
  EXPECT_TRUE(recovery_.SettleSuccessors(At(1)).empty());
  EXPECT_EQ(job_.NamesSentTo(4), Names{"Refused"});
}

TEST_F(ServerRecoveryTest, OfTwoSuccessorsOneGetsThePlace) {
  recovery_.SetAway(At(1), logged_, "was killed");
  for (uint64_t id : {4, 5}) {
    recovery_.AddSuccessor(At(1), job_.Joiner(Role::kServer, id, kToken));
  }
  EXPECT_EQ(recovery_.SettleSuccessors(At(1)).size(), 1u);
  EXPECT_EQ(logged_.incarnation(), Incarnation(4));
}

// The job goes on without the member: whoever waited for its place may join as a new server.
TEST_F(ServerRecoveryTest, TheSuccessorsOfARemovedMemberAreTakenOnce) {
  for (uint64_t id : {4, 5}) {
    recovery_.AddSuccessor(At(1), job_.Joiner(Role::kServer, id, kToken));
  }
  EXPECT_TRUE(recovery_.TakeSuccessorsOfNobody().empty());
  job_.members.Remove(logged_.id);
  const std::vector<JoinMessage> joins = recovery_.TakeSuccessorsOfNobody();
  ASSERT_EQ(joins.size(), 2u);
  EXPECT_EQ(joins[0].incarnation, Incarnation(4));
  EXPECT_TRUE(recovery_.TakeSuccessorsOfNobody().empty());
  EXPECT_TRUE(recovery_.SettleSuccessors(At(9)).empty());
}

TEST_F(ServerRecoveryTest, ASuccessorThatHasEndedIsForgotten) {
  recovery_.AddSuccessor(At(1), job_.Joiner(Role::kServer, 4, kToken));
  recovery_.ForgetSuccessor("elsewhere", 4);
  recovery_.ForgetSuccessor("host", 4);
  recovery_.SetAway(At(2), logged_, "was killed");
  EXPECT_TRUE(recovery_.SettleSuccessors(At(2)).empty());
}

}  // namespace
}  // namespace dt::scheduler
