// Goal: every word that a user types arrives where it belongs. Method: a table of command lines for
// each command, with all of its flags; what is not given keeps its default. Mistakes and help are
// in command_mistakes_test.cc.
#include "cli/command_line.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/cli/parsed.h"

namespace dt::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What differs between two, by name of the field.
std::vector<std::string> DifferencesOf(const CommandLine& a, const CommandLine& b) {
  std::vector<std::string> names;
  const auto compare = [&](const char* name, const auto& of_a, const auto& of_b) {
    if (of_a != of_b) names.emplace_back(name);
  };
  compare("command", a.command, b.command);
  compare("job_path", a.job_path, b.job_path);
  compare("overrides", a.overrides, b.overrides);
  compare("result_path", a.result_path, b.result_path);
  compare("resume", a.resume, b.resume);
  compare("log_level", a.log_level, b.log_level);
  compare("no_progress", a.no_progress, b.no_progress);
  compare("json", a.json, b.json);
  compare("child", a.child, b.child);
  compare("scheduler", a.scheduler, b.scheduler);
  compare("key_path", a.key_path, b.key_path);
  compare("listen", a.listen, b.listen);
  compare("checkpoint", a.checkpoint, b.checkpoint);
  compare("data_paths", a.data_paths, b.data_paths);
  compare("kept_columns", a.kept_columns, b.kept_columns);
  compare("truth_path", a.truth_path, b.truth_path);
  compare("out_path", a.out_path, b.out_path);
  compare("budget", a.budget, b.budget);
  compare("rows", a.rows, b.rows);
  compare("seed", a.seed, b.seed);
  compare("table", a.table, b.table);
  compare("pass", a.pass, b.pass);
  compare("schema", a.schema, b.schema);
  compare("format", a.format, b.format);
  compare("program", a.program, b.program);
  return names;
}

struct Case {
  std::vector<std::string> words;
  std::function<void(CommandLine&)> want;  // Changes to what a command without flags gives.
};

void ExpectAll(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Parsed parsed = Parse(c.words);
    CommandLine want;
    want.program = "dovetail";
    c.want(want);
    std::string typed;
    for (const std::string& word : c.words) typed += word + " ";
    EXPECT_EQ(parsed.code, -1) << typed << parsed.errors;
    EXPECT_THAT(DifferencesOf(parsed.line, want), IsEmpty()) << typed;
    EXPECT_EQ(parsed.output + parsed.errors, "") << typed;
  }
}

const std::vector<std::string> kRunFlags = {
    "job.yaml", "--set",    "train.epochs=2", "--set",       "seed=3", "--result",
    "r.json",   "--resume", "auto",           "--log-level", "debug",  "--no-progress"};
