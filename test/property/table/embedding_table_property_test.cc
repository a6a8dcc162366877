// Goal: an EmbeddingTable equals the obvious table under any sequence of operations, also while it
// grows. Method: seeded pushes, pulls, clears, and dumps with restore are compared with a std::map
// of rows that the same arithmetic updates one by one; every value, state and header is compared
// bit for bit. Half of the tables store bf16; gradients arrive and values are sent in every format.
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "common/base/float_formats.h"
#include "common/base/hash.h"
#include "common/base/philox.h"
#include "test/support/draw_optimizer.h"
#include "test/support/one_table.h"

namespace dt::server {
namespace {

class Draws {
 public:
  explicit Draws(uint64_t seed) : seed_(seed) {}
  uint32_t Next() { return Philox(seed_, 0, count_++)[0]; }
  uint32_t Below(uint32_t bound) { return Next() % bound; }
  float Gradient() { return ToUniform(Next()) * 4 - 2; }

 private:
  const uint64_t seed_;
  uint64_t count_ = 0;
};

struct ModelRow {
  std::vector<float> values, state;
  Step last_push = 0;
};

class Model {
 public:
  explicit Model(const TableSpec& spec) : spec_(spec), initial_(spec.init, spec.seed, spec.id) {
    if (spec.optimizer.scope == UpdateScope::kDense) missed_.emplace(spec.optimizer);
  }

  // As before step `now`.
  std::vector<float> Read(Key key, Step now) const {
    ModelRow row = RowOf(key);
    MakeUpFor(row, now);
    return row.values;
  }
  void Push(Key key, std::vector<float> gradient, Step step) {
    ModelRow row = RowOf(key);
    const bool dense = MakeUpFor(row, step);
    const bool never = row.last_push == RowHeader::kNever;
    const uint64_t steps = dense ? 1 : never ? step + 1 : step - row.last_push;
    RowUpdate(spec_.optimizer, {.step = step}).Apply(steps, row.values, row.state, gradient);
    row.values = Stored(key, step, row.values);
    row.last_push = step;
    rows_[key] = std::move(row);
  }
  std::vector<std::byte> Record(Key key) const {
    const ModelRow& row = rows_.at(key);
    std::vector<std::byte> out;
    const auto append = [&out](const void* from, size_t bytes) {
      const auto* const begin = static_cast<const std::byte*>(from);
      out.insert(out.end(), begin, begin + bytes);
    };
    std::vector<std::byte> values(RowsBytes(spec_.dtype, spec_.dim, 1));
    // Exact, because these values were rounded when they were stored.
    EncodeRows(spec_.dtype, spec_.dim, row.values, values.data());
    append(values.data(), values.size());
    append(row.state.data(), row.state.size() * sizeof(float));
    append(&row.last_push, sizeof(row.last_push));
    return out;
  }
  const std::map<Key, ModelRow>& rows() const { return rows_; }
  void Clear() { rows_.clear(); }

 private:
  ModelRow RowOf(Key key) const {
    if (const auto it = rows_.find(key); it != rows_.end()) return it->second;
    ModelRow row{std::vector<float>(spec_.dim), std::vector<float>(spec_.state()),
                 RowHeader::kNever};
    initial_.Fill(key, row.values);
    row.values = Stored(key, RowHeader::kNever, row.values);
    InitState(spec_.optimizer, row.state);
    return row;
  }
  // False: the table's rows miss no updates.
  bool MakeUpFor(ModelRow& row, Step now) const {
    if (!missed_.has_value()) return false;
    missed_->Apply({row.last_push + 1, now}, row.values, row.state);
    return true;
  }
  // The values after rounding to the format in which they are stored.
  std::vector<float> Stored(Key key, Step step, std::vector<float> values) const {
    if (spec_.dtype == FloatFormat::kFp32) return values;
    const uint64_t stream = StreamKey(spec_.seed, HashString("rounding"), spec_.id.value());
    std::vector<std::byte> halves(values.size() * 2);
    RoundToBf16(MixBits(MixBits(key ^ stream) + step), values, halves.data());
    DecodeRow(FloatFormat::kBf16, halves.data(), values);
    return values;
  }

