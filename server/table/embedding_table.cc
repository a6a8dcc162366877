#include "server/table/embedding_table.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "common/base/check.h"

namespace dt::server {
namespace {

// Keys looked up together, so that the cache misses of one are hidden behind those of the others.
constexpr size_t kBatch = 32;
constexpr uint64_t kCacheLine = 64;

uint32_t RoundUp8(uint32_t bytes) { return (bytes + 7) & ~7u; }

void PrefetchRow(const std::byte* row, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(row + at);
}

}  // namespace

std::vector<TableSpec> TableSpecsOf(const JobConfig& job) {
  std::vector<TableSpec> specs;
  for (const TableConfig& t : job.model.tables) {
    specs.push_back(
        {t.name, t.id, t.dim, t.init, t.optimizer, t.scheduled, t.eval_default, job.seed});
  }
  return specs;
}

EmbeddingTable::EmbeddingTable(const TableSpec& spec)
    : spec_(spec),
      state_(spec.state()),
      record_bytes_((spec.dim + state_) * uint32_t{sizeof(float)} + uint32_t{sizeof(Step)}),
      initial_(spec.init, spec.seed, spec.id),
      index_(MixBits(spec.id.value())),
      rows_(RoundUp8(record_bytes_)) {}

void EmbeddingTable::Pull(std::span<const Key> keys, std::span<float> out) const {
  Gather(keys, Absent::kInitial, out);
}

void EmbeddingTable::Evaluate(std::span<const Key> keys, std::span<float> out) const {
  const bool zeros = spec_.eval_default == EvalDefault::kZeros;
  Gather(keys, zeros ? Absent::kZeros : Absent::kInitial, out);
}

void EmbeddingTable::Gather(std::span<const Key> keys, Absent absent, std::span<float> out) const {
  const size_t dim = spec_.dim;
  DT_CHECK(out.size() == keys.size() * dim);
  std::array<uint32_t, kBatch> rows;
  for (size_t begin = 0; begin < keys.size(); begin += kBatch) {
    const auto batch = keys.subspan(begin, std::min(kBatch, keys.size() - begin));
    for (const Key key : batch) index_.Prefetch(key);
    for (size_t i = 0; i < batch.size(); ++i) {
      rows[i] = index_.Find(batch[i]);
      if (rows[i] != KeyIndex::kAbsent) PrefetchRow(rows_.row(rows[i]), dim * sizeof(float));
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      const std::span<float> to = out.subspan((begin + i) * dim, dim);
      if (rows[i] != KeyIndex::kAbsent) {
        std::memcpy(to.data(), rows_.row(rows[i]), dim * sizeof(float));
      } else if (absent == Absent::kInitial) {
        initial_.Fill(batch[i], to);
      } else {
        std::ranges::fill(to, 0.0f);
      }
    }
  }
}

void EmbeddingTable::Push(std::span<const Key> keys, std::span<float> gradients,
                          const UpdateInfo& info) {
  const size_t dim = spec_.dim;
  DT_CHECK(gradients.size() == keys.size() * dim);
  UpdateInfo own = info;
  if (!spec_.scheduled) own.rate_scale = 1.0f;
  const RowUpdate update(spec_.optimizer, own);
  std::array<uint32_t, kBatch> rows;
  for (size_t begin = 0; begin < keys.size(); begin += kBatch) {
    const auto batch = keys.subspan(begin, std::min(kBatch, keys.size() - begin));
    for (const Key key : batch) index_.Prefetch(key);
    for (size_t i = 0; i < batch.size(); ++i) {
      rows[i] = index_.FindOrInsert(batch[i], rows_.count());
      if (rows[i] == rows_.count()) {
        float* const values = reinterpret_cast<float*>(rows_.row(rows_.Add()));
        initial_.Fill(batch[i], {values, dim});
        InitState(spec_.optimizer, {values + dim, state_});
        const Step never = ~Step{0};  // The gap to it is step + 1.
        std::memcpy(values + dim + state_, &never, sizeof(never));
      } else {
        PrefetchRow(rows_.row(rows[i]), record_bytes_);
      }
    }
    for (size_t i = 0; i < batch.size(); ++i) {
      PushOne(update, rows[i], own.step, gradients.subspan((begin + i) * dim, dim));
    }
  }
}

void EmbeddingTable::PushOne(const RowUpdate& update, uint32_t row, Step step,
                             std::span<float> gradient) {
  float* const values = reinterpret_cast<float*>(rows_.row(row));
  float* const state = values + spec_.dim;
  float* const header = state + state_;
  Step last_push = 0;
  std::memcpy(&last_push, header, sizeof(last_push));
  DT_DCHECK(last_push == ~Step{0} || last_push < step);
  update.Apply(step - last_push, {values, spec_.dim}, {state, state_}, gradient);
  std::memcpy(header, &step, sizeof(step));
}

std::vector<KeyRow> EmbeddingTable::UnsortedRows() const {
  std::vector<KeyRow> rows;
  index_.AppendTo(rows);
  return rows;
}

std::vector<KeyRow> EmbeddingTable::SortedRows() const {
  std::vector<KeyRow> rows = UnsortedRows();
  std::ranges::sort(rows);
  return rows;
}

Status EmbeddingTable::Restore(Key key, std::span<const std::byte> record) {
  if (record.size() != record_bytes_) {
    return Malformed("a row of table {} has {} bytes instead of {}", spec_.name, record.size(),
                     record_bytes_);
  }
  if (index_.FindOrInsert(key, rows_.count()) != rows_.count()) {
    return Malformed("row {} of table {} comes twice", key, spec_.name);
  }
  std::memcpy(rows_.row(rows_.Add()), record.data(), record.size());
  return OkStatus();
}

void EmbeddingTable::Clear() {
  index_.Reset(0);
  rows_.Clear();
}

}  // namespace dt::server
