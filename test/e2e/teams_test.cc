// Goal: workers that compute a slice together train the same model. With the same strategies its
// bits depend neither on the number of teams and servers nor on overlap, nor on a kill and a resume
// with another number of teams; with other strategies it is as close as float sums are. A
// checkpoint of one team is read by teams of any size. Method: the real program on a small job.
#include <signal.h>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/base/philox.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using std::chrono::seconds;

struct Cluster {
  int servers = 1, workers = 1, data = 1;
  std::vector<std::string> set = {};
};

constexpr char kCut[] =
    "parallel.cut=[{match: hidden.0.matmul, strategy: [[1,2],[2,1]]}, "
    "{match: hidden.1.matmul, strategy: [[1,1],[1,2]]}, {match: third.matmul, strategy: "
    "[[1,2],[2,1]]}]";

constexpr char kCut4[] =
    "parallel.cut=[{match: hidden.0.matmul, strategy: [[1,4],[4,1]]}, {match: hidden.1.matmul, "
    "strategy: [[1,1],[1,4]]}]";
constexpr char kShard[] = "parallel.optimizer={shard: true, threshold: 0}";
constexpr char kShardInTwos[] = "parallel.optimizer={shard: true, threshold: 0, group: 2}";

class Teams : public ::testing::Test {
 protected:
  Teams() {
    job_ = WriteTinyJob(folder_, {.slices = 3, .more = "checkpoint: {every: 6, keep: 9}"});
  }

  static std::vector<std::string> With(std::vector<std::string> arguments, const Cluster& cluster) {
    std::vector<std::string> set = cluster.set;
    set.push_back("cluster.servers=" + std::to_string(cluster.servers));
    set.push_back("cluster.workers=" + std::to_string(cluster.workers));
    set.push_back("parallel.data=" + std::to_string(cluster.data));
    set.push_back("optimizer.clip_norm=0.5");
    for (std::string& one : set) {
      arguments.push_back("--set");
      arguments.push_back(std::move(one));
    }
    return arguments;
  }

  // Returns the checksum after a run.
  std::string Run(const std::string& name, const Cluster& cluster,
                  const std::string& resume = "never") {
    const ProgramEnd end = RunProgram(folder_.path(),
                                      With({"launch", job_, "--resume", resume, "--set",
                                            "job=" + name, "--result", name + ".json"},
                                           cluster),
                                      seconds(90));
    EXPECT_EQ(end.exit_code, 0) << name << ": " << end.output;
    return ChecksumOf(folder_, name + ".json");
  }
  double Loss(const std::string& name) const {
    return NumberAt(folder_, name + ".json", "/metrics/valid/logloss");
  }

  TempFolder folder_;
  std::string job_;
};

TEST_F(Teams, TheNumberOfTeamsAndServersChangesNoBit) {
  const std::string one = Run("one", {1, 2, 1, {kCut}});
  ASSERT_NE(one, "");
  EXPECT_EQ(Run("two", {3, 4, 2, {kCut}}), one);
  EXPECT_EQ(Run("three", {1, 6, 3, {kCut}}), one);
  EXPECT_EQ(Run("shared", {2, 4, 2, {kCut, kShard}}), one);
  EXPECT_EQ(Run("shared_by_teams", {1, 6, 3, {kCut, kShard, "parallel.overlap=false"}}), one);
  EXPECT_EQ(Run("shared_in_twos", {1, 6, 3, {kCut, kShardInTwos}}), one);
  EXPECT_EQ(Run("slow", {1, 2, 1, {kCut, "parallel.overlap=false"}}), one);
  EXPECT_EQ(Run("many_buckets", {1, 4, 2, {kCut, kShard, "parallel.fusion=100"}}), one);
  EXPECT_EQ(Run("two_buckets", {1, 4, 2, {kCut, "parallel.fusion=[3]"}}), one);
  EXPECT_NE(Run("other", {1, 2, 1}), one) << "other strategies add in another order";
}

