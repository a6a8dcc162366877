// Spans with times in milliseconds since the clock's start.
#pragma once

#include "common/metrics/timeline.h"

namespace dt {

inline RecordedSpan SpanOf(const SpanLabel& label, int begin_ms, int end_ms, Step step = 7) {
  return {.label = label,
          .step = step,
          .begin = TimePoint(milliseconds(begin_ms)),
          .end = TimePoint(milliseconds(end_ms))};
}

inline RecordedSpan WholeStep(Step step, int begin_ms, int end_ms) {
  return SpanOf({Track::kTrain, "step", kWholeStep}, begin_ms, end_ms, step);
}

}  // namespace dt
