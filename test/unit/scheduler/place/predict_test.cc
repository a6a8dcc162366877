// Predictions for small steps are compared with hand-computed ones, and fast evaluations with full
// ones.
#include <gtest/gtest.h>

#include "scheduler/place/branch_and_bound.h"
#include "scheduler/place/initial_placements.h"
#include "scheduler/place/min_cut.h"
#include "scheduler/place/timeline.h"
#include "test/unit/scheduler/place/random_problem.h"

namespace dt::scheduler {
namespace {

Model ModelOf(PlacementProblem problem) {
  Result<Model> model = Model::Make(std::move(problem));
  EXPECT_TRUE(model.ok()) << ToText(model.status());
  return *std::move(model);
}

// A diamond: two items read the output of the first, and the last reads both. Times are in seconds.
PlacementProblem Diamond() {
  PlacementProblem problem;
  problem.items = {{.name = "in", .seconds = {1, 1}},
                   {.name = "left", .seconds = {8, 2}},
                   {.name = "right", .seconds = {3, 3}},
                   {.name = "out", .seconds = {1, 1}}};
  problem.edges = {{0, 1, 10, 0}, {0, 2, 10, 0}, {1, 3, 10, 0}, {2, 3, 10, 0}};
  problem.away = {PlacementProblem::Link{0.5, 20}, PlacementProblem::Link{1, 10}};
  return problem;
}

TEST(Predict, RunsItemsOfOnePlaceBehindEachOther) {
  const Prediction p = Predict(ModelOf(Diamond()), {0, 0, 0, 0});
  EXPECT_EQ(p.seconds, 13);
  EXPECT_EQ(p.computing[0], 13);
  EXPECT_EQ(p.busy(), 13);
}

TEST(Predict, OverlapsDevicesAndAddsCopies) {
  // in 0–1, copy 1–2, left on the accelerator 2–4, copy back 4–6; right 1–4; out 6–7.
  const Prediction p = Predict(ModelOf(Diamond()), {0, 1, 0, 0});
  EXPECT_EQ(p.seconds, 7);
  EXPECT_EQ(p.computing[0], 5);
  EXPECT_EQ(p.computing[1], 2);
  EXPECT_EQ(p.copying[0], 1);
  EXPECT_EQ(p.copying[1], 2);
  EXPECT_EQ(p.copied_bytes[0], 10);
}

TEST(Predict, CopiesAValueOnceForAllItsReaders) {
  // in 0–1, copy 1–2, left 2–4, right 4–7, out 7–8.
  const Prediction p = Predict(ModelOf(Diamond()), {0, 1, 1, 1});
  EXPECT_EQ(p.seconds, 8);
  EXPECT_EQ(p.copied_bytes[0], 10);
}

TEST(Predict, CopiesOfOneDirectionWaitForEachOther) {
  PlacementProblem problem = Diamond();
  problem.edges[1].value = 1;  // "right" now reads another value.
  // Copies 1–2 and 2–3; left 2–4, right 4–7, out 7–8.
  EXPECT_EQ(Predict(ModelOf(problem), {0, 1, 1, 1}).seconds, 8);
  problem.items[1].seconds = {8, 0.5};
  // left 2–2.5, right waits for the second copy: 3–6, out 6–7.
  EXPECT_EQ(Predict(ModelOf(problem), {0, 1, 1, 1}).seconds, 7);
}

TEST(Predict, WithoutOverlapTheReaderCopies) {
  PlacementProblem problem = Diamond();
  problem.overlap = false;
  // in 0–1; the accelerator copies 1–2, left 2–4; right 1–4; the CPU copies 4–6, out 6–7.
  EXPECT_EQ(Predict(ModelOf(problem), {0, 1, 0, 0}).seconds, 7);
  // left 1–9 on the CPU; copy 1–2, right 2–5; out on the CPU after copying 9–11: 11–12.
  EXPECT_EQ(Predict(ModelOf(problem), {0, 0, 1, 0}).seconds, 12);
}

TEST(Predict, LaunchesCostOnlyWhatTakesTime) {
  PlacementProblem problem = Diamond();
  problem.launch = {0.25, 2};
  problem.items[0].seconds = {0, 0};
  EXPECT_EQ(Predict(ModelOf(problem), {0, 0, 0, 0}).seconds, 12.75);
}

TEST(Predict, CountsValuesWhileTheyLive) {
  PlacementProblem problem = Diamond();
  problem.items[0].memory = {100, 50};
  problem.items[3].memory = {7, 7};
  problem.memory_limit = {140, 20};
  // CPU: in's 10, right's 10, and left's copy asked for when left runs: 30 while right runs.
  // Accelerator: in's copy and left's value while left runs.
  const Prediction p = Predict(ModelOf(problem), {0, 1, 0, 0});
  EXPECT_EQ(p.kept_bytes[0], 107);
  EXPECT_EQ(p.peak_bytes[0], 30);
  EXPECT_EQ(p.peak_item[0], 2);
  EXPECT_EQ(p.kept_bytes[1], 0);
  EXPECT_EQ(p.peak_bytes[1], 20);
  EXPECT_EQ(p.missing_bytes, 0);
  EXPECT_EQ(Predict(ModelOf(problem), {0, 1, 1, 1}).missing_bytes, 7 + 30 - 20);
}

TEST(Timeline, CostsWhatThePredictionSaysAfterEveryMove) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = ModelOf(DrawProblem(seed, {.items = 40, .overlap = seed % 3 != 0}));
    if (model.free_groups().empty()) continue;
    Timeline line(model, model.AllAt(0));
    for (uint32_t move = 0; move < 60; ++move) {
      std::vector<uint32_t> groups;
      for (uint32_t k = 0; k <= move % 3 && k < model.free_groups().size(); ++k) {
        groups.push_back(model.free_groups()[(move * 5 + k) % model.free_groups().size()]);
      }
      const PlacementCost asked = line.CostOfFlip(groups), before = line.cost();
      const bool kept = line.TryFlip(groups);
      EXPECT_EQ(kept, IsBetter(asked, before));
      if (!kept && move % 4 == 0) line.Flip(groups);
      const PlacementCost cost = CostOf(Predict(model, line.places()));
      EXPECT_EQ(line.cost().seconds, cost.seconds);
      EXPECT_EQ(line.cost().missing_bytes, cost.missing_bytes);
      EXPECT_NEAR(line.cost().busy, cost.busy, 1e-9 * cost.busy);
    }
  }
}

