// Goal: results of orders have the right effects. Method: the test carries out the orders of all
// processes.
#include "scheduler/job/training_run.h"

#include "scheduler/report/result_of.h"
#include "test/unit/scheduler/job/job_fixture.h"

namespace dt::scheduler {
namespace {

class TrainingRunTest : public JobTest {
 protected:
  // All processes carry out their orders up to the last one; returns its number.
  uint64_t UntilFinish() {
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
};

TEST_F(TrainingRunTest, ADiskThatFailsAtACheckpointIsNamed) {
  config_.checkpoint.every_steps = 1;
  Begin();
  const auto orders = SentTo<OrderMessage>(1);
  ASSERT_EQ(orders.size(), 1u) << "up to the first checkpoint";
  environment_.disk = Unavailable("disk full");
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

// Each worker holds all rows of a table on workers; servers hold none of them.
TEST_F(TrainingRunTest, RowsThatAllWorkersHoldCountOnce) {
  Begin();
  const uint64_t finish = UntilFinish();
  Say(3, OrderDoneMessage{finish, FinishDone{{ReportOf(0, 0)}, {}, {}}});
  for (uint64_t from : {1, 2}) {
    Say(from, OrderDoneMessage{finish, FinishDone{{ReportOf(7, 9)}, {{0, 2, 3}}, {}}});
  }
  EXPECT_EQ(Outcome(), "");
  const JobResult::Table table = ResultOf(*job_, kStart).tables.at("item");
  EXPECT_EQ(table.rows, 7u);
  EXPECT_EQ(table.rows_touched, 300u);
  EXPECT_EQ(table.checksum, "00000000000000000000000000000009");
}

TEST_F(TrainingRunTest, WorkersWithOtherRowsEndTheJob) {
  Begin();
  const uint64_t finish = UntilFinish();
  Say(3, OrderDoneMessage{finish, FinishDone{}});
  for (uint64_t from : {1, 2}) {
    Say(from, OrderDoneMessage{finish, FinishDone{{ReportOf(7, from)}, {{0, 2, 3}}, {}}});
  }
  EXPECT_NE(Outcome().find("holds other rows of table item"), std::string::npos) << Outcome();
}

TEST_F(TrainingRunTest, WorkersThatDisagreeEndTheJob) {
  Begin();
  Say(1, OrderDoneMessage{1, TrainDone{4, 40, {5}, {}, 0.1}});
  Say(2, OrderDoneMessage{1, TrainDone{4, 30, {5}, {}, 0.1}});
  EXPECT_EQ(job_->outcome().code(), StatusCode::kInternal);
}

TEST_F(TrainingRunTest, LossesOfAnotherNumberEndTheJob) {
  Begin();
  for (uint64_t from : {1, 2}) {
    Say(from, OrderDoneMessage{1, TrainDone{4, 40, {5, 5}, {}, 0.1}});
  }
  EXPECT_EQ(job_->outcome().code(), StatusCode::kInternal);
}

// Divergence is relative to the loss's scale: ten times its value before the first update.
TEST_F(TrainingRunTest, ALossThatHasDivergedIsToldOnce) {
  Begin();
  const auto train = [&](uint64_t order, Step end, double loss) {
    for (uint64_t from : {1, 2}) {
      Say(from, OrderDoneMessage{order, TrainDone{end, 10, {10 * loss}, {200}, 0.1}});
    }
  };
  const auto told = [&] {
    return std::ranges::count(events(), "loss_diverged", &JobResult::Event::kind);
  };
  std::vector<OrderMessage> orders = SentTo<OrderMessage>(1);
  train(1, std::get<TrainOrder>(orders.at(0).what).end_step, 2000);
  EXPECT_EQ(told(), 0) << "ten times is not above ten times";
  train(2, std::get<TrainOrder>(orders.at(1).what).end_step, 2001);
  EXPECT_EQ(told(), 1);
  const JobResult::Event& event = events().back();
  EXPECT_EQ(event.details.at(0).second, JobResult::Detail("click"));
  const std::string why = std::get<std::string>(event.details.back().second);
  EXPECT_EQ(why,
            "loss click has diverged: 2001 on training data at step 8, 200 at the job's first "
            "step; lower the learning rate");
  orders = SentTo<OrderMessage>(1);
  train(3, std::get<TrainOrder>(orders.at(0).what).end_step, 9000);
  EXPECT_EQ(told(), 1);
}

// The server answers an order to save before it has written its rows.
TEST_F(TrainingRunTest, TrainingGoesOnWhileRowsAreWritten) {
  config_.checkpoint.every_steps = 1;
  Begin();
  for (uint64_t from : {1, 2}) Say(from, OrderDoneMessage{1, TrainDone{1, 10, {5}, {}, 0.1}});
  ASSERT_TRUE(std::holds_alternative<SaveOrder>(SentTo<OrderMessage>(3).at(0).what));
  for (uint64_t from : {1, 2}) Say(from, OrderDoneMessage{2, SaveDone{}});
  Say(3, OrderDoneMessage{2, SaveDone{{}, true}});
  const std::vector<OrderMessage> next = SentTo<OrderMessage>(1);
  ASSERT_FALSE(next.empty());
  EXPECT_TRUE(std::holds_alternative<TrainOrder>(next.back().what));
  EXPECT_TRUE(environment_.committed.empty());
  Say(3, RowsWrittenMessage{2, {{"rows", 3, 4}}});
  EXPECT_EQ(environment_.committed, std::vector<std::string>{"1"});
  EXPECT_EQ(environment_.last.files.size(), 1u);
  EXPECT_EQ(job_->record().last_checkpoint, "/done/1");
}

TEST_F(TrainingRunTest, ServersThatKeepALogAreToldOfEachCheckpointAndASuccessorOfTheLast) {
  config_.checkpoint.every_steps = 1;
  config_.checkpoint.durability = Durability::kLog;
  token_ = 7;
  endpoint_ = "inproc://x";
  Begin();
  for (uint64_t from : {1, 2}) Say(from, OrderDoneMessage{1, TrainDone{1, 10, {5}, {}, 0.1}});
  for (uint64_t from : {1, 2, 3}) Say(from, OrderDoneMessage{2, SaveDone{}});
  const auto told = SentTo<CheckpointCommittedMessage>(3);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].folder, "/done/1");
  job_->OnProcessEnd(kStart, "host", {"server 1", 3, "was killed", true});
  Join(4, Role::kServer);
  EXPECT_EQ(SentTo<CheckpointCommittedMessage>(4).size(), 1u);
}

TEST_F(TrainingRunTest, ALogThatIsTooLongIsCutByACheckpoint) {
  config_.checkpoint.log.max_bytes = 100;
  Begin();
  HeartbeatMessage report;
  report.log_bytes = 101;
  const Duration later = 2 * config_.cluster.lease;
  Say(1, report, later);
  EXPECT_FALSE(job_->record().training->schedule.save_requested) << "only servers have logs";
  Say(3, report, later);
  EXPECT_TRUE(job_->record().training->schedule.save_requested);
}

}  // namespace
}  // namespace dt::scheduler
