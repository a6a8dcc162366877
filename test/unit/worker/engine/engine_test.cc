// Goal: a plan with every feature that could break equality of bits trains to the same bits with
// any number of ranks and threads, learns, and reports what is wrong with its input. Method: the
// small training of training.h.
#include "worker/engine/engine.h"

#include <algorithm>
#include <deque>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/load_job.h"
#include "common/device/emulated_accelerator.h"
#include "ops/op_spec.h"
#include "scheduler/plan/plan.h"
#include "test/unit/scheduler/plan/shipped_jobs.h"
#include "test/unit/worker/engine/training.h"
#include "worker/engine/check_attrs.h"

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

// Such a plan comes from damaged bytes, or from another program.
TEST(EngineTest, AttributesOfAnotherTypeAreRefused) {
  const Plan plan = TestPlan();
  TaskPool pool(1);
  const auto refuses = [&](Plan damaged) {
    const auto engine = Engine::Create(std::move(damaged), {pool});
    return engine.status().code() == StatusCode::kOutOfRange;
  };
  EXPECT_FALSE(refuses(plan));
  size_t tried = 0;
  for (size_t n = 0; n < plan.graph.nodes.size(); ++n) {
    const Node& node = plan.graph.nodes[n];
    for (const auto& [name, value] : node.attrs) {
      // Only attributes of the operator are read.
      if (!std::ranges::count(FindOp(node.op)->attrs, name, &AttrSpec::name)) continue;
      Plan damaged = plan;
      const bool is_text = std::holds_alternative<std::string>(value);
      damaged.graph.nodes[n].attrs[name] = is_text ? AttrValue(0.5) : AttrValue("text");
      EXPECT_TRUE(refuses(std::move(damaged))) << node.name << " " << name;
      ++tried;
    }
    if (node.op != "update") continue;
    Plan damaged = plan;
    damaged.graph.nodes[n].attrs["optimizer"] = "none such";
    EXPECT_TRUE(refuses(damaged)) << node.name;
    damaged.graph.nodes[n].attrs = node.attrs;
    damaged.graph.nodes[n].attrs.erase("beta1");
    EXPECT_TRUE(refuses(damaged)) << node.name;
  }
  EXPECT_GT(tried, 50u);
}

TEST(EngineTest, AttributesOfEveryShippedJobAreOfTheirTypes) {
  for (const auto& path : test::ShippedJobs()) {
    const Result<JobConfig> job = LoadJob(path.string(), {});
    ASSERT_TRUE(job.ok()) << path;
    const Result<Plan> plan = scheduler::MakePlan({*job, test::ColumnsOf(*job), 2});
    ASSERT_TRUE(plan.ok()) << path << ToText(plan.status());
    EXPECT_TRUE(CheckAttrs(plan->graph).ok()) << path << ToText(CheckAttrs(plan->graph));
  }
}

// Copies do not change bits, wherever they are.
TEST(EngineTest, TheSameBitsWithAnyPlacement) {
  constexpr Step kSteps = 4;
  const Outcome one = Train({}, kSteps);
  for (uint64_t seed = 0; seed < 24; ++seed) {
    Setting setting = RandomPlacement(seed);
    setting.overlap = seed % 5 != 0;
    const Outcome other = Train(setting, kSteps);
    EXPECT_EQ(other.dense, one.dense) << "placement " << seed;
    EXPECT_EQ(other.tables, one.tables) << "placement " << seed;
    EXPECT_EQ(other.losses, one.losses) << "placement " << seed;
  }
}

// An accelerator whose link decides how much is worth copying to it.
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
  EXPECT_GT(bytes, 0.25 * report.accelerator_bytes);
}

// A slice with its rows, at a fixed address.
struct MadeSlice {
  MadeSlice(Rank& rank, Tables& tables, Batch batch) {
    plan.batch = std::move(batch);
    EXPECT_TRUE(rank.planner_.Fill(LookupFor::kTrain, plan).ok());
    for (uint32_t t = 0; t < plan.tables.size(); ++t) {
      rows.push_back(tables.Pull(rank.engine_->plan().graph, t, plan.tables[t]));
    }
    spans.assign(rows.begin(), rows.end());
  }
  LookupPlan plan;
  std::vector<std::vector<float>> rows;
  std::vector<std::span<const float>> spans;
};

