// Goal: a full disk gives an error that names the file, at whichever byte it happens; rows added
// before are still there, and once there is space the next attempt succeeds. Method: a file size
// limit of this process, at every few bytes; and, as root, a small tmpfs.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "common/base/pause.h"
#include "common/storage/rocksdb_rows.h"
#include "common/storage/rocksdb_store.h"
#include "test/support/full_disk.h"
#include "test/support/scratch_folder.h"

namespace dt {
namespace {

using test::FileSizeLimit;
using test::ScratchFolder;
using test::SmallDisk;
using Content = std::map<std::string, std::string>;

// The operations of a server on its rows on disk. A failed step is repeated.
class Rows {
 public:
  Rows(std::string folder, size_t row_bytes) : folder_(std::move(folder)), row_bytes_(row_bytes) {}

  Status Step(int i) {
    if (db_ == nullptr) {
      DT_TRY(db_, RowsDb::Create(folder_ + "/rows", {.cache_bytes = 1 << 20, .cuts = {"5"}}));
    }
    Content rows;
    for (int n = 0; n < 60; ++n) {
      rows[fmt::format("{:02}", (n * 37 + i * 11) % 100)] =
          std::string(row_bytes_ + i, static_cast<char>('a' + i % 26));
    }
    auto file = db_->NewFile(64 * row_bytes_);
    for (const auto& [key, value] : rows) DT_TRY_STATUS(file->Add(key, value));
    DT_TRY_STATUS(db_->Ingest(std::move(file)));
    for (auto& [key, value] : rows) all_[key] = value;
    if (i % 8 != 7) return OkStatus();
    db_->HoldMerges();
    const Status copied = db_->Checkpoint(fmt::format("{}/copy-{}", folder_, i));
    db_->ReleaseMerges();
    if (!copied.ok()) std::filesystem::remove_all(fmt::format("{}/copy-{}", folder_, i));
    return copied;
  }
  // Checks that exactly the added rows are there.
  void Check() const {
    Content found;
    const auto at = db_->Read();
    ASSERT_TRUE(at->Seek({}).ok());
    while (at->valid()) {
      found[std::string(at->key())] = at->value();
      ASSERT_TRUE(at->Next().ok());
    }
    EXPECT_EQ(found, all_);
  }

