// Goal: every subcommand does what its help says. Method: the real program on a small job.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <signal.h>
#include <sstream>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

TEST(Commands, TrainLearnsAndEvalOfItsCheckpointAgrees) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.rows = 8000, .epochs = 6});
  const std::string traced = "observe.trace=0-9";
  const ProgramEnd train =
      RunProgram(folder.path(), {"train", job, "--result", "train.json", "--set", traced});
  ASSERT_EQ(train.exit_code, 0) << train.output;
  EXPECT_GT(NumberAt(folder, "train.json", "/metrics/valid/auc"), 0.70);
  EXPECT_LT(NumberAt(folder, "train.json", "/metrics/valid/logloss"), 0.64);
  EXPECT_EQ(NumberAt(folder, "train.json", "/samples"), 48000);
  EXPECT_EQ(NumberAt(folder, "train.json", "/steps"), 6 * 32);
  EXPECT_GT(NumberAt(folder, "train.json", "/plan/predicted_seconds_per_step"), 0);
  EXPECT_NEAR(NumberAt(folder, "train.json", "/plan/measured_seconds_per_step"),
              NumberAt(folder, "train.json", "/seconds") / (6 * 32), 1e-9);

  const ProgramEnd list = RunProgram(folder.path(), {"checkpoint", "list", job});
  ASSERT_EQ(list.exit_code, 0) << list.output;
  const std::string last = "runs/tiny/checkpoints/step-000000000192";
  ASSERT_NE(list.output.find(last), std::string::npos) << list.output;
  EXPECT_EQ(RunProgram(folder.path(), {"checkpoint", "verify", last}).exit_code, 0);

  const ProgramEnd eval = RunProgram(
      folder.path(), {"eval", job, "--checkpoint", last, "--result", "eval.json", "--set", traced});
  ASSERT_EQ(eval.exit_code, 0) << eval.output;
  EXPECT_FALSE(std::filesystem::is_empty(folder.path() + "/runs/tiny/trace"));
  EXPECT_EQ(NumberAt(folder, "eval.json", "/metrics/valid/auc"),
            NumberAt(folder, "train.json", "/metrics/valid/auc"));
}

std::string WithoutFirstWords(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) out += line.substr(line.find(' ') + 1) + "\n";
  return out;
}

TEST(Commands, PredictWritesALineForEverySampleInInputOrder) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1});
  ASSERT_EQ(RunProgram(folder.path(), {"train", job}).exit_code, 0);
  const ProgramEnd predict = RunProgram(
      folder.path(), {"predict", job, "--checkpoint", "runs/tiny/checkpoints/step-000000000012",
                      "--data", "valid.libsvm", "--out", "scores.csv"});
  ASSERT_EQ(predict.exit_code, 0) << predict.output;
  const std::string scores = folder.Read("scores.csv");
  EXPECT_EQ(std::count(scores.begin(), scores.end(), '\n'), 751);
  EXPECT_EQ(scores.substr(0, scores.find('\n')), "label");

  // The same samples without labels give the same predictions, but no metrics.
  folder.Write("unlabelled.libsvm", WithoutFirstWords(folder.Read("valid.libsvm")));
  const ProgramEnd unlabelled = RunProgram(
      folder.path(), {"predict", job, "--checkpoint", "runs/tiny/checkpoints/step-000000000012",
                      "--data", "unlabelled.libsvm", "--out", "same.csv"});
  ASSERT_EQ(unlabelled.exit_code, 0) << unlabelled.output;
  EXPECT_EQ(folder.Read("same.csv"), scores);
  EXPECT_NE(predict.output.find("AUC"), std::string::npos) << predict.output;
  EXPECT_EQ(unlabelled.output.find("AUC"), std::string::npos) << unlabelled.output;
}

// Samples of one small CSV job. Predicting all of them at once gives the values that every other
// way of predicting them must give.
constexpr const char* kHeader = "user,\"item\",note,click\n";

std::string Samples(uint32_t begin, uint32_t end) {
  std::string text;
  for (uint32_t i = begin; i < end; ++i) {
    text += fmt::format("u{},{},\"a \"\"{}\"\", b\",{}\n", i % 7, i % 11, i, i % 3 == 0 ? 1 : 0);
  }
  return text;
}

