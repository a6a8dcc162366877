// Goal: a job goes on from another job's model, and from rows that other programs wrote. Method:
// the real program; two jobs one after the other equal a longer one, bit for bit, and without
// learning the second one leaves everything as it was.
#include <cstring>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/arrays/array_reader.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using ::testing::HasSubstr;

using Arguments = std::vector<std::string>;
// No step is like another by chance: the order of samples is that of the file, and nothing is
// dropped.
const Arguments kPlain = {"--set", "data.shuffle.window=0", "--set",
                          "model.graph.hidden.dropout=0"};
const Arguments kStill = {"--set", "optimizer.lr=0",
                          "--set", "model.tables.deep={dim: 8, optimizer: {lr: 0}}",
                          "--set", "model.tables.wide={dim: 1, optimizer: {lr: 0}}"};

Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Rows of a table, or one dense parameter, of an exported checkpoint.
using Rows = std::map<Key, std::vector<float>>;
Rows RowsIn(const ArrayReader& reader, const std::string& table) {
  const ArrayReader::Array& values = *reader.Find("table." + table + ".values");
  std::vector<Key> keys(values.shape[0]);
  EXPECT_TRUE(reader.ReadKeys(*reader.Find("table." + table + ".keys"), 0, keys).ok());
  Rows rows;
  for (size_t i = 0; i < keys.size(); ++i) {
    std::vector<float>& row = rows[keys[i]];
    row.resize(values.shape[1]);
    EXPECT_TRUE(reader.ReadFloats(values, i * row.size(), row).ok());
  }
  return rows;
}
std::vector<float> DenseIn(const ArrayReader& reader, const std::string& name) {
  const ArrayReader::Array* const array = reader.Find("dense." + name);
  EXPECT_NE(array, nullptr) << name;
  std::vector<float> values(array == nullptr ? 0 : array->elements());
  EXPECT_TRUE(array == nullptr || reader.ReadFloats(*array, 0, values).ok());
  return values;
}
// Values of equal bits; 0 and -0 differ.
bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class DayTwo : public ::testing::Test {
 protected:
  // Runs a job of its own in the first folder; returns its last checkpoint.
  std::string First(const Arguments& more = {}, const std::string& command = "train") {
    const std::string job = WriteTinyJob(one_, {.epochs = 1});
    const ProgramEnd end =
        RunProgram(one_.path(), Arguments{command, job, "--result", "r.json"} + more);
    EXPECT_EQ(end.exit_code, 0) << end.output;
    const std::vector<std::string> all = CheckpointsOf(one_, "tiny");
    return all.empty() ? "" : one_.path() + "/" + all.back();
  }
  // Runs another one, on other data, in the second folder.
  ProgramEnd Second(const Arguments& more, const std::string& command = "train",
                    uint32_t rows = 1800) {
    const std::string job = WriteTinyJob(two_, {.job = "second", .rows = rows, .epochs = 1});
    return RunProgram(two_.path(), Arguments{command, job, "--result", "r.json"} + more);
  }
  ArrayReader Export(const TempFolder& folder, const std::string& checkpoint) {
    const ProgramEnd end =
        RunProgram(folder.path(), {"export", checkpoint, "--format", "npz", "--out", "all.npz"});
    EXPECT_EQ(end.exit_code, 0) << end.output;
    return ArrayReader::Open(folder.path() + "/all.npz").value();
  }
  std::string LastOfSecond() { return two_.path() + "/" + CheckpointsOf(two_, "second").back(); }
  // All rows of the first are in the second, and dense parameters are the same.
  void ExpectSame(const ArrayReader& first, const ArrayReader& second) {
    for (const std::string table : {"deep", "wide"}) {
      const Rows before = RowsIn(first, table), after = RowsIn(second, table);
      EXPECT_GT(before.size(), 200u);
      for (const auto& [key, row] : before) {
        ASSERT_TRUE(after.contains(key)) << table << " " << key;
        EXPECT_TRUE(SameBits(after.at(key), row)) << table << " " << key;
      }
    }
    const std::string weight = "third.weight";
    EXPECT_TRUE(SameBits(DenseIn(first, weight), DenseIn(second, weight)));
  }

  const TempFolder one_, two_;
};

