// Goal: where nodes, embeddings and the optimizer run does not change what a job learns. Method:
// the real program trains shipped models on generated data and an emulated accelerator, under each
// placement that users can choose. Checksums of weights, rows and optimizer state must be equal.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Model {
  const char* name;
  const char* with;   // Parameters of the job template.
  const char* tower;  // Pattern of the nodes with large matrix products.
};
void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

class Placement : public ::testing::TestWithParam<Model> {
 protected:
  void SetUp() override {
    const ProgramEnd data = RunProgram(
        folder_.path(), {"data", "generate", "--rows", "5000", "--seed", "3", "--out", "data"},
        seconds(60));
    ASSERT_EQ(data.exit_code, 0) << data.output;
    const Model& model = GetParam();
    const std::string models = std::string(std::getenv("DT_SOURCE_DIR")) + "/configs/models/";
    folder_.Write("job.yaml",
                  "job: placed\nseed: 7\ndata:\n"
                  "  format: criteo\n"
                  "  train: [data/train.tsv]\n"
                  "  valid: [data/valid.tsv]\n"
                  "model:\n"
                  "  use: " +
                      models + model.name +
                      ".yaml\n"
                      "  with: {ids: [C*], numeric: [I*], dim: 8, dropout: 0.2, l2: 1.0e-5, " +
                      model.with +
                      "}\n"
                      "optimizer: {name: adam, lr: 0.001, clip_norm: 10}\n"
                      "train: {batch_size: 500, epochs: 2}\n"
                      "cluster: {devices: emulated}\n");
  }

  // Trains with these settings and returns the checksums of tables and dense parameters.
  std::string Trained(const std::string& name, std::vector<std::string> settings) {
    std::vector<std::string> arguments = {"train", "job.yaml", "--result", name + ".json"};
    settings.push_back("job=" + name);
    for (const std::string& setting : settings) {
      arguments.insert(arguments.end(), {"--set", setting});
    }
    const ProgramEnd end = RunProgram(folder_.path(), arguments, seconds(120));
    EXPECT_EQ(end.exit_code, 0) << name << ": " << end.output;
    return ChecksumOf(folder_, name + ".json");
  }

  std::string Tower() const {
    return std::string("parallel.place=[{match: \"") + GetParam().tower + "\", device: gpu}]";
  }
  // Rules of Tower(), and one that puts all tables into the workers' memory.
  std::string TowerAndTables() const {
    std::string rules = Tower();
    rules.insert(rules.size() - 1, ", {table: \"*\", device: cpu}");
    return rules;
  }
  bool Tells(const std::string& name, const std::string& event) const {
    return folder_.Read(name + ".json").find("\"" + event + "\"") != std::string::npos;
  }

  TempFolder folder_;
};

TEST_P(Placement, DoesNotChangeWhatIsLearned) {
  const std::string cpu = Trained("cpu", {"parallel.place=[{match: \"*\", device: cpu}]"});
  ASSERT_NE(cpu, "");
  EXPECT_EQ(Trained("tower", {Tower()}), cpu);
  EXPECT_TRUE(Tells("tower", "device_emulated"));
  EXPECT_FALSE(Tells("cpu", "device_emulated"));
  EXPECT_EQ(Trained("tower_tables_cpu", {TowerAndTables()}), cpu);
  EXPECT_EQ(Trained("no_tower", {Tower(), "cluster.devices=cpu", "parallel.fallback=cpu"}), cpu);
  EXPECT_TRUE(Tells("no_tower", "fallback_to_cpu"));
  EXPECT_EQ(Trained("tower_optimizer_cpu", {Tower(), "optimizer.device=cpu"}), cpu);
  EXPECT_EQ(Trained("all_gpu", {"parallel.place=[{match: \"*\", device: gpu}]"}), cpu);
  EXPECT_EQ(Trained("automatic", {}), cpu);
}

// Tables without a placement rule move to the workers, because the network is very slow.
TEST_P(Placement, TablesThatGoToWorkersByThemselvesLearnTheSame) {
  const ProgramEnd stats = RunProgram(
      folder_.path(), {"data", "stats", "job.yaml", "--json", "--log-level", "error"}, seconds(60));
  ASSERT_EQ(stats.exit_code, 0) << stats.output;
  folder_.Write("stats.json", stats.output);
  folder_.Write("profile.yaml", "server: {source: slow, row_seconds: 1.0e-3}\n");
  const std::vector<std::string> automatic = {"data.stats=stats.json",
                                              "parallel.profile=profile.yaml"};
  std::vector<std::string> plan = {"plan", "job.yaml"};
  for (const std::string& setting : automatic) plan.insert(plan.end(), {"--set", setting});
  EXPECT_THAT(RunProgram(folder_.path(), plan).output,
              AllOf(HasSubstr("with it on servers"), Not(HasSubstr(" on ps,"))));

  const std::string on_servers = Trained("on_servers", {"checkpoint.every=7", "train.slices=2"});
  ASSERT_NE(on_servers, "");
  std::vector<std::string> settings = automatic;
  settings.insert(settings.end(), {"checkpoint.every=7", "train.slices=2"});
  EXPECT_EQ(Trained("on_worker", settings), on_servers);
  EXPECT_THAT(folder_.Read("on_worker.json"), HasSubstr("\"table_on_worker\""));

  // Half of the job trains with tables on servers, half with tables on workers, in several
  // processes.
  std::vector<std::string> launch = {"launch",    "job.yaml", "--set",
                                     "job=moved", "--result", "moved.json"};
  settings.insert(settings.end(), {"cluster.workers=2", "cluster.servers=2"});
  for (const std::string& setting : settings) launch.insert(launch.end(), {"--set", setting});
  std::vector<std::string> first = launch;
  first.insert(first.end(), {"--set", "train.epochs=1", "--set", "data.stats="});
  const ProgramEnd half = RunProgram(folder_.path(), first, seconds(120));
  ASSERT_EQ(half.exit_code, 0) << half.output;
  launch.insert(launch.end(), {"--resume", "auto"});
  const ProgramEnd whole = RunProgram(folder_.path(), launch, seconds(120));
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  EXPECT_THAT(folder_.Read("moved.json"), HasSubstr("\"table_on_worker\""));
  EXPECT_EQ(ChecksumOf(folder_, "moved.json"), on_servers);
}

TEST(EmulatedAccelerator, IsWarnedOfOnce) {
  const TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1, .slices = 2, .workers = 2});
  for (const char* command : {"train", "launch"}) {
    const ProgramEnd end = RunProgram(
        folder.path(), {command, job, "--set", "parallel.place=[{match: \"*\", device: gpu}]",
                        "--result", "r.json"});
    ASSERT_EQ(end.exit_code, 0) << end.output;
    if (folder.Read("r.json").find("device_emulated") == std::string::npos) {
      GTEST_SKIP() << "there is a card here";
    }
    std::vector<std::string_view> told;
    for (const std::string_view line : SplitText(end.output, '\n')) {
      if (line.find("emulated") != line.npos) told.push_back(line);
    }
    EXPECT_THAT(told, testing::ElementsAre(HasSubstr(" warning plan.device_emulated "))) << command;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Placement,
                         ::testing::Values(Model{"wide_deep", "units: [64, 32]", "deep*"},
                                           Model{"dlrm_numeric", "bottom: [32, 8], units: [64, 32]",
                                                 "top*"}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace dt::test