 private:
  const std::string folder_;
  const size_t row_bytes_;
  std::unique_ptr<RowsDb> db_;
  Content all_;
};

constexpr int kSteps = 40;

// Repeats each step from `i` on until it succeeds.
void Complete(Rows& rows, int i) {
  const TimePoint deadline = SystemClock().Now() + seconds(30);
  for (Status status; i < kSteps; i += status.ok() ? 1 : 0) {
    status = rows.Step(i);
    ASSERT_TRUE(status.ok() || SystemClock().Now() < deadline) << status;
    if (!status.ok()) Pause(milliseconds(20));
  }
  rows.Check();
}

TEST(RocksFaults, AFileThatMayGrowNoFurtherIsNamed) {
  for (uint64_t bytes = 0; bytes < 18'000; bytes += bytes < 2'000 ? 97 : 1'711) {
    SCOPED_TRACE(fmt::format("files of {} bytes at most", bytes));
    const ScratchFolder temp;
    Rows rows(temp.path(), 300);
    const FileSizeLimit limit(bytes);
    Status failed;
    for (int i = 0; i < kSteps && failed.ok(); ++i) failed = rows.Step(i);
    EXPECT_FALSE(failed.ok());
    EXPECT_NE(ToText(failed).find(temp.path()), std::string::npos) << failed;
    EXPECT_NE(ToText(failed).find("File too large"), std::string::npos) << failed;
    EXPECT_NE(ToText(failed).find("ulimit -f"), std::string::npos) << failed;
  }
}

class FullDisk : public ::testing::TestWithParam<size_t> {};

TEST_P(FullDisk, IsNamedWithItsRoomAndHarmsNothing) {
  if (!SmallDisk(1 << 20).made()) GTEST_SKIP() << "only root may mount a small file system";
  const size_t row_bytes = GetParam();
  for (uint64_t percent = 1; percent < 4000; percent += percent < 100 ? 13 : 311) {
    const uint64_t bytes = percent * row_bytes * 60 / 100 + (16 << 10);
    SCOPED_TRACE(fmt::format("a disk of {} bytes", bytes));
    const SmallDisk disk(bytes);
    Rows rows(disk.path(), row_bytes);
    int i = 0;
    Status failed;
    while (i < kSteps && (failed = rows.Step(i)).ok()) ++i;
    for (int again = 0; again < 3 && !failed.ok(); ++again) {
      EXPECT_NE(ToText(failed).find(disk.path()), std::string::npos) << failed;
      EXPECT_NE(ToText(failed).find("the disk is full"), std::string::npos) << failed;
      EXPECT_NE(ToText(failed).find("free)"), std::string::npos) << failed;
      failed = rows.Step(i);
    }
    disk.Grow(uint64_t{1} << 30);
    Complete(rows, i);
  }
}

// Files smaller and larger than the megabyte that RocksDB writes at once.
INSTANTIATE_TEST_SUITE_P(RowBytes, FullDisk, ::testing::Values(300, 20'000));

uint64_t FilesIn(const std::string& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<uint64_t>(std::distance(begin(files), end(files)));
}

// The disk has one page for each file of rows and nothing else, so in the end the page that is
// missing is one of RocksDB's list of files (its manifest).
TEST(RocksFaults, AFullDiskIsForgottenOnceThereIsRoom) {
  constexpr uint64_t kPage = 4096;
  uint64_t bytes = 64 * kPage;
  const SmallDisk disk(bytes);
  if (!disk.made()) GTEST_SKIP() << "only root may mount a small file system";
  auto db = RowsDb::Create(disk.path() + "/rows", {.cache_bytes = 1 << 20});
  ASSERT_TRUE(db.ok()) << db.status();
  const auto add = [&](int row) {
    auto file = (*db)->NewFile(0);
    DT_TRY_STATUS(file->Add(fmt::format("{:04}", row), "value"));
    return (*db)->Ingest(std::move(file));
  };
  ASSERT_TRUE(add(0).ok());
  (*db)->HoldMerges();
  std::ofstream(disk.path() + "/filler") << std::string(bytes, 'x');
  ASSERT_EQ(std::filesystem::space(disk.path()).available, 0u);
  int row = 1;
  Status failed;
  for (; row < 200 && failed.ok(); ++row) {
    disk.Grow(bytes += kPage);
    failed = add(row);
  }
  EXPECT_NE(ToText(failed).find("adding rows to"), std::string::npos) << failed;
  EXPECT_NE(ToText(failed).find("the disk is full"), std::string::npos) << failed;
  disk.Grow(uint64_t{1} << 30);
  for (; row < 400; ++row) {
    const Status added = add(row);
    ASSERT_TRUE(added.ok()) << added;
  }
  // Merged files are removed, as without an error.
  (*db)->ReleaseMerges();
  const TimePoint deadline = SystemClock().Now() + seconds(30);
  while (FilesIn(disk.path() + "/rows") > 60 && SystemClock().Now() < deadline) {
    Pause(milliseconds(100));
    ASSERT_TRUE(add(row++).ok());
  }
  EXPECT_LE(FilesIn(disk.path() + "/rows"), 60u);
}

TEST(RocksFaults, AStateOnAFullDiskKeepsWhatWasWritten) {
  if (!SmallDisk(1 << 20).made()) GTEST_SKIP() << "only root may mount a small file system";
  for (uint64_t pages = 1; pages < 40; pages += 3) {
    SCOPED_TRACE(fmt::format("a disk of {} pages", pages));
    const SmallDisk disk(pages << 12);
    const RocksOptions options{.folder = disk.path() + "/state", .write_buffer_bytes = 1 << 16};
    Content written;
    Status failed;
    {
      auto store = RocksStore::Open(options);
      failed = store.status();
      for (int i = 0; i < 400 && failed.ok(); ++i) {
        RocksBatch batch;
        const std::string key = std::to_string(i % 7), value(1000 + i, 'v');
        batch.Put(key, value);
        failed = (*store)->WriteDurably(batch);
        if (failed.ok()) written[key] = value;
      }
    }
    EXPECT_FALSE(failed.ok());
    EXPECT_NE(ToText(failed).find(disk.path()), std::string::npos) << failed;
    EXPECT_NE(ToText(failed).find("the disk is full"), std::string::npos) << failed;
    disk.Grow(64 << 20);
    auto store = RocksStore::Open(options);
    ASSERT_TRUE(store.ok()) << store.status();
    for (const auto& [key, value] : written) EXPECT_EQ((*store)->Get(key).value_or(""), value);
  }
}

}  // namespace
}  // namespace dt