  const TableSpec spec_;
  const InitialRows initial_;
  std::optional<MissedUpdates> missed_;
  std::map<Key, ModelRow> rows_;
};

class Story {
 public:
  explicit Story(uint64_t seed) : draws_(seed), spec_(DrawSpec()), table_(spec_), model_(spec_) {
    const uint32_t spaces[] = {40, 3000, 1u << 30};
    key_space_ = spaces[draws_.Below(3)];
  }
  void Go() {
    for (int i = 0; i < 60; ++i) {
      const uint32_t what = draws_.Below(20);
      if (what < 10) Push();
      if (what >= 10 && what < 18) Pull();
      if (what == 18) Restore();
      if (what == 19 && draws_.Below(5) == 0) Clear();
      step_ += 1 + draws_.Below(3);
    }
    Compare();
  }

 private:
  TableSpec DrawSpec() {
    TableSpec spec;
    spec.name = "t";
    spec.id = TableIdOf("t");
    spec.dim = 1 + draws_.Below(20);
    spec.optimizer = test::DrawOptimizer([&](uint32_t n) { return draws_.Below(n); });
    spec.optimizer.l2 = draws_.Below(2) == 0 ? 0.0f : 0.01f;
    spec.seed = draws_.Next();
    spec.dtype = draws_.Below(2) == 0 ? FloatFormat::kFp32 : FloatFormat::kBf16;
    return spec;
  }
  // Returns the encoded rows and replaces `rows` by their decoded values.
  std::vector<std::byte> Travel(FloatFormat format, std::vector<float>& rows) {
    std::vector<std::byte> bytes(RowsBytes(format, spec_.dim, rows.size() / spec_.dim));
    EncodeRows(format, spec_.dim, rows, bytes.data());
    DecodeRows(format, spec_.dim, bytes.data(), rows);
    return bytes;
  }
  Key DrawKey() { return MixBits(draws_.Below(key_space_)); }

  void Push() {
    std::set<Key> keys;
    for (uint32_t n = draws_.Below(400); n > 0; --n) keys.insert(DrawKey());
    const std::vector<Key> list(keys.begin(), keys.end());
    std::vector<float> gradients(list.size() * spec_.dim);
    for (float& g : gradients) g = draws_.Gradient();
    const auto format = static_cast<FloatFormat>(draws_.Below(4));
    const std::vector<std::byte> bytes = Travel(format, gradients);
    for (size_t i = 0; i < list.size(); ++i) {
      const auto begin = gradients.begin() + static_cast<std::ptrdiff_t>(i * spec_.dim);
      model_.Push(list[i], {begin, begin + spec_.dim}, step_);
    }
    const RowUpdate update(spec_.optimizer, {.step = step_});
    const EmbeddingTable::PushRun run{&table_, list, bytes.data(), &update, format};
    EmbeddingTable::Push({&run, 1}, step_);
  }
  void Pull() {
    std::vector<Key> keys(draws_.Below(200));
    for (Key& key : keys) key = DrawKey();
    const auto format = static_cast<FloatFormat>(draws_.Below(4));
    std::vector<std::byte> got(RowsBytes(format, spec_.dim, keys.size()));
    const EmbeddingTable::PullRun run{&table_, keys, got.data(), format, step_};
    EmbeddingTable::Pull({&run, 1}, false);
    std::vector<float> want;
    for (const Key key : keys) {
      const auto row = model_.Read(key, step_);
      want.insert(want.end(), row.begin(), row.end());
    }
    ASSERT_EQ(got, Travel(format, want));
  }
  void Restore() {
    std::map<Key, std::vector<std::byte>> rows;
    for (const KeyRow& row : table_.SortedRows()) {
      rows[row.key] = table_.Record(row);
    }
    table_.Clear();
    for (const auto& [key, record] : rows) ASSERT_TRUE(table_.Restore(key, record).ok());
  }
  void Clear() {
    table_.Clear();
    model_.Clear();
  }
  void Compare() {
    const auto rows = table_.SortedRows();
    ASSERT_EQ(rows.size(), model_.rows().size());
    ASSERT_EQ(table_.rows(), rows.size());
    auto want = model_.rows().begin();
    for (const KeyRow& row : rows) {
      ASSERT_EQ(row.key, want->first);
      const auto got = table_.Record(row);
      const auto record = model_.Record(row.key);
      ASSERT_EQ(got.size(), record.size());
      ASSERT_EQ(std::memcmp(got.data(), record.data(), record.size()), 0) << "key " << row.key;
      ++want;
    }
  }

