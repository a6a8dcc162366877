#include "server/checkpoint/rows_file.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/rows/row_record.h"
#include "server/shard/checksum.h"
#include "test/support/push_maker.h"
#include "test/support/scratch_folder.h"
#include "test/support/tiered_shards.h"

namespace dt::server {
namespace {

constexpr Step kStep = 7;
const Generation kNext(2);
const std::vector<TableSpec> kTables = {test::SimpleTable("item", 3, OptimizerKind::kAdam),
                                        test::SimpleTable("user", 1, OptimizerKind::kSgd),
                                        test::SimpleTable("empty", 2, OptimizerKind::kSgd)};

ShardSet MakeSet(uint32_t shards_of_job, const std::vector<ShardId>& shards,
                 const std::vector<TableSpec>& tables = kTables) {
  return ShardSet(test::SetOf(tables, 1, shards_of_job, shards));
}

std::vector<ShardId> EveryOther(uint32_t shards_of_job, uint32_t first, uint32_t by) {
  std::vector<ShardId> shards;
  for (uint32_t s = first; s < shards_of_job; s += by) shards.emplace_back(s);
  return shards;
}

void Fill(ShardSet& set, uint32_t keys) {
  for (uint32_t t = 0; t < 2; ++t) {
    for (Key n = 0; n < keys; ++n) {
      const Key key = MixBits(n);
      const uint32_t shard = ShardOf(kTables[t].id, key, set.shards_of_job()).value();
      for (Shard& s : set.shards()) {
        if (s.id().value() != shard) continue;
        std::vector<float> gradient(kTables[t].dim, static_cast<float>(n) + 1);
        s.table(t).Push({&key, 1}, gradient, {.step = n % kStep});
      }
    }
  }
}

std::vector<ShardSet> SplitOver(uint32_t shards_of_job, uint32_t servers) {
  std::vector<ShardSet> sets;
  for (uint32_t i = 0; i < servers; ++i) {
    sets.push_back(MakeSet(shards_of_job, EveryOther(shards_of_job, i, servers)));
  }
  return sets;
}

std::vector<std::array<uint64_t, 3>> Sums(const std::vector<ShardSet>& sets) {
  auto reports = ReportTables(kTables, {});
  for (const ShardSet& set : sets) AddReports(reports, ReportTables(kTables, set.shards()));
  std::vector<std::array<uint64_t, 3>> sums;
  for (const TableReport& r : reports) sums.push_back({r.rows, r.checksum_low, r.checksum_high});
  return sums;
}

class RowsFile : public ::testing::Test {
 protected:
  // Saves rows held by two servers with 8 shards; returns their checksums.
  std::vector<std::array<uint64_t, 3>> Save(uint32_t keys = 500) {
    std::vector<ShardSet> sets = SplitOver(8, 2);
    for (uint32_t i = 0; i < sets.size(); ++i) {
      Fill(sets[i], keys);
      test::TieredShards tiered(kTables, 8, EveryOther(8, i, 2), temp_ / "tier", 1 << 24);
      Fill(tiered.shards(), keys);
      auto files = tiered.Save(kStep, {temp_.path(), ProcessId(10 + i), i});
      EXPECT_TRUE(files.ok()) << files.status();
      files_.push_back(*files);
    }
    return Sums(sets);
  }
  // The file with the rows of a server, which is the largest.
  const CheckpointFile& RowsOf(size_t server) const {
    return *std::ranges::max_element(files_[server], {}, [](const CheckpointFile& file) {
      return file.name.ends_with(".sst") ? file.bytes : 0;
    });
  }
  std::string PathOf(size_t server) const { return temp_ / RowsOf(server).name; }
  std::string FolderOf(size_t server) const {
    return std::filesystem::path(PathOf(server)).parent_path();
  }
  Status LoadOne() {
    ShardSet set = MakeSet(8, test::AllShards(8));
    return LoadRows({temp_.path(), kStep, kNext}, set);
  }