TEST_F(Teams, EveryCutTrainsTheModelOfOneWorker) {
  // Adam would make steps of full length of gradients that are only rounding errors.
  const std::string sgd = "optimizer={name: sgd, lr: 0.05}";
  ASSERT_NE(Run("whole", {1, 1, 1, {sgd}}), "");
  const std::string uneven =
      "parallel.cut=[{match: hidden.0.matmul, strategy: [[1,3],[3,1]]}, {match: hidden.1.matmul, "
      "strategy: [[1,1],[1,3]]}, {match: hidden.1.relu, strategy: [[1,3]]}]";
  const std::string both =
      "parallel.cut=[{match: hidden.0.matmul, strategy: [[2,2],[2,1]]}, {match: hidden.1.matmul, "
      "strategy: [[1,2],[2,2]]}]";
  EXPECT_NE(Run("uneven", {1, 3, 1, {sgd, uneven}}), "");
  EXPECT_NE(Run("both", {2, 4, 1, {sgd, both, "parallel.all_to_all=false"}}), "");
  EXPECT_NE(Run("samples", {1, 3, 1, {sgd}}), "");
  for (const char* const name : {"uneven", "both", "samples"}) {
    EXPECT_NEAR(Loss(name), Loss("whole"), 2e-6) << name;
  }
}

// A table as a dense weight: every worker has some of its rows, or of its columns.
TEST_F(Teams, TheRowsOfAnEmbeddingAreCut) {
  const std::string model =
      "model={graph: [{name: e, op: embedding, inputs: [features], rows: 6000, dim: 8}, "
      "{name: hidden, op: mlp, inputs: [e], units: [8], dropout: 0.2}, "
      "{name: logit, op: dense, inputs: [hidden], units: 1}], "
      "loss: [{type: binary_cross_entropy, input: logit, label: label}]}";
  const std::string sgd = "optimizer={name: sgd, lr: 0.5}";
  const std::string rows = "parallel.cut=[{match: e.rows, strategy: [[3,1]]}]";
  const std::string columns = "parallel.cut=[{match: e.rows, strategy: [[1,2]]}]";
  const std::string both = "parallel.cut=[{match: e.rows, strategy: [[2,1],[2,1]]}]";
  ASSERT_NE(Run("whole", {1, 1, 1, {model, sgd}}), "");
  const std::string one = Run("rows", {1, 3, 1, {model, sgd, rows}});
  ASSERT_NE(one, "");
  EXPECT_EQ(Run("two_teams", {1, 6, 2, {model, sgd, rows, kShard}}), one);
  EXPECT_NE(Run("columns", {1, 2, 1, {model, sgd, columns}}), "");
  EXPECT_NE(Run("both", {1, 4, 1, {model, sgd, both}}), "");
  for (const char* const name : {"rows", "columns", "both"}) {
    EXPECT_NEAR(Loss(name), Loss("whole"), 2e-6) << name;
  }
  EXPECT_LT(Loss("whole"), 0.68) << "it learns";
}

// Fields of different numbers of rows, each on one of two workers.
TEST_F(Teams, TheFieldsOfAnEmbeddingAreCut) {
  for (const auto& [file, rows] : {std::pair{"train.csv", 1500U}, {"valid.csv", 400U}}) {
    std::string text = "click,a,b,c\n";
    for (uint32_t r = 0; r < rows; ++r) {
      const PhiloxBlock draws = Philox(HashString(file), r, 0);
      const uint32_t a = draws[0] % 40, b = draws[1] % 3, c = draws[2] % 11;
      const uint32_t score = a % 2 + (b == 1) + c % 2 + draws[3] % 2;
      text += fmt::format("{},{},{},{}\n", score > 2 ? 1 : 0, a, b, c);
    }
    folder_.Write(file, text);
  }
  const std::string data =
      "data={format: csv, train: [train.csv], valid: [valid.csv], columns: [{name: click, role: "
      "label}, {name: a, type: id}, {name: b, type: id}, {name: c, type: id}]}";
  const std::string model =
      "model={graph: [{name: e, op: embedding, inputs: [a, b, c], manual_split: [40, 3, 11], dim: "
      "4}, {name: logit, op: mlp, inputs: [e], units: [8, 1]}], loss: [{type: "
      "binary_cross_entropy, input: logit, label: click}]}";
  const std::string sgd = "optimizer={name: sgd, lr: 0.5}";
  const auto cut = [](std::string_view strategy) {
    return fmt::format("parallel.cut=[{{match: e.rows, strategy: {}}}]", strategy);
  };
  ASSERT_NE(Run("whole", {1, 1, 1, {data, model, sgd}}), "");
  const std::string one = Run("fields", {1, 2, 1, {data, model, sgd, cut("[[2,1]]")}});
  ASSERT_NE(one, "");
  EXPECT_EQ(Run("two_teams", {1, 4, 2, {data, model, sgd, cut("[[2,1]]"), kShard}}), one);
  EXPECT_NE(Run("both", {1, 4, 1, {data, model, sgd, cut("[[2,1],[2,2]]")}}), "");
  for (const char* const name : {"fields", "both"}) {
    EXPECT_NEAR(Loss(name), Loss("whole"), 2e-6) << name;
  }
}

