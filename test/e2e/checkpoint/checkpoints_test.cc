// Goal: a checkpoint can be used by every job that it fits; every other job gets an error in the
// user's words. Method: the real program on a small job.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/hash.h"
#include "common/base/philox.h"
#include "common/rows/initial_rows.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kLast = "runs/tiny/checkpoints/step-000000000012";

TEST(Checkpoints, ResumingAnotherJobNamesEveryKeyThatDiffers) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1});
  ASSERT_EQ(RunProgram(folder.path(), {"train", job}).exit_code, 0);
  const ProgramEnd end =
      RunProgram(folder.path(), {"train", job, "--resume", "auto", "--set", "train.batch_size=128",
                                 "--set", "model.tables.deep.dim=24"});
  EXPECT_EQ(end.exit_code, 2) << end.output;
  EXPECT_THAT(end.output, HasSubstr("train.batch_size: 256 there, 128 here; "
                                    "model.tables.deep.dim: 8 there, 24 here"));
  EXPECT_LT(end.output.size(), 400u) << end.output;
}

// The checkpoint is of an asynchronous job. An evaluation need not repeat the training options, and
// may set another value for keys without a row.
TEST(Checkpoints, AnEvaluationIsNotToldHowTheJobWasTrained) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1});
  const std::string staleness = "train.staleness=2";
  const ProgramEnd train =
      RunProgram(folder.path(), {"train", job, "--set", staleness, "--result", "train.json"});
  ASSERT_EQ(train.exit_code, 0) << train.output;
  const double auc = NumberAt(folder, "train.json", "/metrics/valid/auc");
  for (const std::string other :
       {"train.epochs=1", "train.staleness=2", "optimizer.clip_norm=2", "optimizer.device=cpu",
        "model.tables.deep.l2=0", "model.tables.deep.optimizer.lr=1"}) {
    const ProgramEnd eval = RunProgram(
        folder.path(), {"eval", job, "--checkpoint", kLast, "--result", "r.json", "--set", other});
    ASSERT_EQ(eval.exit_code, 0) << other << eval.output;
    EXPECT_EQ(NumberAt(folder, "r.json", "/metrics/valid/auc"), auc) << other;
  }
  const std::string zeros = "model.tables.deep.eval_default=zeros";
  const ProgramEnd predict =
      RunProgram(folder.path(), {"predict", job, "--checkpoint", kLast, "--data", "valid.libsvm",
                                 "--out", "scores.csv", "--set", zeros});
  EXPECT_EQ(predict.exit_code, 0) << predict.output;
}

TEST(Checkpoints, ASynchronousOneIsEvaluatedByAnAsynchronousJob) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1});
  ASSERT_EQ(RunProgram(folder.path(), {"train", job, "--result", "train.json"}).exit_code, 0);
  const ProgramEnd eval =
      RunProgram(folder.path(), {"eval", job, "--checkpoint", kLast, "--result", "r.json", "--set",
                                 "train.staleness=2", "--set", "optimizer.device=ps"});
  ASSERT_EQ(eval.exit_code, 0) << eval.output;
  EXPECT_EQ(NumberAt(folder, "r.json", "/metrics/valid/auc"),
            NumberAt(folder, "train.json", "/metrics/valid/auc"));
}

TEST(Checkpoints, AnEvaluationOfAnotherModelNamesTheKeys) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1});
  ASSERT_EQ(RunProgram(folder.path(), {"train", job}).exit_code, 0);
  const ProgramEnd end = RunProgram(
      folder.path(), {"eval", job, "--checkpoint", kLast, "--set", "model.tables.deep.dim=24",
                      "--set", "model.tables.deep.optimizer.lr=1"});
  EXPECT_EQ(end.exit_code, 2) << end.output;
  EXPECT_THAT(end.output, HasSubstr("model.tables.deep.dim: 8 there, 24 here"));
  EXPECT_THAT(end.output, Not(HasSubstr("optimizer.lr")));
}

