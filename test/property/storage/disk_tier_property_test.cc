// Goal: shards with a disk tier hold the same rows as shards without one, whatever rows are
// evicted, fetched, saved while they change, or loaded by other shards. Method: seeded steps with a
// memory budget for a fraction of the rows; values and checksums are compared bit for bit with
// shards that keep everything in memory.
#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "server/shard/checksum.h"
#include "test/support/scratch_folder.h"
#include "test/support/tiered_shards.h"

namespace dt::server {
namespace {

constexpr uint32_t kShards = 4;
constexpr uint64_t kKeys = 4000;

std::vector<TableSpec> Tables() {
  TableSpec wide = test::SimpleTable("wide", 24, OptimizerKind::kAdam);
  wide.optimizer.l2 = 0.01f;
  TableSpec kept = test::SimpleTable("kept", 3, OptimizerKind::kAdagrad);
  kept.all_in_memory = true;
  return {wide, test::SimpleTable("thin", 1), kept};
}

std::vector<std::array<uint64_t, 3>> Sums(ShardSet& set, DiskTier* tier) {
  std::vector<TableReport> reports = ReportTables(set.tables(), set.shards());
  if (tier != nullptr) {
    const Status visited = tier->VisitRowsBelow(
        [&](const EmbeddingTable& table, Key key, std::span<const std::byte> record) {
          AddRowBelow(table, key, record, reports);
        });
    EXPECT_TRUE(visited.ok()) << visited;
  }
  std::vector<std::array<uint64_t, 3>> sums;
  for (const TableReport& r : reports) sums.push_back({r.rows, r.checksum_low, r.checksum_high});
  return sums;
}

class Story {
 public:
  Story(uint64_t seed, const std::string& folder, uint64_t memory)
      : seed_(seed),
        folder_(folder),
        tiered_(Tables(), kShards, test::AllShards(kShards), folder + "/tier", memory),
        plain_(Tables(), kShards, test::AllShards(kShards), folder + "/plain", 1 << 30) {}

  void Go(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) {
      Push();
      Pull();
      if (Below(10) == 0) Save();
    }
    ASSERT_EQ(Sums(tiered_.shards(), &tiered_.tier()), Sums(plain_.shards(), nullptr));
    EXPECT_GT(most_below_, kKeys / 5) << "the disk was hardly used";
  }

 private:
  uint32_t Below(uint32_t bound) { return Philox(seed_, 0, count_++)[0] % bound; }
  // Returns some keys far more often than others.
  Key DrawKey() {
    const uint32_t bound = Below(3) == 0 ? kKeys : kKeys / 20;
    return MixBits(Below(bound));
  }

  void Push() {
    const uint32_t table = Below(3);
    std::map<Key, std::vector<float>> rows;
    for (uint32_t n = Below(300); n > 0; --n) {
      std::vector<float> gradient(Tables()[table].dim);
      for (float& g : gradient) g = static_cast<float>(Below(1000)) / 500 - 1;
      rows[DrawKey()] = gradient;
    }
    ASSERT_TRUE(tiered_.Push(table, step_, rows)) << tiered_.tier().failure();
    tiered_.Rest(4);
    ASSERT_TRUE(plain_.Push(table, step_, rows));
    ++step_;
    most_below_ = std::max(most_below_, tiered_.tier().rows_below());
  }
  void Pull() {
    for (int n = 0; n < 5; ++n) {
      const uint32_t table = Below(3);
      const Key key = DrawKey();
      const std::vector<float> got = tiered_.Pull(table, key);
      ASSERT_FALSE(got.empty()) << tiered_.tier().failure();
      ASSERT_EQ(got, plain_.Pull(table, key)) << "key " << key << " step " << step_;
    }
  }
  // A load restores the state at the cut although pushes went on; shards with another layout read
  // the same rows.
  void Save() {
    const Step cut = step_;
    const auto want = Sums(plain_.shards(), nullptr);
    const std::string folder = folder_ + "/step-" + std::to_string(cut);
    const auto saved = tiered_.Save(cut, {folder, ProcessId(7), 0}, [&] {
      for (uint32_t n = Below(4); n > 0; --n) Push();
    });
    ASSERT_TRUE(saved.ok()) << saved.status();
    test::TieredShards same(Tables(), kShards, test::AllShards(kShards), folder_ + "/same",
                            1 << 18);
    Status loaded = same.Load(folder, cut);
    ASSERT_TRUE(loaded.ok()) << loaded;
    ASSERT_EQ(Sums(same.shards(), &same.tier()), want);
    test::TieredShards other(Tables(), 1, test::AllShards(1), folder_ + "/other", 1 << 18);
    loaded = other.Load(folder, cut);
    ASSERT_TRUE(loaded.ok()) << loaded;
    ASSERT_EQ(Sums(other.shards(), &other.tier()), want);
    if (step_ != cut || Below(2) != 0) return;
    loaded = tiered_.Load(folder, cut);  // Continues from the checkpoint.
    ASSERT_TRUE(loaded.ok()) << loaded;
  }

  const uint64_t seed_;
  const std::string folder_;
  uint64_t count_ = 0;
  test::TieredShards tiered_, plain_;
  Step step_ = 0;
  uint64_t most_below_ = 0;
};

TEST(DiskTierProperty, HoldsTheSameRowsAsMemoryAlone) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const test::ScratchFolder folder;
    Story(seed, folder.path(), 1 << 18).Go(40);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace dt::server
