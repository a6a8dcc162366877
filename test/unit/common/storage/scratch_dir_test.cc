#include "common/storage/scratch_dir.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "test/support/scratch_folder.h"

namespace dt {
namespace {

namespace fs = std::filesystem;

ScratchDir MakeScratchIn(const std::string& parent) {
  Result<ScratchDir> made = ScratchDir::Make(parent, "rows");
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

TEST(ScratchDir, EveryOwnerHasOneWhichGoesWithIt) {
  const test::ScratchFolder temp;
  const std::string parent = temp / "a/b";
  std::string path;
  {
    const ScratchDir one = MakeScratchIn(parent), two = MakeScratchIn(parent);
    path = one.path();
    EXPECT_NE(one.path(), two.path());
    std::ofstream(two.path() + "/rows") << "rows";
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    const ScratchDir three = MakeScratchIn(parent);
    EXPECT_TRUE(fs::exists(one.path()));
    EXPECT_TRUE(fs::exists(two.path() + "/rows"));
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(std::distance(fs::directory_iterator(parent), {}), 1);  // Only the lock file is left.
}

TEST(ScratchDir, WhatAKilledProcessLeftIsRemovedByTheNext) {
  const test::ScratchFolder temp;
  const pid_t child = fork();
  if (child == 0) {
    const auto made = ScratchDir::Make(temp.path(), "rows");
    std::ofstream(made->path() + "/rows") << "rows";
    raise(SIGKILL);
  }
  waitpid(child, nullptr, 0);
  const auto left = [&] { return std::distance(fs::directory_iterator(temp.path()), {}) - 1; };
  ASSERT_EQ(left(), 1);
  fs::create_directory(temp / "rows-backup");  // This folder is not ours.
  fs::create_directory(temp / "rows-mine42");
  const ScratchDir next = MakeScratchIn(temp.path());
  EXPECT_EQ(left(), 3);
  EXPECT_TRUE(fs::exists(temp / "rows-backup") && fs::exists(temp / "rows-mine42"));
}

TEST(ScratchDir, WhatAKilledProcessLeftIsRemovedWhereNoneIsMade) {
  const test::ScratchFolder temp;
  ScratchDir::RemoveAbandoned(temp / "absent", "rows");
  EXPECT_FALSE(fs::exists(temp / "absent"));
  const auto living = ScratchDir::Make(temp.path(), "rows");
  ASSERT_TRUE(living.ok());
  for (const char* left : {"rows-abcdef", "launch-abcdef"}) {
    fs::create_directory(temp / left);
    std::ofstream(temp / (std::string(left) + "/lock")) << "";
  }
  ScratchDir::RemoveAbandoned(temp.path(), "rows");
  EXPECT_FALSE(fs::exists(temp / "rows-abcdef"));
  EXPECT_TRUE(fs::exists(temp / "launch-abcdef")) << "of another kind";
  EXPECT_TRUE(fs::exists(living->path()));
}

TEST(ScratchDir, AParentThatCannotBeWrittenIsNamed) {
  const test::ScratchFolder temp;
  std::ofstream(temp / "file") << "in the way";
  const Status failed = ScratchDir::Make(temp / "file/below", "rows").status();
  EXPECT_NE(ToText(failed).find(temp / "file/below"), std::string::npos) << failed;
}

}  // namespace
}  // namespace dt