// ------------------------------------------------------------ export

// The Python programs printed in docs/export.md, in order.
std::vector<std::string> DocumentedPrograms() {
  const char* source = std::getenv("DT_SOURCE_DIR");
  std::ifstream in(std::string(source == nullptr ? "." : source) + "/docs/export.md");
  std::vector<std::string> programs;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      inside = line == "```python";
      if (inside) programs.emplace_back();
    } else if (inside) {
      programs.back() += line + "\n";
    }
  }
  return programs;
}

// Standard output of python3, or "failed"; errors go to the test's own standard error.
std::string Python(const TempFolder& folder, const std::string& program,
                   const std::string& arguments) {
  const std::string script = folder.Write("program.py", program);
  const std::string out = folder.path() + "/python.out";
  const std::string command =
      "cd '" + folder.path() + "' && python3 '" + script + "' " + arguments + " > '" + out + "'";
  return std::system(command.c_str()) == 0 ? folder.Read("python.out") : "failed";
}

std::vector<double> NumbersIn(const std::string& text) {
  std::istringstream in(text);
  std::vector<double> numbers;
  for (double number; in >> number;) numbers.push_back(number);
  return numbers;
}

TEST(Export, TheDocumentedProgramMakesTheFirstValuesOfRows) {
  const std::vector<std::string> programs = DocumentedPrograms();
  ASSERT_EQ(programs.size(), 2u);
  const TableId table = TableIdOf("user");
  const InitSpec inits[] = {{InitKind::kNormal, 0.01f},
                            {InitKind::kUniform, 0.5f},
                            {InitKind::kConstant, 2.0f},
                            {InitKind::kZeros, 0.0f}};
  const char* const kinds[] = {"normal", "uniform", "constant", "zeros"};
  for (size_t i = 0; i < std::size(inits); ++i) {
    for (const Key key : {Key{0}, Key{7}, ~Key{0}}) {
      std::vector<float> want(6);
      InitialRows(inits[i], 2026, table).Fill(key, want);
      TempFolder folder;
      const std::string said = fmt::format(
          "print(*initial_row(2026, {{'id': '{:016x}', 'dim': 6, 'init': {{'kind': '{}', 'value': "
          "{}}}}}, {}))\n",
          table.value(), kinds[i], double{inits[i].value}, key);
      const std::vector<double> got = NumbersIn(Python(folder, programs[0] + said, ""));
      ASSERT_EQ(got.size(), want.size()) << kinds[i];
      for (size_t c = 0; c < got.size(); ++c) EXPECT_NEAR(got[c], want[c], 1e-8) << kinds[i] << key;
    }
  }
}

// Samples of 40 users and 30 items, on both of which the label depends. The new samples contain
// users that are not in the training data.
std::string Samples(uint64_t seed, uint32_t rows, uint32_t first_user) {
  std::string text = "click,user,item,price\n";
  for (uint32_t row = 0; row < rows; ++row) {
    const PhiloxBlock draws = Philox(seed, row, 0);
    const uint32_t user = first_user + draws[0] % 40, item = draws[1] % 30;
    const float price = ToUniform(draws[2]);
    text += fmt::format("{},{},{},{}\n", (user + item) % 3 == 0 ? 1 : 0, user, item, price);
  }
  return text;
}

constexpr const char* kShop = R"(job: shop
seed: 11
data:
  format: csv
  train: [train.csv]
  columns:
    - {name: click, role: label}
    - {name: user, type: id}
    - {name: item, type: id}
    - {name: price}
model:
  tables:
    user: {dim: 6, init: {normal: 0.5}}
    item: {dim: 4, init: {uniform: 0.5}}
  graph:
    - {name: u, op: lookup, table: user, inputs: [user]}
    - {name: i, op: lookup, table: item, inputs: [item]}
    - {name: deep, op: mlp, inputs: [u, i, price], units: [8, 4, 1], batch_norm: true, dropout: 0.1}
  loss: [{type: binary_cross_entropy, input: deep, label: click}]
