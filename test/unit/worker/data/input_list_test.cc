// Goal: a list of inputs names, counts and opens its files or its command.
#include "worker/data/input/input_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/worker/data/data_files.h"

namespace dt::worker {
namespace {

std::string TextOf(const InputList& list, size_t input) {
  Result<NamedSource> opened = list.Open(input);
  if (!opened.ok()) return std::string(MessageOf(opened.status()));
  std::string text(1000, '\0');
  const Result<size_t> got = opened->bytes->Read(text);
  text.resize(got.value_or(0));
  return opened->name + ": " + text;
}

TEST(InputList, FilesAreOpenedInTheirOrderAnyNumberOfTimes) {
  const TempDir dir;
  const std::string b = dir.Write("b.txt", "bees"), a = dir.Write("a.txt", "ant");
  const Result<InputList> list = InputList::OfFiles({b, a}, "train");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->size(), 2u);
  EXPECT_FALSE(list->is_command());
  EXPECT_EQ(list->bytes(), 7u);
  EXPECT_EQ(list->name(1), a);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(TextOf(*list, 0), b + ": bees");
    EXPECT_EQ(TextOf(*list, 1), a + ": ant");
  }
  EXPECT_EQ(list->paths_text(), b + "\n" + a + "\n");
}

// A data cache is used only while these texts stay the same.
TEST(InputList, TextsShowAChangedFileAndAnotherPath) {
  const TempDir dir;
  const std::string file = dir.Write("a.txt", "ant");
  const Result<InputList> before = InputList::OfFiles({file}, "train");
  const Result<InputList> same = InputList::OfFiles({dir.path("./a.txt")}, "train");
  dir.Write("a.txt", "ants");
  const Result<InputList> after = InputList::OfFiles({file}, "train");
  ASSERT_TRUE(before.ok() && same.ok() && after.ok());
  EXPECT_THAT(before->sources_text(), testing::StartsWith(file + " 3 "));
  EXPECT_EQ(same->sources_text(), before->sources_text());
  EXPECT_NE(after->sources_text(), before->sources_text());
  EXPECT_EQ(after->paths_text(), before->paths_text());
}

TEST(InputList, AFileThatChangesOrGoesWhileItIsReadIsNamed) {
  const TempDir dir;
  const std::string a = dir.Write("a.txt", "ant"), b = dir.Write("b.txt", "bees");
  const Result<InputList> list = InputList::OfFiles({a, b}, "train");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->CheckUnchanged(), OkStatus());
  dir.Write("b.txt", "beetle");
  EXPECT_EQ(MessageOf(list->CheckUnchanged()), b + ": the file changed while it was read");
  std::filesystem::remove(a);
  EXPECT_EQ(MessageOf(list->CheckUnchanged()), a + ": the file changed while it was read");
  EXPECT_EQ(InputList::OfCommand("echo").CheckUnchanged(), OkStatus());
}

TEST(InputList, AnAbsentFileIsNamedWithItsSplit) {
  const TempDir dir;
  const Result<InputList> list = InputList::OfFiles({dir.path("none")}, "valid");
  EXPECT_EQ(list.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(std::string(MessageOf(list.status())),
              testing::StartsWith(dir.path("none") + ": the file of data.valid cannot be read: "));
}

TEST(InputList, ACommandIsOneInputOfUnknownSize) {
  const InputList list = InputList::OfCommand("echo hello");
  EXPECT_EQ(list.size(), 1u);
  EXPECT_TRUE(list.is_command());
  EXPECT_EQ(list.bytes(), 0u);
  EXPECT_EQ(list.sources_text(), "");
  EXPECT_EQ(TextOf(list, 0), "command: hello\n");
}

TEST(InputList, AnEmptyListHasNoInputs) { EXPECT_EQ(InputList().size(), 0u); }

}  // namespace
}  // namespace dt::worker
