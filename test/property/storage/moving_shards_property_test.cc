// Goal: shards may come to an executor, go, and come back, whatever of them is in memory, on disk,
// or on its way: two executors hold together what one holds that never changes, and so do the
// checkpoints that they write. Method: seeded steps and moves, with a memory budget for a fraction
// of the rows; values and checksums are compared bit for bit.
#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "server/shard/checksum.h"
#include "test/support/scratch_folder.h"
#include "test/support/tiered_shards.h"

namespace dt::server {
namespace {

using test::TieredShards;

constexpr uint32_t kJobShards = 8;
constexpr uint64_t kMovedKeys = 4000;

std::vector<TableSpec> MovingTables() {
  TableSpec wide = test::SimpleTable("wide", 24, OptimizerKind::kAdam);
  wide.life.admission_pushes = 2;
  wide.life.sketch_bytes = 1 << 10;
  TableSpec thin = test::SimpleTable("thin", 1, OptimizerKind::kAdagrad);
  thin.life.expiry_steps = 30;
  return {wide, thin};
}

using RowSums = std::vector<std::array<uint64_t, 3>>;
RowSums SumsOf(const std::vector<TieredShards*>& parts) {
  std::vector<TableReport> all;
  for (TieredShards* part : parts) {
    std::vector<TableReport> reports = ReportTables(MovingTables(), part->shards().shards());
    const Status visited = part->tier().VisitRowsBelow(
        [&](const EmbeddingTable& table, Key key, std::span<const std::byte> record) {
          AddRowBelow(table, key, record, reports);
        });
    EXPECT_TRUE(visited.ok()) << visited;
    if (all.empty()) {
      all = reports;
    } else {
      AddReports(all, reports);
    }
  }
  RowSums sums;
  for (const TableReport& r : all) sums.push_back({r.rows, r.checksum_low, r.checksum_high});
  return sums;
}

// A row of one shard.
struct CopiedRow {
  TableId table;
  Key key;
  std::vector<std::byte> record;
};

class MovingStory {
 public:
  MovingStory(uint64_t seed, const std::string& folder)
      : seed_(seed),
        folder_(folder),
        plain_(MovingTables(), kJobShards, test::AllShards(kJobShards), folder + "/plain", 1 << 30),
        one_(MovingTables(), kJobShards, {ShardId(0), ShardId(1), ShardId(2)}, folder + "/one",
             1 << 18),
        two_(MovingTables(), kJobShards,
             {ShardId(3), ShardId(4), ShardId(5), ShardId(6), ShardId(7)}, folder + "/two",
             1 << 18) {}

  void Go(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      Push();
      Pull();
      if (Below(3) == 0) Move();
      if (Below(12) == 0) Save();
    }
    ASSERT_EQ(SumsOf({&one_, &two_}), SumsOf({&plain_}));
    EXPECT_GT(most_below_, kMovedKeys / 10) << "the disk was hardly used";
    EXPECT_GT(moves_, steps / 6);
  }

 private:
  uint32_t Below(uint32_t bound) { return Philox(seed_, 0, count_++)[0] % bound; }
  Key DrawKey() {
    const uint32_t bound = Below(3) == 0 ? kMovedKeys : kMovedKeys / 20;
    return MixBits(Below(bound));
  }
  TieredShards& HolderOf(ShardId shard) {
    return one_.shards().Find(shard) != nullptr ? one_ : two_;
  }

  void Push() {
    const uint32_t table = Below(2);
    std::map<Key, std::vector<float>> rows;
    for (uint32_t n = Below(600); n > 0; --n) {
      std::vector<float> gradient(MovingTables()[table].dim);
      for (float& g : gradient) g = static_cast<float>(Below(1000)) / 500 - 1;
      rows[DrawKey()] = gradient;
    }
    for (TieredShards* each : {&plain_, &one_, &two_}) {
      ASSERT_TRUE(each->Push(table, step_, rows)) << each->tier().failure();
      if (each != &plain_) each->Rest(2);
    }
    ++step_;
    most_below_ = std::max(most_below_, one_.tier().rows_below() + two_.tier().rows_below());
  }

  void Pull() {
    for (int n = 0; n < 5; ++n) {
      const uint32_t table = Below(2);
      const Key key = DrawKey();
      TieredShards& holder = HolderOf(ShardOf(MovingTables()[table].id, key, kJobShards));
      const std::vector<float> got = holder.Pull(table, key);
      ASSERT_FALSE(got.empty()) << holder.tier().failure();
      ASSERT_EQ(got, plain_.Pull(table, key)) << "key " << key << " step " << step_;
    }
  }