class Predict : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_.path() + "/new");
    folder_.Write("train.csv", kHeader + Samples(0, 200));
    folder_.Write("new/a.csv", kHeader + Samples(0, 50));
    folder_.Write("new/b.csv", "click,note,item,user\n0,,4,u9\n");
    job_ = folder_.Write("job.yaml", R"(job: seen
data:
  format: csv
  train: [train.csv]
  columns:
    - {name: click, role: label}
    - {name: user, type: string}
    - {name: item, type: id}
model:
  tables: {u: {dim: 4}, i: {dim: 4}}
  graph:
    - {name: eu, op: lookup, table: u, inputs: [user]}
    - {name: ei, op: lookup, table: i, inputs: [item]}
    - {name: logit, op: mlp, inputs: [eu, ei], units: [8, 1]}
  loss: [{type: binary_cross_entropy, input: logit, label: click}]
train: {batch_size: 20}
)");
    const ProgramEnd train = RunProgram(folder_.path(), {"train", job_});
    ASSERT_EQ(train.exit_code, 0) << train.output;
  }

  std::vector<std::string> With(std::vector<std::string> more) const {
    std::vector<std::string> all = {"predict", job_, "--checkpoint",
                                    "runs/seen/checkpoints/step-000000000010"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::vector<std::string> Lines(const std::string& file) const {
    std::istringstream text(folder_.Read(file));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

  TempFolder folder_;
  std::string job_;
};

TEST_F(Predict, AGlobNamesFilesAndColumnsAreKeptByTheirNames) {
  const ProgramEnd end = RunProgram(
      folder_.path(), With({"--data", "new/*.csv", "--keep", "note,user", "--out", "p.csv"}));
  ASSERT_EQ(end.exit_code, 0) << end.output;
  const ProgramEnd plain =
      RunProgram(folder_.path(), With({"--data", "new/a.csv", "new/b.csv", "--out", "q.csv"}));
  ASSERT_EQ(plain.exit_code, 0) << plain.output;
  const std::vector<std::string> kept = Lines("p.csv"), scores = Lines("q.csv");
  ASSERT_EQ(kept.size(), 52u);
  ASSERT_EQ(scores.size(), 52u);
  EXPECT_EQ(kept[0], "note,user,click");
  EXPECT_EQ(kept[1], "\"a \"\"0\"\", b\",u0," + scores[1]);
  EXPECT_EQ(kept[13], "\"a \"\"12\"\", b\",u5," + scores[13]);
  EXPECT_EQ(kept[51], ",u9," + scores[51]) << "the other file has another order of columns";
}

TEST_F(Predict, RowsThatAreSkippedAreSkippedInKeptColumnsToo) {
  folder_.Write("new/b.csv", "user,item,click\nu1,broken,0\n\nu2,5,1\n");
  const ProgramEnd end =
      RunProgram(folder_.path(), With({"--data", "new/b.csv", "--keep", "user", "--out", "p.csv",
                                       "--set", "data.on_error=skip"}));
  ASSERT_EQ(end.exit_code, 0) << end.output;
  ASSERT_EQ(Lines("p.csv").size(), 2u);
  EXPECT_EQ(Lines("p.csv")[1].substr(0, 3), "u2,");
}

TEST_F(Predict, StandardInputIsADash) {
  const ProgramEnd plain =
      RunProgram(folder_.path(), With({"--data", "new/a.csv", "--keep", "user", "--out", "q.csv"}));
  ASSERT_EQ(plain.exit_code, 0) << plain.output;
  const auto piped = [&](const std::string& file) {
    std::string command = fmt::format("cd {} && cat {} | $DT_PROGRAM", folder_.path(), file);
    for (const std::string& word : With({"--data", "-", "--keep", "user", "--out", "p.csv"})) {
      command += " " + word;
    }
    return std::system((command + " 2> errors.txt > /dev/null").c_str());
  };
  ASSERT_EQ(piped("new/a.csv"), 0) << folder_.Read("errors.txt");
  EXPECT_EQ(Lines("p.csv"), Lines("q.csv"));
  folder_.Write("bad.csv", std::string(kHeader) + "u1,x,,0\n");
  EXPECT_NE(piped("bad.csv"), 0);
  EXPECT_NE(folder_.Read("errors.txt").find("standard input:2: column \"item\""), std::string::npos)
      << folder_.Read("errors.txt");
}

TEST_F(Predict, AColumnThatIsNotThereIsNamed) {
  const ProgramEnd end =
      RunProgram(folder_.path(), With({"--data", "new/a.csv", "--keep", "usr", "--out", "p.csv"}));
  EXPECT_EQ(end.exit_code, 2) << end.output;
  EXPECT_NE(end.output.find("--keep: new/a.csv has no column \"usr\"; did you mean \"user\"?"),
            std::string::npos)
      << end.output;
  EXPECT_EQ(folder_.Read("p.csv"), "");
}

TEST(Commands, PlanShowsTheGraphAfterAPass) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {});
  const ProgramEnd plan = RunProgram(folder.path(), {"plan", job});
  ASSERT_EQ(plan.exit_code, 0) << plan.output;
  EXPECT_NE(plan.output.find("deep"), std::string::npos);
  const ProgramEnd placed = RunProgram(
      folder.path(),
      {"plan", job, "--set", "cluster.devices=emulated", "--set", "cluster.emulated.flops=1e13"});
  ASSERT_EQ(placed.exit_code, 0) << placed.output;
  for (const char* part : {"launch starts 3 processes: 1 scheduler, 1 server of ",
                           ": cpu computes ", "instead: all cpu ", "as cluster.emulated says",
                           "the step would take ", "with its forward node"}) {
    EXPECT_NE(placed.output.find(part), std::string::npos) << part << "\n" << placed.output;
  }
  const ProgramEnd dot =
      RunProgram(folder.path(), {"plan", job, "--after", "differentiate", "--format", "dot"});
  ASSERT_EQ(dot.exit_code, 0) << dot.output;
  EXPECT_NE(dot.output.find("digraph"), std::string::npos);
  const ProgramEnd page = RunProgram(folder.path(), {"plan", job, "--format", "html"});
  ASSERT_EQ(page.exit_code, 0) << page.output;
  EXPECT_NE(page.output.find("<h1>tiny after memory_plan</h1>"), std::string::npos);
  const ProgramEnd json = RunProgram(folder.path(), {"plan", job, "--format", "json"});
  ASSERT_EQ(json.exit_code, 0) << json.output;
  const auto parsed = nlohmann::json::parse(json.output);
  EXPECT_GT(parsed["prediction"]["seconds_per_step"], 0);
  EXPECT_EQ(parsed["prediction"]["machine"]["workers"], 1);
  EXPECT_EQ(parsed["placement"]["tables"][0]["device"], "ps");
  EXPECT_EQ(parsed["lookups"][0]["columns"][0], "features");
  const std::vector<std::string> misplaced = {"--set", "cluster.devices=cpu", "--set",
                                              "optimizer.device=gpu"};
  for (const auto& [pass, code] : {std::pair{"add_optimizer", 0}, {"place", 2}, {"all", 2}}) {
    std::vector<std::string> command = {"plan", job, "--after", pass};
    command.insert(command.end(), misplaced.begin(), misplaced.end());
    const ProgramEnd shown = RunProgram(folder.path(), command);
    EXPECT_EQ(shown.exit_code, code) << pass << "\n" << shown.output;
    EXPECT_EQ(shown.output.find("optimizer.device: gpu, and") == std::string::npos, code == 0);
  }
  // The unknown pass is reported before the job's own mistake.
  std::vector<std::string> command = {"plan", job, "--after", "nothing"};
  command.insert(command.end(), misplaced.begin(), misplaced.end());
  const ProgramEnd wrong = RunProgram(folder.path(), command);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.output.find("passes: expand"), std::string::npos) << wrong.output;
}

