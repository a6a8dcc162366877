// Goal: each message of a stream is in one order, in its partition's order; steps are full if there
// is enough; windows are evaluated before they are trained on. Method: partitions that grow as the
// test says, a clock that it sets.
#include "scheduler/schedule/stream.h"

#include <gmock/gmock.h>

#include "scheduler/schedule/job_schedule.h"

namespace dt::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Offsets = std::vector<uint64_t>;

class StreamTest : public ::testing::Test {
 protected:
  void Begin(const std::vector<PartitionRange>& partitions, const Offsets& offsets = {},
             bool from_end = false) {
    Result<StreamRecord> begun = Stream::Begin(partitions, offsets, {.from_end = from_end});
    ASSERT_TRUE(begun.ok()) << begun.status();
    record_ = *std::move(begun);
  }
  static std::string WhyNot(const std::vector<PartitionRange>& partitions, const Offsets& offsets) {
    return ToText(Stream::Begin(partitions, offsets, {}).status());
  }
  void Grow(uint32_t partition, uint64_t end) { stream_.OnReport({{partition}, {{0, end}}}); }
  uint64_t TakenFor(uint64_t steps) {
    const std::optional<StreamCut> cut = stream_.Take(steps, now_);
    return cut.has_value() ? cut->messages() : 0;
  }

  StreamLimits limits_{.batch_size = 10, .wait = seconds(2)};
  StreamRecord record_;
  Stream stream_{limits_, record_};
  TimePoint now_{};
};

TEST_F(StreamTest, BeginsWithTheOldestTheNextOrThoseOfTheCheckpoint) {
  const std::vector<PartitionRange> two = {{5, 20}, {0, 7}};
  Begin(two);
  EXPECT_THAT(record_.next, ElementsAre(5, 0));
  Begin(two, {}, true);
  EXPECT_THAT(record_.next, ElementsAre(20, 7));
  Begin({{5, 20}, {0, 7}, {3, 4}}, {6, 7}, true);
  EXPECT_THAT(record_.next, ElementsAre(6, 7, 3)) << "all of a partition that is new";
  record_ = *Stream::Begin({{}, {}}, {6, 7}, {.command = "tail"});
  EXPECT_THAT(record_.next, ElementsAre(6, 7)) << "commands say later how far they go";
  EXPECT_EQ(record_.ends, record_.next);
}

TEST_F(StreamTest, RefusesWhatIsNotThereAnyMore) {
  EXPECT_THAT(WhyNot({{5, 20}}, {6, 7}), HasSubstr("1 partitions, and the job has trained on 2"));
  EXPECT_THAT(WhyNot({{5, 20}, {9, 9}}, {6, 7}), HasSubstr("partition 1: the job goes on with "
                                                           "message 7, and the oldest"));
  EXPECT_THAT(WhyNot({{0, 3}}, {6}), HasSubstr("ends before message 3"));
}

TEST_F(StreamTest, TakesWholeBatchesOfAllPartitions) {
  Begin({{0, 30}, {100, 107}});
  const auto cut = stream_.Take(100, now_);
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->messages(), 30u);
  EXPECT_EQ(stream_.StepsOf(*cut), 3u);
  EXPECT_THAT(cut->first, ElementsAre(0, 100));
  EXPECT_THAT(cut->count, ElementsAre(24, 6)) << "as much of each as its share";
  Grow(1, 115);
  const auto next = stream_.Take(1, now_);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->messages(), 10u);
  EXPECT_EQ(next->first, cut->End());
}

TEST_F(StreamTest, WaitsForABatchAWhile) {
  Begin({{0, 4}});
  EXPECT_EQ(TakenFor(5), 0u);
  now_ += seconds(1);
  EXPECT_EQ(TakenFor(5), 0u);
  now_ += seconds(1);
  EXPECT_EQ(TakenFor(5), 4u);
  Grow(0, 6);
  EXPECT_EQ(TakenFor(5), 0u) << "the wait begins anew";
  Grow(0, 14);
  EXPECT_EQ(TakenFor(5), 10u);
}

TEST_F(StreamTest, AWindowComesFirst) {
  Begin({{0, 35}});
  const auto window = stream_.Hold(2, now_);
  ASSERT_TRUE(window.has_value());
  EXPECT_EQ(window->messages(), 20u);
  Grow(0, 90);
  EXPECT_EQ(TakenFor(1), 10u);
  EXPECT_TRUE(stream_.holds());
  EXPECT_EQ(TakenFor(9), 10u) << "no further than the window";
  EXPECT_FALSE(stream_.holds());
  EXPECT_EQ(TakenFor(9), 70u);
}

TEST_F(StreamTest, TakesAgainWhatIsGivenBack) {
  Begin({{0, 50}, {0, 50}});
  const auto cut = stream_.Take(2, now_);
  const auto later = stream_.Take(2, now_);
  stream_.GiveBack(*cut);
  EXPECT_EQ(stream_.Take(2, now_), cut);
  EXPECT_EQ(stream_.Take(2, now_), later);
}

