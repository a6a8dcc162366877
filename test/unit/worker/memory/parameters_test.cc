// Goal: dense parameters on disk are read back as they were saved; damaged files, and files of
// another model, are reported by name.
#include "worker/memory/parameters.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/scratch_folder.h"

namespace dt::worker {
namespace {

using ::testing::HasSubstr;

Plan PlanOf(const std::vector<std::pair<std::string, int64_t>>& vectors, uint64_t seed = 3) {
  Plan plan;
  plan.seed = seed;
  for (const auto& [name, size] : vectors) {
    const ValueIndex value = plan.graph.AddValue(
        {.name = name, .shape = {Const(2), Const(size)}, .kind = ValueKind::kParameter});
    plan.graph.parameters.push_back({.value = value, .init = {InitKind::kNormal, 1.0f}});
  }
  return plan;
}

class ParametersTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/dense.bin"; }
  void Damage(uint64_t offset) const {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
  }
  test::ScratchFolder folder_;
};

TEST_F(ParametersTest, WhatIsSavedComesBack) {
  const Parameters saved(PlanOf({{"w", 5}, {"b", 1}}, 3));
  const auto file = saved.Save(folder_.path());
  ASSERT_TRUE(file.ok()) << ToText(file.status());
  EXPECT_EQ(file->name, "dense.bin");
  EXPECT_EQ(file->bytes, std::filesystem::file_size(path()));
  // Another seed, and the same names in another order.
  Parameters loaded(PlanOf({{"b", 1}, {"w", 5}}, 4));
  EXPECT_NE(loaded.Checksum(), saved.Checksum());
  ASSERT_TRUE(loaded.Load(folder_.path()).ok());
  EXPECT_EQ(loaded.Checksum(), saved.Checksum());
  EXPECT_EQ(loaded.arrays()[1].values, saved.arrays()[0].values);
}

TEST_F(ParametersTest, AnyDamageIsFound) {
  Parameters parameters(PlanOf({{"w", 5}, {"b", 1}}));
  for (const uint64_t from_end : {1, 9, 20, 60, 80}) {
    ASSERT_TRUE(parameters.Save(folder_.path()).ok());
    Damage(std::filesystem::file_size(path()) - from_end);
    const Status status = parameters.Load(folder_.path());
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << from_end;
    EXPECT_THAT(ToText(status), HasSubstr("dense.bin, offset"));
  }
}

TEST_F(ParametersTest, EveryTruncationIsFound) {
  Parameters parameters(PlanOf({{"w", 5}}));
  ASSERT_TRUE(parameters.Save(folder_.path()).ok());
  const uint64_t size = std::filesystem::file_size(path());
  for (uint64_t shorter = size; shorter-- > 0;) {
    std::filesystem::resize_file(path(), shorter);
    EXPECT_EQ(parameters.Load(folder_.path()).code(), StatusCode::kDataLoss) << shorter;
  }
}

TEST_F(ParametersTest, AnotherModelIsNamedAndChangesNothing) {
  ASSERT_TRUE(Parameters(PlanOf({{"w", 5}})).Save(folder_.path()).ok());
  for (const auto& [other, what] :
       {std::pair{PlanOf({{"w", 6}}), "w has shape [2, 5] there and [2, 6] here"},
        std::pair{PlanOf({{"v", 5}}), "it has w where this job has v"},
        std::pair{PlanOf({{"w", 5}, {"b", 1}}), "1 dense arrays, not 2"}}) {
    Parameters parameters(other);
    const std::string before = parameters.Checksum();
    const Status status = parameters.Load(folder_.path());
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(ToText(status), HasSubstr(what));
    EXPECT_EQ(parameters.Checksum(), before);
  }
}

// The optimizer state is optional: the file of an asynchronous job has none.
TEST_F(ParametersTest, PredictionsNeedNoOptimizerState) {
  ASSERT_TRUE(Parameters(PlanOf({{"w", 5}}, 3)).Save(folder_.path()).ok());
  Plan plan = PlanOf({{"m", 5}, {"w", 5}}, 4);
  plan.graph.parameters[0].state_of = plan.graph.parameters[1].value;
  Parameters loaded(plan);
  const std::vector<float> fresh = loaded.arrays()[0].values;
  EXPECT_FALSE(loaded.Load(folder_.path()).ok());
  ASSERT_TRUE(loaded.LoadWithoutState(folder_.path()).ok());
  EXPECT_EQ(loaded.arrays()[0].values, fresh);
  EXPECT_EQ(loaded.arrays()[1].values, Parameters(PlanOf({{"w", 5}}, 3)).arrays()[0].values);
  Parameters other(PlanOf({{"v", 5}}));
  EXPECT_THAT(ToText(other.LoadWithoutState(folder_.path())), HasSubstr("it has no v"));
}

// The parts of a matrix [6, 5] that the positions of a team have.
Plan PartPlan(uint32_t devices, uint32_t position, bool by_rows) {
  Plan plan = PlanOf({{"b", 4}}, 3);
  plan.devices = devices;
  plan.position = position;
  const Range part = EvenPart({0, by_rows ? 6 : 5}, devices, position);
  const SymShape shape =
      by_rows ? SymShape{Const(part.size()), Const(5)} : SymShape{Const(6), Const(part.size())};
  const ValueIndex value =
      plan.graph.AddValue({.name = "w", .shape = shape, .kind = ValueKind::kParameter});
  ParameterSpec spec{.value = value, .init = {InitKind::kNormal, 1.0f}};
  spec.whole = {6, 5};
  spec.first = by_rows ? Shape{part.begin, 0} : Shape{0, part.begin};
  plan.graph.parameters.push_back(spec);
  plan.graph.parameters[0].copy = position > 0;
  return plan;
}

TEST_F(ParametersTest, AnyTeamReadsWhatAnyOtherHasWritten) {
  for (const uint32_t writers : {1, 2, 3, 4}) {
    DenseSum sum;
    for (uint32_t p = 0; p < writers; ++p) {
      const Parameters part(PartPlan(writers, p, writers % 2 == 0));
      const auto file = part.Save(folder_.path());
      ASSERT_TRUE(file.ok()) << ToText(file.status());
      sum.low += part.Sums()[0].low;
      sum.high += part.Sums()[0].high;
    }
    const Parameters whole(PartPlan(1, 0, true));
    EXPECT_EQ(sum, whole.Sums()[0]) << "first values and sums are by element of the whole";
    for (const uint32_t readers : {1, 2, 5}) {
      for (uint32_t p = 0; p < readers; ++p) {
        const Parameters fresh(PartPlan(readers, p, false));
        Parameters loaded(PartPlan(readers, p, false));
        for (Parameters::Array& array : loaded.arrays()) std::ranges::fill(array.values, 9.0f);
        const Status status = loaded.Load(folder_.path());
        ASSERT_TRUE(status.ok()) << ToText(status);
        for (size_t a = 0; a < 2; ++a) {
          EXPECT_EQ(loaded.arrays()[a].values, fresh.arrays()[a].values) << writers << readers;
        }
      }
    }
    std::filesystem::remove(folder_.path() + "/dense-" + std::to_string(writers - 1) + ".bin");
    if (writers == 1) continue;
    Parameters lacks(PartPlan(1, 0, true));
    EXPECT_EQ(lacks.Load(folder_.path()).code(), StatusCode::kNotFound);
  }
}

TEST_F(ParametersTest, AnAbsentFileIsNamed) {
  Parameters parameters(PlanOf({{"w", 5}}));
  const Status status = parameters.Load(folder_.path());
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(ToText(status), HasSubstr(path()));
}

TEST_F(ParametersTest, TheChecksumCoversNamesShapesAndValues) {
  const std::string sum = Parameters(PlanOf({{"w", 6}})).Checksum();
  EXPECT_EQ(sum.size(), 32);
  EXPECT_EQ(sum, Parameters(PlanOf({{"w", 6}})).Checksum());
  Parameters changed(PlanOf({{"w", 6}}));
  changed.arrays()[0].values[3] += 1.0f;
  EXPECT_NE(sum, changed.Checksum());
  EXPECT_NE(sum, Parameters(PlanOf({{"x", 6}})).Checksum());
}

}  // namespace
}  // namespace dt::worker