optimizer: {name: adam, lr: 0.01}
train: {batch_size: 64, epochs: 2}
)";

class ExportOf : public ::testing::TestWithParam<const char*> {};

TEST_P(ExportOf, IsEnoughToPredictInNumpyForNewKeysToo) {
  if (std::system("python3 -c 'import numpy' 2> /dev/null") != 0) {
    GTEST_SKIP() << "python3 has no numpy here";
  }
  TempFolder folder;
  const std::string job = folder.Write("shop.yaml", kShop);
  folder.Write("train.csv", Samples(1, 2000, 0));
  folder.Write("new.csv", Samples(2, 100, 20));
  const std::vector<std::string> flags = {"--set", GetParam()};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), flags.begin(), flags.end());
    return RunProgram(folder.path(), words);
  };
  const ProgramEnd train = with({"train", job});
  ASSERT_EQ(train.exit_code, 0) << train.output;
  const std::string checkpoint = CheckpointsOf(folder, "shop").back();
  const ProgramEnd predict = with(
      {"predict", job, "--checkpoint", checkpoint, "--data", "new.csv", "--out", "scores.csv"});
  ASSERT_EQ(predict.exit_code, 0) << predict.output;
  const ProgramEnd exported = RunProgram(
      folder.path(), {"export", checkpoint, "--format", "safetensors", "--out", "m.safetensors"});
  ASSERT_EQ(exported.exit_code, 0) << exported.output;
  const std::vector<std::string> programs = DocumentedPrograms();
  ASSERT_EQ(programs.size(), 2u);
  const std::vector<double> got =
      NumbersIn(Python(folder, programs[0] + programs[1], "m.safetensors new.csv"));
  const std::string scores = folder.Read("scores.csv");
  const std::vector<double> want = NumbersIn(scores.substr(scores.find('\n') + 1));
  ASSERT_EQ(want.size(), 100u);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
}

INSTANTIATE_TEST_SUITE_P(Jobs, ExportOf,
                         ::testing::Values("train.staleness=0", "train.staleness=2",
                                           "model.tables.user.eval_default=zeros",
                                           "model.tables.user.device=cpu",
                                           "data.columns.user.hash=24",
                                           "data.columns.price.clip=[0.25, 0.5]"));

TEST(Export, SaysEveryDefault) {
  TempFolder folder;
  const std::string job = folder.Write("shop.yaml", kShop);
  folder.Write("train.csv", Samples(1, 200, 0));
  ASSERT_EQ(RunProgram(folder.path(), {"train", job}).exit_code, 0);
  const ProgramEnd inspect = RunProgram(
      folder.path(), {"checkpoint", "inspect", CheckpointsOf(folder, "shop").back(), "--json"});
  const nlohmann::json model = nlohmann::json::parse(inspect.output, nullptr, false)["model"];
  EXPECT_EQ(model["seed"], 11);
  EXPECT_EQ(model["columns"]["price"]["fill"], 0);
  EXPECT_EQ(model["tables"]["user"]["eval_default"], "initial");
  EXPECT_EQ(model["tables"]["user"]["init"]["value"], 0.5);
  EXPECT_FLOAT_EQ(model["tables"]["item"]["optimizer"]["epsilon"].get<float>(), 1e-8f);
  EXPECT_FLOAT_EQ(model["optimizer"]["beta2"].get<float>(), 0.999f);
  std::vector<std::string> ops;
  for (const auto& node : model["nodes"]) {
    ops.push_back(node["op"]);
    if (ops.back() != "batch_norm") continue;
    EXPECT_EQ(node["attrs"]["momentum"], 0.1);
    EXPECT_EQ(node["attrs"]["epsilon"], 1e-5);
  }
  EXPECT_THAT(ops, ::testing::IsSupersetOf({"gather_rows", "batch_norm", "relu", "dropout"}));
}

}  // namespace
}  // namespace dt::test
