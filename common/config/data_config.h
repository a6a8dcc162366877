// The data section of the job file. See job_config.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/specs/column.h"
#include "common/specs/data_format.h"

namespace dt {

enum class OnError { kStop, kSkip };

struct DataConfig {
  DataFormat format = DataFormat::kLibsvm;
  // Files; globs are expanded and sorted. Paths are absolute or relative to the working directory.
  // The files need not exist.
  std::vector<std::string> train, valid, test;
  // A command that prints the training data, instead of `train`; "": none.
  std::string command;
  std::vector<ColumnSpec> columns;  // As in the job file; empty if the format fixes them.
  char delimiter = ',';
  uint64_t shuffle_window = 65536;  // 0: no shuffling.
  // Each slice of a step has samples of its own stripe of the data; else of all of it.
  bool by_slices = false;
  bool read_part = false;  // A worker reads only what its slices need. Only with `by_slices`.
  OnError on_error = OnError::kStop;
  std::string cache_dir;  // Default: <run dir>/cache.
  uint64_t seed = 1;      // The job's seed, on which keys that are drawn depend.
  // `predict` only: samples of the test split need neither label nor weight, and these columns of
  // its files are copied into the predictions.
  bool labels_optional = false;
  std::vector<std::string> kept_columns;
};

}  // namespace dt