  static std::vector<CopiedRow> RowsOf(TieredShards& from, const Shard& shard) {
    std::vector<CopiedRow> rows;
    for (uint32_t t = 0; t < shard.tables(); ++t) {
      const EmbeddingTable& table = shard.table(t);
      for (const KeyRow& row : table.SortedRows()) {
        rows.push_back({table.spec().id, row.key, std::vector<std::byte>(table.record_bytes())});
        table.CopyRecord(row, rows.back().record);
      }
    }
    const Status visited = from.tier().VisitRowsBelow(
        [&](const EmbeddingTable& table, Key key, std::span<const std::byte> record) {
          if (table.shard() != shard.id()) return;
          rows.push_back({table.spec().id, key, {record.begin(), record.end()}});
        });
    EXPECT_TRUE(visited.ok()) << visited;
    return rows;
  }

  // A shard moves between two steps, or begins anew without rows: then old rows would be noticed.
  void Move() {
    const ShardId id(Below(kJobShards));
    TieredShards& from = HolderOf(id);
    if (Below(8) == 0) {
      for (TieredShards* each : {&plain_, &from}) {
        Remove(*each, id);
        Add(*each, id);
      }
      return;
    }
    TieredShards& to = &from == &one_ ? two_ : one_;
    Shard& source = *from.shards().Find(id);
    const std::vector<CopiedRow> rows = RowsOf(from, source);
    std::vector<std::string> lives;
    for (uint32_t t = 0; t < source.tables(); ++t) lives.push_back(source.table(t).LifeState());
    Remove(from, id);
    Add(to, id);
    for (uint32_t t = 0; t < lives.size(); ++t) {
      if (lives[t].empty()) continue;  // It has no state yet.
      const auto restored = to.shards().RestoreLife(id, MovingTables()[t].id, lives[t]);
      ASSERT_TRUE(restored.ok()) << restored.status();
    }
    for (const CopiedRow& row : rows) {
      const Status restored = to.shards().Restore(row.table, row.key, row.record);
      ASSERT_TRUE(restored.ok()) << restored;
      ASSERT_TRUE(to.tier().MakeRoom().ok());
    }
    ++moves_;
  }
  // Sometimes keys of the shard are being fetched at that time.
  void Remove(TieredShards& from, ShardId id) {
    for (uint32_t n = Below(30); n > 0; --n) {
      const Key key = DrawKey();
      const KeyGroup group{ShardOf(MovingTables()[0].id, key, kJobShards), 0, 1};
      if (group.shard == id) from.shards().EnsureInMemory({&group, 1}, {&key, 1});
    }
    from.Remove(id);
    SetMember(from, id, ProcessId(2));
  }
  void Add(TieredShards& to, ShardId id) {
    ASSERT_TRUE(to.Until([&] { return to.HasLeft(id); })) << "since it was there before";
    SetMember(to, id, ProcessId(1));
    to.shards().Add(id).Reset(step_, {.now = step_});
  }
  // As kFirstStamp has it, each set is server 1 in its own map.
  static void SetMember(TieredShards& of, ShardId id, ProcessId server) {
    ShardMap map = of.shards().view().map;
    map.chains[id.value()].members = {server};
    of.shards().SetMap(std::move(map));
  }

  // The checkpoint has the state at the cut, though a shard may be on its way out.
  void Save() {
    const Step cut = step_;
    const RowSums want = SumsOf({&plain_});
    const std::string folder = folder_ + "/step-" + std::to_string(cut);
    for (const auto& [server, part] : {std::pair(7u, &one_), std::pair(8u, &two_)}) {
      const auto saved = part->Save(cut, {folder, ProcessId(server), 0});
      ASSERT_TRUE(saved.ok()) << saved.status();
    }
    LoadAndCompare(folder, cut, kJobShards, want);
    LoadAndCompare(folder, cut, 1, want);
    if (Below(2) == 0) return;
    for (TieredShards* part : {&one_, &two_}) {  // Goes on from the checkpoint.
      const Status loaded = part->Load(folder, cut);
      ASSERT_TRUE(loaded.ok()) << loaded;
    }
    ASSERT_EQ(SumsOf({&one_, &two_}), want);
  }
  void LoadAndCompare(const std::string& folder, Step cut, uint32_t shards, const RowSums& want) {
    TieredShards other(MovingTables(), shards, test::AllShards(shards), folder_ + "/other",
                       1 << 18);
    const Status loaded = other.Load(folder, cut);
    ASSERT_TRUE(loaded.ok()) << loaded;
    ASSERT_EQ(SumsOf({&other}), want) << shards << " shards";
  }

  const uint64_t seed_;
  const std::string folder_;
  uint64_t count_ = 0;
  TieredShards plain_, one_, two_;
  Step step_ = 0;
  uint64_t most_below_ = 0;
  int moves_ = 0;
};

TEST(MovingShardsProperty, TwoExecutorsHoldTogetherWhatOneHolds) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const test::ScratchFolder folder;
    MovingStory(seed, folder.path()).Go(60);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace dt::server