// Gradients of all slices of some steps, with up to `at_once` slices at the same time, then the
// weights.
std::vector<std::vector<float>> TrainAtOnce(const Setting& setting, size_t at_once) {
  Rank rank(setting);
  Engine& engine = *rank.engine_;
  Tables tables;
  std::vector<std::vector<float>> out;
  const std::vector<uint32_t> owner(kSlices, 0);
  for (Step step = 0; step < 3; ++step) {
    std::deque<MadeSlice> slices;
    size_t taken = 0;
    const auto take = [&](size_t left) {
      for (; taken + left < slices.size(); ++taken) {
        const auto grads = engine.RowGrads();
        EXPECT_TRUE(grads.ok()) << ToText(grads.status());
        for (const auto& table : *grads) out.emplace_back(table.begin(), table.end());
      }
    };
    engine.BeginStep(step, owner);
    for (SliceIndex k = 0; k < kSlices; ++k) {
      take(at_once - 1);
      MadeSlice& slice = slices.emplace_back(rank, tables, MakeBatch(engine.plan(), step, k, 16));
      RunInfo info = rank.Info(step);
      info.first_sample = slice.plan.batch.first_sample;
      EXPECT_TRUE(engine.BeginSlice(slice.plan, info).ok());
      engine.GiveRows(slice.spans);
    }
    take(0);
    EXPECT_TRUE(engine.FinishExchange().ok());
    EXPECT_TRUE(engine.Update(rank.Info(step)).ok());
    EXPECT_TRUE(engine.FinishUpdate().ok());
  }
  EXPECT_TRUE(engine.FetchParameters().ok());
  for (const auto& array : engine.parameters().arrays()) out.push_back(array.values);
  return out;
}

TEST(EngineTest, TheSameBitsWithTwoSlicesUnderWay) {
  for (const std::vector<PlaceRule>& place :
       {std::vector<PlaceRule>(), {{"*", Device::kGpu}}, {{"deep*", Device::kGpu}}}) {
    for (const uint32_t threads : {1, 3}) {
      const Setting setting{.threads = threads, .place = place};
      ASSERT_EQ(Rank(setting).engine_->slices_at_once(), 2);
      Setting apart = setting;
      apart.overlap = false;
      EXPECT_EQ(TrainAtOnce(setting, 2), TrainAtOnce(apart, 1));
      EXPECT_EQ(TrainAtOnce(setting, 1), TrainAtOnce(apart, 1));
    }
  }
}

// The update reads gradients in the memory of the step's only slice, which a second slice would
// overwrite.
TEST(EngineTest, AStepOfOneSliceHasOneLane) {
  JobConfig job = test::TinyJob(test::TinyDeepFm());
  job.train.batch_size = kSliceSamples;
  TaskPool pool(1);
  Result<Plan> plan = scheduler::MakePlan({job, test::TinyColumns(), 1});
  ASSERT_TRUE(plan.ok()) << ToText(plan.status());
  const auto engine = Engine::Create(*std::move(plan), {.pool = pool});
  ASSERT_TRUE(engine.ok()) << ToText(engine.status());
  EXPECT_EQ((*engine)->slices_at_once(), 1);
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
  const RowSpans outputs = *rank.engine_->Evaluate({rank.made_, spans}, info);
  ASSERT_EQ(outputs.size(), 1);
  ASSERT_EQ(outputs[0].size(), 16);
  const std::vector<float> first(outputs[0].begin(), outputs[0].end());
  const RowSpans again = *rank.engine_->Evaluate({rank.made_, spans}, info);
  EXPECT_EQ(first, std::vector<float>(again[0].begin(), again[0].end()));
  EXPECT_EQ(rank.engine_->parameters().Checksum(), before);
}

// Adam stores two values beside each weight; with the optimizer on the CPU they are not on the
// accelerator. The size of its arena settles.
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

// A product of 16 x 64 by 64 x 64 takes 131,072 operations; the forward pass has one.
TEST(EngineTest, KernelsOccupyTheAcceleratorForAsLongAsItsSpeedSays) {
  const std::vector<NodeConfig> nodes = {
      test::TinyNode("in", "dense", {"I1", "I2"}, {{"units", int64_t{64}}}),
      test::TinyNode("big", "dense", {"in"}, {{"units", int64_t{64}}}),
      test::TinyNode("e", "linear", {"C1", "tags"}, {{"table", "wide"}}),
      test::TinyNode("d", "dense", {"big"}, {{"units", int64_t{1}}}),
      test::TinyNode("logit", "sum", {"e", "d"})};
  const auto slow = [] {
    return EmulatedAccelerator::Create(
               {.memory_bytes = 64 << 20, .speed = {.flops = 131072 / 0.02}})
        .value();
  };
  Rank rank({.place = {{"big*", Device::kGpu}}, .nodes = nodes, .open = slow});
  Tables tables;
  const TimePoint begun = SystemClock().Now();
  ASSERT_TRUE(rank.RunSlice(tables, MakeBatch(rank.engine_->plan(), 0, 0, 16)).ok());
  ASSERT_TRUE(rank.engine_->FinishUpdate().ok());
  const double seconds = SecondsBetween(begun, SystemClock().Now());
  EXPECT_GE(seconds, 3 * 0.02);  // The backward pass has two more.
  EXPECT_LT(seconds, 3);
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
  ASSERT_TRUE(rank.engine_->FetchParameters().ok());  // Waits for the end of the slice.
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
