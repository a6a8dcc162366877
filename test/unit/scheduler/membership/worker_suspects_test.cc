// Goal: of workers that do not get on, though the scheduler hears them, the right one leaves; one
// that is excused stays. Method: members and heartbeats made by the test.
#include "scheduler/membership/worker_suspects.h"

#include <vector>

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

class WorkerSuspectsTest : public ::testing::Test {
 protected:
  // Server 1, and workers from 2 on.
  explicit WorkerSuspectsTest(uint32_t workers = 3) : needs_{1, workers, 99, 7, 1, kLease} {
    members_.emplace(needs_, list_, now_);
    for (uint32_t i = 1; i <= 1 + workers; ++i) {
      JoinMessage join;
      join.role = i == 1 ? Role::kServer : Role::kWorker;
      join.incarnation = Incarnation(i);
      join.wire_version = 1;
      join.job_fingerprint = 99;
      join.endpoints = {fmt::format("tcp://a:{}", i)};
      EXPECT_TRUE(members_->Join(now_, join).ok());
      if (i > 1) workers_.push_back(ProcessId(i));
      Report(i, {});
    }
  }
  void Report(uint32_t from, HeartbeatMessage report) {
    if (report.peers.view == ViewNumber()) report.peers.view = kView;
    members_->Heard(now_, Incarnation(from));
    members_->Report(Incarnation(from), report);
  }
  void Await(uint32_t from, uint32_t peer, double seconds) {
    Report(from, {.peers = {kView, ProcessId(peer), seconds}});
  }
  void Break(uint32_t from, uint32_t peer, double seconds) {
    Report(from, {.peers = {kView, ProcessId(peer), seconds, true}});
  }
  void Work(uint32_t at, double seconds, bool in_step = true) {
    Report(at, {.threads = {{"train", "run slice of step 7", seconds, in_step}}});
  }
  std::optional<Suspect> Found() const {
    return WorkerInTheWay(*members_, {kView, workers_, asynchronous_}, now_, kLease);
  }
  // 0: none.
  uint32_t Leaves() const { return Found().has_value() ? Found()->id.value() : 0; }

  static constexpr Duration kLease = seconds(3);
  static constexpr ViewNumber kView{5};
  bool asynchronous_ = false;
  TimePoint now_ = TimePoint() + seconds(100);
  MembershipNeeds needs_;
  std::list<Member> list_;
  std::optional<Membership> members_;
  std::vector<ProcessId> workers_;
};

TEST_F(WorkerSuspectsTest, OfTwoThatDoNotReachEachOtherTheLaterOneLeaves) {
  Break(2, 4, 5);
  Break(4, 2, 5);
  EXPECT_EQ(Leaves(), 0u) << "one that is lost is noticed by then";
  Break(2, 4, 6);
  Break(4, 2, 6);
  ASSERT_EQ(Leaves(), 4u);
  EXPECT_EQ(Found()->how, "and worker 2 (pid 0 on ) do not reach each other");
}

TEST_F(WorkerSuspectsTest, OneThatHasNoticedNothingLeavesFirst) {
  Break(4, 2, 7);
  EXPECT_EQ(Leaves(), 2u) << "it says nothing";
}

TEST_F(WorkerSuspectsTest, OneThatMostDoNotReachLeaves) {
  Break(3, 2, 7);
  Break(4, 2, 7);
  Break(2, 4, 7);
  ASSERT_EQ(Leaves(), 2u);
  EXPECT_EQ(Found()->how, "holds 2 other workers up, which wait for it");
}

TEST_F(WorkerSuspectsTest, WithoutAPeerTheOneThatComplainsLeaves) {
  Break(3, 0, 7);
  EXPECT_EQ(Leaves(), 3u);
}

TEST_F(WorkerSuspectsTest, OneForWhichOthersWaitLeavesInTheEnd) {
  Await(3, 2, 49);
  EXPECT_EQ(Leaves(), 0u);
  Await(3, 2, 51);
  ASSERT_EQ(Leaves(), 2u);
  EXPECT_EQ(Found()->how, "holds worker 3 (pid 0 on ) up, which has waited for it for 51 s");
  Report(2, {.waiting = true});
  EXPECT_EQ(Leaves(), 0u) << "it waits for servers";
}

TEST_F(WorkerSuspectsTest, AWaitLeadsToItsEnd) {
  Await(4, 3, 51);
  Await(3, 2, 49);
  EXPECT_EQ(Leaves(), 2u);
  Await(2, 4, 51);
  EXPECT_EQ(Leaves(), 4u) << "all wait for each other";
}

TEST_F(WorkerSuspectsTest, WhatWasSaidInAnotherViewDoesNotCount) {
  Report(2, {.peers = {ViewNumber(4), ProcessId(3), 70, true}});
  EXPECT_EQ(Leaves(), 0u);
}

TEST_F(WorkerSuspectsTest, OneThatIsNotHeardIsLeftToItsLease) {
  Await(3, 2, 51);
  Await(4, 2, 51);
  now_ += kLease + milliseconds(1);
  Await(3, 2, 54);
  Await(4, 2, 54);
  EXPECT_EQ(Leaves(), 0u);
}

TEST_F(WorkerSuspectsTest, OneStandsStillWhenNoOtherHasWork) {
  Work(3, 51);
  EXPECT_EQ(Leaves(), 0u) << "synchronous ones say for whom they wait";
  asynchronous_ = true;
  ASSERT_EQ(Leaves(), 3u);
  EXPECT_EQ(Found()->how, "stands still: run slice of step 7 for 51 s");
  Work(2, 1);
  EXPECT_EQ(Leaves(), 0u);
  Report(2, {});
  EXPECT_EQ(Leaves(), 3u);
  Work(3, 51, false);
  EXPECT_EQ(Leaves(), 0u) << "it saves";
}

TEST_F(WorkerSuspectsTest, OneMayBeLateForAViewForAWhile) {
  const std::set<ProcessId> missing = {ProcessId(1), ProcessId(3)};
  const TimePoint since = now_ - seconds(51);
  const auto late = WorkerThatIsLate(*members_, missing, since, now_, kLease);
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->id, ProcessId(3));
  EXPECT_FALSE(WorkerThatIsLate(*members_, missing, since + seconds(2), now_, kLease));
  EXPECT_FALSE(WorkerThatIsLate(*members_, {ProcessId(1)}, since, now_, kLease));
  Report(3, {.reading = true});
  EXPECT_FALSE(WorkerThatIsLate(*members_, missing, since, now_, kLease)) << "it reads data";
}

}  // namespace
}  // namespace dt::scheduler
