// Goal: a job's shards, on any number of executors, equal the obvious store under any sequence of
// pushes, pulls, time steps, and checkpoints restored onto other executors, with every optimizer,
// number format, tier, admission, expiry and freezing. Method: seeded sequences of some hundred
// steps; every pulled value and every stored record is compared bit for bit with ReferenceStore.
// DT_OPERATIONS: rows pulled and pushed in all sequences together (default: about a second's).
// second's).
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "test/support/draw_optimizer.h"
#include "test/support/reference_store.h"
#include "test/support/scratch_folder.h"
#include "test/support/tiered_shards.h"

namespace dt::server {
namespace {

using test::ReferenceStore;
using test::RowMap;

class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}
  uint32_t Next() { return Philox(seed_, 0, count_++)[0]; }
  uint32_t Below(uint32_t bound) { return Next() % bound; }
  bool Chance(uint32_t one_in) { return Below(one_in) == 0; }
  float Gradient() { return ToUniform(Next()) * 4 - 2; }

 private:
  const uint64_t seed_;
  uint64_t count_ = 0;
};

class Story {
 public:
  explicit Story(uint64_t seed)
      : draws_(seed),
        tables_(DrawTables()),
        slices_(1 + draws_.Below(3)),
        key_space_(std::array{60u, 4000u, 1u << 30}[draws_.Below(3)]),
        model_(tables_, kShards) {
    Spread();
  }
  // Numbers of rows that were pulled or pushed, and of those that were refused, expired, or on
  // disk.
  struct Happened {
    uint64_t operations = 0, refused = 0, gone = 0, below = 0;
  };
  Happened Go() {
    for (int i = 0; i < 150 && !testing::Test::HasFatalFailure(); ++i) {
      Push();
      Pull();
      if (draws_.Chance(3)) PassTime();
      if (draws_.Chance(70)) Move();
    }
    Compare();
    NoteCounts();
    return happened_;
  }

 private:
  static constexpr uint32_t kShards = 8;

  std::vector<TableSpec> DrawTables() {
    std::vector<TableSpec> tables;
    for (uint32_t t = 1 + draws_.Below(3); t > 0; --t) {
      TableSpec spec = test::SimpleTable(fmt::format("t{}", t), 1 + draws_.Below(20));
      spec.optimizer = test::DrawOptimizer([&](uint32_t n) { return draws_.Below(n); });
      spec.optimizer.l2 = draws_.Chance(2) ? 0.0f : 0.01f;
      spec.eval_default = draws_.Chance(2) ? EvalDefault::kInitial : EvalDefault::kZeros;
      spec.seed = draws_.Next();
      spec.dtype = draws_.Chance(2) ? FloatFormat::kFp32 : FloatFormat::kBf16;
      spec.wire = static_cast<FloatFormat>(draws_.Below(4));
      if (draws_.Chance(2)) {
        // Sketches are small, so that keys collide.
        spec.life.admission_pushes = 2 + draws_.Below(4);
        spec.life.sketch_bytes = 64u << draws_.Below(8);
      }
      const uint32_t rule = draws_.Below(3);
      if (rule == 1) spec.life.expiry_steps = 1 + draws_.Below(40);
      if (rule == 2) spec.life.expiry_time = std::chrono::minutes(90);
      tables.push_back(spec);
    }
    return tables;
  }

  void NoteCounts() {
    for (const auto& set : sets_) {
      for (const Shard& shard : set->shards().shards()) {
        for (uint32_t t = 0; t < tables_.size(); ++t) {
          happened_.refused += shard.table(t).admission().refused();
          happened_.gone += shard.table(t).expiry().expired();
        }
      }
    }
  }

  // Makes new empty shards on a random number of executors.
  void Spread() {
    NoteCounts();
    sets_.clear();
    const uint32_t executors = 1 + draws_.Below(3);
    const uint64_t memory = draws_.Chance(2) ? 1 << 30 : 1 << 17;
    for (uint32_t e = 0; e < executors; ++e) {
      std::vector<ShardId> shards;
      for (uint32_t s = e; s < kShards; s += executors) shards.emplace_back(s);
      sets_.push_back(std::make_unique<test::TieredShards>(
          test::SetOf(tables_, slices_, kShards, shards),
          fmt::format("{}/tier-{}", folder_.path(), e), memory));
    }
  }
  std::vector<ShardId> ShardsOf(const ShardSet& set) const {
    std::vector<ShardId> shards;
    for (const Shard& shard : set.shards()) shards.push_back(shard.id());
    return shards;
  }

