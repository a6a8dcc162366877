// Goal: how a job starts and how it fails: which processes are admitted, and what messages name.
// Method: messages written by the test, and a simulated clock.
#include "scheduler/job/job.h"

#include "common/plan/plan_codec.h"
#include "test/unit/scheduler/job/job_fixture.h"

namespace dt::scheduler {
namespace {

TEST_F(JobTest, StartsWhenAllAreThereWithEqualData) {
  JoinAll();
  EXPECT_EQ(job_->phase(), JobPhase::kReading);
  Say(2, Data());
  Say(1, Data());
  EXPECT_EQ(job_->phase(), JobPhase::kStarting);
  const auto start = SentTo<StartMessage>(1);
  ASSERT_EQ(start.size(), 1u);
  EXPECT_EQ(start[0].view.workers, (std::vector<ProcessId>{ProcessId(2), ProcessId(3)}));
  EXPECT_EQ(start[0].plans, std::vector{PlanBytes{Encode(Plan())}});
  EXPECT_EQ(start[0].slices, 2u) << "auto: as many as workers";
  EXPECT_EQ(start[0].view.map.shards(), 4u);
  for (uint64_t from : {1, 2}) Say(from, ReadyMessage{});
  EXPECT_EQ(job_->phase(), JobPhase::kStarting) << "the server is not ready";
  Say(3, ReadyMessage{});
  EXPECT_EQ(job_->phase(), JobPhase::kRunning);
  const auto orders = SentTo<OrderMessage>(2);
  ASSERT_EQ(orders.size(), 2u);
  EXPECT_EQ(std::get<TrainOrder>(orders[0].what).slice_owner, (std::vector<uint32_t>{0, 1}));
}

TEST_F(JobTest, ThePlannerIsToldWhatWorkersComputeOn) {
  const DeviceInfo cpu{.kind = DeviceKind::kCpu, .index = 0, .name = "cpu", .memory_bytes = 1};
  const DeviceInfo card{.kind = DeviceKind::kCuda, .index = 0, .name = "card", .memory_bytes = 2};
  devices_ = {cpu};
  Join(1, Role::kWorker);
  devices_ = {cpu, card};
  Join(2, Role::kWorker);
  devices_ = {};
  Join(3, Role::kServer);
  Say(2, Data());
  Say(1, Data());
  EXPECT_EQ(environment_.asked.accelerators, (std::vector{card}));
  EXPECT_EQ(environment_.asked.slices, 2u);
  EXPECT_EQ(environment_.asked.servers, 1u);
  EXPECT_EQ(environment_.asked.workers, 2u);
  EXPECT_EQ(environment_.asked.columns.size(), 1u);
}

TEST_F(JobTest, SurplusIsRefusedAndTheSameIsWelcomedAgain) {
  JoinAll();
  job_->TakeOutgoing();
  Join(3, Role::kServer);
  EXPECT_EQ(SentTo<WelcomeMessage>(3).size(), 1u);
  Join(4, Role::kServer);
  const auto refused = SentTo<RefusedMessage>(4);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].problem.what, "the job already has its 1 server");
  EXPECT_EQ(Outcome(), "not ended");
}

TEST_F(JobTest, DifferentDataNamesBothWorkers) {
  JoinAll();
  Say(1, Data(100));
  Say(2, Data(90));
  EXPECT_EQ(Outcome().substr(0, 102),
            "worker 2 (pid 1 on host) and worker 3 (pid 2 on host) read different data: 100 and 90 "
            "training samples");
  EXPECT_EQ(SentTo<StopMessage>(3).size(), 1u);
}

TEST_F(JobTest, NoDataAndNoPlanEndTheJob) {
  JoinAll();
  Say(1, Data(0));
  Say(2, Data(0));
  EXPECT_EQ(job_->outcome().code(), StatusCode::kInvalidArgument);
}

TEST_F(JobTest, AResumedJobNeedsAsManySamples) {
  JobOptions::Checkpoint checkpoint{"folder", {}};
  checkpoint.manifest.schedule.step = 5;
  checkpoint.manifest.train_rows = 99;
  for (const uint64_t rows : {99, 100}) {
    Make(checkpoint);
    JoinAll();
    Say(1, Data(rows));
    Say(2, Data(rows));
    EXPECT_EQ(job_->phase(), rows == 99 ? JobPhase::kStarting : JobPhase::kEnded);
  }
  EXPECT_NE(Outcome().find("on 99 training samples; there are 100 now"), std::string::npos);
}