// The number in this field; 0 if it is absent.
double NumberOf(const nlohmann::json& object, const char* key, const char* field) {
  return object.contains(key) ? object[key].value(field, 0.0) : 0.0;
}

TEST(Commands, StatusTellsOfARunningJob) {
  TempFolder folder;
  const std::string job =
      WriteTinyJob(folder, {.epochs = 100000, .slices = 2, .servers = 2, .workers = 2});
  Program launch(folder.path(), {"launch", job, "--set", "cluster.devices=emulated", "--set",
                                 "cluster.emulated.memory=64MiB"});
  ProgramEnd status;
  ASSERT_TRUE(Eventually(
      seconds(30),
      [&] {
        status = RunProgram(folder.path(), {"status", job, "--json"}, seconds(10));
        if (status.exit_code != 0) return false;
        const auto json = nlohmann::json::parse(status.output, nullptr, false);
        return json.is_object() && json.value("processes", nlohmann::json::array()).size() >= 4 &&
               json.value("step", 0) > 0 && json.value("tables", nlohmann::json()).is_object() &&
               NumberOf(json["tables"], "deep", "rows") > 0;
      }))
      << status.output << launch.Output();
  const ProgramEnd text = RunProgram(folder.path(), {"status", job}, seconds(10));
  EXPECT_NE(text.output.find("has an accelerator: emulated accelerator (emulated, 64 MiB)"),
            std::string::npos)
      << text.output;
  EXPECT_NE(text.output.find("the plan has "), std::string::npos) << text.output;
  EXPECT_NE(text.output.find(" on gpu; 2 tables on servers"), std::string::npos) << text.output;
  launch.Signal(SIGTERM);
  EXPECT_EQ(launch.Wait(seconds(30)).exit_code, 143);
  EXPECT_EQ(RunProgram(folder.path(), {"status", job}).exit_code, 1);
}