  // The distribution is skewed: some keys are frequent, most are rare.
  Key DrawKey() { return MixBits(draws_.Below(1 + draws_.Below(key_space_))); }
  // Replaces the row by what a receiver decodes after the row was encoded for the wire.
  static void Travel(const TableSpec& table, std::vector<float>& row) {
    std::vector<std::byte> bytes(RowsBytes(table.wire, table.dim, 1));
    EncodeRows(table.wire, table.dim, row, bytes.data());
    DecodeRows(table.wire, table.dim, bytes.data(), row);
  }
  RowMap DrawGradients(uint32_t keys) {
    RowMap rows;
    for (; keys > 0; --keys) {
      const uint32_t t = draws_.Below(static_cast<uint32_t>(tables_.size()));
      std::vector<float>& gradient = rows[{t, DrawKey()}];
      gradient.resize(tables_[t].dim);
      for (float& g : gradient) g = draws_.Gradient();
      Travel(tables_[t], gradient);
    }
    return rows;
  }

  void Push() {
    RowMap sum;
    for (uint32_t slice = 0; slice < slices_; ++slice) {
      const RowMap rows = DrawGradients(draws_.Below(80));
      for (const auto& [at, gradient] : rows) {
        const auto [to, fresh] = sum.try_emplace(at, gradient);
        for (size_t i = 0; !fresh && i < gradient.size(); ++i) to->second[i] += gradient[i];
      }
      for (const auto& set : sets_) PushSlice(set->shards(), slice, rows);
    }
    happened_.operations += sum.size();
    model_.Push(sum);
    for (const auto& set : sets_) {
      const bool applied = set->Until([&] {
        set->shards().Advance(model_.clock());
        return set->shards().Reached(model_.clock());
      });
      ASSERT_TRUE(applied) << set->tier().failure();
      set->tier().Work();
      happened_.below = std::max(happened_.below, set->tier().rows_below());
    }
    AskExpiry();
  }
  void PushSlice(ShardSet& set, uint32_t slice, const RowMap& rows) {
    const test::Grouping grouping(tables_, kShards, ShardsOf(set), rows);
    PushRequest push;
    push.stamp = test::kFirstStamp;
    push.step = model_.clock();
    push.slice = slice;
    push.slices = slices_;
    push.pieces = grouping.pieces;
    push.groups = grouping.out_groups;
    push.keys = test::FrameOf(grouping.out_keys);
    push.gradients = test::EncodedRows(tables_, grouping.out_groups, grouping.floats);
    const Status pushed = set.Push(std::move(push));
    ASSERT_TRUE(pushed.ok()) << pushed;
  }
  // The test of RowExpiry covers which step is the limit; here all shards must have the same one.
  void AskExpiry() {
    for (uint32_t t = 0; t < tables_.size(); ++t) {
      if (tables_[t].life.expiry_time <= Duration::zero()) continue;
      const Step before = sets_[0]->shards().shards()[0].table(t).expiry().expire_before();
      for (const auto& set : sets_) {
        for (const Shard& shard : set->shards().shards()) {
          ASSERT_EQ(shard.table(t).expiry().expire_before(), before);
        }
      }
      model_.ExpireBefore(t, before);
    }
  }

  void Pull() {
    const PullMode mode = draws_.Chance(4) ? PullMode::kEvaluate : PullMode::kTrain;
    RowMap wanted;
    for (uint32_t n = draws_.Below(120); n > 0; --n) {
      const std::pair at(draws_.Below(static_cast<uint32_t>(tables_.size())), DrawKey());
      wanted[at] = model_.Read(at.first, at.second, mode);
      Travel(tables_[at.first], wanted[at]);
    }
    happened_.operations += wanted.size();
    for (const auto& set : sets_) {
      const test::Grouping grouping(tables_, kShards, ShardsOf(set->shards()), wanted);
      ASSERT_TRUE(set->Until([&] {
        return set->shards().EnsureInMemory(grouping.out_groups, grouping.out_keys);
      })) << set->tier().failure();
      const Frame values = set->shards().Gather(mode, grouping.out_groups, grouping.out_keys);
      const std::vector<float> got = test::DecodedRows(tables_, grouping.out_groups, values);
      ASSERT_EQ(got.size(), grouping.floats.size());
      if (got.empty()) continue;
      ASSERT_EQ(std::memcmp(got.data(), grouping.floats.data(), got.size() * sizeof(float)), 0)
          << "at step " << model_.clock();
    }
  }
  void PassTime() {
    const Duration minutes = std::chrono::minutes(draws_.Below(30));
    for (const auto& set : sets_) set->shards().PassTime(minutes);
  }

