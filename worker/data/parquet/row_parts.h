// The rows of a Parquet file in parts, which any threads decode: a part is some small row groups,
// or a piece of a large one.
//
// Parquet is read from the front of a row group, so the pieces of a large one share a pass over it:
// whoever needs a piece first reads up to it and leaves the pieces before it to the others.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/data/parquet/parquet_file.h"

namespace dt::worker {

// Rows that are read in one pass, and the parts that they are cut into.
struct RowRun {
  GroupRange groups;
  uint64_t rows = 0;
  uint64_t part_rows = 0;  // Rows of a part, but for the last.
  uint64_t parts() const { return (rows + part_rows - 1) / part_rows; }
};

// Cuts a file into runs, from its description alone. One thread at a time.
class RowRuns {
 public:
  // `record_bytes`: what a row takes in memory, except its lists. Only these row groups are meant.
  RowRuns(const ParquetFile& file, uint64_t record_bytes, GroupRange groups)
      : file_(file), record_bytes_(record_bytes), groups_(groups), next_group_(groups.first) {}
  // The next run, which has rows; nothing at the end of the file.
  bool Next(RowRun& out);
  // Rows of the runs so far.
  uint64_t rows_given() const { return rows_given_; }

 private:
  uint64_t PartRows(uint32_t group, uint64_t rows);

  const ParquetFile& file_;
  const uint64_t record_bytes_;
  const GroupRange groups_;
  uint64_t row_bytes_ = 0;  // What a row of a recent row group took.
  uint32_t next_group_;
  uint64_t rows_given_ = 0;
};

// A pass over the rows of a run. Any thread.
class RunReader {
 public:
  // The file outlives this.
  RunReader(const ParquetFile& file, RowRun run)
      : file_(file), run_(run), parts_(run.parts()), left_(run.parts()) {}

  const RowRun& run() const { return run_; }
  // Where a row of the run is, for messages: "row group 3, row 17", both counted from 0.
  std::string PlaceOf(uint64_t row) const;
  // The batches of a part. Each part is taken once.
  Result<std::vector<OwnedBatch>> Take(uint64_t part, bool& was_last);

 private:
  Status ReadPart() DT_REQUIRES(mutex_);

  const ParquetFile& file_;
  const RowRun run_;
  // The threads that need parts of the run take turns to read.
  Mutex mutex_;
  std::unique_ptr<ParquetRows> rows_ DT_GUARDED_BY(mutex_);
  Status failed_ DT_GUARDED_BY(mutex_);
  uint64_t parts_read_ DT_GUARDED_BY(mutex_) = 0;
  std::vector<std::vector<OwnedBatch>> parts_ DT_GUARDED_BY(mutex_);  // Read, but not yet taken.
  uint64_t left_ DT_GUARDED_BY(mutex_);                               // Parts not yet taken.
};

}  // namespace dt::worker
