// Goal: workers are told which stripes of the data to read, each stripe is read by one of them, and
// the job knows the rows of all. Method: messages written by the test, and a simulated clock.
#include <gmock/gmock.h>

#include "test/unit/scheduler/job/job_fixture.h"

namespace dt::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Four stripes, of which stripe s has 10 + s rows.
class StripesTest : public JobTest {
 protected:
  StripesTest() {
    config_.data.by_slices = config_.data.read_part = true;
    config_.train.slices = 4;
    config_.train.batch_size = 8;
    Make();
  }
  static StripeReport Stripe(uint32_t number) { return {number, 10 + number, 2, 0, 1, number}; }
  static DataReadyMessage Stripes(std::vector<uint32_t> numbers) {
    DataReadyMessage ready{.columns = {ColumnSpec{}}};
    for (const uint32_t number : numbers) ready.stripes.push_back(Stripe(number));
    return ready;
  }
  std::vector<uint32_t> ToldToRead(uint64_t worker) {
    const auto told = SentTo<ReadDataMessage>(worker);
    EXPECT_THAT(told, SizeIs(1));
    if (told.empty()) return {};
    EXPECT_EQ(told[0].stripes, 4u);
    return told[0].own;
  }
  void BeginStriped() {
    JoinAll();
    Say(1, Stripes({0, 1}));
    Say(2, Stripes({2, 3}));
    for (uint64_t from : {1, 2, 3}) Say(from, ReadyMessage{});
  }
};

TEST_F(StripesTest, EachIsReadByTheWorkerOfItsSlice) {
  Join(1, Role::kWorker);
  Join(2, Role::kWorker);
  EXPECT_THAT(SentTo<ReadDataMessage>(1), IsEmpty()) << "it is not known yet who takes part";
  Join(3, Role::kServer);
  EXPECT_THAT(ToldToRead(1), ElementsAre(0, 1));
  Make();
  JoinAll();
  EXPECT_THAT(ToldToRead(2), ElementsAre(2, 3));
}

TEST_F(StripesTest, EveryWorkerReadsAllIfTheJobSaysSo) {
  config_.data.read_part = false;
  JoinAll();
  EXPECT_THAT(ToldToRead(2), ElementsAre(0, 1, 2, 3));
}

TEST_F(StripesTest, TheJobHasTheRowsOfAll) {
  JoinAll();
  Say(2, Stripes({2, 3}));
  Say(1, Stripes({0, 1}));
  const auto start = SentTo<StartMessage>(1);
  ASSERT_THAT(start, SizeIs(1));
  EXPECT_THAT(start[0].stripe_rows, ElementsAre(10, 11, 12, 13));
  EXPECT_EQ(job_->record().data.train_rows, 46u);
  EXPECT_EQ(job_->record().data.valid_rows, 8u);
  EXPECT_EQ(job_->record().data.rows_skipped, 4u);
}

TEST_F(StripesTest, AStepTakesNoMoreThanItsPartOfAStripe) {
  BeginStriped();
  const auto orders = SentTo<OrderMessage>(1);
  ASSERT_FALSE(orders.empty());
  EXPECT_EQ(job_->training()->schedule().config().steps_per_epoch(), 7u);  // 13 rows, 2 a step.
}

TEST_F(StripesTest, ARestartedSchedulerTellsThemAgain) {
  JoinAll();
  job_->TakeOutgoing();
  JobRecord record = job_->record();
  job_.emplace(JobOptions{config_, Goal::kTrain, Term(2), Generation(1)}, environment_,
               std::move(record), kStart);
  Join(2, Role::kWorker);
  EXPECT_THAT(ToldToRead(2), ElementsAre(2, 3));
}

TEST_F(StripesTest, ANewcomerReadsWhatItWouldHave) {
  BeginStriped();
  job_->TakeOutgoing();
  Join(4, Role::kWorker);
  EXPECT_THAT(ToldToRead(4), ElementsAre(3)) << "of three workers it is the last";
  Say(4, Stripes({3}));
  EXPECT_THAT(SentTo<StartMessage>(4), SizeIs(1));
}

TEST_F(StripesTest, OneThatReadsOtherRowsIsRefused) {
  BeginStriped();
  Join(4, Role::kWorker);
  job_->TakeOutgoing();
  DataReadyMessage other = Stripes({3});
  other.stripes[0].train_rows = 14;
  Say(4, std::move(other));
  const auto stop = SentTo<StopMessage>(4);
  ASSERT_THAT(stop, SizeIs(1));
  EXPECT_THAT(stop[0].problem.what, HasSubstr("13 and 14 training samples in stripe 4"));
  EXPECT_EQ(Outcome(), "not ended");
}

}  // namespace
}  // namespace dt::scheduler
