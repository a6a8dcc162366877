// Goal: how a job begins and how it fails: who is let in, what is named. Method: messages by hand,
// a clock of our own.
#include "scheduler/service/job_state.h"

#include <gtest/gtest.h>

#include "common/plan/plan_codec.h"
#include "common/wire/data.h"
#include "scheduler/service/status_of.h"

namespace dt::scheduler {
namespace {

const TimePoint kStart{};

class NoSurroundings : public JobSurroundings {
 public:
  Result<MadePlan> MakePlan(const PlanInput& input) override {
    asked = input;
    return plan;
  }
  Result<std::string> BeginCheckpoint(Step) override { return checkpoint; }
  Result<std::string> CommitCheckpoint(const Manifest&, bool) override { return std::string(); }
  Result<std::string> FindCheckpoint(Step) override { return NotFound("none"); }
  Status KeepGeneration(Generation) override { return OkStatus(); }
  Result<MadePlan> plan = MadePlan();
  Result<std::string> checkpoint = Unavailable("disk full");
  PlanInput asked;
};

class JobStateTest : public ::testing::Test {
 protected:
  JobStateTest() {
    job_.cluster.servers = 1;
    job_.cluster.workers = 2;
    job_.cluster.shards = 4;
    job_.cluster.start_timeout = seconds(30);
    job_.train.batch_size = 10;
    job_.model.losses.emplace_back().name = "click";
    state_.emplace(JobOptions{job_, Goal::kTrain, Term(1), Generation(1), {}}, surroundings_,
                   kStart);
  }
  void Say(uint64_t from, ControlMessage message, Duration at = {}) {
    state_->On(kStart + at, Incarnation(from), std::move(message));
  }
  void Join(uint64_t incarnation, Role role) {
    JoinMessage join;
    join.role = role;
    join.incarnation = Incarnation(incarnation);
    join.wire_version = kWireVersion;
    join.host = "host";
    join.pid = static_cast<int64_t>(incarnation);
    join.claim = role == Role::kServer ? claim_ : 0;
    join.endpoints = {"inproc://x"};
    join.devices = devices_;
    join.address = address_;
    Say(incarnation, join);
  }
  void JoinAll() {
    Join(1, Role::kWorker);
    Join(2, Role::kWorker);
    Join(3, Role::kServer);
  }
  static DataReadyMessage Data(uint64_t train = 100) { return {train, 0, 0, 0, 7, {ColumnSpec{}}}; }
  void Begin() {
    JoinAll();
    Say(1, Data());
    Say(2, Data());
    for (uint64_t from : {1, 2, 3}) Say(from, ReadyMessage{});
  }
  // What has been sent to one process since the last call.
  template <class T>
  std::vector<T> SentTo(uint64_t to) {
    std::vector<T> found;
    for (Outgoing& out : state_->TakeOutgoing()) {
      if (out.to == Incarnation(to) && std::holds_alternative<T>(out.message)) {
        found.push_back(std::get<T>(out.message));
      }
    }
    return found;
  }
  // All carry out their orders up to the last, which it gives.
  uint64_t UntilFinish() {
    surroundings_.checkpoint = std::string("folder");
    for (;;) {
      const std::vector<OrderMessage> orders = SentTo<OrderMessage>(1);
      if (orders.empty()) return 0;
      for (const OrderMessage& order : orders) {
        const auto* const train = std::get_if<TrainOrder>(&order.what);
        if (std::holds_alternative<FinishOrder>(order.what)) return order.number;
        for (const uint64_t from : {1, 2, 3}) {
          if (train == nullptr) Say(from, OrderDoneMessage{order.number, SaveDone()});
          if (train == nullptr || from == 3) continue;
          Say(from, OrderDoneMessage{order.number, TrainDone{train->end_step, 10, {5}, {}, 0.1}});
        }
      }
    }
  }
  std::string Outcome() const {
    return state_->phase() == JobPhase::kEnded ? ToText(state_->outcome()) : "not ended";
  }