// Evaluations gather the logits of all classes; training never does.
// The items of a whole slice stand against each user, also where each worker has only some users.
TEST_F(Teams, ItemsOfTheSliceAreTheNegativesOfEveryUser) {
  for (const auto& [file, rows] : {std::pair{"train.csv", 1500U}, {"valid.csv", 400U}}) {
    std::string text = "user,item\n";
    for (uint32_t r = 0; r < rows; ++r) {
      const PhiloxBlock draws = Philox(HashString(file), r, 0);
      const uint32_t user = draws[0] % 30, item = (user + draws[1] % 3) % 12;
      text += fmt::format("{},{}\n", user, item);
    }
    folder_.Write(file, text);
  }
  const std::string data =
      "data={format: csv, train: [train.csv], valid: [valid.csv], columns: [{name: user, type: "
      "id}, {name: item, type: id}]}";
  const std::string model =
      "model={tables: {t: {dim: 8}}, graph: [{name: u, op: lookup, table: t, inputs: [user]}, "
      "{name: users, op: mlp, inputs: [u], units: [8]}, {name: i, op: lookup, table: t, inputs: "
      "[item]}, {name: items, op: mlp, inputs: [i], units: [8]}], loss: [{type: in_batch_softmax, "
      "name: pairs, input: users, item: items, item_id: item}]}";
  const std::string sgd = "optimizer={name: sgd, lr: 0.5}";
  const auto loss = [&](const std::string& name) {
    return NumberAt(folder_, name + ".json", "/metrics/valid/logloss");
  };
  ASSERT_NE(Run("whole", {1, 1, 1, {data, model, sgd}}), "");
  const std::string three = Run("three", {1, 3, 1, {data, model, sgd}});
  EXPECT_EQ(Run("two_teams", {2, 6, 2, {data, model, sgd, kShard}}), three);
  EXPECT_NEAR(loss("three"), loss("whole"), 2e-5);
  const std::string without = model.substr(0, model.rfind(", item_id")) + "}]}";
  ASSERT_NE(Run("without", {1, 1, 1, {data, without, sgd}}), "");
  EXPECT_GT(loss("without"), loss("whole") + 0.01) << "an item is not its own negative";
}

TEST_F(Teams, TheClassesOfALossAreCut) {
  const std::string loss =
      "model.loss=[{type: softmax_cross_entropy, input: hidden, label: label, name: class}, "
      "{type: binary_cross_entropy, input: logit, label: label, name: click, weight: 0.5}]";
  const std::string sgd = "optimizer={name: sgd, lr: 0.05}";
  const std::string cut =
      "parallel.cut=[{match: hidden.1.matmul, strategy: [[1,1],[1,3]]}, {match: hidden.1.bias_add, "
      "strategy: [[1,3],[3]]}, {match: hidden.1.relu, strategy: [[1,3]]}, {match: loss.class, "
      "strategy: [[1,3]]}]";
  ASSERT_NE(Run("whole", {1, 1, 1, {loss, sgd}}), "");
  const std::string one = Run("classes", {1, 3, 1, {loss, sgd, cut}});
  ASSERT_NE(one, "");
  EXPECT_NEAR(Loss("classes"), Loss("whole"), 2e-6);
  EXPECT_EQ(NumberAt(folder_, "classes.json", "/metrics/valid/accuracy"),
            NumberAt(folder_, "whole.json", "/metrics/valid/accuracy"));
  EXPECT_EQ(Run("two_teams", {2, 6, 2, {loss, sgd, cut, kShard}}), one);
}

