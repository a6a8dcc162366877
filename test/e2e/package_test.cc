// Goal: the folder that scripts/package.sh makes runs on other machines. Method: a package of this
// build is moved and run with an empty environment; the dynamic loader's list shows that only glibc
// is taken from the machine.
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Package : public ::testing::Test {
 protected:
  // Runs a command in the test's folder; the environment holds nothing but PATH.
  ProgramEnd Bare(std::vector<std::string> words) {
    words.insert(words.begin(), {"-i", "PATH=/usr/bin:/bin"});
    setenv("DT_PROGRAM", "/usr/bin/env", 1);
    const ProgramEnd end = RunProgram(folder_.path(), words, std::chrono::minutes(2));
    setenv("DT_PROGRAM", built_.c_str(), 1);
    return end;
  }
  ProgramEnd Pack(const std::string& out) {
    return Bare({"bash", std::string(std::getenv("DT_SOURCE_DIR")) + "/scripts/package.sh",
                 "--build", fs::path(built_).parent_path(), "--no-cuda", "--out", out});
  }

  const std::string built_ = std::getenv("DT_PROGRAM");
  TempFolder folder_;
};

TEST_F(Package, RunsWhereverItLies) {
  const ProgramEnd packed = Pack(folder_.path() + "/made/dovetail");
  ASSERT_EQ(packed.exit_code, 0) << packed.output;
  const std::string moved = folder_.path() + "/other place";
  fs::rename(folder_.path() + "/made", moved);
  const std::string program = moved + "/dovetail/bin/dovetail";

  const ProgramEnd version = Bare({program, "--version"});
  EXPECT_EQ(version.exit_code, 0) << version.output;
  const std::string job = WriteTinyJob(folder_, {.rows = 500, .epochs = 1});
  const ProgramEnd trained = Bare({program, "train", job, "--result", "r.json"});
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  EXPECT_EQ(TextAt(folder_, "r.json", "/status"), "completed");
  EXPECT_TRUE(fs::exists(moved + "/dovetail/configs/quickstart.yaml"));
  EXPECT_THAT(folder_.Read("other place/dovetail/README"), HasSubstr("glibc 2."));

  const ProgramEnd needs = Bare({"ldd", program});
  ASSERT_EQ(needs.exit_code, 0) << needs.output;
  for (const std::string_view line : SplitText(needs.output, '\n')) {
    if (line.find("=> ") == std::string_view::npos) continue;
    const std::string_view name = line.substr(line.find_first_not_of(" \t"));
    if (name.starts_with("lib") && line.find(moved) == std::string_view::npos) {
      EXPECT_THAT(name, AnyOf(StartsWith("libc."), StartsWith("libm."), StartsWith("libmvec."),
                              StartsWith("libdl."), StartsWith("libpthread."), StartsWith("librt."),
                              StartsWith("libresolv.")));
    }
  }
}

TEST_F(Package, ReplacesOnlyAFolderOfItsOwn) {
  folder_.Write("precious", "words");
  const ProgramEnd refused = Pack(folder_.path());
  EXPECT_EQ(refused.exit_code, 1) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("holds something else"));
  EXPECT_EQ(folder_.Read("precious"), "words");
}

}  // namespace
}  // namespace dt::test