TEST_F(JobTest, ThePlannersSentenceIsTheJobs) {
  environment_.plan = Invalid("node x: no such table");
  JoinAll();
  Say(1, Data());
  Say(2, Data());
  EXPECT_EQ(Outcome(), "node x: no such table");
}

TEST_F(JobTest, WhoIsLateIsNamed) {
  JoinAll();
  Say(1, Data());
  for (int s = 1; s <= 31; ++s) {
    for (uint64_t from : {1, 2, 3}) Say(from, HeartbeatMessage{}, seconds(s));
    job_->Tick(kStart + seconds(s));
  }
  EXPECT_EQ(job_->outcome().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Outcome().substr(0, 60),
            "after 31 s worker 3 (pid 2 on host) is still reading its dat");
}

TEST_F(JobTest, FailureKeepsItsCodePlaceAndHint) {
  Begin();
  Say(2, FailedMessage{StatusCode::kOutOfRange, {"not a number", "a.csv:3", "mend it"}});
  EXPECT_EQ(job_->outcome().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(Outcome(), "worker 3 (pid 2 on host): not a number (a.csv:3); mend it");
  const auto stop = SentTo<StopMessage>(1);
  ASSERT_EQ(stop.size(), 1u);
  EXPECT_EQ(stop[0].problem.where, "a.csv:3");
}

TEST_F(JobTest, OnlyARequestInterrupts) {
  Begin();
  Say(2, FailedMessage{StatusCode::kCancelled, {"gone", "", ""}});
  EXPECT_EQ(job_->outcome().code(), StatusCode::kUnavailable);
}

TEST_F(JobTest, LeavingEndsTheJob) {
  Begin();
  Say(3, LeavingMessage{});
  EXPECT_EQ(Outcome(), "server 1 (pid 3 on host) was stopped");
}

TEST_F(JobTest, AnEndThatIsToldEndsTheJobAtOnce) {
  config_.parallel.optimizer.on = true;  // Otherwise it goes on; see worker_views_test.cc.
  Make();
  Begin();
  job_->OnProcessEnd(kStart, "elsewhere", {"worker 3", 2, "was killed", false});
  job_->OnProcessEnd(kStart, "host", {"worker 9", 9, "was killed", false});
  EXPECT_EQ(Outcome(), "not ended") << "no process of the job";
  job_->OnProcessEnd(kStart, "host", {"worker 3", 2, "was killed by signal 9 (Killed)", false});
  EXPECT_EQ(Outcome(), "worker 3 (pid 2 on host) was killed by signal 9 (Killed); see its log");
  EXPECT_EQ(events().at(4).kind, "worker_lost");
  EXPECT_EQ(SentTo<StopMessage>(1).size(), 1u);
}

TEST_F(JobTest, AnEndBeforeJoiningEndsTheJobUnlessAnotherIsStarted) {
  Join(1, Role::kWorker);
  job_->OnProcessEnd(kStart, "host", {"server 1", 3, "was killed", true});
  EXPECT_EQ(Outcome(), "not ended");
  job_->OnProcessEnd(kStart, "host", {"server 1", 4, "exited with code 1: a port is taken", false});
  EXPECT_EQ(Outcome(),
            "server 1 (pid 4) exited with code 1: a port is taken; it had not joined yet; see its "
            "log");
}

TEST_F(JobTest, AServerThatIsKnownToHaveEndedIsReplacedAtOnce) {
  token_ = 7;
  endpoint_ = "inproc://x";
  Begin();
  job_->OnProcessEnd(kStart, "host", {"server 1", 3, "was killed", true});
  EXPECT_EQ(Outcome(), "not ended");
  Join(4, Role::kServer);
  const auto welcome = SentTo<WelcomeMessage>(4);
  ASSERT_EQ(welcome.size(), 1u) << "no lease is waited for";
  EXPECT_EQ(welcome[0].id, ProcessId(1));
  EXPECT_TRUE(welcome[0].returned);
  Say(4, ReadyMessage{});
  EXPECT_EQ(events().back().kind, "recovered");
  job_->OnProcessEnd(kStart, "host", {"server 1", 4, "was killed", false});
  EXPECT_EQ(Outcome(), "server 1 (pid 4 on host) was killed; see its log") << "no other comes";
}

TEST_F(JobTest, AServerWhoseAddressesAnotherHasIsGoneAfterHalfALease) {
  config_.cluster.servers = 2;
  config_.cluster.replicas = 2;
  config_.cluster.lease = seconds(3);
  Make();
  endpoint_ = "tcp://host:1";
  Join(4, Role::kServer);
  endpoint_.clear();
  Begin();
  for (uint64_t from : {1, 2, 3, 4}) Say(from, HeartbeatMessage{});
  Say(4, ReadyMessage{});
  endpoint_ = "tcp://host:1";
  Join(5, Role::kServer);
  const auto live = [&](Duration at) {
    for (uint64_t from : {1, 2, 3, 5}) Say(from, HeartbeatMessage{}, at);
    job_->Tick(kStart + at);
  };
  live(milliseconds(1500));
  EXPECT_TRUE(job_->record().gone.empty());
  live(milliseconds(1600));
  ASSERT_EQ(job_->record().gone.size(), 1u);
  EXPECT_EQ(job_->record().gone[0].why,
            "server 1 (pid 4 on host) has not been heard of for 1.6 s, and another process has its "
            "addresses");
  EXPECT_EQ(Outcome(), "not ended");
}

TEST_F(JobTest, AServerThatHangsIsLost) {
  config_.cluster.servers = 2;
  config_.cluster.replicas = 2;
  config_.cluster.lease = seconds(3);
  Make();
  Join(4, Role::kServer);
  Begin();
  Say(4, ReadyMessage{});
  for (int second = 0; second <= 6; ++second) {
    for (uint64_t from : {1, 2, 3}) Say(from, HeartbeatMessage{}, seconds(second));
    Say(4, HeartbeatMessage{.executors = {{double(second), ""}}}, seconds(second));
    job_->Tick(kStart + seconds(second));
    EXPECT_EQ(job_->record().gone.size(), second < 6 ? 0u : 1u) << second;
  }
  EXPECT_EQ(events().back().kind, "server_lost");
  EXPECT_EQ(SentTo<StopMessage>(4).size(), 1u);
  EXPECT_EQ(Outcome(), "not ended");
}

// Other failures may be of the job, and come again wherever its shards are.
TEST_F(JobTest, AServerWhoseMachineFailsIsLostIfAnotherHasItsShards) {
  for (const StatusCode code : {StatusCode::kUnavailable, StatusCode::kDataLoss}) {
    config_.cluster.servers = 2;
    config_.cluster.replicas = 2;
    Make();
    Join(4, Role::kServer);
    Begin();
    Say(4, ReadyMessage{});
    Say(4, FailedMessage{code, {"the disk is full", "", ""}});
    if (code == StatusCode::kDataLoss) {
      EXPECT_EQ(Outcome(), "server 1 (pid 4 on host): the disk is full");
      continue;
    }
    EXPECT_EQ(Outcome(), "not ended");
    EXPECT_EQ(events().back().kind, "server_lost");
    Say(3, FailedMessage{code, {"the disk is full", "", ""}});
    EXPECT_EQ(Outcome(), "server 2 (pid 3 on host): the disk is full") << "nobody else has them";
  }
}

TEST_F(JobTest, AServerThatJoinsLateNeedsMemoryForItsShare) {
  config_.model.tables.push_back({.name = "deep", .all_in_memory = true});
  Make();
  Begin();
  Say(3, HeartbeatMessage{.tables = {{.name = "deep", .rows = 1000, .bytes = 4 << 20}}});
  server_memory_ = 1 << 20;
  Join(4, Role::kServer);
  const auto refused = SentTo<RefusedMessage>(4);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].problem.what,
            "a server would hold about 2 MiB of rows that stay in memory; this one may use 1 MiB");
  server_memory_ = 2 << 20;
  Join(5, Role::kServer);
  EXPECT_EQ(SentTo<WelcomeMessage>(5).size(), 1u);
  EXPECT_EQ(Outcome(), "not ended");
}

