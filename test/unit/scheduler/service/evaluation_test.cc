#include "scheduler/service/evaluation.h"

#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

EvaluateDone Done(std::vector<EvaluatePart> parts, std::vector<float> scores,
                  std::vector<uint8_t> labels) {
  return {std::move(parts), std::move(scores), std::move(labels)};
}

TEST(MergeEvaluation, IsTheSameForAnySharing) {
  const EvaluatePart a{0, 2, 0.1, 1, 0.7}, b{1, 2, 0.2, 1, 1.1}, c{2, 1, 0.3, 0, 0.2};
  const auto one =
      MergeEvaluation({{ProcessId(1), Done({a, b, c}, {-2, -1, 0, 1, 2}, {0, 1, 0, 0, 1})}});
  const auto two = MergeEvaluation({{ProcessId(1), Done({a, c}, {-2, 0, 2}, {0, 0, 1})},
                                    {ProcessId(2), Done({b}, {-1, 1}, {1, 0})}});
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(*one, *two);
  EXPECT_EQ(one->samples, 5u);
  EXPECT_DOUBLE_EQ(*one->logloss, (0.1 + 0.2 + 0.3) / 5);
  EXPECT_DOUBLE_EQ(*one->calibration, (0.7 + 1.1 + 0.2) / 2);
  EXPECT_DOUBLE_EQ(*one->auc, 4.0 / 6);
}

TEST(MergeEvaluation, MissingOrDoubleBatchesAreRefused) {
  const EvaluatePart a{0, 1, 0, 0, 0}, c{2, 1, 0, 0, 0};
  EXPECT_FALSE(MergeEvaluation({{ProcessId(1), Done({a, c}, {0, 0}, {0, 1})}}).ok());
  EXPECT_FALSE(MergeEvaluation({{ProcessId(1), Done({a, a}, {0, 0}, {0, 1})}}).ok());
  EXPECT_FALSE(MergeEvaluation({{ProcessId(1), Done({a}, {0, 0}, {0, 1})}}).ok());
}

TEST(MergeEvaluation, WithoutSamplesOrClassesThereIsNoNumber) {
  EXPECT_EQ(*MergeEvaluation({{ProcessId(1), {}}}), Metrics());
  const auto regression = MergeEvaluation({{ProcessId(1), Done({{0, 3, 1.5, 0, 1}}, {}, {})}});
  EXPECT_EQ(regression->auc, std::nullopt);
  EXPECT_EQ(regression->calibration, std::nullopt);
  EXPECT_EQ(regression->logloss, 0.5);
}

}  // namespace
}  // namespace dt::scheduler
