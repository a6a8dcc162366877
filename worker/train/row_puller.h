// Takes slices from the reader and gets their rows, one slice ahead of the computing. Owned by the
// train thread.
#pragma once

#include <deque>
#include <memory>
#include <span>

#include "worker/client/ps_client.h"
#include "worker/train/slice_reader.h"

namespace dt::worker {

class RowPuller {
 public:
  RowPuller(SliceReader& reader, PsClient& client) : reader_(reader), client_(client) {}

  // Sends the pull of the next slice, as of `step`; does nothing after the last slice.
  // REQUIRES: none is under way.
  Status Begin(Step step, PullMode mode);
  // Waits for the rows of the slice begun, which stays the current one until the next Finish;
  // nullptr after the last.
  Result<const LookupPlan*> Finish();
  // By table of the graph, of the current slice.
  std::span<const std::span<const float>> rows() const { return tables_; }

 private:
  Result<std::unique_ptr<LookupPlan>> NextPlan();
  void LookAhead(Step step);

  SliceReader& reader_;
  PsClient& client_;
  std::unique_ptr<LookupPlan> ahead_, current_;
  std::deque<std::unique_ptr<LookupPlan>> coming_;  // Announced, if that helps.
  PulledRows pulled_;
  std::vector<std::span<const float>> tables_;
};

}  // namespace dt::worker