// The shard has begun anew on both servers when a checkpoint was loaded.
TEST_F(JobTest, WhatWasCopiedBeforeACheckpointWasLoadedCountsNoMore) {
  Begin();
  const Incarnation late(4);
  Join(late.value(), Role::kServer);
  Say(late.value(), ReadyMessage{});
  const ShardMap before = job_->record().map;
  const auto chain =
      std::ranges::find_if(before.chains, [](const Chain& of) { return !of.syncing.empty(); });
  ASSERT_NE(chain, before.chains.end());
  ShardCopiedMessage copied{.shard = ShardId(static_cast<uint32_t>(chain - before.chains.begin())),
                            .to = chain->syncing.front(),
                            .since = chain->copied_since(),
                            .generation = Generation(0)};
  Say(3, copied);
  EXPECT_EQ(job_->record().map, before);
  copied.generation = Generation(1);
  Say(3, copied);
  EXPECT_TRUE(job_->record().map.chains[copied.shard.value()].Has(copied.to));
}

TEST_F(JobTest, AProcessThatHasEndedTakesNobodysPlace) {
  token_ = 7;
  endpoint_ = "inproc://x";
  Begin();
  Join(4, Role::kServer);  // It waits until server 1 is away.
  job_->OnProcessEnd(kStart, "host", {"server 1", 4, "was killed", true});
  job_->OnProcessEnd(kStart, "host", {"server 1", 3, "was killed", true});
  job_->Tick(kStart);
  EXPECT_TRUE(SentTo<WelcomeMessage>(4).empty());
}

