#include "common/storage/rocksdb_sorted_file.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "common/storage/rocksdb_status.h"
#include "test/support/scratch_folder.h"

namespace dt {
namespace {

using test::ScratchFolder;

std::string KeyOf(int i) { return fmt::format("key {:06}", i); }

void WritePairs(const std::string& path, int count) {
  auto file = SortedFileWriter::Open(path, 0);
  ASSERT_TRUE(file.ok()) << file.status();
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE((*file)->Add(KeyOf(i), std::string(100, static_cast<char>('a' + i % 26))).ok());
  }
  ASSERT_TRUE((*file)->Finish().ok());
}

// Pairs read, or the first error.
Result<int> ReadAll(const std::string& path) {
  DT_TRY(const auto file, SortedFileReader::Open(path));
  DT_TRY_STATUS(file->Seek(""));
  int count = 0;
  for (; file->valid(); ++count) {
    EXPECT_EQ(file->key(), KeyOf(count));
    DT_TRY_STATUS(file->Next());
  }
  return count;
}

TEST(SortedFile, ReadsBackInOrderAndByKey) {
  const ScratchFolder temp;
  WritePairs(temp / "f", 5000);
  EXPECT_EQ(*ReadAll(temp / "f"), 5000);
  auto file = SortedFileReader::Open(temp / "f");
  ASSERT_TRUE((*file)->Seek(KeyOf(4321) + "x").ok());
  EXPECT_EQ((*file)->key(), KeyOf(4322));
  EXPECT_EQ((*file)->value(), std::string(100, static_cast<char>('a' + 4322 % 26)));
  ASSERT_TRUE((*file)->Seek("z").ok());
  EXPECT_FALSE((*file)->valid());
}

TEST(SortedFile, UnfinishedIsRemoved) {
  const ScratchFolder temp;
  {
    auto file = SortedFileWriter::Open(temp / "f", 0);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Add("k", "v").ok());
  }
  EXPECT_FALSE(std::filesystem::exists(temp / "f"));
}

TEST(SortedFile, AbsentIsNotFound) {
  EXPECT_EQ(SortedFileReader::Open("/nowhere/f").status().code(), StatusCode::kNotFound);
}

TEST(SortedFile, AnyDamageIsDataLossNamingTheFile) {
  const ScratchFolder temp;
  WritePairs(temp / "good", 5000);
  const auto size = std::filesystem::file_size(temp / "good");
  for (const uint64_t at : {uint64_t{100}, uint64_t{size / 2}, uint64_t{size - 10}}) {
    std::filesystem::copy_file(temp / "good", temp / "bad",
                               std::filesystem::copy_options::overwrite_existing);
    std::fstream bad(temp / "bad", std::ios::in | std::ios::out | std::ios::binary);
    bad.seekp(static_cast<std::streamoff>(at));
    bad.write("\x5a\xa5\x5a\xa5", 4);
    bad.close();
    const auto read = ReadAll(temp / "bad");
    ASSERT_FALSE(read.ok()) << at;
    EXPECT_EQ(read.status().code(), StatusCode::kDataLoss) << at << read.status();
    EXPECT_NE(ToText(read.status()).find(temp / "bad"), std::string::npos);
  }
  for (const uint64_t length :
       {uint64_t{0}, uint64_t{10}, uint64_t{size / 2}, uint64_t{size - 1}}) {
    std::filesystem::copy_file(temp / "good", temp / "bad",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(temp / "bad", length);
    const auto read = ReadAll(temp / "bad");
    ASSERT_FALSE(read.ok()) << length;
    EXPECT_EQ(read.status().code(), StatusCode::kDataLoss) << length << read.status();
  }
}

TEST(SortedFile, FolderThatIsAbsentIsNamed) {
  const auto file = SortedFileWriter::Open("/nowhere/at/all", 5);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(ToText(file.status()).find("/nowhere/at/all"), std::string::npos);
}

TEST(RocksStatus, FullDiskSaysHowMuchIsNeededAndFree) {
  const ScratchFolder temp;
  for (const auto& rocks :
       {rocksdb::Status::NoSpace("x"),
        rocksdb::Status::IOError("while appending", "No space left on device")}) {
    const Status status = FromRocks(rocks, "writing", temp / "not/yet/f", 3 << 20);
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    const std::string text = ToText(status);
    EXPECT_NE(text.find("the disk is full (3 MiB needed, "), std::string::npos) << text;
    EXPECT_NE(text.find(temp / "not/yet/f"), std::string::npos) << text;
    EXPECT_EQ(text.find("unknown"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace dt