TEST_F(Teams, AKilledJobGoesOnWithAnotherNumberOfTeams) {
  const Cluster two{2, 4, 2, {kCut}};
  const std::string whole = Run("whole", two);
  ASSERT_NE(whole, "");
  const std::string name = JobNameOfOurs("killed");
  const std::string mark = "job=" + name;
  {
    Program killed(folder_.path(), With({"launch", job_, "--set", mark}, two));
    ASSERT_TRUE(Eventually(seconds(40), [&] {
      return RunProgram(folder_.path(), {"checkpoint", "list", job_, "--set", mark})
                 .output.find("step-") != std::string::npos;
    })) << killed.Output();
    killed.Signal(SIGKILL);
    killed.Wait(seconds(5));
  }
  ASSERT_TRUE(Eventually(seconds(15), [&] { return ProcessesWith(mark).empty(); }));
  EXPECT_EQ(Run(name, {1, 2, 1, {kCut, kShard}}, "auto"), whole);
}

TEST_F(Teams, ACheckpointOfFourIsReadByOneThreeAndSix) {
  const std::string cut =
      "parallel.cut=[{match: hidden.0.matmul, strategy: [[1,4],[4,1]]}, {match: hidden.1.matmul, "
      "strategy: [[1,1],[1,4]]}]";
  const std::string four = Run("saved", {1, 4, 1, {cut, kShardInTwos}});
  ASSERT_NE(four, "");
  // Nothing is left to train.
  EXPECT_EQ(Run("saved", {1, 1, 1}, "auto"), four);
  EXPECT_EQ(
      Run("saved", {2, 3, 1, {"parallel.cut=[{match: hidden.0.matmul, strategy: [[1,1],[1,3]]}]"}},
          "auto"),
      four);
  EXPECT_EQ(Run("saved", {1, 6, 1}, "auto"), four);
  const std::vector<std::string> checkpoints = CheckpointsOf(folder_, "saved");
  ASSERT_FALSE(checkpoints.empty());
  EXPECT_EQ(
      RunProgram(folder_.path(),
                 {"export", checkpoints.back(), "--format", "npz", "--out", "all.npz"}, seconds(60))
          .exit_code,
      0);
}

// The others cannot go on with a slice without its part.
TEST_F(Teams, AKilledWorkerEndsTheJobInTimeAndIsNamed) {
  const std::string name = JobNameOfOurs("lost");
  const std::string mark = "job=" + name;
  const Cluster four{1, 4, 1, {kCut4, "train.epochs=100000", "cluster.restarts=0"}};
  Program job(folder_.path(),
              With({"launch", job_, "--set", mark, "--result", name + ".json"}, four));
  ASSERT_TRUE(Eventually(seconds(40), [&] {
    return RunProgram(folder_.path(), {"checkpoint", "list", job_, "--set", mark})
               .output.find("step-") != std::string::npos;
  })) << job.Output();
  const std::vector<pid_t> workers = ProcessesWith(mark, "worker");
  ASSERT_EQ(workers.size(), 4u);
  kill(workers[2], SIGKILL);
  const ProgramEnd end = job.Wait(seconds(15));
  EXPECT_FALSE(end.timed_out);
  EXPECT_EQ(end.exit_code, 1) << end.output;
  EXPECT_NE(TextAt(folder_, name + ".json", "/error/what").find("was killed by signal 9"),
            std::string::npos)
      << end.output;
  EXPECT_TRUE(Eventually(seconds(15), [&] { return ProcessesWith(mark).empty(); }));
}

TEST_F(Teams, MistakesAreToldBeforeAnythingStarts) {
  const auto told = [&](const Cluster& cluster) {
    const ProgramEnd end = RunProgram(folder_.path(), With({"plan", job_}, cluster), seconds(60));
    EXPECT_EQ(end.exit_code, 2) << end.output;
    return end.output;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(told({1, 4, 3}), "parallel.data: found 3, expected a divisor of cluster.workers, which is 4");
  has(told({1, 2, 1, {"parallel.cut=[{match: nobody, strategy: [[2]]}]"}}),
      "parallel.cut.0: no operator matches \"nobody\"");
  has(told({1, 2, 2, {kCut}}), "strategy ((1,2),(2,1)) cuts it, and a team has one worker");
  has(told({1, 4, 1, {"parallel.cut=[{match: hidden.0.matmul, strategy: [[1,3],[3,1]]}]"}}),
      "it needs 3 devices, which do not divide 4");
  has(told({1, 2, 1, {"parallel.cut=[{match: hidden.0.matmul, strategy: [[1, 0]]}]"}}),
      "expected for each input the number of parts of each dimension");
  has(told({1, 2, 1, {"model.tables.deep.device=cpu"}}), "table deep is on the workers");
}

}  // namespace
}  // namespace dt::test