  const test::ScratchFolder temp_;
  std::vector<std::vector<CheckpointFile>> files_;
};

TEST_F(RowsFile, AnyNumberOfServersAndShardsReadsTheSameRows) {
  const auto want = Save();
  EXPECT_EQ(want[0][0], 500u);
  for (const auto& [shards, servers] :
       {std::pair{8u, 2u}, {8u, 1u}, {8u, 5u}, {64u, 3u}, {1u, 1u}}) {
    std::vector<ShardSet> sets = SplitOver(shards, servers);
    for (ShardSet& set : sets) {
      Fill(set, 20);  // Loading must remove these rows.
      const Status loaded = LoadRows({temp_.path(), kStep, kNext}, set);
      ASSERT_TRUE(loaded.ok()) << loaded;
      EXPECT_EQ(set.clock(), kStep);
      Stamp stamp = test::kFirstStamp;
      EXPECT_FALSE(set.CheckStamp(stamp).ok());
      stamp.generation = kNext;
      EXPECT_TRUE(set.CheckStamp(stamp).ok());
    }
    EXPECT_EQ(Sums(sets), want) << shards << " shards, " << servers << " servers";
  }
}

// Another job's rows, in any number of shards: records stay as they are.
TEST_F(RowsFile, AnotherJobTakesTheTablesThatItWants) {
  const auto want = Save();
  const TakenParts item{.tables = {{kTables[0].id, true, ""}}};
  for (const uint32_t shards : {8u, 16u}) {
    ShardSetOptions options = test::SetOf(kTables, 1, shards, test::AllShards(shards));
    options.steps_before = kStep;
    std::vector<ShardSet> sets;
    sets.emplace_back(std::move(options));
    const Status loaded = LoadRows({temp_.path(), 0, kNext, item}, sets[0]);
    ASSERT_TRUE(loaded.ok()) << loaded;
    EXPECT_EQ(sets[0].clock(), 0u);
    EXPECT_EQ(Sums(sets)[0], want[0]) << shards;
    EXPECT_EQ(Sums(sets)[1][0], 0u) << "the user table is not taken";
    for (const Shard& shard : sets[0].shards()) EXPECT_EQ(shard.position(), 0u);
  }
}

TEST_F(RowsFile, WithoutItsStateARowIsAsIfItWereNew) {
  Save();
  std::vector<TableSpec> tables = kTables;
  tables[0].optimizer.kind = OptimizerKind::kAdagrad;
  tables[0].optimizer.initial_accumulator = 0.25f;
  ShardSet set = MakeSet(8, test::AllShards(8), tables);
  const TakenParts item{.tables = {{kTables[0].id, false, ""}}};
  ASSERT_TRUE(LoadRows({temp_.path(), 0, kNext, item}, set).ok());
  uint64_t rows = 0;
  for (Shard& shard : set.shards()) {
    for (const KeyRow& row : shard.table(0).SortedRows()) {
      std::vector<std::byte> record(shard.table(0).record_bytes());
      shard.table(0).CopyRecord(row, record);
      float state = 0;
      std::memcpy(&state, record.data() + 3 * sizeof(float), sizeof(state));
      EXPECT_EQ(state, 0.25f);
      EXPECT_EQ(LastPushOf(record), 0u);
      ++rows;
    }
  }
  EXPECT_EQ(rows, 500u);
}

// A log continues a checkpoint only with the same shards.
TEST_F(RowsFile, ShardsGoOnFromTheirPositions) {
  test::TieredShards tiered(kTables, 8, test::AllShards(8), temp_ / "tier", 1 << 24);
  Fill(tiered.shards(), 20);
  for (Shard& shard : tiered.shards().shards()) shard.SetPosition(100 + shard.id().value());
  ASSERT_TRUE(tiered.Save(kStep, {temp_.path(), ProcessId(1), 0}).ok());
  ShardSet same = MakeSet(8, EveryOther(8, 1, 2)), other = MakeSet(16, test::AllShards(16));
  ASSERT_TRUE(LoadRows({temp_.path(), kStep, kNext}, same).ok());
  ASSERT_TRUE(LoadRows({temp_.path(), kStep, kNext}, other).ok());
  for (const Shard& shard : same.shards()) EXPECT_EQ(shard.position(), 100 + shard.id().value());
  for (const Shard& shard : other.shards()) EXPECT_EQ(shard.position(), 0u);
}

TEST_F(RowsFile, ReportsItsFilesAsTheyAre) {
  Save(10);
  size_t there = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FolderOf(1))) {
    there += entry.is_regular_file();
  }
  EXPECT_EQ(files_[1].size(), there);
  for (const CheckpointFile& file : files_[1]) {
    EXPECT_TRUE(file.name.starts_with("server-11/rows-1/")) << file.name;
    std::ifstream in(temp_ / file.name, std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(in)), {});
    EXPECT_EQ(file.bytes, content.size()) << file.name;
    EXPECT_EQ(file.digest, HashString(content)) << file.name;
  }
}

TEST_F(RowsFile, TablesWithoutRowsAreKept) {
  Save(0);
  EXPECT_TRUE(LoadOne().ok());
}