TEST(Commands, WhereThePageAndTheCheckpointAreIsSaid) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1, .slices = 2});
  for (const std::string command : {"train", "launch"}) {
    SCOPED_TRACE(command);
    const auto run = [&](const std::string& resume) {
      return RunProgram(folder.path(), {command, job, "--set", "job=" + command, "--resume", resume,
                                        "--result", "r.json"});
    };
    const ProgramEnd first = run("never");
    EXPECT_EQ(first.exit_code, 0) << first.output;
    EXPECT_THAT(first.output, HasSubstr("page http://127.0.0.1:"));
    EXPECT_THAT(first.output, HasSubstr(": 1 epoch, 12 steps, "));
    const std::string checkpoint =
        folder.path() + "/runs/" + command + "/checkpoints/step-000000000012";
    EXPECT_THAT(first.output, HasSubstr("\ncheckpoint " + checkpoint + "\n"));
    EXPECT_EQ(TextAt(folder, "r.json", "/checkpoint"), checkpoint);
    const ProgramEnd again = run("auto");
    EXPECT_EQ(again.exit_code, 0) << again.output;
    EXPECT_THAT(again.output, HasSubstr("it had finished before, and nothing was trained"));
    EXPECT_THAT(again.output, HasSubstr("\ncheckpoint " + checkpoint + "\n"));
  }
}

TEST(Commands, WhoeverStopsAJobIsToldHowToGoOn) {
  TempFolder folder;
  const std::string job =
      WriteTinyJob(folder, {.epochs = 100'000, .slices = 2, .more = "checkpoint: {every: 20}"});
  for (const std::string command : {"train", "launch"}) {
    SCOPED_TRACE(command);
    Program program(folder.path(), {command, job, "--set", "job=" + command});
    ASSERT_TRUE(Eventually(seconds(30), [&] { return !CheckpointsOf(folder, command).empty(); }))
        << program.Output();
    program.Signal(SIGINT);
    const ProgramEnd end = program.Wait(seconds(30));
    EXPECT_EQ(end.exit_code, 130);
    EXPECT_THAT(end.output, HasSubstr("signal 2: the job was stopped at step "));
    EXPECT_THAT(end.output, HasSubstr("--resume auto goes on from " + folder.path() + "/" +
                                      CheckpointsOf(folder, command).back() + "\n"));
  }
}

TEST(Commands, SigtermEndsWhatHasNothingToSave) {
  TempFolder folder;
  Program generate(folder.path(), {"data", "generate", "--rows", "1000000000", "--out", "a"});
  ASSERT_TRUE(Eventually(seconds(10), [&] {
    return std::filesystem::exists(std::filesystem::path(folder.path()) / "a");
  })) << generate.Output();
  generate.Signal(SIGTERM);
  EXPECT_EQ(generate.Wait(seconds(10)).exit_code, 143);
}

TEST(Commands, SigtermEndsWhatWaitsForASlowEmulatedAccelerator) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {});
  // At one byte per second a kernel, or a copy, takes hours.
  for (const char* slow : {"memory_bandwidth", "link_bandwidth"}) {
    SCOPED_TRACE(slow);
    Program train(folder.path(),
                  {"train", job, "--set", "cluster.devices=emulated", "--set",
                   std::string("cluster.emulated.") + slow + "=1", "--set",
                   "parallel.place=[{match: \"*\", device: gpu}]", "--log-level", "info"});
    ASSERT_TRUE(Eventually(seconds(30), [&] {
      return train.Output().find("job.running") != std::string::npos;
    })) << train.Output();
    train.Signal(SIGTERM);
    const ProgramEnd end = train.Wait(seconds(20));
    EXPECT_EQ(end.exit_code, 143) << end.output;
  }
}