class TwoDays : public DayTwo, public ::testing::WithParamInterface<const char*> {};

// The steps of both count: for Adam's corrections, for L2 after gaps, for missed updates.
TEST_P(TwoDays, AreOneLongerJob) {
  const Arguments how = kPlain + Arguments{"--set", GetParam()};
  const std::string day_one = First(how);
  const std::string job = WriteTinyJob(two_, {.job = "second", .epochs = 1});
  const ProgramEnd second = RunProgram(
      two_.path(), Arguments{"train", job, "--result", "two.json", "--init", day_one} + how);
  ASSERT_EQ(second.exit_code, 0) << second.output;
  EXPECT_THAT(second.output, HasSubstr("counts its 12 steps"));
  const ProgramEnd longer =
      RunProgram(two_.path(), Arguments{"train", job, "--result", "long.json", "--set",
                                        "job=longer", "--set", "train.epochs=2"} +
                                  how);
  ASSERT_EQ(longer.exit_code, 0) << longer.output;
  EXPECT_NE(ChecksumOf(two_, "two.json"), "");
  EXPECT_EQ(ChecksumOf(two_, "two.json"), ChecksumOf(two_, "long.json"));
  EXPECT_EQ(NumberAt(two_, "two.json", "/steps"), 12);
}

INSTANTIATE_TEST_SUITE_P(Where, TwoDays,
                         ::testing::Values("seed=5", "model.tables.deep.device=cpu",
                                           "cluster.server.memory=256KiB", "optimizer.scope=dense",
                                           "model.tables.deep.dtype=bf16"));

TEST_F(DayTwo, AnyNumberOfServersShardsAndWorkersBeginsWithTheSameRows) {
  const std::string day_one =
      First({"--set", "cluster.servers=3", "--set", "cluster.workers=2"}, "launch");
  const ArrayReader first = Export(one_, day_one);
  for (const Arguments& how :
       {Arguments{"--set", "cluster.servers=1", "--set", "cluster.shards=4"},
        Arguments{"--set", "cluster.servers=5", "--set", "cluster.workers=2"}}) {
    const ProgramEnd end = Second(kStill + how + Arguments{"--init", day_one}, "launch");
    ASSERT_EQ(end.exit_code, 0) << end.output;
    EXPECT_THAT(end.output, HasSubstr("table deep: kept"));
    ExpectSame(first, Export(two_, LastOfSecond()));
  }
}

TEST_F(DayTwo, AnotherGraphKeepsWhatFits) {
  const std::string day_one = First();
  const std::string job = WriteTinyJob(two_, {.job = "second", .rows = 1800, .epochs = 1});
  std::string text = two_.Read("second.yaml");
  for (const auto& [from, to] :
       {std::pair("tables:\n", "tables:\n    more: {dim: 1}\n"),
        {"graph:\n", "graph:\n    - {name: more, op: linear, table: more, inputs: [features]}\n"},
        {"second, third", "second, third, more"},
        {"units: [16, 8]", "units: [24, 8]"}}) {
    text.replace(text.find(from), std::strlen(from), to);
  }
  two_.Write("second.yaml", text);
  const ProgramEnd end = RunProgram(
      two_.path(), Arguments{"train", job, "--result", "r.json", "--init", day_one} + kStill);
  ASSERT_EQ(end.exit_code, 0) << end.output;
  EXPECT_THAT(end.output,
              HasSubstr("of another shape, new: hidden.0.weight ([48, 16] there, [48, 24] here)"));
  EXPECT_THAT(end.output, HasSubstr("table more: new"));
  ExpectSame(Export(one_, day_one), Export(two_, LastOfSecond()));
}

TEST_F(DayTwo, AnotherDimIsRefusedUnlessItIsPassedOver) {
  const std::string day_one = First();
  const Arguments other = {"--init", day_one, "--set", "model.tables.deep.dim=4"};
  const ProgramEnd refused = Second(other);
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("table deep has dim 8 there, and 4 in this job"));
  EXPECT_THAT(refused.output, HasSubstr("init.only"));
  const ProgramEnd passed = Second(other + Arguments{"--set", "init.only=[wide]"});
  EXPECT_EQ(passed.exit_code, 0) << passed.output;
  EXPECT_THAT(passed.output, HasSubstr("table wide: kept, with its optimizer state"));
}