void WantRunFlags(CommandLine& line) {
  line.job_path = "job.yaml";
  line.overrides = {"train.epochs=2", "seed=3"};
  line.result_path = "r.json";
  line.resume = "auto";
  line.log_level = LogLevel::kDebug;
  line.no_progress = true;
}
std::vector<std::string> With(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(CommandLine, TrainLaunchAndTheRolesTakeTheSameFlags) {
  for (const std::string command : {"train", "launch", "scheduler", "server", "worker"}) {
    ExpectAll({{{command, "job.yaml"},
                [&](CommandLine& l) {
                  l.command = command;
                  l.job_path = "job.yaml";
                }},
               {With({command}, kRunFlags), [&](CommandLine& l) {
                  l.command = command;
                  WantRunFlags(l);
                }}});
  }
}

TEST(CommandLine, RolesAreToldWhereTheyListenWhomTheyJoinAndWhichChildTheyAre) {
  ExpectAll({{{"scheduler", "j", "--listen", "tcp://10.0.0.1:7000", "--child", "0"},
              [](CommandLine& l) {
                l.command = "scheduler";
                l.job_path = "j";
                l.listen = "tcp://10.0.0.1:7000";
                l.child = 0;
              }},
             {{"server", "j", "--scheduler", "tcp://h:1", "--listen", "tcp://0.0.0.0:0"},
              [](CommandLine& l) {
                l.command = "server";
                l.job_path = "j";
                l.scheduler = "tcp://h:1";
                l.listen = "tcp://0.0.0.0:0";
              }},
             {{"worker", "j", "--scheduler=tcp://h:1", "--child=12"}, [](CommandLine& l) {
                l.command = "worker";
                l.job_path = "j";
                l.scheduler = "tcp://h:1";
                l.child = 12;
              }}});
}

TEST(CommandLine, EvalAndPredictTakeACheckpointAndPredictItsData) {
  ExpectAll({{With({"eval", "--checkpoint", "dir"}, kRunFlags),
              [](CommandLine& l) {
                l.command = "eval";
                l.checkpoint = "dir";
                WantRunFlags(l);
              }},
             {{"predict", "j", "--checkpoint", "dir", "--data", "a.csv", "--data", "-", "--keep",
               "user,item", "--keep", "day", "--out", "scores.csv"},
              [](CommandLine& l) {
                l.command = "predict";
                l.job_path = "j";
                l.checkpoint = "dir";
                l.data_paths = {"a.csv", "-"};
                l.kept_columns = {"user", "item", "day"};
                l.out_path = "scores.csv";
              }}});
}

TEST(CommandLine, PlanStatusAndSchemaTakeTheirs) {
  ExpectAll({{{"plan", "j", "--set", "a=1", "--after", "all", "--format", "dot"},
              [](CommandLine& l) {
                l.command = "plan";
                l.job_path = "j";
                l.overrides = {"a=1"};
                l.pass = "all";
                l.format = "dot";
              }},
             {{"status"}, [](CommandLine& l) { l.command = "status"; }},
             {{"status", "j", "--json"},
              [](CommandLine& l) {
                l.command = "status";
                l.job_path = "j";
                l.json = true;
              }},
             {{"status", "--scheduler", "tcp://h:1", "--key", "k/job.key"},
              [](CommandLine& l) {
                l.command = "status";
                l.scheduler = "tcp://h:1";
                l.key_path = "k/job.key";
              }},
             {{"schema"}, [](CommandLine& l) { l.command = "schema"; }},
             {{"schema", "manifest"}, [](CommandLine& l) {
                l.command = "schema";
                l.schema = "manifest";
              }}});
}

TEST(CommandLine, CommandsOfCheckpointsAndReportsTakeTheirs) {
  ExpectAll({{{"checkpoint", "list", "j", "--set", "a=1"},
              [](CommandLine& l) {
                l.command = "checkpoint list";
                l.job_path = "j";
                l.overrides = {"a=1"};
              }},
             {{"checkpoint", "verify", "dir"},
              [](CommandLine& l) {
                l.command = "checkpoint verify";
                l.checkpoint = "dir";
              }},
             {{"checkpoint", "inspect", "--json", "dir"},
              [](CommandLine& l) {
                l.command = "checkpoint inspect";
                l.checkpoint = "dir";
                l.json = true;
              }},
             {{"export", "dir", "--format", "npz", "--table", "item", "--out", "m.npz"},
              [](CommandLine& l) {
                l.command = "export";
                l.checkpoint = "dir";
                l.format = "npz";
                l.table = "item";
                l.out_path = "m.npz";
              }},
             {{"report", "r.json", "--out", "r.html", "--truth", "t.json"},
              [](CommandLine& l) {
                l.command = "report";
                l.result_path = "r.json";
                l.out_path = "r.html";
                l.truth_path = "t.json";
              }},
             {{"keygen", "keys/job"}, [](CommandLine& l) {
                l.command = "keygen";
                l.key_path = "keys/job";
              }}});
}

TEST(CommandLine, DataCommandsTakeTheirs) {
  ExpectAll({{{"data", "generate", "--out", "d"},
              [](CommandLine& l) {
                l.command = "data generate";
                l.out_path = "d";
              }},
             {{"data", "generate", "--rows", "100000000000", "--seed", "9", "--out", "d",
               "--log-level", "info"},
              [](CommandLine& l) {
                l.command = "data generate";
                l.rows = 100'000'000'000;
                l.seed = 9;
                l.out_path = "d";
                l.log_level = LogLevel::kInfo;
              }},
             {{"data", "convert", "j"},
              [](CommandLine& l) {
                l.command = "data convert";
                l.job_path = "j";
              }},
             {{"data", "stats", "j", "--json"}, [](CommandLine& l) {
                l.command = "data stats";
                l.job_path = "j";
                l.json = true;
              }}});
}

TEST(CommandLine, BenchTakesWhatToMeasure) {
  for (const std::string what : {"store", "disk", "transport", "plan", "devices"}) {
    ExpectAll({{{"bench", what, "--json"}, [&](CommandLine& l) {
                  l.command = "bench " + what;
                  l.json = true;
                }}});
  }
  ExpectAll(
      {{{"bench", "devices", "--out", "p.yaml"},
        [](CommandLine& l) {
          l.command = "bench devices";
          l.out_path = "p.yaml";
        }},
       {{"bench", "train", "j", "--set", "a=1", "--json"},
        [](CommandLine& l) {
          l.command = "bench train";
          l.job_path = "j";
          l.overrides = {"a=1"};
          l.json = true;
        }},
       {{"bench", "train", "--budget"},
        [](CommandLine& l) {
          l.command = "bench train";
          l.budget = true;
        }},
       {{"bench", "peer", "--scheduler", "tcp://h:1", "--format", "bare"}, [](CommandLine& l) {
          l.command = "bench peer";
          l.scheduler = "tcp://h:1";
          l.format = "bare";
        }}});
}

TEST(CommandLine, EveryLevelOfTheLogHasItsName) {
  const std::pair<const char*, LogLevel> levels[] = {{"debug", LogLevel::kDebug},
                                                     {"info", LogLevel::kInfo},
                                                     {"warn", LogLevel::kWarn},
                                                     {"error", LogLevel::kError},
                                                     {"off", LogLevel::kOff}};
  for (const auto& [name, level] : levels) {
    EXPECT_EQ(Parse({"train", "j", "--log-level", name}).line.log_level, level) << name;
  }
}

// Whoever goes back in a line to change it puts a flag in front.
TEST(CommandLine, FlagsMayStandBeforeTheJob) {
  ExpectAll({{{"train", "--set", "a=1", "--set", "b=2", "job.yaml"},
              [](CommandLine& l) {
                l.command = "train";
                l.job_path = "job.yaml";
                l.overrides = {"a=1", "b=2"};
              }},
             {{"predict", "--data", "a.csv", "--keep", "user", "--checkpoint", "d", "--out", "o",
               "job.yaml"},
              [](CommandLine& l) {
                l.command = "predict";
                l.job_path = "job.yaml";
                l.data_paths = {"a.csv"};
                l.kept_columns = {"user"};
                l.checkpoint = "d";
                l.out_path = "o";
              }},
             {{"plan", "--format", "json", "job.yaml"}, [](CommandLine& l) {
                l.command = "plan";
                l.job_path = "job.yaml";
                l.format = "json";
              }}});
}

// The value of a key is YAML: it may hold anything.
TEST(CommandLine, AnOverrideArrivesAsItWasTyped) {
  const std::vector<std::string> values = {"data.train=[a.csv, 'b c.csv']", "model.loss=[]",
                                           "optimizer.lr=-1e-3", "job=a=b", "observe.page="};
  std::vector<std::string> words = {"train", "j"};
  for (const std::string& value : values) words.insert(words.end(), {"--set", value});
  EXPECT_EQ(Parse(words).line.overrides, values);
}

TEST(SharedArguments, AChildParsesWhatItsParentWasTold) {
  const std::vector<std::string> levels[] = {{}, {"--log-level", "debug"}, {"--log-level", "off"}};
  for (const std::vector<std::string>& level : levels) {
    const CommandLine parent =
        Parse(With({"launch", "job.yaml", "--set", "a=[1, 2]", "--set", "b=x y"}, level)).line;
    const CommandLine child = Parse(With({"server", "--child", "3"}, SharedArguments(parent))).line;
    EXPECT_EQ(child.command, "server");
    EXPECT_EQ(child.child, 3u);
    EXPECT_EQ(child.job_path, parent.job_path);
    EXPECT_EQ(child.overrides, parent.overrides);
    EXPECT_EQ(child.log_level, parent.log_level);
  }
}

// Each child has a result file and an end of its own.
TEST(SharedArguments, WhatIsTheParentsAloneIsNotPassedOn) {
  const CommandLine parent = Parse(With({"launch"}, kRunFlags)).line;
  EXPECT_THAT(SharedArguments(parent), ElementsAre("job.yaml", "--set", "train.epochs=2", "--set",
                                                   "seed=3", "--log-level", "debug"));
}

}  // namespace
}  // namespace dt::cli