TEST_F(RowsFile, DamageNamesTheFile) {
  Save();
  std::fstream file(PathOf(0), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(RowsOf(0).bytes / 3));
  file.write("\x5a\xa5\x5a", 3);
  file.close();
  const Status status = LoadOne();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(ToText(status).find(PathOf(0)), std::string::npos) << status;
}

TEST_F(RowsFile, TruncationNamesTheFile) {
  Save();
  std::filesystem::resize_file(PathOf(1), RowsOf(1).bytes - 100);
  const Status status = LoadOne();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(ToText(status).find(PathOf(1)), std::string::npos) << status;
}

TEST_F(RowsFile, MissingFilesAreNoticed) {
  Save();
  std::filesystem::remove_all(FolderOf(1));
  Status status = LoadOne();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(ToText(status).find("shard 1 are missing"), std::string::npos) << status;
  std::filesystem::remove_all(FolderOf(0));
  status = LoadOne();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(ToText(status).find(temp_.path()), std::string::npos) << status;
}

TEST_F(RowsFile, FilesOfAnotherStepOrTwiceAreNoticed) {
  Save(10);
  std::filesystem::create_directory(temp_ / "server-99");
  std::filesystem::copy(FolderOf(0), temp_ / "server-99/rows-0");
  EXPECT_NE(ToText(LoadOne()).find("is in two files"), std::string::npos);
  std::filesystem::remove_all(temp_ / "server-99");
  ShardSet set = MakeSet(8, test::AllShards(8));
  const Status other = LoadRows({temp_.path(), kStep + 1, kNext}, set);
  EXPECT_EQ(other.code(), StatusCode::kDataLoss);
  EXPECT_NE(ToText(other).find("step 7, not at 8"), std::string::npos) << other;
}

TEST_F(RowsFile, TablesThatDifferAreNamed) {
  Save(10);
  struct Case {
    std::function<void(std::vector<TableSpec>&)> change;
    std::string want;
  };
  const Case cases[] = {
      {[](auto& t) { t[0].dim = 4; }, "table item was saved with dim 3"},
      {[](auto& t) { t[1].optimizer.kind = OptimizerKind::kAdam; }, "table user was saved"},
      {[](auto& t) { t[0].dtype = FloatFormat::kBf16; }, "item were saved as fp32"},
      {[](auto& t) { t.pop_back(); }, "has a table empty"},
      {[](auto& t) { t.push_back(test::SimpleTable("new", 1)); }, "has no table new"},
  };
  for (const Case& c : cases) {
    std::vector<TableSpec> tables = kTables;
    c.change(tables);
    ShardSet set = MakeSet(8, test::AllShards(8), tables);
    const Status status = LoadRows({temp_.path(), kStep, kNext}, set);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_NE(ToText(status).find(c.want), std::string::npos) << status;
  }
}

TEST_F(RowsFile, FolderThatCannotBeWrittenIsNamed) {
  std::ofstream(temp_ / "server-10") << "in the way";
  test::TieredShards tiered(kTables, 1, test::AllShards(1), temp_ / "tier", 1 << 24);
  const auto file = tiered.Save(kStep, {temp_.path(), ProcessId(10), 0});
  ASSERT_FALSE(file.ok());
  EXPECT_NE(ToText(file.status()).find(temp_ / "server-10"), std::string::npos) << file.status();
  std::filesystem::create_directories(temp_ / "server-11/rows-0");
  const auto folder = tiered.Save(kStep, {temp_.path(), ProcessId(11), 0});
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(ToText(folder.status()).find("rows-0"), std::string::npos) << folder.status();
}

TEST_F(RowsFile, FilesThatDidNotChangeAreSharedByCheckpoints) {
  test::TieredShards tiered(kTables, 1, test::AllShards(1), temp_ / "tier", 1 << 24);
  Fill(tiered.shards(), 2000);
  const auto first = tiered.Save(kStep, {temp_ / "a", ProcessId(1), 0});
  ASSERT_TRUE(first.ok()) << first.status();
  const Key key = MixBits(5);
  tiered.shards().shards()[0].table(0).Push({&key, 1}, std::vector<float>{1, 2, 3}, {.step = 9});
  const auto second = tiered.Save(kStep, {temp_ / "b", ProcessId(1), 0});
  ASSERT_TRUE(second.ok()) << second.status();
  uint64_t all = 0, fresh = 0;
  for (const CheckpointFile& file : *second) {
    all += file.bytes;
    std::error_code error;
    const bool shared =
        std::filesystem::equivalent(temp_ / ("a/" + file.name), temp_ / ("b/" + file.name), error);
    if (!shared) fresh += file.bytes;
  }
  EXPECT_LT(fresh, all / 3);
}

}  // namespace
}  // namespace dt::server
