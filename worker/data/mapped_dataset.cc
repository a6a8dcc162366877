#include "worker/data/mapped_dataset.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace dt::worker {
namespace {

// While the columns of this many rows are copied, the records of as many others are prefetched. The
// records of 64 rows with 39 columns fit the first-level cache.
constexpr size_t kTile = 64;
constexpr uint32_t kCacheLine = 64;

// Makes room for a column, with ids of `own` samples. Ragged columns get none yet.
void ClearColumn(const ColumnSpec& spec, size_t samples, size_t own, BatchColumn& out) {
  const size_t keys = spec.is_keys() ? own * spec.length : 0;
  out.floats.resize(spec.is_keys() ? 0 : samples * spec.length);
  out.keys.resize(keys);
  out.weights.resize(spec.weighted ? keys : 0);
  out.offsets.assign(spec.is_ragged() ? own + 1 : 0, 0);
}

void ClearColumns(size_t samples, std::span<const ColumnSpec> columns, Batch& batch) {
  batch.samples = static_cast<uint32_t>(samples);
  batch.columns.resize(columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    ClearColumn(columns[c], samples, batch.own().size(), batch.columns[c]);
  }
  batch.whole.resize(batch.part ? batch.whole_columns.size() : 0);
  for (size_t i = 0; i < batch.whole.size(); ++i) {
    ClearColumn(columns[batch.whole_columns[i]], samples, samples, batch.whole[i]);
  }
}

}  // namespace

Status EmptyDataset::Gather(std::span<const uint64_t> rows, Batch& batch) const {
  DT_CHECK(rows.empty());
  ClearColumns(0, columns_, batch);
  return OkStatus();
}

MappedDataset::MappedDataset(std::unique_ptr<CacheFile> cache, const DataConfig& config,
                             OpenStats stats)
    : cache_(std::move(cache)), stats_(stats), columns_(cache_->layout().columns()) {
  const RowLayout& layout = cache_->layout();
  for (size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].is_ragged()) ragged_.push_back(c);
  }
  for (const ColumnSpec& column : DerivedColumns(config.columns)) {
    const auto of = std::ranges::find(layout.columns(), column.of.at(0), &ColumnSpec::name);
    DT_CHECK_MSG(of != layout.columns().end(), "no column {}", column.of.at(0));
    const auto index = static_cast<size_t>(of - layout.columns().begin());
    const KeyColumn keys = {cache_->records() + layout.slot(index).value, layout.record_bytes(),
                            cache_->meta().rows};
    derived_.emplace_back(column, config.seed, keys);
    columns_.push_back(column);
  }
}

void MappedDataset::Prefetch(std::span<const uint64_t> rows) const {
  const uint32_t bytes = cache_->layout().record_bytes();
  for (const uint64_t row : rows) {
    const std::byte* const record = Record(row);
    // The tail of a long record is left to the processor's own prefetcher.
    for (uint32_t at = 0; at < std::min(bytes, 8 * kCacheLine); at += kCacheLine) {
      __builtin_prefetch(record + at);
    }
  }
}

void MappedDataset::GatherFixed(size_t column, std::span<const uint64_t> rows, size_t first,
                                BatchColumn& out) const {
  const ColumnSpec& spec = columns()[column];
  const ColumnSlot slot = cache_->layout().slot(column);
  const size_t length = spec.length;
  if (spec.is_vector()) {
    float* const to = out.floats.data() + first * length;
    for (size_t i = 0; i < rows.size(); ++i) {
      std::memcpy(to + i * length, Record(rows[i]) + slot.value, length * sizeof(float));
    }
    return;
  }
  if (!spec.is_keys()) {
    float* const to = out.floats.data() + first;
    for (size_t i = 0; i < rows.size(); ++i) {
      std::memcpy(to + i, Record(rows[i]) + slot.value, sizeof(float));
    }
    return;
  }
  Key* const to = out.keys.data() + first * length;
  if (length == 1) {
    for (size_t i = 0; i < rows.size(); ++i) {
      std::memcpy(to + i, Record(rows[i]) + slot.value, sizeof(Key));
    }
  } else {
    for (size_t i = 0; i < rows.size(); ++i) {
      std::memcpy(to + i * length, Record(rows[i]) + slot.value, length * sizeof(Key));
    }
  }
  if (!spec.weighted) return;
  float* const weights = out.weights.data() + first * length;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(weights + i * length, Record(rows[i]) + slot.weights, length * sizeof(float));
  }
}

