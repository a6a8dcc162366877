#include "common/storage/copy_file.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "common/storage/files.h"
#include "test/support/full_disk.h"
#include "test/support/scratch_folder.h"

namespace dt {
namespace {

using test::FileSizeLimit;
using test::ScratchFolder;
using test::SmallDisk;

constexpr size_t kBytes = 700'000;

class CopyOf : public ::testing::Test {
 protected:
  CopyOf() {
    for (size_t i = 0; i < kBytes; ++i) content_ += static_cast<char>(i * 7 % 251);
    EXPECT_TRUE(WriteWholeFile(from_, content_).ok());
  }

  const ScratchFolder temp_;
  const std::string from_ = temp_ / "from", to_ = temp_ / "to";
  std::string content_;
};

TEST_F(CopyOf, HasAllOrTheFirstBytes) {
  ASSERT_FALSE(CopyFile(from_, to_));
  EXPECT_EQ(ReadWholeFile(to_).value_or(""), content_);
  for (const size_t bytes : {size_t{0}, size_t{5}, size_t{1} << 18, kBytes + 1}) {
    const std::string part = temp_ / std::to_string(bytes);
    ASSERT_FALSE(CopyFile(from_, part, bytes));
    EXPECT_EQ(*ReadWholeFile(part), content_.substr(0, bytes)) << bytes;
  }
}

TEST_F(CopyOf, ReplacesNothing) {
  ASSERT_TRUE(WriteWholeFile(to_, "x").ok());
  EXPECT_EQ(CopyFile(from_, to_), std::errc::file_exists);
  EXPECT_EQ(*ReadWholeFile(to_), "x");
  EXPECT_EQ(CopyFile(temp_ / "none", temp_ / "other"), std::errc::no_such_file_or_directory);
}

TEST_F(CopyOf, AFileThatFillsTheDiskSaysSo) {
  const SmallDisk disk(64 << 10);
  if (!disk.made()) GTEST_SKIP() << "only root may mount a small file system";
  EXPECT_EQ(LinkOrCopy(from_, disk.path() + "/to"), std::errc::no_space_on_device);
}

TEST_F(CopyOf, AFileThatMayGrowNoFurtherSaysSo) {
  const FileSizeLimit limit(10'000);
  EXPECT_EQ(CopyFile(from_, to_), std::errc::file_too_large);
}

TEST_F(CopyOf, LinksWhereItCan) {
  ASSERT_FALSE(LinkOrCopy(from_, to_));
  EXPECT_EQ(std::filesystem::hard_link_count(to_), 2u);
}

}  // namespace
}  // namespace dt
