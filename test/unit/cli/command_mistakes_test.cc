// Goal: whoever mistypes learns what was wrong and what is allowed, on standard error, with exit
// code 2 and in the result file; help and version are no mistakes. Method: a table of mistakes, one
// for each command and kind.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/version.h"
#include "common/storage/json_file.h"
#include "test/support/scratch_folder.h"
#include "test/unit/cli/parsed.h"

namespace dt::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct Mistake {
  std::vector<std::string> words;
  const char* said;  // Part of it.
};

void ExpectMistakes(const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    const Parsed parsed = Parse(mistake.words);
    std::string typed = "dovetail";
    for (const std::string& word : mistake.words) typed += " " + word;
    EXPECT_EQ(parsed.code, 2) << typed;
    EXPECT_THAT(parsed.errors, HasSubstr(mistake.said)) << typed;
    EXPECT_EQ(parsed.output, "") << typed;
  }
}

TEST(CommandMistakes, ACommandThatIsNotThereIsComparedWithThoseThatAre) {
  ExpectMistakes({{{"tarin"}, "there is no command \"tarin\"; did you mean \"train\"?"},
                  {{"lanch", "j"}, "did you mean \"launch\"?"},
                  {{"stat"}, "there is no command \"stat\""},
                  {{"job.yaml"}, "there is no command \"job.yaml\""},
                  {{""}, "there is no command \"\""},
                  {{"drain"}, "server is required"},
                  {{"serve", "dir"}, "the command serve is not available yet"}});
  EXPECT_THAT(Parse({"frobnicate"}).errors, Not(HasSubstr("did you mean")));
}

TEST(CommandMistakes, WhatACommandNeedsIsNamed) {
  ExpectMistakes({{{}, "subcommand is required"},
                  {{"train"}, "job is required"},
                  {{"launch"}, "job is required"},
                  {{"plan"}, "job is required"},
                  {{"worker"}, "job is required"},
                  {{"eval", "j"}, "--checkpoint is required"},
                  {{"predict", "j", "--checkpoint", "d", "--out", "o"}, "--data is required"},
                  {{"predict", "j", "--checkpoint", "d", "--data", "a"}, "--out is required"},
                  {{"checkpoint"}, "subcommand is required"},
                  {{"checkpoint", "verify"}, "folder is required"},
                  {{"export", "d"}, "--format is required"},
                  {{"report", "r.json"}, "--out is required"},
                  {{"keygen"}, "stem is required"},
                  {{"data"}, "subcommand is required"},
                  {{"data", "generate"}, "--out is required"},
                  {{"bench"}, "subcommand is required"},
                  {{"completion"}, "shell is required"}});
}

TEST(CommandMistakes, AValueThatIsNotAllowedIsNamedWithThoseThatAre) {
  ExpectMistakes(
      {{{"train", "j", "--log-level", "loud"},
        "found \"loud\", expected debug, info, warn, error or off"},
       {{"plan", "j", "--format", "svg"}, "svg not in {text,json,dot,html}"},
       {{"schema", "jobs"}, "jobs not in {job,status,plan,manifest}"},
       {{"completion", "zsh"}, "zsh not in {bash}"},
       {{"export", "d", "--format", "onnx"}, "onnx is not available yet; use safetensors or npz"},
       {{"export", "d", "--format", "hdf5"}, "hdf5 not in {safetensors,npz}"},
       {{"data", "generate", "--out", "d", "--rows", "9"}, "9 not in range"},
       {{"data", "generate", "--out", "d", "--rows", "100000000001"}, "not in range"},
       {{"data", "generate", "--out", "d", "--rows", "many"}, "many"},
       {{"data", "generate", "--out", "d", "--rows", "-5"}, "-5"},
       {{"data", "generate", "--out", "d", "--seed", "1.5"}, "1.5"},
       {{"worker", "j", "--child", "first"}, "first"},
       {{"worker", "j", "--child", "-1"}, "-1"}});
}