  std::vector<DeviceInfo> devices_;  // Of those who join.
  std::string address_ = "10.0.0.1";
  uint64_t claim_ = 0;  // Of servers that join.
  JobConfig job_;
  NoSurroundings surroundings_;
  std::optional<JobState> state_;
};

TEST_F(JobStateTest, StartsWhenAllAreThereWithEqualData) {
  JoinAll();
  EXPECT_EQ(state_->phase(), JobPhase::kReading);
  Say(2, Data());
  Say(1, Data());
  EXPECT_EQ(state_->phase(), JobPhase::kStarting);
  const auto start = SentTo<StartMessage>(1);
  ASSERT_EQ(start.size(), 1u);
  EXPECT_EQ(start[0].workers, (std::vector<ProcessId>{ProcessId(2), ProcessId(3)}));
  EXPECT_EQ(start[0].plan, Encode(Plan()));
  EXPECT_EQ(start[0].slices, 2u) << "auto: as many as workers";
  EXPECT_EQ(start[0].map.shards(), 4u);
  for (uint64_t from : {1, 2}) Say(from, ReadyMessage{});
  EXPECT_EQ(state_->phase(), JobPhase::kStarting) << "the server is not ready";
  Say(3, ReadyMessage{});
  EXPECT_EQ(state_->phase(), JobPhase::kRunning);
  const auto orders = SentTo<OrderMessage>(2);
  ASSERT_EQ(orders.size(), 2u);
  EXPECT_EQ(std::get<TrainOrder>(orders[0].what).slice_owner, (std::vector<uint32_t>{0, 1}));
}

TEST(PlacesText, CountsNodesAndTablesByPlace) {
  Graph graph;
  EXPECT_EQ(PlacesText(graph), "");
  graph.nodes.resize(3);
  for (Node& node : graph.nodes) node.device = Device::kCpu;
  EXPECT_EQ(PlacesText(graph), "3 nodes on cpu");
  graph.nodes[0].device = Device::kGpu;
  graph.tables.resize(2);
  graph.tables[0].store = graph.AddValue({.name = "store", .device = Device::kGpu});
  EXPECT_EQ(PlacesText(graph), "2 nodes on cpu, 1 on gpu; 1 table on servers, 1 on gpu");
}

TEST_F(JobStateTest, ThePlannerIsToldWhatWorkersComputeOn) {
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
  EXPECT_EQ(surroundings_.asked.accelerators, (std::vector{card}));
  EXPECT_EQ(surroundings_.asked.slices, 2u);
  EXPECT_EQ(surroundings_.asked.columns.size(), 1u);
}

TEST_F(JobStateTest, TheStatusTellsHostsOfOneNameByTheirAddresses) {
  const auto hosts = [&] {
    std::vector<std::string> found;
    for (const auto& p : StatusOf(*state_, kStart).processes) found.push_back(p.host);
    return found;
  };
  Join(1, Role::kWorker);
  Join(2, Role::kWorker);
  EXPECT_EQ(hosts(), std::vector<std::string>(2, "host"));
  address_ = "10.0.0.2";
  Join(3, Role::kServer);
  EXPECT_EQ(hosts(),
            (std::vector<std::string>{"host (10.0.0.2)", "host (10.0.0.1)", "host (10.0.0.1)"}));
}

TEST_F(JobStateTest, SurplusIsRefusedAndTheSameIsWelcomedAgain) {
  JoinAll();
  state_->TakeOutgoing();
  Join(3, Role::kServer);
  EXPECT_EQ(SentTo<WelcomeMessage>(3).size(), 1u);
  Join(4, Role::kServer);
  const auto refused = SentTo<RefusedMessage>(4);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].problem.what, "the job already has its 1 server");
  EXPECT_EQ(Outcome(), "not ended");
}

TEST_F(JobStateTest, DifferentDataNamesBothWorkers) {
  JoinAll();
  Say(1, Data(100));
  Say(2, Data(90));
  EXPECT_EQ(Outcome().substr(0, 102),
            "worker 2 (pid 1 on host) and worker 3 (pid 2 on host) read different data: 100 and 90 "
            "training samples");
  EXPECT_EQ(SentTo<StopMessage>(3).size(), 1u);
}

TEST_F(JobStateTest, NoDataAndNoPlanEndTheJob) {
  JoinAll();
  Say(1, Data(0));
  Say(2, Data(0));
  EXPECT_EQ(state_->outcome().code(), StatusCode::kInvalidArgument);
}

