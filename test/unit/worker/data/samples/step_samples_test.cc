// Goal: each sample of an epoch is in exactly one slice of one step, whoever computes it. Method:
// all slices of all steps are taken, for stripes of different sizes and other numbers of slices.
#include "worker/data/step_samples.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/run_config.h"
#include "worker/data/stream/stream_delays.h"
#include "worker/data/striped_dataset.h"

namespace dt::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr StepSamples::Options kOptions{.seed = 5, .epoch = 2, .window = 16, .batch_size = 12};
const std::vector<uint64_t> kStripes = {101, 97, 0, 120};

uint64_t Steps() {
  const uint64_t rows = std::reduce(kStripes.begin(), kStripes.end());
  return TrainConfig{.batch_size = kOptions.batch_size}.steps_per_epoch(rows, kStripes);
}
std::unique_ptr<StepSamples> Striped(StepSamples::Options options = kOptions) {
  return StepSamples::OfStripes(options, Steps(), kStripes);
}
std::vector<uint64_t> Rows(StepSamples& samples, uint64_t step, SliceIndex k, uint32_t n) {
  std::vector<uint64_t> rows;
  Batch batch;
  samples.Take(step, k, n, rows, batch);
  EXPECT_EQ(batch.samples, rows.size());
  return rows;
}

TEST(StripeSamples, EachRowIsInOneSliceOfOneStep) {
  for (const uint32_t slices : {4u, 3u, 1u, 6u}) {
    const auto samples = Striped();
    std::set<uint64_t> seen;
    for (uint64_t step = 0; step < Steps(); ++step) {
      uint32_t count = 0;
      for (SliceIndex k = 0; k < slices; ++k) {
        for (const uint64_t row : Rows(*samples, step, k, slices)) {
          EXPECT_LT(RowInStripe(row), kStripes[StripeOf(row)]);
          EXPECT_TRUE(seen.insert(row).second) << "step " << step << " row " << row;
          ++count;
        }
      }
      EXPECT_EQ(count, samples->Count(step));
    }
    EXPECT_EQ(seen.size(), 318u) << slices << " slices";
  }
}

TEST(StripeSamples, ASliceOfEachStripeFitsItsPartOfTheBatch) {
  EXPECT_EQ(Steps(), 40u) << "the largest stripe, 3 rows a step";
  const auto samples = Striped();
  for (uint64_t step = 0; step < Steps(); ++step) {
    for (SliceIndex k = 0; k < 4; ++k) EXPECT_LE(Rows(*samples, step, k, 4).size(), 3u);
  }
  EXPECT_EQ(samples->Count(Steps()), 0u);
}

// Another worker, in another order, finds the same rows.
TEST(StripeSamples, AreAPureFunction) {
  const auto forwards = Striped(), backwards = Striped();
  std::vector<std::vector<uint64_t>> rows;
  for (uint64_t step = 0; step < Steps(); ++step) rows.push_back(Rows(*forwards, step, 1, 4));
  for (uint64_t step = Steps(); step-- > 0;) EXPECT_EQ(Rows(*backwards, step, 1, 4), rows[step]);
  StepSamples::Options next = kOptions;
  ++next.epoch;
  EXPECT_NE(Rows(*Striped(next), 0, 1, 4), rows[0]);
}

TEST(StripeSamples, StripesAreShuffledEachInItsOwnWay) {
  const auto samples = Striped();
  std::vector<uint64_t> first, second;
  for (uint64_t step = 0; step < 4; ++step) {
    for (const uint64_t row : Rows(*samples, step, 0, 4)) first.push_back(RowInStripe(row));
    for (const uint64_t row : Rows(*samples, step, 1, 4)) second.push_back(RowInStripe(row));
  }
  EXPECT_NE(first, second);
  EXPECT_FALSE(std::ranges::is_sorted(first));
  StepSamples::Options plain = kOptions;
  plain.window = 0;
  EXPECT_THAT(Rows(*Striped(plain), 0, 0, 4), ElementsAre(StripeRow(0, 0), StripeRow(0, 1)));
  EXPECT_THAT(Rows(*Striped(plain), 1, 3, 4),
              ElementsAre(StripeRow(3, 3), StripeRow(3, 4), StripeRow(3, 5)));
  EXPECT_THAT(Rows(*Striped(plain), 1, 2, 4), IsEmpty());
}

// Three steps of an order that begins with step 5 of its epoch.
TEST(CutSamples, AreTheNextMessagesOfEachPartition) {
  const StreamCut cut{.first = {100, 7}, .count = {6, 3}};
  const auto samples = StepSamples::OfCut(cut, {5, 8});
  EXPECT_EQ(samples->Count(5), 3u);
  EXPECT_THAT(Rows(*samples, 5, 0, 2), ElementsAre(StripeRow(0, 100), StripeRow(0, 101)));
  EXPECT_THAT(Rows(*samples, 5, 1, 2), ElementsAre(StripeRow(1, 7)));
  EXPECT_THAT(Rows(*samples, 7, 0, 1),
              ElementsAre(StripeRow(0, 104), StripeRow(0, 105), StripeRow(1, 9)));
  EXPECT_THAT(Rows(*samples, 7, 1, 4), IsEmpty()) << "more slices than partitions";
}

TEST(StreamDelays, AreThoseOfAppliedMessages) {
  StreamDelays delays;
  delays.OnFetched(3, {10.0, 10.5});
  delays.OnFetched(4, {11.0});
  delays.OnApplied(4, 12.0);
  EXPECT_EQ(delays.count(), 2u);
  EXPECT_NEAR(delays.Quantile(0.5), 1.5, 0.03);
  EXPECT_NEAR(delays.Quantile(1.0), 2.0, 0.04);
  delays.Forget();
  delays.OnApplied(5, 12.0);
  EXPECT_EQ(delays.count(), 2u);
}

TEST(RowSamples, AreTheNextRowsOfTheOrder) {
  const auto samples = StepSamples::OfRows({.batch_size = 10}, 25);
  EXPECT_EQ(samples->Count(0), 10u);
  EXPECT_EQ(samples->Count(2), 5u);
  EXPECT_EQ(samples->Count(3), 0u);
  EXPECT_THAT(Rows(*samples, 2, 0, 2), ElementsAre(20, 21, 22));
  EXPECT_THAT(Rows(*samples, 2, 1, 2), ElementsAre(23, 24));
}

}  // namespace
}  // namespace dt::worker
