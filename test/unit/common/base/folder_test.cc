#include "common/base/folder.h"

#include <fstream>

#include <gtest/gtest.h>

#include "test/support/scratch_folder.h"

namespace dt {
namespace {

TEST(ListFolder, NamesEveryEntryInOrder) {
  const test::ScratchFolder temp;
  for (const char* name : {"b", "c", "a"}) std::ofstream(temp / name) << "x";
  std::filesystem::create_directory(temp / "d");
  const auto entries = ListFolder(temp.path());
  ASSERT_TRUE(entries.ok()) << entries.status();
  std::string names;
  for (const auto& entry : *entries) names += entry.filename().string();
  EXPECT_EQ(names, "abcd");
}

TEST(ListFolder, OfAnEmptyFolderIsEmpty) {
  const test::ScratchFolder temp;
  EXPECT_TRUE(ListFolder(temp.path())->empty());
}

TEST(ListFolder, WithoutTheFolderIsNotFound) {
  const auto entries = ListFolder("/no/such/folder");
  EXPECT_EQ(entries.status().code(), StatusCode::kNotFound);
  EXPECT_NE(ToText(entries.status()).find("/no/such/folder"), std::string::npos);
}

TEST(ListFolder, OfAFileIsAnError) {
  const test::ScratchFolder temp;
  std::ofstream(temp / "file") << "x";
  EXPECT_EQ(ListFolder(temp / "file").status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(ListFolderIfAny(temp / "file").empty());
}

}  // namespace
}  // namespace dt
