// Spans as figures: how busy each track was, what overlapped, what was waited for. Pure functions.
//
// All figures count time within the steps that were recorded: the spans of category kWholeStep, or
// without those the time from the first span to the last. A track is busy while any of its spans
// lasts that is neither a wait nor a whole step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/metrics/timeline.h"

namespace dt {

struct TimelineSummary {
  struct Use {
    Track track = Track::kTrain;
    Duration busy{};
    Duration step_median{};  // Busy in one step.
    uint64_t spans = 0;
    uint64_t bytes = 0;
  };
  struct Overlap {
    Track first = Track::kTrain, second = Track::kTrain;
    Duration both{};  // Busy at once.
  };
  struct Wait {
    std::string_view name;
    Duration time{};
  };

  size_t steps = 0;
  Step first_step = 0, last_step = 0;
  Duration wall{}, step_median{}, step_longest{};
  std::vector<Use> uses;              // Of tracks with a span that makes them busy, in their order.
  std::vector<Overlap> overlaps;      // The longest first; none without any.
  Duration idle{};                    // Neither cpu nor gpu is busy; without both: nor train.
  std::vector<Wait> waits;            // Of the train thread, the longest first.
  std::vector<RecordedSpan> longest;  // That make busy, the longest first; a few.
};

TimelineSummary Summarize(std::span<const RecordedSpan> spans);
// The time in which all of these tracks were busy at once.
Duration BusyTogether(std::span<const RecordedSpan> spans, std::span<const Track> tracks);
// For people: tables in plain text.
std::string ToText(const TimelineSummary& summary);
// Of the wall time, in percent.
double ShareOf(const TimelineSummary& summary, Duration part);

}  // namespace dt