TEST_F(StreamTest, EndsWhenItIsDrainedUnlessItGoesOnForever) {
  Begin({{0, 10}});
  EXPECT_FALSE(stream_.at_end());
  EXPECT_EQ(TakenFor(1), 10u);
  EXPECT_TRUE(stream_.at_end());
  EXPECT_FALSE(Stream({.forever = true}, record_).at_end());
}

// A schedule of a job that trains on a stream.
class StreamScheduleTest : public ::testing::Test {
 protected:
  StreamScheduleTest() {
    config_.batch_size = 10;
    config_.losses = {"click"};
    config_.stream = StreamLimits{.batch_size = 10, .wait = seconds(2)};
  }
  void Begin(std::vector<PartitionRange> partitions, ScheduleState state = {}) {
    const Offsets offsets = state.offsets.value_or(Offsets());
    record_ = ScheduleFrom(config_, std::move(state));
    record_.stream = *Stream::Begin(partitions, offsets, {});
    schedule_.emplace(config_, record_);
  }
  template <class Kind>
  Kind Take() {
    const std::optional<schedule::Order> order = schedule_->Next(now_);
    if (order.has_value() && std::holds_alternative<Kind>(*order)) return std::get<Kind>(*order);
    ADD_FAILURE() << "another order, or none";
    return {};
  }
  void Train(const schedule::Train& train) {
    schedule_->OnTrained(train.end_step, {.samples = train.cut.messages(),
                                          .loss_sums = {1},
                                          .first_losses = {1},
                                          .seconds = 0.01,
                                          .offsets = train.cut.End()});
  }

  ScheduleConfig config_;
  ScheduleRecord record_;
  std::optional<JobSchedule> schedule_;
  TimePoint now_{};
};

TEST_F(StreamScheduleTest, TrainsUntilItIsDrained) {
  Begin({{0, 25}});
  const auto first = Take<schedule::Train>();
  EXPECT_EQ(first.end_step, 2u);
  EXPECT_EQ(schedule_->Next(now_), std::nullopt) << "five messages are no batch";
  Train(first);
  EXPECT_EQ(schedule_->state().offsets, Offsets{20});
  EXPECT_EQ(schedule_->Next(now_), std::nullopt);
  now_ += seconds(2);
  const auto last = Take<schedule::Train>();
  EXPECT_EQ(last.first_step, 2u);
  EXPECT_EQ(last.cut.messages(), 5u);
  EXPECT_FALSE(schedule_->at_end()) << "the last order is out";
  Train(last);
  EXPECT_TRUE(schedule_->at_end());
  Take<schedule::Save>();
  schedule_->OnDone();
  Take<schedule::Finish>();
}

TEST_F(StreamScheduleTest, EvaluatesAWindowBeforeItIsTrained) {
  config_.evaluate_every = 2;
  Begin({{0, 100}});
  Train(Take<schedule::Train>());
  const auto evaluate = Take<schedule::Evaluate>();
  EXPECT_EQ(evaluate.step, 2u);
  EXPECT_THAT(evaluate.cut.first, ElementsAre(20));
  EXPECT_THAT(evaluate.cut.count, ElementsAre(20));
  EXPECT_EQ(schedule_->Next(now_), std::nullopt) << "first it is evaluated";
  schedule_->OnEvaluated({});
  const auto train = Take<schedule::Train>();
  EXPECT_EQ(train.cut, evaluate.cut);
  EXPECT_THAT(schedule_->state().history, SizeIs(1));
}

TEST_F(StreamScheduleTest, ItsHistoryHasAnEnd) {
  config_.evaluate_every = 1;
  config_.stream->forever = true;
  Begin({{0, 1'000'000}});
  for (int i = 0; i < 1100; ++i) {
    Train(Take<schedule::Train>());
    Take<schedule::Evaluate>();
    schedule_->OnEvaluated({});
  }
  EXPECT_THAT(schedule_->state().history, SizeIs(1000));
  EXPECT_EQ(schedule_->state().history.front().step, 101u);
}

TEST_F(StreamScheduleTest, ARecallGivesMessagesBack) {
  config_.seconds_ahead = 1000;
  Begin({{0, 1000}});
  std::vector<schedule::Train> out;
  Train(Take<schedule::Train>());
  while (const auto order = schedule_->Next(now_)) out.push_back(std::get<schedule::Train>(*order));
  ASSERT_GT(out.size(), 2u);
  schedule_->SetPaused(true);
  ASSERT_EQ(schedule_->TakeRecall(), 2u);
  schedule_->OnRecalled(out[2].first_step, out.size() - 2, out[2].cut);
  schedule_->SetPaused(false);
  Train(out[0]);
  Train(out[1]);
  EXPECT_EQ(Take<schedule::Train>().cut.first, out[2].cut.first);
}

TEST_F(StreamScheduleTest, GoesOnWithTheOffsetsOfTheCheckpoint) {
  Begin({{0, 100}});
  Train(Take<schedule::Train>());
  const ScheduleState saved = schedule_->state();
  Begin({{0, 300}}, saved);
  const auto train = Take<schedule::Train>();
  EXPECT_EQ(train.first_step, saved.step);
  EXPECT_EQ(train.cut.first, *saved.offsets);
}

}  // namespace
}  // namespace dt::scheduler
