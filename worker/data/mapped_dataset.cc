#include "worker/data/mapped_dataset.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::worker {

Status EmptyDataset::Gather(std::span<const uint64_t> rows, Batch& batch) const {
  DT_CHECK(rows.empty());
  ClearColumns(0, columns_, batch);
  return OkStatus();
}

MappedDataset::MappedDataset(std::unique_ptr<CacheFile> cache, const DataConfig& config,
                             OpenStats stats)
    : cache_(std::move(cache)),
      stats_(stats),
      columns_(cache_->layout().columns()),
      in_cache_(cache_->layout(), cache_->records(), cache_->heap(), cache_->meta().rows) {
  const RowLayout& layout = cache_->layout();
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

Status MappedDataset::Gather(std::span<const uint64_t> rows, Batch& batch) const {
  ClearColumns(rows.size(), columns_, batch);
  in_cache_.Gather(rows, batch);
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
