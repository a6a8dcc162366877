// A data set over a mapped cache file.
#pragma once

#include <memory>

#include "worker/data/cache_file.h"
#include "worker/data/dataset.h"
#include "worker/data/derived_column.h"
#include "worker/data/rows_view.h"

namespace dt::worker {

class MappedDataset : public Dataset {
 public:
  // Of `config` it uses the derived columns and the seed. They are computed from columns of the
  // cache, which has them.
  MappedDataset(std::unique_ptr<CacheFile> cache, const DataConfig& config, OpenStats stats);

  uint64_t rows() const override { return cache_->meta().rows; }
  const std::vector<ColumnSpec>& columns() const override { return columns_; }
  uint64_t fingerprint() const override { return cache_->meta().fingerprint; }
  const OpenStats& open_stats() const override { return stats_; }
  Status Gather(std::span<const uint64_t> rows, Batch& batch) const override;

 private:
  void FillDerived(std::span<const uint64_t> rows, Batch& batch) const;
  bool IsInCache(size_t column) const { return column < columns_.size() - derived_.size(); }

  const std::unique_ptr<CacheFile> cache_;
  const OpenStats stats_;
  std::vector<ColumnSpec> columns_;  // Those of the cache, then the derived ones.
  const RowsView in_cache_;
  std::vector<DerivedColumn> derived_;
};

// A split without files.
class EmptyDataset : public Dataset {
 public:
  explicit EmptyDataset(std::vector<ColumnSpec> columns) : columns_(std::move(columns)) {}
  uint64_t rows() const override { return 0; }
  const std::vector<ColumnSpec>& columns() const override { return columns_; }
  uint64_t fingerprint() const override { return 0; }
  const OpenStats& open_stats() const override { return stats_; }
  Status Gather(std::span<const uint64_t> rows, Batch& batch) const override;

 private:
  const std::vector<ColumnSpec> columns_;
  const OpenStats stats_;
};

}  // namespace dt::worker
