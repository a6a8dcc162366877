// The names of a step's stages in the timeline.
#pragma once

#include <utility>

#include "common/metrics/timeline.h"

namespace dt::worker {

namespace stage {

inline constexpr SpanLabel kStep{Track::kTrain, "step", kWholeStep};
inline constexpr SpanLabel kAwaitReader{Track::kTrain, "the reader", kWait};
inline constexpr SpanLabel kSendPull{Track::kTrain, "send pull"};
inline constexpr SpanLabel kAwaitRows{Track::kTrain, "rows", kWait};
inline constexpr SpanLabel kTakeDense{Track::kTrain, "take dense"};
inline constexpr SpanLabel kRunSlice{Track::kTrain, "run slice"};
inline constexpr SpanLabel kSendPush{Track::kTrain, "send push"};
inline constexpr SpanLabel kAwaitExchange{Track::kTrain, "the exchange", kWait};
inline constexpr SpanLabel kAwaitPushes{Track::kTrain, "acknowledgements", kWait};
inline constexpr SpanLabel kAwaitBarrier{Track::kTrain, "the barrier", kWait};
inline constexpr SpanLabel kBarrier{Track::kExchange, "barrier", kWait};
inline constexpr SpanLabel kComplete{Track::kTrain, "complete"};
inline constexpr SpanLabel kUpdate{Track::kTrain, "update"};

}  // namespace stage

// Returns what `run` returns. A template, because that may be a Status, a Result or nothing.
template <class F>
auto Recorded(Timeline* timeline, const SpanLabel& label, Step step, F&& run) {
  const TimelineSpan span(timeline, label, step);
  return std::forward<F>(run)();
}

}  // namespace dt::worker
