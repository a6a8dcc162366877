// Tests of overrides, environment variables, and model templates.
#include "common/config/reader/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "common/base/written_paths.h"
#include "test/unit/common/config/temp_job.h"

namespace dt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

LoadOptions WithFlags(std::vector<std::string> flags) {
  return {.overrides = std::move(flags), .auto_slices = 1};
}

TEST(Overrides, SetAnyKeyInOrder) {
  const JobConfig job = Loaded(
      kGoodJob,
      WithFlags({"train.epochs=3", "train.epochs=4", "checkpoint.every=7", "seed=1",
                 "optimizer.schedule={type: none}", "model.graph.deep.units=[8, 4]",
                 "model.graph.1.dropout=0.5", "data.columns.price.fill=2", "data.cache_dir=a=b"}));
  EXPECT_EQ(job.train.epochs, 4u);
  EXPECT_EQ(job.checkpoint.every_steps, 7u);
  EXPECT_FALSE(job.optimizer.plateau.has_value());
  EXPECT_EQ(job.model.nodes[1].attrs.at("units"), AttrValue(std::vector<int64_t>{8, 4}));
  EXPECT_EQ(job.model.nodes[1].attrs.at("dropout"), AttrValue(0.5));
  EXPECT_EQ(job.data.columns[3].fill, 2.0f);
  EXPECT_EQ(job.data.cache_dir, "a=b");
}

TEST(Overrides, PathsAreRelativeToTheWorkingDirectory) {
  const TempDir dir;
  const std::string file = dir.Write("job.yaml", kGoodJob);
  const Result<JobConfig> job = LoadJob(file, WithFlags({"data.train=[here/x.csv]"}));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->data.train, ElementsAre("here/x.csv"));
  EXPECT_THAT(job->data.valid, ElementsAre(dir.path() + "/valid.csv"));
}

TEST(Overrides, MistakesNameTheFlag) {
  EXPECT_EQ(ProblemsOf(kGoodJob, WithFlags({"train.epoch=3"})),
            "--set train.epoch: unknown key; did you mean \"epochs\"?\n1 problem, nothing started");
  EXPECT_EQ(ProblemsOf(kGoodJob, WithFlags({"train.epochs=x"})),
            "--set train.epochs: found \"x\", expected a whole number (1 to 1000000)\n"
            "1 problem, nothing started");
  EXPECT_EQ(ProblemsOf(kGoodJob, WithFlags({"epochs"})),
            "--set epochs: expected a.b.c=value\n1 problem, nothing started");
  EXPECT_EQ(ProblemsOf(kGoodJob, WithFlags({"model.graph.dep.units=[1]"})),
            "--set model.graph.dep.units: there is nothing called \"dep\" to set\n"
            "1 problem, nothing started");
  EXPECT_EQ(ProblemsOf(kGoodJob, WithFlags({"train.epochs=[3"})),
            "--set train.epochs: is not valid YAML: a comma or a closing ] is missing\n"
            "1 problem, nothing started");
  EXPECT_EQ(ProblemsOf(kGoodJob, WithFlags({"job=a/b"})),
            "--set job: found \"a/b\", expected letters, digits, '_', '-' or '.'\n"
            "1 problem, nothing started");
}

TEST(Environment, ExpandsInTexts) {
  setenv("DT_TEST_DIR", "/data", 1);
  setenv("DT_TEST_EPOCHS", "6", 1);
  unsetenv("DT_TEST_ABSENT");
  std::string text = Replaced(kGoodJob, "[train.csv]",
                              "[\"${DT_TEST_DIR}/a.csv\", \"${DT_TEST_ABSENT:-/other}/b.csv\"]");
  text = Replaced(text, "epochs: 10", "epochs: \"${DT_TEST_EPOCHS:-2}\"");
  const JobConfig job = Loaded(text);
  EXPECT_THAT(job.data.train, ElementsAre("/data/a.csv", "/other/b.csv"));
  EXPECT_EQ(job.train.epochs, 6u);
}

TEST(Environment, ACommandStaysAsWrittenAndTellsNoJobsApart) {
  constexpr std::string_view kCommand = "cat ${DT_TEST_SECRET} ${DT_TEST_ABSENT:-x}";
  std::string text = Replaced(kGoodJob, "format: csv", "format: pipe");
  text = Replaced(text, "train: [train.csv]", fmt::format("command: \"{}\"", kCommand));
  setenv("DT_TEST_SECRET", "one", 1);
  const JobConfig job = Loaded(text);
  setenv("DT_TEST_SECRET", "other", 1);
  EXPECT_EQ(job.data.command, kCommand);
  EXPECT_EQ(Loaded(text).fingerprint, job.fingerprint);
  unsetenv("DT_TEST_SECRET");
  EXPECT_THAT(ProblemsOf(text), HasSubstr("data.command: the environment variable DT_TEST_SECRET "
                                          "is not set"));
}