TEST(CutPlaces, HasTheLeastSumOfComputingAndCopying) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = ModelOf(DrawProblem(seed, {.items = 9, .with_limits = false}));
    double least = kNoLimit;
    ForEveryPlacement(model, [&](const Places& places) {
      least = std::min(least, Predict(model, places).busy());
    });
    const std::optional<Places> cut = CutPlaces(model, {}, 1'000'000);
    ASSERT_TRUE(cut.has_value());
    EXPECT_NEAR(Predict(model, *cut).busy(), least, 1e-9 * least);
  }
}

TEST(CutPlaces, GivesUpAtItsLimit) {
  const Model model = ModelOf(DrawProblem(1, {.items = 200, .with_limits = false}));
  EXPECT_FALSE(CutPlaces(model, {}, 10).has_value());
}

TEST(PlaceExactly, ItsBoundHoldsWhenItStopsEarly) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = ModelOf(DrawProblem(seed, {.items = 11}));
    const double least = LeastSeconds(model);
    for (const uint64_t steps : {0, 50, 500}) {
      const ExactResult result = PlaceExactly(model, {}, steps);
      EXPECT_LE(result.lower_bound, least);
      EXPECT_GE(result.seconds, least);
      if (result.proven) {
        EXPECT_EQ(result.seconds, least);
      }
    }
  }
}

TEST(Model, RefusesWhatHasNoKernel) {
  PlacementProblem problem = Diamond();
  problem.items[1].seconds = {kCannotRun, 1};
  problem.items[1].fixed = kOnCpu;
  EXPECT_EQ(MessageOf(Model::Make(problem).status()),
            "\"left\" is tagged cpu, and has no kernel for it");
  problem.items[1].seconds = {kCannotRun, kCannotRun};
  EXPECT_EQ(MessageOf(Model::Make(problem).status()),
            "\"left\" has no kernel, neither for cpu nor for gpu");
}

TEST(Model, RefusesTagsThatCannotBeMet) {
  const auto message = [](PlacementProblem problem) {
    return std::string(MessageOf(Model::Make(std::move(problem)).status()));
  };
  PlacementProblem problem = Diamond();
  problem.items[1].group = problem.items[2].group = 5;
  problem.items[1].fixed = 0;
  problem.items[2].fixed = 1;
  EXPECT_EQ(message(problem), "\"left\" is tagged cpu and \"right\" gpu, but they go together");
  problem.items[2].fixed.reset();
  problem.items[2].seconds[0] = kCannotRun;
  EXPECT_EQ(message(problem), "\"left\" is tagged cpu, but \"right\" cannot run there");
  problem.items[1].fixed.reset();
  problem.items[1].seconds[1] = kCannotRun;
  EXPECT_EQ(message(problem),
            "\"right\" cannot run on cpu, and \"left\", which goes with it, not on gpu");
}

}  // namespace
}  // namespace dt::scheduler
