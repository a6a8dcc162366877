// Goal: bash completes what the parser knows, and nothing that it would refuse. Method: the script
// that `completion bash` prints is run by bash itself, on lines as a user has typed them so far.
#include "cli/completion/bash_completion.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/process/child_process.h"
#include "test/support/scratch_folder.h"
#include "test/unit/cli/parsed.h"

namespace dt::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class BashCompletionTest : public ::testing::Test {
 protected:
  BashCompletionTest() {
    const Parsed parsed = Parse({"completion", "bash"});
    EXPECT_EQ(parsed.code, 0) << parsed.errors;
    std::ofstream(folder_ / "completion") << parsed.output;
    std::ofstream(folder_ / "ask") << "source \"$1\"; out=$2; shift 2; COMP_WORDS=(\"$@\")\n"
                                   << "COMP_CWORD=$(($# - 1)); _dovetail\n"
                                   << "printf '%s\\n' \"${COMPREPLY[@]}\" > \"$out\"\n";
  }
  // What bash offers for the last word.
  std::vector<std::string> Complete(std::vector<std::string> words) const {
    words.insert(words.begin(),
                 {folder_ / "ask", folder_ / "completion", folder_ / "out", "dovetail"});
    auto child = ChildProcess::Start("bash", "/bin/bash", words);
    EXPECT_TRUE(child.ok()) << child.status();
    std::vector<ChildProcess> children;
    children.push_back(*std::move(child));
    EXPECT_TRUE(WaitFor(children, seconds(60), [](const auto& all) { return !all[0].running(); }));
    EXPECT_EQ(children[0].exit()->Text(), "exited with code 0");
    std::vector<std::string> offered;
    std::ifstream out(folder_ / "out");
    for (std::string line; std::getline(out, line);) {
      if (!line.empty()) offered.push_back(line);
    }
    return offered;
  }

  const test::ScratchFolder folder_;
};

TEST_F(BashCompletionTest, TheFirstWordIsACommand) {
  EXPECT_THAT(Complete({""}), IsSupersetOf({"train", "launch", "plan", "checkpoint", "--help"}));
  EXPECT_THAT(Complete({"la"}), ElementsAre("launch"));
  EXPECT_THAT(Complete({"s"}),
              UnorderedElementsAre("scheduler", "server", "status", "scale", "schema"));
  EXPECT_THAT(Complete({"tarin"}), IsEmpty());
}

TEST_F(BashCompletionTest, ACommandsOwnWordsFollowIt) {
  EXPECT_THAT(Complete({"checkpoint", ""}), IsSupersetOf({"list", "verify", "inspect"}));
  EXPECT_THAT(Complete({"checkpoint", "v"}), ElementsAre("verify"));
  EXPECT_THAT(Complete({"data", "g"}), ElementsAre("generate"));
  EXPECT_THAT(Complete({"train", "job.yaml", "--re"}),
              UnorderedElementsAre("--result", "--resume"));
  EXPECT_THAT(Complete({"data", "generate", "--ro"}), ElementsAre("--rows"));
  EXPECT_THAT(Complete({"data", "convert", "--ro"}), IsEmpty()) << "a flag of another command";
}

TEST_F(BashCompletionTest, AFlagsValuesFollowIt) {
  EXPECT_THAT(Complete({"train", "j", "--log-level", ""}),
              UnorderedElementsAre("debug", "info", "warn", "error", "off"));
  EXPECT_THAT(Complete({"train", "j", "--resume", ""}), UnorderedElementsAre("auto", "never"))
      << "DIR is for the user to find";
  EXPECT_THAT(Complete({"plan", "j", "--format", "d"}), ElementsAre("dot"));
  EXPECT_THAT(Complete({"export", "d", "--format", ""}),
              UnorderedElementsAre("safetensors", "npz"));
  EXPECT_THAT(Complete({"completion", "b"}), ElementsAre("bash"));
}

// Then bash itself completes names of files.
TEST_F(BashCompletionTest, NothingIsOfferedWhereAFileBelongs) {
  EXPECT_THAT(Complete({"train", "j", "--result", ""}), IsEmpty());
  EXPECT_THAT(Complete({"report", "r.json", "--out", "r"}), IsEmpty());
  EXPECT_THAT(Complete({"train", "job.y"}), IsEmpty());
}

TEST_F(BashCompletionTest, WhatIsNotForUsersIsNotOffered) {
  EXPECT_THAT(Complete({"bench", ""}), Contains("store"));
  EXPECT_THAT(Complete({"bench", ""}), Not(Contains("peer")));
  EXPECT_THAT(Complete({"worker", "--"}), Not(Contains("--child")));
}

// Every flag that is offered is one that the parser takes.
TEST_F(BashCompletionTest, EveryFlagOfferedIsInTheCommandsHelp) {
  const std::vector<std::string> commands[] = {
      {"train"}, {"predict"}, {"plan"}, {"status"}, {"export"}, {"data", "generate"}, {"worker"}};
  for (std::vector<std::string> command : commands) {
    std::vector<std::string> help = command;
    help.emplace_back("--help");
    const std::string text = Parse(help).output;
    command.emplace_back("--");
    const std::vector<std::string> flags = Complete(command);
    EXPECT_GE(flags.size(), 3u) << command[0];
    for (const std::string& flag : flags) {
      EXPECT_NE(text.find(flag), std::string::npos) << command[0] << " " << flag;
    }
  }
}

}  // namespace
}  // namespace dt::cli