  // Moves all rows through a checkpoint to other executors; some tables are frozen or thawed.
  void Move() {
    Compare();
    const test::ScratchFolder folder;
    for (uint32_t e = 0; e < sets_.size(); ++e) {
      const auto saved = sets_[e]->Save(model_.clock(), {folder.path(), ProcessId(e), e});
      ASSERT_TRUE(saved.ok()) << saved.status();
    }
    for (uint32_t t = 0; t < tables_.size(); ++t) {
      if (draws_.Chance(4)) tables_[t].life.freeze = !tables_[t].life.freeze;
      model_.Freeze(t, tables_[t].life.freeze);
    }
    Spread();
    for (const auto& set : sets_) {
      const Status loaded = set->Load(folder.path(), model_.clock());
      ASSERT_TRUE(loaded.ok()) << loaded;
    }
    model_.Loaded();
    AskExpiry();
    Compare();
  }

  // Adds the rows in memory and on disk, except expired ones.
  void TakeRows(test::TieredShards& set, uint32_t t, std::map<Key, std::vector<std::byte>>& rows) {
    for (const Shard& shard : set.shards().shards()) {
      const EmbeddingTable& table = shard.table(t);
      std::vector<std::byte> record(table.record_bytes());
      for (const KeyRow& row : table.SortedRows()) {
        table.CopyRecord(row, record);
        ASSERT_TRUE(rows.emplace(row.key, record).second);
      }
    }
    const Status visited = set.tier().VisitRowsBelow(
        [&](const EmbeddingTable& table, Key key, std::span<const std::byte> record) {
          if (table.spec().id != tables_[t].id || table.IsExpired(record)) return;
          EXPECT_TRUE(rows.emplace(key, std::vector(record.begin(), record.end())).second);
        });
    ASSERT_TRUE(visited.ok()) << visited;
  }
  void Compare() {
    for (uint32_t t = 0; t < tables_.size(); ++t) {
      const std::map<Key, ReferenceStore::Row> rows = model_.Rows(t);
      std::map<Key, std::vector<std::byte>> got;
      for (const auto& set : sets_) TakeRows(*set, t, got);
      ASSERT_EQ(got.size(), rows.size());
      for (const auto& [key, record] : got) {
        ASSERT_TRUE(rows.contains(key));
        ASSERT_EQ(record, model_.Record(t, rows.at(key))) << "key " << key;
      }
    }
  }

  Draws draws_;
  std::vector<TableSpec> tables_;
  const uint32_t slices_, key_space_;
  ReferenceStore model_;
  const test::ScratchFolder folder_;
  std::vector<std::unique_ptr<test::TieredShards>> sets_;
  Happened happened_;
};

TEST(StoreProperty, EqualsTheObviousStore) {
  const char* const text = std::getenv("DT_OPERATIONS");
  const uint64_t wanted = text == nullptr ? 60'000 : std::strtoull(text, nullptr, 10);
  ASSERT_GT(wanted, 0u);
  uint64_t done = 0, refused = 0, gone = 0, below = 0;
  for (uint64_t seed = 1; done < wanted; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Story::Happened happened = Story(seed).Go();
    done += happened.operations;
    refused += happened.refused;
    gone += happened.gone;
    below += happened.below;
    if (testing::Test::HasFatalFailure()) return;
  }
  // The sequences must contain what this test is about.
  EXPECT_GT(refused, done / 100);
  EXPECT_GT(gone, done / 100);
  EXPECT_GT(below, done / 1000);
}

}  // namespace
}  // namespace dt::server