TEST_F(JobTest, WhatOnlyASchedulerSaysAndWrongReportsEndTheJob) {
  Begin();
  Say(1, OrderDoneMessage{99, TrainDone{}});
  EXPECT_EQ(job_->outcome().code(), StatusCode::kInternal);
  EXPECT_NE(Outcome().find("worker 2"), std::string::npos);
}

TEST_F(JobTest, StrangersAreIgnored) {
  Begin();
  Say(77, FailedMessage{StatusCode::kInternal, {"x", "", ""}});
  Say(77, WelcomeMessage{});
  EXPECT_EQ(Outcome(), "not ended");
}

TEST_F(JobTest, ValuesWaitForTheirGet) {
  Begin();
  job_->TakeOutgoing();
  Say(1, KvGetMessage{"k"});
  EXPECT_TRUE(SentTo<KvValueMessage>(1).empty());
  Say(2, KvPutMessage{"k", "v"});
  EXPECT_EQ(SentTo<KvValueMessage>(1).at(0).value, "v");
  Say(2, KvGetMessage{"k"});
  EXPECT_EQ(SentTo<KvValueMessage>(2).size(), 1u);
}

// ------------------------------------------------------------ planning

TEST_F(JobTest, PlanningThatTakesAMinuteCostsNoLease) {
  plans_at_once_ = false;
  config_.cluster.lease = seconds(3);
  Make();
  JoinAll();
  Say(1, Data());
  Say(2, Data());
  EXPECT_EQ(job_->phase(), JobPhase::kPlanning);
  const auto live = [&](int from_second, int to_second) {
    for (int s = from_second; s <= to_second; ++s) {
      for (uint64_t from : {1, 2, 3}) Say(from, HeartbeatMessage{}, seconds(s));
      job_->Tick(kStart + seconds(s));
    }
  };
  live(1, 60);
  EXPECT_EQ(Outcome(), "not ended");
  TellPlan(seconds(60));
  EXPECT_EQ(job_->phase(), JobPhase::kStarting);
  EXPECT_EQ(SentTo<StartMessage>(1).size(), 1u);
  live(61, 90);
  EXPECT_EQ(Outcome(), "not ended") << "the planner's minute is nobody's delay";
  live(91, 91);
  EXPECT_NE(Outcome().find("has not started"), std::string::npos) << Outcome();
}

TEST_F(JobTest, WhoFallsSilentWhileAPlanIsMadeIsLost) {
  plans_at_once_ = false;
  config_.cluster.lease = seconds(3);
  Make();
  JoinAll();
  Say(1, Data());
  Say(2, Data());
  for (int s = 1; s <= 7; ++s) {
    for (uint64_t from : {1, 3}) Say(from, HeartbeatMessage{}, seconds(s));
    job_->Tick(kStart + seconds(s));
  }
  EXPECT_NE(Outcome().find("worker 3 (pid 2 on host) has not been heard of"), std::string::npos);
}

TEST_F(JobTest, AStopWhileAPlanIsMadeEndsTheJobAtOnceAndThePlanIsDropped) {
  plans_at_once_ = false;
  JoinAll();
  Say(1, Data());
  Say(2, Data());
  job_->RequestStop(kStart);
  EXPECT_EQ(Outcome(), "the job was stopped before its first step");
  job_->TakeOutgoing();
  TellPlan();
  EXPECT_TRUE(SentTo<StartMessage>(1).empty());
  EXPECT_FALSE(job_->plan().has_value());
}

TEST_F(JobTest, APlanThatNobodyAskedForIsDropped) {
  JoinAll();
  job_->On(kStart, PlanMade{MadePlan()});
  EXPECT_EQ(job_->phase(), JobPhase::kReading);
}

}  // namespace
}  // namespace dt::scheduler
