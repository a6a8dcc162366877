#include "test/support/reference_store.h"

#include <algorithm>

#include "common/base/float_formats.h"
#include "common/base/philox.h"
#include "ops/update/update.h"

namespace dt::test {

using server::TableSpec;

namespace {

constexpr Step kNever = server::RowHeader::kNever;

}  // namespace

ReferenceStore::ReferenceStore(const std::vector<TableSpec>& tables, uint32_t shards)
    : shards_(shards) {
  for (const TableSpec& spec : tables) {
    Table table{spec, {spec.init, spec.seed, spec.id}, {}, {}, {}, spec.life.freeze, 0};
    if (spec.optimizer.scope == UpdateScope::kDense) table.missed.emplace(spec.optimizer);
    table.sketches.assign(shards, {spec.life.sketch_bytes, spec.id.value()});
    tables_.push_back(std::move(table));
  }
}

std::vector<float> ReferenceStore::Stored(const Table& table, Key key, Step step,
                                          std::vector<float> values) {
  const TableSpec& spec = table.spec;
  if (spec.dtype == FloatFormat::kFp32) return values;
  const uint64_t stream = StreamKey(spec.seed, HashString("rounding"), spec.id.value());
  std::vector<std::byte> halves(values.size() * 2);
  RoundToBf16(MixBits(MixBits(key ^ stream) + step), values, halves.data());
  DecodeRow(FloatFormat::kBf16, halves.data(), values);
  return values;
}

std::vector<float> ReferenceStore::Initial(const Table& table, Key key) {
  std::vector<float> values(table.spec.dim);
  table.initial.Fill(key, values);
  return Stored(table, key, kNever, std::move(values));
}

bool ReferenceStore::IsThere(const Table& table, Key key) const {
  const auto row = table.rows.find(key);
  return row != table.rows.end() && row->second.last_push >= table.expire_before;
}

std::vector<float> ReferenceStore::Read(uint32_t t, Key key, PullMode mode) const {
  const Table& table = tables_[t];
  const bool there = IsThere(table, key);
  if (there || mode == PullMode::kTrain || table.spec.eval_default == EvalDefault::kInitial) {
    Row row = RowOf(table, key, there);
    MakeUpFor(table, row);
    return row.values;
  }
  return std::vector<float>(table.spec.dim, 0.0f);
}

bool ReferenceStore::Admits(const Table& table, Key key, uint32_t& pushes) const {
  const uint32_t shard = ShardOf(table.spec.id, key, shards_).value();
  pushes = table.sketches[shard].Estimate(key) + 1;
  return pushes >= table.spec.life.admission_pushes;
}

ReferenceStore::Row ReferenceStore::RowOf(const Table& table, Key key, bool there) {
  if (there) return table.rows.at(key);
  Row row{Initial(table, key), std::vector<float>(table.spec.state()), kNever};
  InitState(table.spec.optimizer, row.state);
  return row;
}

bool ReferenceStore::MakeUpFor(const Table& table, Row& row) const {
  if (!table.missed.has_value()) return false;
  table.missed->Apply({row.last_push + 1, clock_}, row.values, row.state);
  return true;
}

void ReferenceStore::Push(const RowMap& gradients) {
  struct Counted {
    server::CountMinSketch* sketch;
    Key key;
    uint32_t pushes;
  };
  std::vector<Counted> counted;
  std::vector<RowUpdate> updates;
  for (const Table& table : tables_) {
    updates.emplace_back(table.spec.optimizer, UpdateInfo{.step = clock_});
  }
  for (const auto& [at, gradient] : gradients) {
    Table& table = tables_[at.first];
    const Key key = at.second;
    uint32_t pushes = 0;
    if (table.freeze) continue;
    const bool there = IsThere(table, key);
    if (!there && !Admits(table, key, pushes)) {
      const uint32_t shard = ShardOf(table.spec.id, key, shards_).value();
      counted.push_back({&table.sketches[shard], key, pushes});
      continue;
    }
    Row& row = table.rows[key];
    row = RowOf(table, key, there);
    const bool never = row.last_push == kNever;
    const uint64_t steps = MakeUpFor(table, row) ? 1 : never ? clock_ + 1 : clock_ - row.last_push;
    updates[at.first].Apply(steps, row.values, row.state, gradient);
    row.values = Stored(table, key, clock_, std::move(row.values));
    row.last_push = clock_;
  }
  for (const Counted& c : counted) c.sketch->RaiseTo(c.key, c.pushes);
  ++clock_;
  for (Table& table : tables_) {
    const Step steps = table.spec.life.expiry_steps;
    if (steps == 0 || clock_ <= steps || table.freeze) continue;
    table.expire_before = std::max(table.expire_before, clock_ - steps);
  }
}

void ReferenceStore::Loaded() {
  for (uint32_t t = 0; t < tables_.size(); ++t) {
    Table& table = tables_[t];
    table.rows = Rows(t);
    const Step steps = table.spec.life.expiry_steps;
    if (steps == 0 || clock_ <= steps || table.freeze) continue;
    table.expire_before = std::max(table.expire_before, clock_ - steps);
  }
}

std::map<Key, ReferenceStore::Row> ReferenceStore::Rows(uint32_t t) const {
  std::map<Key, Row> there;
  for (const auto& [key, row] : tables_[t].rows) {
    if (IsThere(tables_[t], key)) there.emplace(key, row);
  }
  return there;
}

std::vector<std::byte> ReferenceStore::Record(uint32_t t, const Row& row) const {
  const TableSpec& spec = tables_[t].spec;
  std::vector<std::byte> record;
  const auto append = [&record](const void* from, size_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(from);
    record.insert(record.end(), begin, begin + bytes);
  };
  std::vector<std::byte> values(RowsBytes(spec.dtype, spec.dim, 1));
  // Exact, because these values were rounded when they were stored.
  EncodeRows(spec.dtype, spec.dim, row.values, values.data());
  append(values.data(), values.size());
  append(row.state.data(), row.state.size() * sizeof(float));
  append(&row.last_push, sizeof(row.last_push));
  return record;
}

}  // namespace dt::test
