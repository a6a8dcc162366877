#include "server/storage/disk_tier.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "server/shard/checksum.h"
#include "test/support/scratch_folder.h"
#include "test/support/tiered_shards.h"

namespace dt::server {
namespace {

constexpr uint64_t kTierKeys = 3000;
constexpr uint32_t kDim = 32;

class DiskTierTest : public ::testing::Test {
 protected:
  // Pushes ones to every key, 100 keys in a step.
  bool PushAll() {
    for (uint64_t begin = 0; begin < kTierKeys; begin += 100) {
      std::map<Key, std::vector<float>> rows;
      for (Key key = begin; key < begin + 100; ++key) rows[key] = std::vector<float>(kDim, 1);
      if (!tiered_.Push(0, tiered_.shards().clock(), rows)) return false;
      tiered_.Rest(10);
    }
    return true;
  }
  float Pushes(Key key) {
    const std::vector<float> values = tiered_.Pull(0, key);
    return values.empty() ? -1 : -values[kDim - 1];
  }
  static std::vector<TableSpec> Counting() {
    TableSpec spec = test::SimpleTable("t", kDim);
    spec.init = {InitKind::kZeros, 0};
    return {spec};
  }

  const test::ScratchFolder temp_;
  test::TieredShards tiered_{Counting(), 2, test::AllShards(2), temp_ / "rows", 1 << 17};
};

TEST_F(DiskTierTest, RowsLeaveAndComeBack) {
  ASSERT_TRUE(PushAll());
  EXPECT_GT(tiered_.tier().rows_below(), kTierKeys / 2);
  EXPECT_TRUE(tiered_.shards().below());
  for (Key key = 0; key < kTierKeys; key += 7) ASSERT_EQ(Pushes(key), 1) << key;
  EXPECT_EQ(Pushes(kTierKeys + 1), 0);  // Never pushed.
  EXPECT_LT(tiered_.shards().bytes(), uint64_t{1} << 18);
}

TEST_F(DiskTierTest, CountsWhatIsWhereAndWhatMoves) {
  ASSERT_TRUE(PushAll());
  constexpr uint64_t kPulls = 500;
  for (Key key = 0; key < kPulls; ++key) ASSERT_EQ(Pushes(key), 1) << key;
  const TableReport sizes = SizesOf(tiered_.shards().tables(), tiered_.shards().shards())[0];
  std::vector<TableReport> exact =
      ReportTables(tiered_.shards().tables(), tiered_.shards().shards());
  ASSERT_TRUE(tiered_.tier()
                  .VisitRowsBelow([&](const EmbeddingTable& table, Key key, auto record) {
                    AddRowBelow(table, key, record, exact);
                  })
                  .ok());
  EXPECT_EQ(sizes.rows, kTierKeys);
  EXPECT_EQ(sizes.rows_in_memory, exact[0].rows_in_memory);
  EXPECT_EQ(sizes.rows_on_disk, exact[0].rows_on_disk);
  EXPECT_EQ(sizes.bytes, exact[0].bytes);
  EXPECT_EQ(sizes.rows_touched, kPulls);
  EXPECT_GT(sizes.rows_fetched, 0);
  EXPECT_LE(sizes.rows_fetched, kPulls);
  EXPECT_GE(sizes.rows_written, sizes.rows_on_disk);
}

TEST_F(DiskTierTest, WithoutNeedTheDiskIsNotTouched) {
  std::map<Key, std::vector<float>> rows;
  for (Key key = 0; key < 50; ++key) rows[key] = std::vector<float>(kDim, 1);
  ASSERT_TRUE(tiered_.Push(0, 0, rows));
  EXPECT_FALSE(std::filesystem::exists(temp_ / "rows"));
  EXPECT_FALSE(tiered_.shards().below());
}

TEST_F(DiskTierTest, ADiskThatFailsForAWhileLosesNothing) {
  // No folder can be made below a file.
  const std::string folder = temp_ / "file";
  std::ofstream(folder) << "in the way";
  test::TieredShards tiered(Counting(), 2, test::AllShards(2), folder + "/rows", 1 << 17);
  std::map<Key, std::vector<float>> rows;
  for (Key key = 0; key < kTierKeys; ++key) rows[key] = std::vector<float>(kDim, 1);
  ASSERT_TRUE(tiered.Push(0, 0, rows));
  const auto saved = tiered.Save(1, {temp_ / "checkpoint", ProcessId(1), 0});
  ASSERT_FALSE(saved.ok());
  EXPECT_NE(ToText(saved.status()).find(folder), std::string::npos) << saved.status();
  std::filesystem::remove(folder);
  ASSERT_TRUE(tiered.Push(0, 1, rows));
  tiered.Rest(1000);
  EXPECT_GT(tiered.tier().rows_below(), kTierKeys / 2);
  for (Key key = 0; key < kTierKeys; key += 13) {
    ASSERT_EQ(tiered.Pull(0, key).front(), -2) << key;
  }
}

TEST_F(DiskTierTest, ADamagedFileIsNamed) {
  ASSERT_TRUE(PushAll());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(temp_ / "rows")) {
    if (entry.path().extension() != ".sst") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    for (int at = 100; at < 40'000; at += 1000) {
      file.seekp(at);
      file.write("\x5a\xa5\x5a", 3);
    }
  }
  Key key = 0;
  while (key < kTierKeys && tiered_.tier().failure().ok()) Pushes(key += 3);
  EXPECT_EQ(tiered_.tier().failure().code(), StatusCode::kDataLoss);
  EXPECT_NE(ToText(tiered_.tier().failure()).find(temp_ / "rows"), std::string::npos)
      << tiered_.tier().failure();
}

// The rows need ten times the memory; they are loaded with the same and with another number of
// shards.
TEST_F(DiskTierTest, ALoadStaysWithinTheMemory) {
  constexpr uint64_t kAllKeys = 60'000, kMemory = 1 << 20;
  const std::string folder = temp_ / "saved";
  {
    test::TieredShards all{Counting(), 8, test::AllShards(8), temp_ / "all", kMemory};
    for (uint64_t begin = 0; begin < kAllKeys; begin += 1000) {
      std::map<Key, std::vector<float>> rows;
      for (Key key = begin; key < begin + 1000; ++key) rows[key] = std::vector<float>(kDim, 1);
      ASSERT_TRUE(all.Push(0, all.shards().clock(), rows));
    }
    ASSERT_TRUE(all.Save(all.shards().clock(), {folder, ProcessId(3), 0}).ok());
  }
  for (const uint32_t shards : {8, 5}) {
    test::TieredShards loaded{Counting(), shards, test::AllShards(shards), temp_ / "loaded",
                              kMemory};
    const Status status = loaded.Load(folder, kAllKeys / 1000);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_LE(loaded.shards().bytes(), kMemory) << shards;
    uint64_t in_memory = 0;
    for (const Shard& shard : loaded.shards().shards()) in_memory += shard.table(0).rows();
    EXPECT_GT(in_memory, kAllKeys / 50) << shards;
    EXPECT_EQ(in_memory + loaded.tier().rows_below(), kAllKeys);
    for (Key key = 0; key < kAllKeys; key += 997) {
      ASSERT_EQ(loaded.Pull(0, key), std::vector<float>(kDim, -1)) << key;
    }
    EXPECT_LE(loaded.shards().bytes(), kMemory) << shards;
  }
}

TEST_F(DiskTierTest, RowsThatAreGoneLeaveTheDiskToo) {
  std::vector<TableSpec> tables = Counting();
  tables[0].life.expiry_steps = 40;
  test::TieredShards expiring{tables, 2, test::AllShards(2), temp_ / "expiring", 1 << 17};
  constexpr uint64_t kKeysAStep = 100, kSteps = 600;
  uint64_t most = 0;
  for (uint64_t step = 0; step < kSteps; ++step) {
    std::map<Key, std::vector<float>> rows;
    for (uint64_t i = 0; i < kKeysAStep; ++i) {
      rows[step * kKeysAStep + i] = std::vector<float>(kDim, 1);
    }
    ASSERT_TRUE(expiring.Push(0, expiring.shards().clock(), rows));
    expiring.Rest(1);
    most = std::max(most, expiring.tier().disk_bytes());
  }
  // Rows of 41 steps are alive; some of the others stay on disk until they are merged.
  const uint64_t all = kSteps * kKeysAStep * kDim * sizeof(float);
  EXPECT_LT(most, all / 2);
  EXPECT_EQ(expiring.Pull(0, 5), std::vector<float>(kDim, 0));
  EXPECT_EQ(expiring.Pull(0, (kSteps - 20) * kKeysAStep), std::vector<float>(kDim, -1));
}

// An evaluation beside a training does this.
TEST_F(DiskTierTest, AnotherInTheSameFolderHasFilesOfItsOwn) {
  ASSERT_TRUE(PushAll());
  for (int i = 0; i < 2; ++i) {
    test::TieredShards other(Counting(), 2, test::AllShards(2), temp_ / "rows", 1 << 17);
    ASSERT_TRUE(other.Save(0, {temp_ / ("checkpoint" + std::to_string(i)), ProcessId(1), 0}).ok());
  }
  for (Key key = 0; key < kTierKeys; ++key) ASSERT_EQ(Pushes(key), 1) << key;
}

TEST_F(DiskTierTest, TheFolderGoesWithIt) {
  const auto folders = [this] {
    // The lock file does not count.
    return std::distance(std::filesystem::directory_iterator(temp_ / "other"), {}) - 1;
  };
  {
    test::TieredShards other(Counting(), 2, test::AllShards(2), temp_ / "other", 1 << 17);
    ASSERT_TRUE(other.Save(0, {temp_ / "checkpoint", ProcessId(1), 0}).ok());
    EXPECT_EQ(folders(), 1);
  }
  EXPECT_EQ(folders(), 0);
}

}  // namespace
}  // namespace dt::server
