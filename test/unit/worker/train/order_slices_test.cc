#include "worker/train/order_slices.h"

#include <deque>

#include <gtest/gtest.h>

namespace dt::worker {
namespace {

constexpr ProcessId kSelf(7);
using Parts = std::vector<std::pair<Step, SliceIndex>>;

// Steps 4 to 6, in three slices each.
TrainOrder OrderOf(std::vector<uint32_t> owners) {
  return {.first_step = 4, .end_step = 7, .slice_owner = std::move(owners)};
}

Parts AllOf(OrderSlices slices) {
  Parts parts;
  while (const auto slice = *slices.Next()) parts.emplace_back(slice->step, slice->slice);
  return parts;
}

TEST(OrderSlices, OwnSlicesComeStepByStepAndTellWhatFollows) {
  OrderProgress progress;
  OrderSlices slices(OrderOf({7, 0, 7}), kSelf, nullptr, progress);
  std::vector<Step> next;
  Parts parts;
  while (const auto slice = *slices.Next()) {
    parts.emplace_back(slice->step, slice->slice);
    next.push_back(slice->next_step);
  }
  EXPECT_EQ(parts, (Parts{{4, 0}, {4, 2}, {5, 0}, {5, 2}, {6, 0}, {6, 2}}));
  EXPECT_EQ(next, (std::vector<Step>{4, 5, 5, 6, 6, 7}));
}

// The order comes again with a slice of a lost worker.
TEST(OrderSlices, WhatIsPushedIsNotDoneAgain) {
  OrderProgress progress{.pushed = {{4, 0}, {5, 0}}};
  EXPECT_EQ(AllOf({OrderOf({7, 8, 7}), kSelf, nullptr, progress}),
            (Parts{{4, 2}, {5, 2}, {6, 0}, {6, 2}}));
  EXPECT_EQ(AllOf({OrderOf({0, 8, 0}), kSelf, nullptr, progress}), Parts());
}

TEST(OrderSlices, RangesThatWereHandedOutAreDoneFirst) {
  OrderProgress progress{.pushed = {{4, 1}}, .splits = {{.begin = 0, .end = 3}}};
  std::deque<SplitMessage> more = {{.begin = 5, .end = 6}, {.begin = 8, .end = 9}};
  const auto next_split = [&]() -> Result<SplitMessage> {
    if (more.empty()) return SplitMessage();
    const SplitMessage split = more.front();
    more.pop_front();
    return split;
  };
  EXPECT_EQ(AllOf({OrderOf({7, 8, 9}), kSelf, next_split, progress}),
            (Parts{{4, 0}, {4, 2}, {5, 2}, {6, 2}}));
  EXPECT_EQ(progress.splits.size(), 3u) << "for the next view";
}

// The range may be handed out already, and its answer on the way.
TEST(OrderSlices, AnErrorDoesNotEndTheOrder) {
  OrderProgress progress;
  const auto interrupted = []() -> Result<SplitMessage> {
    return Cancelled("the workers of the job change");
  };
  OrderSlices slices(OrderOf({7, 8, 9}), kSelf, interrupted, progress);
  EXPECT_EQ(slices.Next().status().code(), StatusCode::kCancelled);
}

TEST(PushedSteps, CountWhenTheyAreAcknowledged) {
  OrderProgress progress{.done = {.loss_sums = {0}}};
  PushedSteps steps({.first_step = 4}, progress);
  steps.Add({4, 1, 10, {0.5}});
  steps.Add({4, 2, 10, {0.25}});
  steps.Add({6, 1, 0, {}});
  steps.Acknowledge(1);
  EXPECT_EQ(progress.done.samples, 10u);
  EXPECT_EQ(steps.samples(), 20u);
  EXPECT_EQ(steps.step(), 7u);
  steps.Acknowledge(3);
  EXPECT_EQ(progress.done.samples, 20u);
  EXPECT_EQ(progress.done.loss_sums[0], 7.5);
  EXPECT_EQ(progress.pushed.size(), 3u);
}

}  // namespace
}  // namespace dt::worker
