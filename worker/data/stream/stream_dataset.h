// The training samples of a job that trains on a stream: the messages are lines of CSV with
// the columns of data.columns in their order. Nothing is cached: messages are fetched as they are
// gathered, so those of one partition should be asked for in the order of their offsets.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/cluster/stream_cut.h"
#include "common/config/data_config.h"
#include "worker/data/dataset.h"
#include "worker/data/stream/message_reader.h"
#include "worker/data/stream/stream_delays.h"

namespace dt::worker {

// Any thread.
class StreamDataset : public Dataset {
 public:
  // `config` outlives it. REQUIRES: config.stream.
  // Errors: Invalid, if data.columns cannot be read from CSV.
  static Result<std::unique_ptr<StreamDataset>> Open(const DataConfig& config,
                                                     std::unique_ptr<MessageReader> reader);

  // The messages of each partition, now. Errors: those of the reader.
  Result<std::vector<PartitionRange>> Partitions() const;

  uint64_t rows() const override { return 0; }  // It has no last one.
  const std::vector<ColumnSpec>& columns() const override { return columns_; }
  uint64_t fingerprint() const override { return fingerprint_; }
  const OpenStats& open_stats() const override { return stats_; }
  // A row is named by its partition and offset, as StripeRow(partition, offset). There are fewer
  // samples than rows if the topic has no message at some offset, or with data.on_error: skip.
  // Errors: those of the reader; Malformed, if a message cannot be parsed.
  // REQUIRES: no batch.part.
  Status Gather(std::span<const uint64_t> rows, Batch& batch) const override;

  const StreamDataset* stream() const override { return this; }
  // The delays of messages that were gathered for training.
  // All steps before this one are applied.
  void OnApplied(Step before) const;
  // What was gathered and not applied was only evaluated, or is gathered again.
  void ForgetGathered() const;
  StreamDelays delays() const;

  class Source;
  StreamDataset(const DataConfig& config, std::unique_ptr<Source> source);
  ~StreamDataset() override;

 private:
  const std::vector<ColumnSpec> columns_;
  const uint64_t fingerprint_;
  const OpenStats stats_;
  mutable Mutex mutex_;
  const std::unique_ptr<Source> source_;  // Used under mutex_, which is held while it waits.
  mutable Mutex delays_mutex_;
  mutable StreamDelays delays_ DT_GUARDED_BY(delays_mutex_);
};

}  // namespace dt::worker
