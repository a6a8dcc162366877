// Goal: a plan with every part that could break equality trains to the same bits with any number of
// ranks and threads, learns, and says what is wrong with its input. Method: the small training of
// training.h.
#include "worker/engine/engine.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/worker/engine/training.h"

namespace dt::worker {
namespace {

using ::testing::HasSubstr;

TEST(EngineTest, TheSameBitsWithAnyNumberOfRanksAndThreads) {
  const Outcome one = Train({}, 12);
  for (const auto& [ranks, threads] : {std::pair{1u, 3u}, {2u, 1u}, {3u, 2u}, {4u, 1u}}) {
    const Outcome other = Train({.ranks = ranks, .threads = threads}, 12);
    EXPECT_EQ(other.dense, one.dense) << ranks << " ranks, " << threads << " threads";
    EXPECT_EQ(other.tables, one.tables) << ranks << " ranks, " << threads << " threads";
    EXPECT_EQ(other.losses, one.losses) << ranks << " ranks, " << threads << " threads";
  }
}

// Copies move bits and change none, wherever they are.
TEST(EngineTest, TheSameBitsWithAnyPlacement) {
  constexpr Step kSteps = 4;
  const Outcome one = Train({}, kSteps);
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const Setting setting = RandomPlacement(seed);
    const Outcome other = Train(setting, kSteps);
    EXPECT_EQ(other.dense, one.dense) << "placement " << seed;
    EXPECT_EQ(other.tables, one.tables) << "placement " << seed;
    EXPECT_EQ(other.losses, one.losses) << "placement " << seed;
  }
}

// An accelerator worth its copies, more or less.
DeviceProfile SlowLink(double bytes_per_second) {
  DeviceProfile profile = DefaultEmulatedProfile(1);
  profile.cpu.flops.fill(1e9);
  profile.cpu.memory_bytes = 1e9;
  profile.cpu.launch_seconds = profile.accelerator.launch_seconds = 0;
  profile.to_accelerator = profile.from_accelerator = {"", 0, bytes_per_second};
  return profile;
}

TEST(EngineTest, TheSameBitsWithAnyAutomaticPlacement) {
  constexpr Step kSteps = 4;
  const Outcome one = Train({}, kSteps);
  std::set<size_t> numbers;
  for (const double link : {3e7, 1e8, 3e8, 1e9, 1e10}) {
    const Setting setting = {.ranks = 2, .automatic = SlowLink(link)};
    const Graph graph = TestPlan(setting).graph;
    numbers.insert(
        static_cast<size_t>(std::ranges::count(graph.nodes, Device::kGpu, &Node::device)));
    const Outcome other = Train(setting, kSteps);
    EXPECT_EQ(other.dense, one.dense) << link;
    EXPECT_EQ(other.tables, one.tables) << link;
    EXPECT_EQ(other.losses, one.losses) << link;
  }
  EXPECT_GT(numbers.size(), 2u) << "they hardly differ";
}

TEST(EngineTest, ThePlanKnowsHowMuchMemoryTheAcceleratorNeedsAtMost) {
  const Setting setting = {.place = {{"*", Device::kGpu}}};
  scheduler::PlacementReport report;
  TestPlan(setting, &report);
  Rank rank(setting);
  Tables tables;
  for (Step step = 0; step < 20; ++step) {
    ASSERT_TRUE(rank.RunSlice(tables, MakeBatch(rank.engine_->plan(), step, 0, 16)).ok());
  }
  const Bindings::DeviceBytes used = rank.engine_->device_bytes();
  const auto bytes = static_cast<double>(used.lasting + used.arena);
  EXPECT_LE(bytes, report.accelerator_bytes);
  EXPECT_GT(bytes, 0.4 * report.accelerator_bytes);
}

TEST(EngineTest, ItLearns) {
  const Outcome outcome = Train({.threads = 2}, 150);
  EXPECT_LT(outcome.losses.back(), 0.7 * outcome.losses.front());
}

TEST(EngineTest, EvaluationGivesTheOutputOfEverySampleAndChangesNothing) {
  Rank rank;
  Tables tables;
  ASSERT_TRUE(rank.RunSlice(tables, MakeBatch(rank.engine_->plan(), 0, 0, 16)).ok());
  const std::string before = rank.engine_->parameters().Checksum();
  std::vector<std::span<const float>> spans(rank.rows_.begin(), rank.rows_.end());
  RunInfo info = rank.Info(0);
  info.training = false;
  const TableRows outputs = *rank.engine_->Evaluate({rank.made_, spans}, info);
  ASSERT_EQ(outputs.size(), 1);
  ASSERT_EQ(outputs[0].size(), 16);
  const std::vector<float> first(outputs[0].begin(), outputs[0].end());
  const TableRows again = *rank.engine_->Evaluate({rank.made_, spans}, info);
  EXPECT_EQ(first, std::vector<float>(again[0].begin(), again[0].end()));
  EXPECT_EQ(rank.engine_->parameters().Checksum(), before);
}

// Adam keeps two values beside each weight: with the optimizer on the processor they are not on the
// accelerator. The arena there settles.
TEST(EngineTest, AnOptimizerOnTheProcessorLeavesAThirdOfTheAcceleratorsMemory) {
  const std::vector<NodeConfig> wide = {
      test::TinyNode("numbers", "mlp", {"I1", "I2"}, {{"units", std::vector<int64_t>{256, 128}}}),
      test::TinyNode("e", "linear", {"C1", "tags"}, {{"table", "wide"}}),
      test::TinyNode("d", "dense", {"numbers"}, {{"units", int64_t{1}}}),
      test::TinyNode("logit", "sum", {"e", "d"})};
  std::array<uint64_t, 2> lasting = {};
  for (const Device optimizer : {Device::kGpu, Device::kCpu}) {
    Rank rank({.place = {{"*", Device::kGpu}}, .optimizer = optimizer, .nodes = wide});
    Tables tables;
    for (Step step = 0; step < 40; ++step) {
      ASSERT_TRUE(rank.RunSlice(tables, MakeBatch(rank.engine_->plan(), step, 0, 16)).ok());
    }
    const uint32_t growths = rank.engine_->device_bytes().arena_growths;
    for (Step step = 0; step < 40; ++step) {
      ASSERT_TRUE(rank.RunSlice(tables, MakeBatch(rank.engine_->plan(), step, 0, 16)).ok());
    }
    EXPECT_EQ(rank.engine_->device_bytes().arena_growths, growths);
    lasting[optimizer == Device::kGpu] = rank.engine_->device_bytes().lasting;
  }
  EXPECT_GT(lasting[0], 0);
  EXPECT_LE(static_cast<double>(lasting[0]), 1.05 / 3 * static_cast<double>(lasting[1]));
}

// Lists that only gradients read are not made for evaluation.
TEST(EngineTest, EvaluationOnTheAcceleratorIsTheProcessors) {
  std::vector<float> first;
  for (const std::vector<PlaceRule>& place : {std::vector<PlaceRule>(), {{"*", Device::kGpu}}}) {
    Rank rank(Setting{.place = place});
    Tables tables;
    const Result<std::vector<float>> outputs =
        rank.Evaluate(tables, MakeBatch(rank.engine_->plan(), 0, 0, 16));
    ASSERT_TRUE(outputs.ok()) << ToText(outputs.status());
    const std::vector<float>& got = *outputs;
    if (first.empty()) first = got;
    EXPECT_EQ(got, first);
  }
}

TEST(EngineTest, ALossThatIsNotFiniteNamesStepAndSlice) {
  Rank rank;
  Tables tables;
  Batch batch = MakeBatch(rank.engine_->plan(), 41, 2, 16);
  for (size_t c = 0; c < batch.columns.size(); ++c) {
    if (rank.engine_->plan().columns[c].name == "I1") batch.columns[c].floats[3] = 3e38f * 10;
  }
  const auto grads = rank.RunSlice(tables, std::move(batch));
  ASSERT_FALSE(grads.ok());
  EXPECT_THAT(ToText(grads.status()), HasSubstr("not finite at step 41"));
  EXPECT_THAT(ToText(grads.status()), HasSubstr("slice 2 (samples 32 to 47"));
}

TEST(EngineTest, TimingsNameEveryNodeThatRan) {
  Rank rank;
  Tables tables;
  ASSERT_TRUE(rank.RunSlice(tables, MakeBatch(rank.engine_->plan(), 0, 0, 16)).ok());
  ASSERT_TRUE(rank.engine_->FetchParameters().ok());  // Waits.
  uint64_t runs = 0;
  for (const NodeTiming& timing : rank.engine_->Timings()) runs += timing.runs;
  uint64_t nodes = 0;
  for (const Subgraph& subgraph : rank.engine_->plan().train) {
    if (subgraph.phase == Phase::kSlice) nodes += subgraph.nodes.size();
  }
  EXPECT_EQ(runs, nodes);
}

}  // namespace
}  // namespace dt::worker