TEST(CommandMistakes, AFlagIsNoValueOfTheOptionBeforeIt) {
  ExpectMistakes(
      {{{"train", "j", "--result", "--no-progress"},
        "--result: a value is missing before --no-progress"},
       {{"eval", "j", "--checkpoint", "--result", "r"}, "--checkpoint: a value is missing before"},
       {{"train", "j", "--set", "--result", "r"}, "--set: a value is missing before --result"},
       {{"checkpoint", "list", "j", "--set", "--log-level"}, "--set: a value is missing before"}});
  EXPECT_FALSE(std::filesystem::exists("--no-progress")) << "a result file of that name";
  EXPECT_EQ(Parse({"train", "j", "--result", "--name-of-a-file"}).code, -1);
}

TEST(CommandMistakes, AFlagThatTheCommandHasNotIsNamed) {
  ExpectMistakes({{{"train", "j", "--checkpont", "d"}, "--checkpont"},
                  {{"scheduler", "j", "--scheduler", "tcp://h:1"}, "--scheduler"},
                  {{"plan", "j", "--resume", "auto"}, "--resume"},
                  {{"keygen", "k", "--force"}, "--force"},
                  {{"train", "j", "another.yaml"}, "another.yaml"},
                  {{"bench", "store", "--out", "p.yaml"}, "--out"},
                  {{"train", "j", "--child", "1"}, "--child"}});
}

TEST(CommandMistakes, AKeyOfTheJobThatIsTakenForAFlagIsShownAsASet) {
  const Mistake mistakes[] = {
      {{"train", "j", "--epochs", "3"}, "Keys of the job are set with --set train.epochs=3\n"},
      {{"train", "j", "--epochs=3"}, "--set train.epochs=3\n"},
      {{"train", "j", "--batch-size", "8"}, "--set train.batch_size=8\n"},
      {{"train", "j", "--batch_size=8"}, "--set train.batch_size=8\n"},
      {{"launch", "j", "--servers", "2"}, "--set cluster.servers=2\n"},
      {{"launch", "j", "--seed=7"}, "--set seed=7\n"},
      {{"train", "j", "--lr"}, "--set optimizer.lr=VALUE\n"},
      {{"train", "j", "--lr", "-1"}, "--set optimizer.lr=-1\n"},
      {{"train", "j", "--epochs", "--no-progress"}, "--set train.epochs=VALUE\n"},
      {{"train", "j", "--format", "csv"}, "--set data.format=csv\n"}};
  ExpectMistakes({std::begin(mistakes), std::end(mistakes)});
  for (const char* no_key : {"--frobnicate", "--epoch-count", "--"}) {
    EXPECT_THAT(Parse({"train", "j", "k", no_key}).errors, Not(HasSubstr("--set"))) << no_key;
  }
  EXPECT_THAT(Parse({"train", "--epochs", "3"}).errors, Not(HasSubstr("train.epochs=j")));
  EXPECT_THAT(Parse({"plan", "j", "--format", "svg"}).errors, Not(HasSubstr("--set"))) << "a flag";
}

TEST(CommandMistakes, TheResultFileHasThemIfOneIsAskedFor) {
  const test::ScratchFolder folder;
  const std::vector<std::string> asked[] = {{"--result", folder / "a.json"},
                                            {"--result=" + folder / "b.json"}};
  for (const std::vector<std::string>& flags : asked) {
    std::vector<std::string> words = {"tarin", "job.yaml"};
    words.insert(words.end(), flags.begin(), flags.end());
    EXPECT_EQ(Parse(words).code, 2);
    const std::string path = folder / (flags.size() == 2 ? "a.json" : "b.json");
    const Result<Json> result = ReadJsonFile(path);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(TextOf(*result, "status"), "failed");
    EXPECT_THAT(TextOf(MemberOf(*result, "error"), "what"), HasSubstr("did you mean \"train\"?"));
  }
  const Parsed nowhere = Parse({"train", "--result", "/proc/nowhere/r.json"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_THAT(nowhere.errors, HasSubstr("/proc/nowhere/r.json")) << "it cannot be written";
  EXPECT_EQ(Parse({"train", "--result"}).code, 2) << "without a name nothing is written";
}

TEST(CommandMistakes, NothingThatWasTypedSteersTheTerminal) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"tr\x1b[31main"}, {"train", "j", "--\x1b]0;title\x07"}}) {
    const Parsed parsed = Parse(words);
    EXPECT_EQ(parsed.code, 2);
    EXPECT_EQ(parsed.errors.find_first_of("\x1b\x07"), std::string::npos) << parsed.errors;
    EXPECT_THAT(parsed.errors, HasSubstr("\\x1b"));
  }
}

