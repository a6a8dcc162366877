// Takes slices from the reader and gets their rows, one slice or more ahead of the computing. Owned
// by the train thread.
#pragma once

#include <deque>
#include <memory>
#include <span>

#include "worker/client/ps_client.h"
#include "worker/client/row_cache.h"
#include "worker/train/slice_reader.h"

namespace dt::worker {

class RowPuller {
 public:
  // With a cache only what it lacks is pulled; not for evaluation.
  // Null: nothing is recorded.
  RowPuller(SliceReader& reader, PsClient& client, RowCache* cache = nullptr,
            Timeline* timeline = nullptr)
      : reader_(reader), client_(client), cache_(cache), timeline_(timeline) {}

  // Sends the pull of the next slice, as of `step`; does nothing after the last slice.
  Status Begin(Step step, PullMode mode);
  // Waits for the rows of the first slice begun, which stays the current one until the next Finish;
  // nullptr after the last.
  Result<const LookupPlan*> Finish();
  size_t ahead() const { return ahead_.size(); }  // Slices begun.
  // The first slice begun, whose rows may not be here yet; nullptr: none. It stays where it is.
  const LookupPlan* next() const { return ahead_.empty() ? nullptr : ahead_.front().plan.get(); }
  // By table of the graph, of the current slice.
  std::span<const std::span<const float>> rows() const { return tables_; }

 private:
  Result<std::unique_ptr<LookupPlan>> NextPlan(Step step);
  Status TakeRows();
  void LookAhead(Step step);

  SliceReader& reader_;
  PsClient& client_;
  RowCache* const cache_;
  Timeline* const timeline_;
  struct Slice {
    std::unique_ptr<LookupPlan> plan;
    std::unique_ptr<CachedPull> cached;  // With a cache.
  };
  std::deque<Slice> ahead_;
  Slice current_;
  std::unique_ptr<CachedPull> spare_;
  std::deque<std::unique_ptr<LookupPlan>> coming_;  // Announced, if that helps.
  PulledRows pulled_;
  std::vector<std::span<const float>> tables_;
};

}  // namespace dt::worker