  Draws draws_;
  const TableSpec spec_;
  test::OneTable table_;
  Model model_;
  uint32_t key_space_ = 0;
  Step step_ = 0;
};

TEST(EmbeddingTableProperty, EqualsAMapOfRows) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Story(seed).Go();
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Stochastic rounding depends on the row and not on the table that holds it: the bits are the same
// however keys are divided into shards, and in whatever order they arrive.
TEST(EmbeddingTableProperty, RowsOfBf16AreTheSameInAnyShards) {
  TableSpec spec;
  spec.id = TableIdOf("t");
  spec.dim = 9;
  spec.dtype = FloatFormat::kBf16;
  spec.optimizer.kind = OptimizerKind::kAdam;
  std::vector<std::map<Key, std::vector<std::byte>>> outcomes;
  for (const uint32_t shards : {1, 2, 8}) {
    std::vector<std::unique_ptr<test::OneTable>> tables;
    for (uint32_t s = 0; s < shards; ++s) tables.push_back(std::make_unique<test::OneTable>(spec));
    for (Step step = 0; step < 5; ++step) {
      for (Key i = 0; i < 200; ++i) {
        const Key key = shards == 2 ? 199 - i : i;
        if ((key + step) % 3 == 0) continue;
        std::vector<float> gradient(spec.dim);
        FillNormal(step, key, gradient);
        test::OneTable& table = *tables[ShardOf(spec.id, key, shards).value()];
        table.Push({&key, 1}, gradient, {.step = step});
      }
    }
    auto& rows = outcomes.emplace_back();
    for (const auto& table : tables) {
      for (const KeyRow& row : table->SortedRows()) rows[row.key] = table->Record(row);
    }
  }
  EXPECT_EQ(outcomes[0].size(), 200u);
  EXPECT_EQ(outcomes[1], outcomes[0]);
  EXPECT_EQ(outcomes[2], outcomes[0]);
}

// Steps far below the resolution of bf16 accumulate.
TEST(EmbeddingTableProperty, SmallStepsToRowsOfBf16AreNotLost) {
  TableSpec spec;
  spec.id = TableIdOf("t");
  spec.dim = 64;
  spec.dtype = FloatFormat::kBf16;
  spec.init = {InitKind::kConstant, 1.0f};
  spec.optimizer.kind = OptimizerKind::kSgd;
  spec.optimizer.lr = 1e-4f;  // The spacing of bf16 numbers at 1 is 4e-3.
  test::OneTable table(spec);
  std::vector<Key> keys(100);
  for (Key key = 0; key < keys.size(); ++key) keys[key] = key;
  const std::vector<float> gradients(keys.size() * spec.dim, 1.0f);
  for (Step step = 0; step < 1000; ++step) table.Push(keys, gradients, {.step = step});
  std::vector<float> values(gradients.size());
  table.Pull(keys, values);
  double sum = 0;
  for (const float v : values) sum += v;
  EXPECT_NEAR(sum / static_cast<double>(values.size()), 0.9, 1e-3);
}

}  // namespace
}  // namespace dt::server