TEST_F(JobStateTest, AResumedJobNeedsAsManySamples) {
  JobOptions::Checkpoint checkpoint{"folder", {}};
  checkpoint.manifest.course.step = 5;
  checkpoint.manifest.train_rows = 99;
  for (const uint64_t rows : {99, 100}) {
    state_.emplace(JobOptions{job_, Goal::kTrain, Term(1), Generation(1), checkpoint},
                   surroundings_, kStart);
    JoinAll();
    Say(1, Data(rows));
    Say(2, Data(rows));
    EXPECT_EQ(state_->phase(), rows == 99 ? JobPhase::kStarting : JobPhase::kEnded);
  }
  EXPECT_NE(Outcome().find("on 99 training samples; there are 100 now"), std::string::npos);
}

TEST_F(JobStateTest, ThePlannersSentenceIsTheJobs) {
  surroundings_.plan = Invalid("node x: no such table");
  JoinAll();
  Say(1, Data());
  Say(2, Data());
  EXPECT_EQ(Outcome(), "node x: no such table");
}

TEST_F(JobStateTest, WhoIsLateIsNamed) {
  JoinAll();
  Say(1, Data());
  for (int s = 1; s <= 31; ++s) {
    for (uint64_t from : {1, 2, 3}) Say(from, HeartbeatMessage{}, seconds(s));
    state_->Tick(kStart + seconds(s));
  }
  EXPECT_EQ(state_->outcome().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Outcome().substr(0, 60),
            "after 31 s worker 3 (pid 2 on host) is still reading its dat");
}

