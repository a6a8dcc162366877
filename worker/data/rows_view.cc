#include "worker/data/rows_view.h"

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

}  // namespace

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

RowsView::RowsView(const RowLayout& layout, const std::byte* records, const uint64_t* heap,
                   uint64_t rows)
    : layout_(layout), records_(records), heap_(heap), rows_(rows) {
  for (size_t c = 0; c < layout_.columns().size(); ++c) {
    if (layout_.columns()[c].is_ragged()) ragged_.push_back(c);
  }
}

void RowsView::Prefetch(std::span<const uint64_t> rows) const {
  const uint32_t bytes = layout_.record_bytes();
  for (const uint64_t row : rows) {
    const std::byte* const record = Record(row);
    // The tail of a long record is left to the processor's own prefetcher.
    for (uint32_t at = 0; at < std::min(bytes, 8 * kCacheLine); at += kCacheLine) {
      __builtin_prefetch(record + at);
    }
  }
}

void RowsView::GatherFixed(size_t column, std::span<const uint64_t> rows, size_t first,
                           BatchColumn& out) const {
  const ColumnSpec& spec = layout_.columns()[column];
  const ColumnSlot slot = layout_.slot(column);
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

void RowsView::GatherRagged(std::span<const uint64_t> rows, Batch& batch) const {
  const RowLayout& layout = layout_;
  const std::vector<ColumnSpec>& specs = layout_.columns();
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
    const uint64_t* from = heap_ + place;
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

void RowsView::Gather(std::span<const uint64_t> rows, Batch& batch) const {
  for (const uint64_t row : rows) {
    DT_CHECK_MSG(row < rows_, "row {} of {}", row, rows_);
  }
  Prefetch(rows.first(std::min(kTile, rows.size())));
  const SampleRange own = batch.own();
  for (size_t first = 0; first < rows.size(); first += kTile) {
    const std::span<const uint64_t> tile =
        rows.subspan(first, std::min(kTile, rows.size() - first));
    const size_t next = std::min(first + kTile, rows.size());
    Prefetch(rows.subspan(next, std::min(kTile, rows.size() - next)));
    const size_t own_begin = std::clamp<size_t>(own.begin, first, first + tile.size());
    const size_t own_end = std::clamp<size_t>(own.end, own_begin, first + tile.size());
    for (size_t c = 0; c < layout_.columns().size(); ++c) {
      if (!layout_.columns()[c].is_keys()) {
        GatherFixed(c, tile, first, batch.columns[c]);
      } else if (!layout_.columns()[c].is_ragged() && own_begin < own_end) {
        GatherFixed(c, tile.subspan(own_begin - first, own_end - own_begin), own_begin - own.begin,
                    batch.columns[c]);
      }
    }
    for (size_t i = 0; i < batch.whole.size(); ++i) {
      const uint32_t c = batch.whole_columns[i];
      if (c < layout_.columns().size()) GatherFixed(c, tile, first, batch.whole[i]);
    }
  }
  if (layout_.has_heap()) GatherRagged(rows.subspan(own.begin, own.size()), batch);
}

}  // namespace dt::worker
