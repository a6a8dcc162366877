// Rows that a job takes from another job's checkpoint, or from a file, in the form of its own.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/rows/rows_reader.h"

namespace dt {

// Makes records (row_record.h) of a table. One thread.
class TakenRows {
 public:
  struct Options {
    RowsHeader::Table table;           // The job's.
    std::vector<float> initial_state;  // The state of a row that was never pushed.
    bool keep_state = false;  // The records to take have the same state; else it begins anew.
    Step steps_before = 0;    // StartMessage::steps_before: no row was pushed later.
  };
  explicit TakenRows(const Options& options);

  // The record of the job's table with the values of `record`, one of `saved`, which has the same
  // dim. Valid until the next call. DataLoss: the record has a wrong size.
  Result<std::span<const std::byte>> Take(const SavedValues& saved,
                                          std::span<const std::byte> record);
  // The record of a row with these values, which counts as pushed when the job begins.
  std::span<const std::byte> Make(std::span<const float> values);

 private:
  Step LastStep() const;
  std::span<const std::byte> Encode(std::span<const float> values, std::span<const float> state,
                                    Step last_push);

  const Options options_;
  const size_t values_bytes_;
  std::vector<std::byte> record_;
  std::vector<float> values_, state_;
};

// The state of a table in a shard (row_record.h) with its counts of pushes alone: no row has
// expired. Malformed: not such a state.
Result<std::string> CountsOf(std::string_view state);

}  // namespace dt
