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
  // Files, globs expanded and sorted; absolute or relative to the working directory. May name files
  // that are absent.
  std::vector<std::string> train, valid, test;
  std::string command;              // Prints the training data, in place of `train`; "": none.
  std::vector<ColumnSpec> columns;  // As written; empty where the format gives them.
  char delimiter = ',';
  uint64_t shuffle_window = 65536;  // 0: no shuffling.
  OnError on_error = OnError::kStop;
  std::string cache_dir;  // Default: <run dir>/cache.
  // `predict` only: samples of the test split need neither label nor weight, and these columns of
  // its files go into the predictions.
  bool labels_optional = false;
  std::vector<std::string> kept_columns;
};

}  // namespace dt
