// An open Parquet file: its columns, its row groups, and passes over their rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/data/arrow/arrow_library.h"
#include "worker/data/input/random_file.h"

namespace dt::worker {

// Consecutive row groups.
struct GroupRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

struct FreeBatch {
  void (*free)(const ArrowBatch* batch) = nullptr;
  void operator()(const ArrowBatch* batch) const { free(batch); }
};
using OwnedBatch = std::unique_ptr<const ArrowBatch, FreeBatch>;

// A pass over the rows of some row groups. One thread at a time.
class ParquetRows {
 public:
  // The next rows; null at the end. Errors as ParquetFile::Open.
  Result<OwnedBatch> Next();

 private:
  friend class ParquetFile;
  ParquetRows(const class ParquetFile& file, ArrowRows* rows);

  const ParquetFile* file_;
  ArrowOwned<ArrowRows> rows_;
};

// Any thread, but for Select.
class ParquetFile {
 public:
  // `name` is for errors. Malformed "<name>: …" if it is no sound Parquet file; Unavailable if
  // reading fails or the build has no Arrow.
  static Result<std::unique_ptr<ParquetFile>> Open(std::shared_ptr<const RandomFile> file,
                                                   std::string name);

  const std::string& name() const { return input_->name; }
  std::span<const ArrowField> fields() const;
  uint32_t group_count() const { return library_->group_count(parquet_.get()); }
  uint64_t rows_of(uint32_t group) const { return library_->group_rows(parquet_.get(), group); }

  // Sets which fields are read, in the order that they have in a batch.
  void Select(std::vector<uint32_t> fields) { selected_ = std::move(fields); }
  // What the selected columns take in memory once decoded, as far as the file tells it.
  uint64_t DecodedBytes(GroupRange groups) const;
  // Reads batches of at most `batch_rows`. `is_large`: the rows are too many to have them in memory
  // at once; see ArrowSelection.
  Result<std::unique_ptr<ParquetRows>> Read(GroupRange groups, uint64_t batch_rows,
                                            bool is_large) const;

 private:
  friend class ParquetRows;
  // What Arrow reads, on its own threads. It is shared with them, because reads ahead may still run
  // when the ParquetFile is gone.
  struct Input {
    std::shared_ptr<const RandomFile> file;
    std::string name;
    Mutex mutex;
    Status failed DT_GUARDED_BY(mutex);  // The first error of `file`.

    bool Read(uint64_t at, uint64_t bytes, void* out);
  };

  ParquetFile(ArrowLibrary library, std::shared_ptr<Input> input);
  // The error of a call: that of the input if it has failed, else Arrow's.
  Status StatusOf(const ArrowError& error) const;
  ArrowSelection Selection(GroupRange groups) const;

  const ArrowLibrary library_;
  const std::shared_ptr<Input> input_;
  std::vector<uint32_t> selected_;
  ArrowOwned<ArrowParquet> parquet_;
};

}  // namespace dt::worker