struct Helped {
  std::vector<std::string> command;
  const char* example;
};
const Helped kHelped[] = {{{"train"}, "dovetail train configs/"},
                          {{"launch"}, "dovetail launch configs/"},
                          {{"scheduler"}, "dovetail scheduler job.yaml --listen tcp://"},
                          {{"server"}, "dovetail server job.yaml --scheduler tcp://"},
                          {{"worker"}, "dovetail worker job.yaml --scheduler tcp://"},
                          {{"eval"}, "dovetail eval job.yaml --checkpoint "},
                          {{"predict"}, "dovetail predict job.yaml --checkpoint DIR --data "},
                          {{"plan"}, "dovetail plan configs/"},
                          {{"status"}, "dovetail status job.yaml"},
                          {{"schema"}, "dovetail schema > "},
                          {{"completion"}, "dovetail completion bash > "},
                          {{"keygen"}, "dovetail keygen keys/job"},
                          {{"export"}, "dovetail export runs/"},
                          {{"report"}, "dovetail report runs/"},
                          {{"checkpoint", "list"}, "dovetail checkpoint list job.yaml"},
                          {{"checkpoint", "verify"}, "dovetail checkpoint verify runs/"},
                          {{"checkpoint", "inspect"}, "dovetail checkpoint inspect runs/"},
                          {{"data", "generate"}, "dovetail data generate --rows "},
                          {{"data", "convert"}, "dovetail data convert job.yaml"},
                          {{"data", "stats"}, "dovetail data stats job.yaml"},
                          {{"bench", "store"}, "dovetail bench store"},
                          {{"bench", "train"}, "dovetail bench train configs/"}};

TEST(Help, EveryCommandShowsItsFlagsAndAnExample) {
  for (const Helped& helped : kHelped) {
    std::vector<std::string> words = helped.command;
    words.emplace_back("--help");
    const Parsed parsed = Parse(words);
    EXPECT_EQ(parsed.code, 0) << helped.example;
    EXPECT_EQ(parsed.errors, "") << helped.example;
    EXPECT_THAT(parsed.output, HasSubstr(std::string("Example:\n  ") + helped.example));
    EXPECT_THAT(parsed.output, HasSubstr("--help")) << helped.example;
  }
}

// An example that does not parse would be the first thing that a newcomer sees to fail.
TEST(Help, EveryExampleParses) {
  for (const Helped& helped : kHelped) {
    std::vector<std::string> words = helped.command;
    words.emplace_back("--help");
    const std::string help = Parse(words).output;
    const size_t at = help.find("Example:\n  dovetail ") + std::string_view("Example:\n  ").size();
    const std::string example = help.substr(at, help.find('\n', at) - at);
    std::vector<std::string> typed;
    for (std::string rest = example.substr(0, example.find(" >")); !rest.empty();) {
      const size_t space = std::min(rest.find(' '), rest.size());
      typed.push_back(rest.substr(0, space));
      rest.erase(0, space + 1);
    }
    typed.erase(typed.begin());
    const Parsed parsed = Parse(typed);
    EXPECT_EQ(parsed.code, helped.command[0] == "completion" ? 0 : -1) << example << parsed.errors;
  }
}

TEST(Help, TheProgramsListsItsCommandsAndExitCodesAndHidesWhatIsNotForUsers) {
  const Parsed help = Parse({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const Helped& helped : kHelped) {
    EXPECT_THAT(help.output, ContainsRegex("\n  " + helped.command[0] + " "));
  }
  EXPECT_THAT(help.output, HasSubstr("0 done, 1 the job failed, 2 wrong usage"));
  EXPECT_THAT(Parse({"bench", "--help"}).output, Not(HasSubstr("peer")));
  EXPECT_THAT(Parse({"worker", "--help"}).output, Not(HasSubstr("--child")));
}

TEST(Help, TheVersionIsOneLine) {
  const Parsed version = Parse({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.output, std::string("dovetail ") + kVersion + "\n");
}

}  // namespace
}  // namespace dt::cli
