// Goal: a plan is decoded as it was encoded, and no bytes do harm: truncated, flipped and spliced
// messages are refused, or decode to a plan that CheckPlan accepts.
#include "common/plan/plan_codec.h"

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "common/plan/check_plan.h"
#include "ops/op_spec.h"
#include "scheduler/plan/plan.h"
#include "test/support/tiny_model.h"

namespace dt {
namespace {

Plan WholePlan() {
  JobConfig job = test::TinyJob(test::TinyDeepFm());
  job.optimizer.clip_norm = 1;
  job.model.losses[0].group = "C1";
  job.optimizer.spec.l2 = 0.01f;
  Result<Plan> plan = scheduler::MakePlan({job, test::TinyColumns(), 3});
  DT_CHECK_MSG(plan.ok(), "{}", ToText(plan.status()));
  // One attribute of each type.
  plan->graph.nodes[0].attrs = {{"bool", true},
                                {"int", int64_t{-5}},
                                {"real", 0.25},
                                {"text", std::string("word")},
                                {"ints", std::vector<int64_t>{1, -2}},
                                {"reals", std::vector<double>{0.5, 1e300}},
                                {"texts", std::vector<std::string>{"a", ""}}};
  return *plan;
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(PlanCodecTest, APlanArrivesAsItLeft) {
  const Plan plan = WholePlan();
  const std::string bytes = Encode(plan);
  const Result<Plan> decoded = DecodePlan(BytesOf(bytes), TraitsOf);
  ASSERT_TRUE(decoded.ok()) << ToText(decoded.status());
  EXPECT_EQ(*decoded, plan);
  EXPECT_EQ(Encode(*decoded), bytes);
}

TEST(PlanCodecTest, UnalignedBytesDecode) {
  const std::string bytes = "x" + Encode(WholePlan());
  EXPECT_TRUE(DecodePlan(BytesOf(bytes).subspan(1), TraitsOf).ok());
}

TEST(PlanCodecTest, TruncatedBytesAreRefused) {
  const std::string bytes = Encode(WholePlan());
  for (size_t length = 0; length < bytes.size(); length += 1 + length / 64) {
    const Result<Plan> decoded = DecodePlan(BytesOf(bytes).first(length), TraitsOf);
    ASSERT_FALSE(decoded.ok()) << length;
    EXPECT_EQ(decoded.status().code(), StatusCode::kOutOfRange) << length;
  }
}

TEST(PlanCodecTest, ChangedBytesNeverHurt) {
  const std::string good = Encode(WholePlan());
  size_t refused = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    std::string bytes = good;
    const PhiloxBlock draws = Philox(2026, seed, 0);
    for (size_t i = 0; i <= seed % 3; ++i) {
      const size_t at = draws[i] % bytes.size();
      bytes[at] = static_cast<char>(draws[3] >> (8 * i));
    }
    const Result<Plan> decoded = DecodePlan(BytesOf(bytes), TraitsOf);
    refused += decoded.ok() ? 0 : 1;
    EXPECT_TRUE(!decoded.ok() || CheckPlan(*decoded, TraitsOf).ok()) << seed;
  }
  EXPECT_GT(refused, 1000u);
}

struct Damage {
  const char* name;
  void (*apply)(Plan& plan);
};

constexpr Damage kDamages[] = {
    {"input of a node", [](Plan& p) { p.graph.nodes[1].inputs[0] = 1u << 30; }},
    {"output of a node", [](Plan& p) { p.graph.nodes[1].outputs[0] = 1u << 30; }},
    {"forward node", [](Plan& p) { p.graph.nodes.back().forward = 1u << 30; }},
    {"producer", [](Plan& p) { p.graph.values.back().producer = 1u << 30; }},
    {"symbol", [](Plan& p) { p.graph.values[0].shape[0].symbol = 999; }},
    {"huge dimension", [](Plan& p) { p.graph.values[0].shape[0].times = int64_t{1} << 60; }},
    {"negative dimension", [](Plan& p) { p.graph.values[0].shape[0].times = -1; }},
    {"parameter", [](Plan& p) { p.graph.parameters[0].value = 1u << 30; }},
    {"parameter of no fixed size",
     [](Plan& p) { p.graph.values[p.graph.parameters[0].value].shape[0].symbol = kBatch; }},
    {"lookup", [](Plan& p) { p.graph.lookups[0].columns[0] = 999; }},
    {"lookup without columns", [](Plan& p) { p.graph.lookups[0].columns.clear(); }},
    {"length of a lookup", [](Plan& p) { p.graph.lookups[0].length = 77; }},
    {"table", [](Plan& p) { p.graph.lookups[0].table = 9; }},
    {"row gradient", [](Plan& p) { p.graph.tables[0].row_grad = 1u << 30; }},
    {"loss", [](Plan& p) { p.graph.losses[0].loss = 1u << 30; }},
    {"label column", [](Plan& p) { p.graph.losses[0].label_column = 1u << 30; }},
    {"group column", [](Plan& p) { p.graph.losses[0].group_column = 1u << 30; }},
    {"group column of numbers", [](Plan& p) { p.graph.losses[0].group_column = 0; }},
    {"subgraph", [](Plan& p) { p.train[0].nodes[0] = 1u << 30; }},
    {"slot", [](Plan& p) { p.slot.back() = p.slot_count; }},
    {"slots", [](Plan& p) { p.slot.pop_back(); }},
    {"slot count", [](Plan& p) { p.slot_count = 1u << 31; }},
    {"slices", [](Plan& p) { p.slices = 0; }},
    {"columns", [](Plan& p) { p.columns.clear(); }},
};

TEST(PlanCodecTest, EveryIndexOutOfRangeIsRefused) {
  for (const Damage& damage : kDamages) {
    Plan plan = WholePlan();
    damage.apply(plan);
    EXPECT_FALSE(DecodePlan(BytesOf(Encode(plan)), TraitsOf).ok()) << damage.name;
  }
}

}  // namespace
}  // namespace dt
