// The data section of the job file. See job_config.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/specs/column.h"
#include "common/specs/data_format.h"

namespace dt {

enum class OnError { kStop, kSkip };

// Training data that grows while the job runs: a topic of Kafka, or what commands print.
struct StreamConfig {
  std::string command;      // Not empty: it is run for each partition, and prints its messages.
  uint32_t partitions = 0;  // How many a command is run for.
  std::string brokers;      // HOST:PORT, or several with commas between.
  std::string topic;
  bool from_end = false;  // The job begins with the messages that come from then on.
  // Names and values of librdkafka's settings.
  std::vector<std::pair<std::string, std::string>> settings = {};
  Duration wait = seconds(1);       // After so long a step has fewer samples than a batch.
  Duration patience = seconds(60);  // How long the brokers may be away.

  std::string Name() const { return command.empty() ? "topic " + topic : "command"; }
};

struct DataConfig {
  DataFormat format = DataFormat::kLibsvm;
  // Files; globs are expanded and sorted. Paths are absolute or relative to the working directory.
  // The files need not exist.
  std::vector<std::string> train, valid, test;
  // A command that prints the training data to an end, instead of `train`; "": none.
  std::string command;
  std::optional<StreamConfig> stream;  // The training data, instead of `train`.
  std::vector<ColumnSpec> columns;     // As in the job file; empty if the format fixes them.
  // The file with statistics of the training data: constants of columns, which then have them, and
  // distinct keys; "": none.
  std::string stats;
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