TEST_F(DayTwo, AsynchronousJobsToo) {
  const std::string day_one =
      First({"--set", "train.staleness=2", "--set", "cluster.workers=2"}, "launch");
  const Arguments how = {"--set", "train.staleness=2", "--set", "cluster.workers=2", "--init",
                         day_one};
  const ProgramEnd end = Second(kStill + how, "launch");
  ASSERT_EQ(end.exit_code, 0) << end.output;
  ExpectSame(Export(one_, day_one), Export(two_, LastOfSecond()));
  const ProgramEnd synchronous = Second(kStill + Arguments{"--init", day_one});
  ASSERT_EQ(synchronous.exit_code, 0) << synchronous.output;
  ExpectSame(Export(one_, day_one), Export(two_, LastOfSecond()));
}

TEST_F(DayTwo, ExportedArraysComeBackAsTheyWere) {
  const ArrayReader first = Export(one_, First());
  const std::string file = fmt::format("{{file: {}}}", first.path());
  for (const std::string device : {"ps", "cpu"}) {
    const ProgramEnd end = Second(
        {"--set", "optimizer.lr=0", "--set", "init.arrays=" + first.path(), "--set",
         fmt::format("model.tables.deep={{dim: 8, device: {}, optimizer: {{lr: 0}}, init: {}}}",
                     device, file),
         "--set",
         fmt::format("model.tables.wide={{dim: 1, optimizer: {{lr: 0}}, init: {}}}", file)});
    ASSERT_EQ(end.exit_code, 0) << end.output;
    ExpectSame(first, Export(two_, LastOfSecond()));
  }
}

TEST_F(DayTwo, MistakesHaveOneSentence) {
  const std::string day_one = First();
  const ProgramEnd no_job = Second({"--init", "yesterday"});
  EXPECT_EQ(no_job.exit_code, 2);
  EXPECT_THAT(no_job.output, HasSubstr("job yesterday has no complete checkpoint in "
                                       "runs/yesterday/checkpoints"));
  const ProgramEnd no_folder = Second({"--init", "./old"});
  EXPECT_EQ(no_folder.exit_code, 2);
  EXPECT_THAT(no_folder.output, HasSubstr("is no checkpoint, and has none"));
  const ProgramEnd nothing = Second({"--init", day_one, "--set", "init.only=[none]"});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.output, HasSubstr("the job takes nothing of this checkpoint"));
  const std::string text = two_.Write("rows.txt", "no arrays");
  const ProgramEnd no_arrays =
      Second({"--set", "model.tables.wide={dim: 1, init: {file: rows.txt}}"});
  EXPECT_EQ(no_arrays.exit_code, 3) << no_arrays.output;
  EXPECT_THAT(no_arrays.output, HasSubstr("neither a safetensors file nor an npz file"));
}

// The other job's checkpoint is not needed any more once there is one of its own.
TEST_F(DayTwo, TheJobSavesSoonAndGoesOnWithoutTheOther) {
  const std::string day_one = First();
  const ProgramEnd end = Second({"--init", day_one, "--set", "checkpoint.every=4"});
  ASSERT_EQ(end.exit_code, 0) << end.output;
  std::filesystem::remove_all(day_one);
  const ProgramEnd more = Second({"--init", day_one, "--set", "checkpoint.every=4", "--set",
                                  "train.epochs=2", "--resume", "auto"});
  EXPECT_EQ(more.exit_code, 0) << more.output;
}

TEST_F(DayTwo, AJobIsNamedInsteadOfAFolder) {
  First();
  const std::string job = WriteTinyJob(one_, {.job = "tomorrow", .epochs = 1});
  const ProgramEnd end = RunProgram(one_.path(), {"train", job, "--init", "tiny"});
  EXPECT_EQ(end.exit_code, 0) << end.output;
  EXPECT_THAT(end.output, HasSubstr("of job tiny at step 12, and counts its 12 steps"));
}

}  // namespace
}  // namespace dt::test
