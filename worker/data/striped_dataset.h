// A split that is cut into stripes by position, so that a worker opens only those it needs. The
// cuts depend on the files and the number of stripes alone.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/base/mutex.h"
#include "worker/data/dataset.h"

namespace dt::worker {

// Names a row of a stripe, as Gather takes it.
constexpr int kStripeShift = 40;
constexpr uint64_t StripeRow(uint32_t stripe, uint64_t row) {
  return uint64_t{stripe} << kStripeShift | row;
}
constexpr uint32_t StripeOf(uint64_t row) { return static_cast<uint32_t>(row >> kStripeShift); }
constexpr uint64_t RowInStripe(uint64_t row) { return row & ((uint64_t{1} << kStripeShift) - 1); }

// Any thread.
class StripedDataset : public Dataset {
 public:
  // Has so many stripes, of which none is open. `config` and `pool` outlive it.
  StripedDataset(const DataConfig& config, Split split, uint32_t stripes, TaskPool& pool);

  uint32_t stripes() const { return count_; }
  // Opens the stripe now, if it is not open. Errors: those of Dataset::Open.
  Result<const Dataset*> Stripe(uint32_t number) const;

  // Of the stripes that are open.
  uint64_t rows() const override;
  const std::vector<ColumnSpec>& columns() const override { return columns_; }
  uint64_t fingerprint() const override;
  // Empty: each stripe has its own.
  const OpenStats& open_stats() const override { return stats_; }
  const StripedDataset* striped() const override { return this; }
  // Rows are named by StripeRow, those of a stripe together. Rows of several stripes only without
  // batch.part. Errors: those of Stripe.
  Status Gather(std::span<const uint64_t> rows, Batch& batch) const override;

 private:
  const DataConfig& config_;
  const Split split_;
  TaskPool& pool_;
  const uint32_t count_;
  mutable Mutex mutex_;
  // Null: not open.
  mutable std::vector<std::unique_ptr<Dataset>> stripes_ DT_GUARDED_BY(mutex_);
  const std::vector<ColumnSpec> columns_;
  const OpenStats stats_;
};

}  // namespace dt::worker
