// Goal: the status of a job is right. Method: the test writes the messages of the job's processes.
#include "scheduler/report/status_of.h"

#include "test/unit/scheduler/job/job_fixture.h"

namespace dt::scheduler {
namespace {

using StatusOfTest = JobTest;

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

TEST_F(StatusOfTest, TheStatusTellsHostsOfOneNameByTheirAddresses) {
  const auto hosts = [&] {
    std::vector<std::string> found;
    for (const auto& p : StatusOf(*job_, kStart).processes) found.push_back(p.host);
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

TEST_F(StatusOfTest, TheFigureIsTheMeanOfTheEpochSoFarAndThereIsNoneBefore) {
  Begin();
  JobStatus status = StatusOf(*job_, kStart + seconds(7));
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
  EXPECT_EQ(job_->training()->progress().train, (LossMeans{{"click", 0.75}}));
  status = StatusOf(*job_, kStart + seconds(9));
  EXPECT_EQ(status.train, (LossMeans{{"click", 0.75}}));
  EXPECT_EQ(status.curve.size(), 2u);
  EXPECT_EQ(job_->training()->last_step_at(), kStart + seconds(8));
  EXPECT_FALSE(status.outcome.has_value());
  Say(1, FailedMessage{StatusCode::kDataLoss, {"a disk", "", ""}});
  EXPECT_FALSE(StatusOf(*job_, kStart).outcome->ok());
}

// Two servers hold every shard, and one is lost; what a third gets, the remaining one reports.
TEST_F(StatusOfTest, ChainsAndTheirCopiesAreShown) {
  config_.cluster.servers = 2;
  config_.cluster.replicas = 2;
  Make();
  EXPECT_FALSE(StatusOf(*job_, kStart).shards.has_value()) << "before there is a map";
  Join(4, Role::kServer);
  Begin();
  Say(4, ReadyMessage{});
  JobStatus status = StatusOf(*job_, kStart);
  ASSERT_TRUE(status.shards.has_value());
  EXPECT_EQ(status.shards->count(), 4u);
  EXPECT_EQ(status.shards->by_members, (std::vector<uint32_t>{0, 0, 4}));
  EXPECT_EQ(status.shards->count_short(), 0u);
  EXPECT_EQ(status.shards->copies_left, 0u);
  EXPECT_EQ(status.processes[0].shards, 4u);
  EXPECT_EQ(status.processes[0].heads, 2u);
  EXPECT_EQ(status.processes[0].tails, 2u);

  job_->OnProcessEnd(kStart, "host", {"server 1", 4, "was killed", false});
  Join(5, Role::kServer);
  Say(5, ReadyMessage{});
  HeartbeatMessage report;
  report.tables = {TableReport{.name = "t", .rows = 100, .bytes = 4000}};
  report.chains.kept_bytes = 77;
  for (const double second : {0.0, 2.0}) {
    report.chains.copied_bytes = static_cast<uint64_t>(second * 250);
    report.chains.copies = {{ShardId(0), ProcessId(1), report.chains.copied_bytes, 12, 25},
                            {ShardId(1), ProcessId(9), 1, 2, 3}};
    Say(3, report, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(second)));
  }
  status = StatusOf(*job_, kStart + seconds(2));
  EXPECT_EQ(status.shards->count_short(), 4u);
  ASSERT_EQ(status.shards->lost.size(), 1u);
  EXPECT_NE(status.shards->lost[0].find("was killed"), std::string::npos);
  ASSERT_EQ(status.shards->copies.size(), 4u);
  const JobStatus::Shards::Copy& first = status.shards->copies[0];
  EXPECT_EQ(first.shard, 0u);
  EXPECT_EQ(first.from, 2u);
  EXPECT_EQ(first.to, 1u) << "the number of the lost one is free";
  EXPECT_EQ(first.rows, 12u);
  EXPECT_EQ(first.rows_of_shard, 25u);
  EXPECT_EQ(status.shards->copies[1].rows, 0u) << "the report is of a copy to another server";
  EXPECT_EQ(status.shards->copies_left, 4u);
  EXPECT_EQ(status.shards->bytes_left, 4000u - 500);
  EXPECT_EQ(status.shards->bytes_per_second, 250.0);
  EXPECT_EQ(status.shards->seconds_left, 14.0);
  EXPECT_EQ(status.processes[0].syncing, 4u);
  EXPECT_EQ(status.processes[1].kept_bytes, 77u);
}

// The rate is computed at the job's own ticks, however often and whenever the status is requested.
TEST_F(StatusOfTest, AskingChangesNothing) {
  Begin();
  const auto tick = [&](int second, Step step) {
    HeartbeatMessage report;
    report.step = step;
    for (uint64_t from : {1, 2, 3}) Say(from, report, seconds(second));
    job_->Tick(kStart + seconds(second));
  };
  tick(1, 2);
  const RecordParts record = EncodeJobRecord(job_->record());
  for (int ms = 1000; ms < 3000; ms += 100) {
    const JobStatus status = StatusOf(*job_, kStart + milliseconds(ms));
    EXPECT_EQ(status.samples_per_second, 20.0) << ms;
  }
  EXPECT_EQ(EncodeJobRecord(job_->record()), record);
  tick(3, 10);
  EXPECT_EQ(StatusOf(*job_, kStart + seconds(3)).samples_per_second, 40.0);
}

}  // namespace
}  // namespace dt::scheduler