TEST(Commands, GeneratedDataIsTheSameForTheSameSeedAndConverts) {
  TempFolder folder;
  const std::vector<std::string> generate = {"data",   "generate", "--rows", "1000",
                                             "--seed", "3",        "--out"};
  for (const char* out : {"a", "b"}) {
    std::vector<std::string> arguments = generate;
    arguments.push_back(out);
    const ProgramEnd end = RunProgram(folder.path(), arguments);
    ASSERT_EQ(end.exit_code, 0) << end.output;
    EXPECT_NE(end.output.find("best possible AUC"), std::string::npos);
  }
  EXPECT_NE(folder.Read("a/train.tsv"), "");
  EXPECT_EQ(folder.Read("a/train.tsv"), folder.Read("b/train.tsv"));
  EXPECT_EQ(folder.Read("a/truth.json"), folder.Read("b/truth.json"));

  const std::string job = WriteTinyJob(folder, {});
  EXPECT_EQ(RunProgram(folder.path(), {"data", "convert", job}).exit_code, 0);
  const ProgramEnd stats = RunProgram(folder.path(), {"data", "stats", job, "--json"});
  ASSERT_EQ(stats.exit_code, 0) << stats.output;
  EXPECT_EQ(nlohmann::json::parse(stats.output)["train"]["rows"], 3000);
}

TEST(Commands, SchemaIsJsonAndReportIsOnePage) {
  TempFolder folder;
  const ProgramEnd schema = RunProgram(folder.path(), {"schema"});
  ASSERT_EQ(schema.exit_code, 0);
  EXPECT_TRUE(nlohmann::json::parse(schema.output, nullptr, false).is_object());
  const std::string job = WriteTinyJob(folder, {.epochs = 1});
  ASSERT_EQ(RunProgram(folder.path(), {"train", job, "--result", "r.json"}).exit_code, 0);
  ASSERT_EQ(RunProgram(folder.path(), {"report", "r.json", "--out", "r.html"}).exit_code, 0);
  const std::string page = folder.Read("r.html");
  EXPECT_NE(page.find("</html>"), std::string::npos);
  EXPECT_EQ(page.find("src=\"http"), std::string::npos);
  EXPECT_EQ(page.find("href=\"http"), std::string::npos);
}

TEST(Commands, HelpOfEverySubcommandHasAnExample) {
  TempFolder folder;
  for (const char* command : {"train", "launch", "scheduler", "server", "worker", "plan", "status",
                              "eval", "predict", "schema", "report"}) {
    const ProgramEnd help = RunProgram(folder.path(), {command, "--help"});
    EXPECT_EQ(help.exit_code, 0) << command;
    EXPECT_NE(help.output.find(std::string("dovetail ") + command), std::string::npos) << command;
  }
}

TEST(Commands, HelpOffersOnlyWhatHasAnEffect) {
  TempFolder folder;
  const auto says = [&](const char* command, const char* part) {
    return RunProgram(folder.path(), {command, "--help"}).output.find(part) != std::string::npos;
  };
  for (const char* command : {"train", "launch", "scheduler"}) {
    EXPECT_TRUE(says(command, "the newest complete checkpoint")) << command;
  }
  for (const char* command : {"eval", "predict", "server", "worker"}) {
    EXPECT_TRUE(says(command, "Changes nothing here")) << command;
  }
  EXPECT_TRUE(says("server", "--scheduler tcp://"));
  EXPECT_FALSE(says("scheduler", "--scheduler tcp://"));
  EXPECT_FALSE(says("export", "onnx"));
  const std::string job = WriteTinyJob(folder, {});
  const ProgramEnd wrong =
      RunProgram(folder.path(), {"scheduler", job, "--scheduler", "tcp://127.0.0.1:1"});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.output;
  EXPECT_NE(wrong.output.find("--scheduler"), std::string::npos) << wrong.output;
}

}  // namespace
}  // namespace dt::test
