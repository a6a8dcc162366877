// Explanations for people: why an item is where it is, and what would help if nothing fits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/place/place_items.h"

namespace dt::scheduler {
namespace {

using testing::HasSubstr;

PlacementProblem Chain() {
  PlacementProblem problem;
  problem.items = {{.name = "ids", .seconds = {0, 0}, .fixed = kOnCpu},
                   {.name = "bag", .seconds = {1e-3, kCannotRun}},
                   {.name = "dense", .seconds = {8e-3, 1e-3}},
                   {.name = "loss", .seconds = {1e-3, 1e-3}}};
  problem.edges = {{0, 1, 100, 0}, {1, 2, 1e6, 0}, {2, 3, 1e6, 0}};
  problem.away = {PlacementProblem::Link{1e-5, 1e9}, PlacementProblem::Link{1e-5, 1e9}};
  return problem;
}

TEST(Reasons, NameTagKernelOrWhatTheOtherPlaceCosts) {
  const Result<Placement> placement = PlaceItems(Chain());
  ASSERT_TRUE(placement.ok()) << ToText(placement.status());
  EXPECT_EQ(placement->places, (Places{0, 0, 1, 1}));
  EXPECT_EQ(placement->reasons[0], "tagged cpu");
  EXPECT_EQ(placement->reasons[1], "no kernel for gpu");
  // 1 + 8 + (loss: copied or not) against 1 + 1.01 + 1 + 1.
  EXPECT_EQ(placement->reasons[2], "on cpu the step would take 7 ms longer");
  EXPECT_EQ(placement->reasons[3], "on cpu the step would take 1.01 ms longer");
  EXPECT_EQ(placement->summary,
            "2 items on cpu, 2 on gpu: 4.01 ms a step by the model, no placement takes less; "
            "all cpu 10 ms, all gpu 4.01 ms, greedy 4.01 ms; memory: cpu 976.7 KiB, gpu 1.9 MiB");
}

TEST(Reasons, NameTheLimitThatAMoveBreaks) {
  PlacementProblem problem = Chain();
  problem.items[2].memory = {3 << 20, 3 << 20};
  problem.memory_limit[1] = 4 << 20;
  const Result<Placement> placement = PlaceItems(problem);
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->places, (Places{0, 0, 0, 0}));
  EXPECT_THAT(placement->reasons[2], HasSubstr("on gpu it does not fit: gpu would need"));
  EXPECT_THAT(placement->reasons[2], HasSubstr("more than it has"));
  EXPECT_THAT(placement->summary, HasSubstr("all gpu does not fit"));
}

TEST(Reasons, OfAGroupNameTheItemThatDecides) {
  PlacementProblem problem = Chain();
  problem.items[0].group = problem.items[3].group = 1;
  problem.items[1].group = problem.items[2].group = 2;
  const Result<Placement> placement = PlaceItems(problem);
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->reasons[3], "with \"ids\": tagged cpu");
  EXPECT_EQ(placement->reasons[2], "with \"bag\": no kernel for gpu");
}

TEST(Reasons, OfATieSayWhatItSaves) {
  PlacementProblem problem;
  problem.items = {{.name = "long", .seconds = {9, 9}, .fixed = kOnCpu},
                   {.name = "short", .seconds = {2, 1}},
                   {.name = "even", .seconds = {0, 0}},
                   {.name = "end", .seconds = {5, 5}, .fixed = kOnAccelerator}};
  problem.edges = {{0, 3, 0, 0}};
  const Result<Placement> placement = PlaceItems(problem);
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(placement->prediction.seconds, 14);
  EXPECT_EQ(placement->places[1], kOnAccelerator);
  EXPECT_EQ(placement->reasons[1],
            "on cpu the step would take as long, with 1 s more of computing or copying");
  EXPECT_THAT(placement->reasons[2], HasSubstr("the step would take as long"));
}

TEST(DoesNotFit, SaysHowMuchIsMissingAndWhatIsLargest) {
  PlacementProblem problem = Chain();
  problem.items[1].memory = {6.0 * (1 << 30), 0};
  problem.items[2].memory = {3.0 * (1 << 30), 3.0 * (1 << 30)};
  problem.memory_limit = {4.0 * (1 << 30), 2.0 * (1 << 30)};
  const Result<Placement> placement = PlaceItems(problem);
  ASSERT_FALSE(placement.ok());
  EXPECT_EQ(placement.status().code(), StatusCode::kInvalidArgument);
  const std::string text = ToText(placement.status());
  EXPECT_THAT(text, HasSubstr("no placement fits in memory: cpu needs 6.0 GiB (6 GiB kept"));
  EXPECT_THAT(text, HasSubstr("2.0 GiB more than its 4 GiB"));
  EXPECT_THAT(text, HasSubstr("the largest on cpu: \"bag\" (6 GiB)"));
  EXPECT_THAT(text, HasSubstr("a smaller batch does not help enough"));
}

TEST(DoesNotFit, SaysWhenASmallerBatchHelps) {
  PlacementProblem problem = Chain();
  problem.memory_limit = {1.5e6, 1.5e6};
  problem.items[2].seconds[1] = kCannotRun;
  const Result<Placement> placement = PlaceItems(problem);
  ASSERT_FALSE(placement.ok());
  EXPECT_THAT(ToText(placement.status()), HasSubstr("a smaller batch, or more slices"));
}

}  // namespace
}  // namespace dt::scheduler