TEST_F(JobStateTest, FailureKeepsItsCodePlaceAndHint) {
  Begin();
  Say(2, FailedMessage{StatusCode::kOutOfRange, {"not a number", "a.csv:3", "mend it"}});
  EXPECT_EQ(state_->outcome().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(Outcome(), "worker 3 (pid 2 on host): not a number (a.csv:3); mend it");
  const auto stop = SentTo<StopMessage>(1);
  ASSERT_EQ(stop.size(), 1u);
  EXPECT_EQ(stop[0].problem.where, "a.csv:3");
}

TEST_F(JobStateTest, OnlyARequestInterrupts) {
  Begin();
  Say(2, FailedMessage{StatusCode::kCancelled, {"gone", "", ""}});
  EXPECT_EQ(state_->outcome().code(), StatusCode::kUnavailable);
}

TEST_F(JobStateTest, LeavingEndsTheJob) {
  Begin();
  Say(3, LeavingMessage{});
  EXPECT_EQ(Outcome(), "server 1 (pid 3 on host) was stopped");
}

TEST_F(JobStateTest, AnEndThatIsToldEndsTheJobAtOnce) {
  Begin();
  state_->OnProcessEnd(kStart, "elsewhere", {"worker 3", 2, "was killed", false});
  state_->OnProcessEnd(kStart, "host", {"worker 9", 9, "was killed", false});
  EXPECT_EQ(Outcome(), "not ended") << "no process of the job";
  state_->OnProcessEnd(kStart, "host", {"worker 3", 2, "was killed by signal 9 (Killed)", false});
  EXPECT_EQ(Outcome(), "worker 3 (pid 2 on host) was killed by signal 9 (Killed); see its log");
  EXPECT_EQ(state_->events().at(4).kind, "worker_lost");
  EXPECT_EQ(SentTo<StopMessage>(1).size(), 1u);
}

TEST_F(JobStateTest, AnEndBeforeJoiningEndsTheJobUnlessAnotherIsStarted) {
  Join(1, Role::kWorker);
  state_->OnProcessEnd(kStart, "host", {"server 1", 3, "was killed", true});
  EXPECT_EQ(Outcome(), "not ended");
  state_->OnProcessEnd(kStart, "host",
                       {"server 1", 4, "exited with code 1: a port is taken", false});
  EXPECT_EQ(Outcome(),
            "server 1 (pid 4) exited with code 1: a port is taken; it had not joined yet; see its "
            "log");
}

TEST_F(JobStateTest, AServerThatIsKnownToHaveEndedIsReplacedAtOnce) {
  claim_ = 7;
  Begin();
  state_->OnProcessEnd(kStart, "host", {"server 1", 3, "was killed", true});
  EXPECT_EQ(Outcome(), "not ended");
  Join(4, Role::kServer);
  const auto welcome = SentTo<WelcomeMessage>(4);
  ASSERT_EQ(welcome.size(), 1u) << "no lease is waited for";
  EXPECT_EQ(welcome[0].id, ProcessId(1));
  EXPECT_TRUE(welcome[0].returned);
  Say(4, ReadyMessage{});
  EXPECT_EQ(state_->events().back().kind, "recovered");
  state_->OnProcessEnd(kStart, "host", {"server 1", 4, "was killed", false});
  EXPECT_EQ(Outcome(), "server 1 (pid 4 on host) was killed; see its log") << "no other comes";
}

TEST_F(JobStateTest, AProcessThatHasEndedTakesNobodysPlace) {
  claim_ = 7;
  Begin();
  Join(4, Role::kServer);  // It waits for server 1 to be away.
  state_->OnProcessEnd(kStart, "host", {"server 1", 4, "was killed", true});
  state_->OnProcessEnd(kStart, "host", {"server 1", 3, "was killed", true});
  state_->Tick(kStart);
  EXPECT_TRUE(SentTo<WelcomeMessage>(4).empty());
}

TEST_F(JobStateTest, WhatOnlyASchedulerSaysAndWrongReportsEndTheJob) {
  Begin();
  Say(1, OrderDoneMessage{99, TrainDone{}});
  EXPECT_EQ(state_->outcome().code(), StatusCode::kInternal);
  EXPECT_NE(Outcome().find("worker 2"), std::string::npos);
}

TEST_F(JobStateTest, StrangersAreIgnored) {
  Begin();
  Say(77, FailedMessage{StatusCode::kInternal, {"x", "", ""}});
  Say(77, WelcomeMessage{});
  EXPECT_EQ(Outcome(), "not ended");
}

TEST_F(JobStateTest, ValuesWaitForTheirGet) {
  Begin();
  state_->TakeOutgoing();
  Say(1, KvGetMessage{"k"});
  EXPECT_TRUE(SentTo<KvValueMessage>(1).empty());
  Say(2, KvPutMessage{"k", "v"});
  EXPECT_EQ(SentTo<KvValueMessage>(1).at(0).value, "v");
  Say(2, KvGetMessage{"k"});
  EXPECT_EQ(SentTo<KvValueMessage>(2).size(), 1u);
}

TEST_F(JobStateTest, ADiskThatFailsAtACheckpointIsNamed) {
  job_.checkpoint.every_steps = 1;
  Begin();
  const auto orders = SentTo<OrderMessage>(1);
  ASSERT_EQ(orders.size(), 1u) << "up to the first checkpoint";
  for (uint64_t from : {1, 2}) Say(from, OrderDoneMessage{1, TrainDone{1, 10, {5}, {}, 0.1}});
  EXPECT_EQ(Outcome(), "disk full");
}

TableReport ReportOf(uint64_t rows, uint64_t checksum) {
  TableReport report;
  report.name = "item";
  report.rows = rows;
  report.checksum_low = checksum;
  report.rows_touched = 100;
  return report;
}

// Each worker has all rows of a table on workers; servers have none.
TEST_F(JobStateTest, RowsThatAllWorkersHoldCountOnce) {
  Begin();
  const uint64_t finish = UntilFinish();
  Say(3, OrderDoneMessage{finish, FinishDone{{ReportOf(0, 0)}, "", {}}});
  for (uint64_t from : {1, 2}) {
    Say(from, OrderDoneMessage{finish, FinishDone{{ReportOf(7, 9)}, "dense", {}}});
  }
  EXPECT_EQ(Outcome(), "");
  const JobResult::Table table = state_->ResultAt(kStart).tables.at("item");
  EXPECT_EQ(table.rows, 7u);
  EXPECT_EQ(table.rows_touched, 300u);
  EXPECT_EQ(table.checksum, "00000000000000000000000000000009");
}

TEST_F(JobStateTest, WorkersWithOtherRowsEndTheJob) {
  Begin();
  const uint64_t finish = UntilFinish();
  Say(3, OrderDoneMessage{finish, FinishDone{}});
  for (uint64_t from : {1, 2}) {
    Say(from, OrderDoneMessage{finish, FinishDone{{ReportOf(7, from)}, "dense", {}}});
  }
  EXPECT_NE(Outcome().find("holds other rows of table item"), std::string::npos) << Outcome();
}

TEST_F(JobStateTest, WorkersThatDisagreeEndTheJob) {
  Begin();
  Say(1, OrderDoneMessage{1, TrainDone{4, 40, {5}, {}, 0.1}});
  Say(2, OrderDoneMessage{1, TrainDone{4, 30, {5}, {}, 0.1}});
  EXPECT_EQ(state_->outcome().code(), StatusCode::kInternal);
}

TEST_F(JobStateTest, LossesOfAnotherNumberEndTheJob) {
  Begin();
  for (uint64_t from : {1, 2}) {
    Say(from, OrderDoneMessage{1, TrainDone{4, 40, {5, 5}, {}, 0.1}});
  }
  EXPECT_EQ(state_->outcome().code(), StatusCode::kInternal);
}

TEST_F(JobStateTest, TheFigureIsTheMeanOfTheEpochSoFarAndThereIsNoneBefore) {
  Begin();
  JobStatus status = StatusOf(*state_, kStart + seconds(7));
  EXPECT_EQ(status.losses, std::vector<std::string>{"click"});
  EXPECT_TRUE(status.train.empty());
  EXPECT_FALSE(status.samples_per_second.has_value());
  EXPECT_FALSE(status.seconds_left.has_value());
  EXPECT_FALSE(status.last_step_time.has_value());
  EXPECT_EQ(status.seconds, 7) << "runs, whether something happens or not";
  const auto train = [&](uint64_t order, Step end, double loss_sum) {
    for (uint64_t from : {1, 2}) {
      Say(from, OrderDoneMessage{order, TrainDone{end, 20, {loss_sum}, {0.7}, 0.1}}, seconds(8));
    }
  };
  const auto orders = SentTo<OrderMessage>(1);
  train(1, std::get<TrainOrder>(orders.at(0).what).end_step, 20);
  train(2, std::get<TrainOrder>(orders.at(1).what).end_step, 10);
  EXPECT_EQ(state_->ProgressAt(kStart + seconds(9)).train, (LossMeans{{"click", 0.75}}));
  status = StatusOf(*state_, kStart + seconds(9));
  EXPECT_EQ(status.train, (LossMeans{{"click", 0.75}}));
  EXPECT_EQ(status.curve.size(), 2u);
  EXPECT_EQ(state_->last_step_at(), kStart + seconds(8));
  EXPECT_FALSE(status.outcome.has_value());
  Say(1, FailedMessage{StatusCode::kDataLoss, {"a disk", "", ""}});
  EXPECT_FALSE(StatusOf(*state_, kStart).outcome->ok());
}

// Whatever the loss's scale: ten times what it was before the first update.
TEST_F(JobStateTest, ALossThatHasDivergedIsToldOnce) {
  Begin();
  const auto train = [&](uint64_t order, Step end, double loss) {
    for (uint64_t from : {1, 2}) {
      Say(from, OrderDoneMessage{order, TrainDone{end, 10, {10 * loss}, {200}, 0.1}});
    }
  };
  const auto told = [&] {
    return std::ranges::count(state_->events(), "loss_diverged", &JobResult::Event::kind);
  };
  std::vector<OrderMessage> orders = SentTo<OrderMessage>(1);
  train(1, std::get<TrainOrder>(orders.at(0).what).end_step, 2000);
  EXPECT_EQ(told(), 0) << "ten times is not above ten times";
  train(2, std::get<TrainOrder>(orders.at(1).what).end_step, 2001);
  EXPECT_EQ(told(), 1);
  const JobResult::Event& event = state_->events().back();
  EXPECT_EQ(event.details.at(0).second, JobResult::Detail("click"));
  const std::string why = std::get<std::string>(event.details.back().second);
  EXPECT_EQ(why,
            "loss click has diverged: 2001 on training data at step 8, 200 at the job's first "
            "step; lower the learning rate");
  orders = SentTo<OrderMessage>(1);
  train(3, std::get<TrainOrder>(orders.at(0).what).end_step, 9000);
  EXPECT_EQ(told(), 1);
}

}  // namespace
}  // namespace dt::scheduler