TEST(Environment, CompletedPathsAreShownAsWritten) {
  setenv("DT_TEST_VAULT", "/vault/of-prepare", 1);
  setenv("DT_TEST_DAY", "day7", 1);
  const TempDir dir;
  dir.Write("of/day7.csv", "");
  std::string text = Replaced(kGoodJob, "[train.csv]",
                              "[\"${DT_TEST_VAULT}/${DT_TEST_DAY}.csv\", "
                              "\"x/../of/${DT_TEST_DAY}.csv\", \"${A:-other}/b\"]");
  text += "checkpoint: {dir: \"${DT_TEST_VAULT}/saved/${DT_TEST_DAY}\"}\n";
  const Result<JobConfig> job = LoadJob(dir.Write("job.yaml", text), WithFlags({}));
  ASSERT_TRUE(job.ok()) << job.status();
  const std::vector<std::string> shown = {"${DT_TEST_VAULT}/${DT_TEST_DAY}.csv",
                                          "x/../of/${DT_TEST_DAY}.csv", dir.path() + "/other/b"};
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(WithWrittenPaths(job->data.train[i]), shown[i]);
  EXPECT_EQ(WithWrittenPaths(job->checkpoint.dir + "/a"),
            "${DT_TEST_VAULT}/saved/${DT_TEST_DAY}/a");
  // A value of a variable that is not a whole path is not replaced.
  EXPECT_EQ(WithWrittenPaths("day7"), "day7");
}

TEST(Environment, AProblemOfAPathShowsItAsWritten) {
  setenv("DT_TEST_VAULT", ("/vault/" + std::string(100, 's')).c_str(), 1);
  const std::string problems = ProblemsOf(
      Replaced(kGoodJob, "job:", "observe: {tensorboard: \"${DT_TEST_VAULT}/tb\"}\njob:"));
  EXPECT_THAT(problems, HasSubstr("found \"${DT_TEST_VAULT}/tb\", which is not available yet"));
}

TEST(Environment, AValueInTheNameOfAFileTellsNoJobsApart) {
  const auto fingerprint = [](const std::string& files, const char* value) {
    setenv("DT_TEST_SECRET", value, 1);
    return Loaded(Replaced(kGoodJob, "[train.csv]", files)).fingerprint;
  };
  for (const char* files : {"\"${DT_TEST_SECRET}\"", "[\"${DT_TEST_SECRET}.csv\"]",
                            "[\"/d/${DT_TEST_SECRET:-/e/f}\", \"b.csv\"]"}) {
    EXPECT_EQ(fingerprint(files, "/vault/one"), fingerprint(files, "/vault/two")) << files;
    EXPECT_NE(fingerprint(files, "/vault/one"), fingerprint("[train.csv]", "")) << files;
  }
  // The folder of a data file was never part of the fingerprint.
  EXPECT_EQ(fingerprint("[\"${DT_TEST_SECRET}/train.csv\"]", "/vault/one"),
            fingerprint("[train.csv]", ""));
  unsetenv("DT_TEST_SECRET");
}

TEST(Environment, AbsentWithoutDefaultIsAProblem) {
  unsetenv("DT_TEST_ABSENT");
  EXPECT_EQ(ProblemsAfter("[train.csv]", "[\"${DT_TEST_ABSENT}/a.csv\"]"),
            "job.yaml:5: data.train.0: the environment variable DT_TEST_ABSENT is not set; write "
            "${DT_TEST_ABSENT:-default} to give a default\n1 problem, nothing started");
}

constexpr std::string_view kPreparedJob = R"(job: t
data:
  format: csv
  train: [train.csv]
  columns: [{name: y, role: label}, {name: a, type: id}, {name: b, type: id}, {name: x}]
model:
  use: models/m.yaml
  with:
    ids: [a, b]
    dim: 4
)";

constexpr std::string_view kTemplate = R"(parameters:
  ids: ~
  numeric: []
  dim: 10
  units: [8, 4]
  act: relu
  label: y
tables:
  t: {dim: "${dim}"}
