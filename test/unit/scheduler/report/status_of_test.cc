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
