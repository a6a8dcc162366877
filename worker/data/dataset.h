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

class StreamDataset;
class StripedDataset;

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
  // Opens one of the stripes into which a split is cut. It may have no rows.
  struct Stripe {
    uint32_t number = 0, of = 1;
  };
  static Result<std::unique_ptr<Dataset>> OpenStripe(const DataConfig& config, Split split,
                                                     Stripe stripe, TaskPool& pool);
  virtual ~Dataset() = default;

  virtual uint64_t rows() const = 0;
  // Features, label and weight columns; the same for all splits of a job. Derived columns, which
  // are in no file, are the last.
  virtual const std::vector<ColumnSpec>& columns() const = 0;
  // A hash of the content: equal for equal samples in equal order.
  virtual uint64_t fingerprint() const = 0;
  virtual const OpenStats& open_stats() const = 0;
  // This data set, if it is cut into stripes, else null.
  virtual const StripedDataset* striped() const { return nullptr; }
  // This data set, if it is a stream, else null.
  virtual const StreamDataset* stream() const { return nullptr; }
  // Fills batch.columns, whole and samples with these rows in this order; in `columns`, ids only of
  // batch.part. Derived columns depend on batch.epoch, too. Errors: those of the source, for a data
  // set that reads it only now.
  // REQUIRES: each < rows().
  virtual Status Gather(std::span<const uint64_t> rows, Batch& batch) const = 0;
};

}  // namespace dt::worker
