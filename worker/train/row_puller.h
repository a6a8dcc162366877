// Takes slices from the reader and pulls their rows, one slice or more ahead of the computation.
// Owned by the train thread.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "worker/client/ps_client.h"
#include "worker/client/row_cache.h"
#include "worker/train/slice_reader.h"

namespace dt::worker {

class RowPuller {
 public:
  // With `cache`, only rows that it lacks are pulled; not for evaluation. Without `timeline`,
  // nothing is recorded.
  RowPuller(SliceReader& reader, PsClient& client, RowCache* cache = nullptr,
            Timeline* timeline = nullptr)
      : reader_(reader), client_(client), cache_(cache), timeline_(timeline) {}

  // Sends the pull of the next slice, as of the slice's step; does nothing after the last slice.
  // `step` is the one at hand, for the timeline.
  Status Begin(Step step, PullMode mode);
  // Waits for the rows of the slice begun first; nullptr after the last slice. The returned slice
  // and the one before it stay unchanged.
  struct Slice {
    std::unique_ptr<LookupPlan> plan;
    std::unique_ptr<CachedPull> cached;  // Null without a cache.
    PulledRows pulled;
    std::vector<std::span<const float>> rows;  // By table of the graph.
  };
  Result<const Slice*> Finish();
  size_t ahead() const { return ahead_.size(); }  // Slices begun and not finished.
  // The slice begun first, whose rows may not be here yet; nullptr: none. It does not move.
  const LookupPlan* next() const { return ahead_.empty() ? nullptr : ahead_.front().plan.get(); }

 private:
  Result<std::unique_ptr<LookupPlan>> NextPlan(Step step);
  Status TakeRows(Slice& slice);
  void PrefetchNext(Step step);

  SliceReader& reader_;
  PsClient& client_;
  RowCache* const cache_;
  Timeline* const timeline_;
  struct Begun {
    std::unique_ptr<LookupPlan> plan;
    std::unique_ptr<CachedPull> cached;
  };
  std::vector<Begun> ahead_;  // Slices begun, a few.
  std::array<Slice, 2> taken_;
  size_t taken_count_ = 0;  // The next slice goes to taken_ at this number modulo its size.
  std::vector<std::unique_ptr<CachedPull>> spare_;
  // Slices announced to the servers, if that helps.
  std::vector<std::unique_ptr<LookupPlan>> coming_;
};

}  // namespace dt::worker
