#include "server/checkpoint/rows_file.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "server/shard/checksum.h"
#include "test/support/push_maker.h"
#include "test/support/scratch_folder.h"

namespace dt::server {
namespace {

constexpr Step kStep = 7;
const Generation kNext(2);
const std::vector<TableSpec> kTables = {test::SimpleTable("item", 3, OptimizerKind::kAdam),
                                        test::SimpleTable("user", 1, OptimizerKind::kSgd),
                                        test::SimpleTable("empty", 2, OptimizerKind::kSgd)};

ShardSet MakeSet(uint32_t shards_of_job, const std::vector<ShardId>& shards,
                 const std::vector<TableSpec>& tables = kTables) {
  return ShardSet({tables, 1, shards_of_job, shards, {Generation(1), Term(1), MapVersion(1)}});
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
    std::vector<ShardId> shards;
    for (uint32_t s = i; s < shards_of_job; s += servers) shards.emplace_back(s);
    sets.push_back(MakeSet(shards_of_job, shards));
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
      auto file = SaveRows(sets[i], kStep, {temp_.path(), ProcessId(10 + i), i});
      EXPECT_TRUE(file.ok()) << file.status();
      files_.push_back(*file);
    }
    return Sums(sets);
  }
  std::string PathOf(size_t file) const { return temp_ / files_[file].name; }
  Status LoadOne() {
    ShardSet set = MakeSet(8, test::AllShards(8));
    return LoadRows(temp_.path(), kStep, kNext, set);
  }

  const test::ScratchFolder temp_;
  std::vector<CheckpointFile> files_;
};

TEST_F(RowsFile, AnyNumberOfServersAndShardsReadsTheSameRows) {
  const auto want = Save();
  EXPECT_EQ(want[0][0], 500u);
  for (const auto& [shards, servers] :
       {std::pair{8u, 2u}, {8u, 1u}, {8u, 5u}, {64u, 3u}, {1u, 1u}}) {
    std::vector<ShardSet> sets = SplitOver(shards, servers);
    for (ShardSet& set : sets) {
      Fill(set, 20);  // Forgotten by loading.
      const Status loaded = LoadRows(temp_.path(), kStep, kNext, set);
      ASSERT_TRUE(loaded.ok()) << loaded;
      EXPECT_EQ(set.clock(), kStep);
      EXPECT_TRUE(set.CheckStamp({kNext, Term(1), MapVersion(1)}).ok());
      EXPECT_FALSE(set.CheckStamp({Generation(1), Term(1), MapVersion(1)}).ok());
    }
    EXPECT_EQ(Sums(sets), want) << shards << " shards, " << servers << " servers";
  }
}

TEST_F(RowsFile, ReportsItsFilesAsTheyAre) {
  Save(10);
  EXPECT_EQ(files_[1].name, "server-11/rows-1.sst");
  for (size_t i = 0; i < 2; ++i) {
    std::ifstream in(PathOf(i), std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(in)), {});
    EXPECT_EQ(files_[i].bytes, content.size());
    EXPECT_EQ(files_[i].digest, HashString(content));
  }
}

TEST_F(RowsFile, TablesWithoutRowsAreKept) {
  Save(0);
  EXPECT_TRUE(LoadOne().ok());
}

TEST_F(RowsFile, DamageNamesTheFile) {
  Save();
  std::fstream file(PathOf(0), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(files_[0].bytes / 3));
  file.write("\x5a\xa5\x5a", 3);
  file.close();
  const Status status = LoadOne();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(ToText(status).find(PathOf(0)), std::string::npos) << status;
}

TEST_F(RowsFile, TruncationNamesTheFile) {
  Save();
  std::filesystem::resize_file(PathOf(1), files_[1].bytes - 100);
  const Status status = LoadOne();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(ToText(status).find(PathOf(1)), std::string::npos) << status;
}

TEST_F(RowsFile, MissingFilesAreNoticed) {
  Save();
  std::filesystem::remove(PathOf(1));
  Status status = LoadOne();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(ToText(status).find("shard 1 are missing"), std::string::npos) << status;
  std::filesystem::remove(PathOf(0));
  status = LoadOne();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(ToText(status).find(temp_.path()), std::string::npos) << status;
}

TEST_F(RowsFile, FilesOfAnotherStepOrTwiceAreNoticed) {
  Save(10);
  std::filesystem::create_directory(temp_ / "server-99");
  std::filesystem::copy_file(PathOf(0), temp_ / "server-99/rows-0.sst");
  EXPECT_NE(ToText(LoadOne()).find("is in two files"), std::string::npos);
  std::filesystem::remove_all(temp_ / "server-99");
  ShardSet set = MakeSet(8, test::AllShards(8));
  const Status other = LoadRows(temp_.path(), kStep + 1, kNext, set);
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
    const Status status = LoadRows(temp_.path(), kStep, kNext, set);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_NE(ToText(status).find(c.want), std::string::npos) << status;
  }
}

TEST_F(RowsFile, FolderThatCannotBeWrittenIsNamedAndNothingIsLeft) {
  std::ofstream(temp_ / "server-10") << "in the way";
  ShardSet set = MakeSet(1, test::AllShards(1));
  const auto file = SaveRows(set, kStep, {temp_.path(), ProcessId(10), 0});
  ASSERT_FALSE(file.ok());
  EXPECT_NE(ToText(file.status()).find(temp_ / "server-10"), std::string::npos) << file.status();
  std::filesystem::create_directories(temp_ / "server-11/rows-0.sst");
  const auto folder = SaveRows(set, kStep, {temp_.path(), ProcessId(11), 0});
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(ToText(folder.status()).find("rows-0.sst"), std::string::npos) << folder.status();
}

}  // namespace
}  // namespace dt::server