graph:
  - {name: e, op: lookup, table: t, inputs: ["${ids}"]}
  - name: deep
    op: mlp
    inputs: [e, "${numeric}"]
    units: ${units}
    note: ${act}_${dim}
loss:
  - {type: mse, input: deep, label: "${label}"}
)";

class Templates : public ::testing::Test {
 protected:
  Result<JobConfig> Load(std::string_view job, std::string_view model) {
    dir_.Write("models/m.yaml", model);
    return LoadJob(dir_.Write("job.yaml", job), {});
  }
  std::string ProblemsOfBoth(std::string_view job, std::string_view model) {
    const Result<JobConfig> loaded = Load(job, model);
    std::string message(MessageOf(loaded.status()));
    for (size_t at; (at = message.find(dir_.path() + "/")) != std::string::npos;) {
      message.erase(at, dir_.path().size() + 1);
    }
    return message;
  }
  TempDir dir_;
};

TEST_F(Templates, ParametersReplacePlaceholders) {
  const Result<JobConfig> job = Load(kPreparedJob, kTemplate);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->model.tables.at(0).dim, 4u);
  const NodeConfig& lookup = job->model.nodes.at(0);
  EXPECT_THAT(lookup.inputs, ElementsAre("a", "b"));
  EXPECT_EQ(lookup.mark.file, dir_.path() + "/models/m.yaml");
  EXPECT_EQ(lookup.mark.line, 11);
  const NodeConfig& deep = job->model.nodes.at(1);
  EXPECT_THAT(deep.inputs, ElementsAre("e"));
  EXPECT_EQ(deep.attrs.at("units"), AttrValue(std::vector<int64_t>{8, 4}));
  EXPECT_EQ(deep.attrs.at("note"), AttrValue(std::string("relu_4")));
}

TEST_F(Templates, MistakesInParametersNameTheJob) {
  EXPECT_EQ(ProblemsOfBoth(Replaced(kPreparedJob, "dim: 4", "dims: 4"), kTemplate),
            "job.yaml:10: model.with.dims: unknown parameter of models/m.yaml; did you mean "
            "\"dim\"?\n1 problem, nothing started");
  EXPECT_EQ(ProblemsOfBoth(Replaced(kPreparedJob, "dim: 4", "dim: big"), kTemplate),
            "job.yaml:10: model.tables.t.dim: found \"big\", expected a whole number (1 to 4096)\n"
            "1 problem, nothing started");
  EXPECT_EQ(ProblemsOfBoth(Replaced(kPreparedJob, "    ids: [a, b]\n", ""), kTemplate),
            "job.yaml:7: model.with.ids: missing, models/m.yaml needs it\n"
            "1 problem, nothing started");
  EXPECT_EQ(ProblemsOfBoth(Replaced(kPreparedJob, "[a, b]", "[a, bb]"), kTemplate),
            "models/m.yaml:11: model.graph.e.inputs: \"bb\" is neither a column nor an earlier "
            "node; did you mean \"b\"?\n1 problem, nothing started");
}

TEST_F(Templates, MistakesInTheTemplateNameIt) {
  EXPECT_EQ(ProblemsOfBoth(kPreparedJob, Replaced(kTemplate, "${units}", "${unit}")),
            "models/m.yaml:15: model.graph.deep.units: the environment variable unit is not set; "
            "write ${unit:-default} to give a default; did you mean \"units\"?\n"
            "1 problem, nothing started");
  EXPECT_EQ(ProblemsOfBoth(kPreparedJob, Replaced(kTemplate, "tables:", "table:")),
            "models/m.yaml:8: table: unknown key of a model template; did you mean \"tables\"?\n"
            "models/m.yaml:11: model.graph.e.table: \"t\" is no table of model.tables\n"
            "2 problems, nothing started");
}

TEST_F(Templates, AbsentTemplate) {
  EXPECT_EQ(ProblemsOfBoth(Replaced(kPreparedJob, "models/m.yaml", "models/n.yaml"), kTemplate),
            "job.yaml:7: model.use: models/n.yaml: no such file\n1 problem, nothing started");
}

TEST_F(Templates, ExcludeTheirOwnGraph) {
  EXPECT_EQ(ProblemsOfBoth(Replaced(kPreparedJob, "  with:", "  graph: []\n  with:"), kTemplate),
            "job.yaml:8: model.graph: found beside `use`, expected either a template or tables, "
            "graph and loss\n1 problem, nothing started");
}

}  // namespace
}  // namespace dt
