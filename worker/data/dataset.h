// The samples of one split (train, valid, test), readable at random.
//
// On first use the source files are parsed, in parallel and with bounded memory, into a binary
// columnar cache with a row index, which is memory-mapped; later opens check the cache against its
// sources (paths, sizes, modification times, reader options) and use it. Processes on one machine
// share the cache under a file lock. Immutable once open; reads are any-thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/data_config.h"
#include "common/runtime/task_pool.h"
#include "common/specs/column.h"
#include "worker/data/batch.h"

namespace dt::worker {

enum class Split { kTrain, kValid, kTest };

class Dataset {
 public:
  struct OpenStats {
    bool from_cache = false;
    uint64_t rows_skipped = 0;  // data.on_error: skip
    double seconds = 0;
  };
  // Errors: Malformed "file:line: column: …" for bad data; NotFound with a hint, if a file is
  // absent; others. A split without files gives a data set of 0 rows.
  static Result<std::unique_ptr<Dataset>> Open(const DataConfig& config, Split split,
                                               TaskPool& pool);
  virtual ~Dataset() = default;

  virtual uint64_t rows() const = 0;
  // Features, label and weight columns; the same for all splits of a job. Derived columns, which
  // are in no file, are the last.
  virtual const std::vector<ColumnSpec>& columns() const = 0;
  // A hash of the content: equal for equal samples in equal order.
  virtual uint64_t fingerprint() const = 0;
  virtual const OpenStats& open_stats() const = 0;
  // Fills batch.columns, whole and samples with these rows in this order; in `columns`, ids only of
  // batch.part. Derived columns depend on batch.epoch, too.
  // REQUIRES: each < rows().
  virtual void Gather(std::span<const uint64_t> rows, Batch& batch) const = 0;
};

// The order of the samples of an epoch: position → row. A pure function of (seed, epoch, rows,
// window): the epoch's rows are cut into windows from a rotated start, windows are visited in
// shuffled order, and rows are shuffled within their window. With window 0 it is the identity.
// Cheap to copy; the positions of only one window at a time are in memory.
class EpochOrder {
 public:
  EpochOrder(uint64_t seed, uint64_t epoch, uint64_t rows, uint64_t window);
  // Appends the rows at positions [begin, end). REQUIRES: end <= rows.
  void Rows(uint64_t begin, uint64_t end, std::vector<uint64_t>& out);

 private:
  void Materialise(uint64_t window_number);
  uint64_t seed_, epoch_, rows_, window_, start_ = 0;
  uint64_t last_visit_ = 0;  // When the last window, which may be short, is visited.
  std::vector<uint64_t> window_order_;
  uint64_t held_ = ~uint64_t{0};  // The window in `permutation_`.
  std::vector<uint32_t> permutation_;
};

// The positions of step `step_in_epoch` of an epoch, and of slice k of n of a step: the first
// slices have ceil(count / n) positions, the last ones fewer or none.
SampleRange StepRange(uint64_t rows, uint32_t batch_size, uint64_t step_in_epoch);
SampleRange SliceRange(SampleRange step, SliceIndex k, uint32_t n);

// Fills columns, samples and first_sample of `batch` with the samples at the positions of `slice`.
void FillSlice(const Dataset& data, EpochOrder& order, SampleRange slice, Batch& batch);

}  // namespace dt::worker