void MappedDataset::GatherRagged(std::span<const uint64_t> rows, Batch& batch) const {
  const RowLayout& layout = cache_->layout();
  const std::vector<ColumnSpec>& specs = columns();
  for (const size_t c : ragged_) {
    BatchColumn& out = batch.columns[c];
    uint64_t total = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      uint32_t count;
      std::memcpy(&count, Record(rows[i]) + layout.slot(c).value, sizeof count);
      total += count;
      out.offsets[i + 1] = static_cast<uint32_t>(total);
    }
    DT_CHECK_MSG(total <= ~uint32_t{0}, "{} keys in one slice of column {}", total, specs[c].name);
    out.keys.resize(total);
    if (specs[c].weighted) out.weights.resize(total);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    uint64_t place;
    std::memcpy(&place, Record(rows[i]) + layout.heap_slot(), sizeof place);
    const uint64_t* from = cache_->heap() + place;
    for (const size_t c : ragged_) {
      BatchColumn& out = batch.columns[c];
      const uint32_t start = out.offsets[i];
      const uint32_t count = out.offsets[i + 1] - start;
      if (count == 0) continue;
      std::memcpy(out.keys.data() + start, from, count * sizeof(Key));
      if (specs[c].weighted) {
        std::memcpy(out.weights.data() + start, from + count, count * sizeof(float));
      }
      from += RowLayout::HeapWords(specs[c], count);
    }
  }
}

Status MappedDataset::Gather(std::span<const uint64_t> rows, Batch& batch) const {
  for (const uint64_t row : rows) {
    DT_CHECK_MSG(row < this->rows(), "row {} of {}", row, this->rows());
  }
  ClearColumns(rows.size(), columns(), batch);
  Prefetch(rows.first(std::min(kTile, rows.size())));
  const SampleRange own = batch.own();
  for (size_t first = 0; first < rows.size(); first += kTile) {
    const std::span<const uint64_t> tile =
        rows.subspan(first, std::min(kTile, rows.size() - first));
    const size_t next = std::min(first + kTile, rows.size());
    Prefetch(rows.subspan(next, std::min(kTile, rows.size() - next)));
    const size_t own_begin = std::clamp<size_t>(own.begin, first, first + tile.size());
    const size_t own_end = std::clamp<size_t>(own.end, own_begin, first + tile.size());
    for (size_t c = 0; IsInCache(c); ++c) {
      if (!columns()[c].is_keys()) {
        GatherFixed(c, tile, first, batch.columns[c]);
      } else if (!columns()[c].is_ragged() && own_begin < own_end) {
        GatherFixed(c, tile.subspan(own_begin - first, own_end - own_begin), own_begin - own.begin,
                    batch.columns[c]);
      }
    }
    for (size_t i = 0; i < batch.whole.size(); ++i) {
      const uint32_t c = batch.whole_columns[i];
      if (IsInCache(c)) GatherFixed(c, tile, first, batch.whole[i]);
    }
  }
  if (cache_->layout().has_heap()) GatherRagged(rows.subspan(own.begin, own.size()), batch);
  FillDerived(rows, batch);
  return OkStatus();
}

void MappedDataset::FillDerived(std::span<const uint64_t> rows, Batch& batch) const {
  const size_t first = columns_.size() - derived_.size();
  const SampleRange own = batch.own();
  for (size_t c = first; c < columns_.size(); ++c) {
    const bool of_all = !columns_[c].is_keys();
    derived_[c - first].Fill(batch.epoch, of_all ? rows : rows.subspan(own.begin, own.size()),
                             batch.columns[c]);
  }
  for (size_t i = 0; i < batch.whole.size(); ++i) {
    const uint32_t c = batch.whole_columns[i];
    if (!IsInCache(c)) derived_[c - first].Fill(batch.epoch, rows, batch.whole[i]);
  }
}

}  // namespace dt::worker
