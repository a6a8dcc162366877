// The slices of an order's steps that one asynchronous worker computes. They are its own by the
// order, or are handed out to it one range after the other. When the workers of the job change,
// the order comes again, perhaps with slices of a lost worker; what has been acknowledged by the
// servers is not computed again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "worker/train/order_progress.h"

namespace dt::worker {

class OrderSlices {
 public:
  // Returns the next range of the order for this worker; after an empty one there is no more.
  using NextSplit = std::function<Result<SplitMessage>()>;
  // Without `next_split` the worker does the slices that it owns by the order. `progress` outlives
  // it; what is pushed from now on does not count.
  OrderSlices(TrainOrder order, ProcessId self, NextSplit next_split, OrderProgress& progress);

  struct Slice {
    Step step = 0;
    SliceIndex slice = 0;
    // The least step of which the worker then has a slice to push. With ranges: its own count.
    Step next_step = 0;
  };
  // In ascending order; nothing at the end of the order. Errors: those of `next_split`.
  Result<std::optional<Slice>> Next();

 private:
  std::optional<uint64_t> FindOwn(uint64_t from) const;
  Result<std::optional<uint64_t>> FindInSplits();
  bool Pushed(uint64_t part) const { return pushed_.contains({StepOf(part), SliceOf(part)}); }
  Step StepOf(uint64_t part) const { return order_.first_step + part / ways_; }
  SliceIndex SliceOf(uint64_t part) const { return static_cast<SliceIndex>(part % ways_); }

  const TrainOrder order_;
  const ProcessId self_;
  const NextSplit next_split_;
  const uint64_t ways_;  // Slices of a step.
  const OrderProgress::Slices pushed_;
  std::vector<SplitMessage>& splits_;
  // Slices of the order are numbered step by step. The next one to return.
  std::optional<uint64_t> next_;
  size_t split_ = 0;       // Ranges before this one are used up,
  uint64_t in_split_ = 0;  // and so many slices of this one.
  uint64_t count_ = 0;     // Returned so far.
};

}  // namespace dt::worker
