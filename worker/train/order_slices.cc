#include "worker/train/order_slices.h"

#include <algorithm>

namespace dt::worker {

OrderSlices::OrderSlices(TrainOrder order, ProcessId self, NextSplit next_split,
                         OrderProgress& progress)
    : order_(std::move(order)),
      self_(self),
      next_split_(std::move(next_split)),
      ways_(order_.slice_owner.size()),
      pushed_(progress.pushed),
      splits_(progress.splits) {
  if (!next_split_) next_ = FindOwn(0);
}

Result<std::optional<OrderSlices::Slice>> OrderSlices::Next() {
  std::optional<uint64_t> now = next_;
  if (next_split_) {
    DT_TRY(now, FindInSplits());
  }
  if (!now.has_value()) return std::optional<Slice>();
  Slice slice{.step = StepOf(*now), .slice = SliceOf(*now)};
  ++count_;
  if (next_split_) {
    slice.next_step = std::min(order_.first_step + count_, order_.end_step);
    return std::optional(slice);
  }
  next_ = FindOwn(*now + 1);
  slice.next_step = next_ ? StepOf(*next_) : order_.end_step;
  return std::optional(slice);
}

std::optional<uint64_t> OrderSlices::FindOwn(uint64_t from) const {
  const uint64_t end = (order_.end_step - order_.first_step) * ways_;
  for (uint64_t part = from; part < end; ++part) {
    if (order_.slice_owner[SliceOf(part)] == self_.value() && !Pushed(part)) return part;
  }
  return std::nullopt;
}

Result<std::optional<uint64_t>> OrderSlices::FindInSplits() {
  for (;;) {
    for (; split_ < splits_.size(); ++split_, in_split_ = 0) {
      const SplitMessage& split = splits_[split_];
      while (split.begin + in_split_ < split.end) {
        const uint64_t part = split.begin + in_split_++;
        if (StepOf(part) < order_.end_step && !Pushed(part)) return std::optional(part);
      }
    }
    // An error must not end the order: a range may be handed out already.
    DT_TRY(const SplitMessage more, next_split_());
    if (more.begin == more.end) return std::optional<uint64_t>();
    splits_.push_back(more);
  }
}

}  // namespace dt::worker
