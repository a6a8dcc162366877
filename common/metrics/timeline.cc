#include "common/metrics/timeline.h"

#include <algorithm>
#include <tuple>

#include "common/base/check.h"

namespace dt {

std::string_view NameOf(Track track) {
  constexpr std::string_view kNames[kTracks] = {"train", "reader",         "pull",
                                                "push",  "exchange",       "cpu",
                                                "gpu",   "copy to device", "copy to host"};
  DT_CHECK(static_cast<size_t>(track) < kTracks);
  return kNames[static_cast<size_t>(track)];
}

Timeline::Timeline(const Options& options)
    : options_(options),
      steps_after_first_(options.last - options.first),
      slots_(std::make_unique<Slot[]>(options.spans_max)) {
  DT_CHECK(options.first <= options.last);
}

Activity* Timeline::ActivityOf(Track track) const {
  Activities* const all = options_.activities;
  if (all == nullptr) return nullptr;
  if (track == Track::kTrain) return &all->train;
  if (track == Track::kReader) return &all->reader;
  return track == Track::kExchange ? &all->exchange : nullptr;
}

void Timeline::Record(const RecordedSpan& span) {
  if (!Wants(span.step)) return;
  const size_t at = next_.fetch_add(1, std::memory_order_relaxed);
  if (at >= options_.spans_max) return;
  slots_[at].span = span;
  slots_[at].complete.store(true, std::memory_order_release);
}

std::vector<RecordedSpan> Timeline::Spans() const {
  std::vector<RecordedSpan> spans;
  const size_t taken = std::min(next_.load(std::memory_order_relaxed), options_.spans_max);
  spans.reserve(taken);
  for (size_t i = 0; i < taken; ++i) {
    if (slots_[i].complete.load(std::memory_order_acquire)) spans.push_back(slots_[i].span);
  }
  std::ranges::stable_sort(spans, [](const RecordedSpan& a, const RecordedSpan& b) {
    return std::tie(a.begin, b.end) < std::tie(b.begin, a.end);
  });
  return spans;
}

uint64_t Timeline::dropped() const {
  const size_t asked = next_.load(std::memory_order_relaxed);
  return asked - std::min(asked, options_.spans_max);
}

}  // namespace dt
