#include "server/shard/applied_slices.h"

#include <algorithm>

namespace dt::server {

bool AppliedSlices::Has(Step step, SliceIndex slice) const {
  if (step < settled_) return true;
  const auto word = words_.find({step, slice / kWordBits});
  return word != words_.end() && (word->second >> (slice % kWordBits) & 1) != 0;
}

void AppliedSlices::Add(Step step, SliceIndex slice) {
  words_[{step, slice / kWordBits}] |= uint64_t{1} << (slice % kWordBits);
}

void AppliedSlices::Settle(Step step) {
  if (step <= settled_) return;
  settled_ = step;
  absl::erase_if(words_, [step](const auto& word) { return word.first.first < step; });
}

std::vector<ClockState::Applied> AppliedSlices::Ascending() const {
  std::vector<ClockState::Applied> all;
  for (const auto& [at, slices] : words_) all.push_back({at.first, at.second, slices});
  std::ranges::sort(all, {}, [](const auto& each) { return std::pair(each.step, each.word); });
  return all;
}

void AppliedSlices::Reset(const ClockState& state) {
  settled_ = state.settled;
  words_.clear();
  for (const auto& each : state.applied) words_[{each.step, each.word}] = each.slices;
}

}  // namespace dt::server
