// Figures from spans: how busy each track was, what overlapped, and what was waited for. Pure
// functions.
//
// All figures count time within the recorded steps: the spans of category kWholeStep, or without
// those the time from the first span to the last. A track is busy during each of its spans that is
// neither a wait nor a whole step.
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
    Duration step_median{};  // Median of the busy time per step.
    uint64_t spans = 0;
    uint64_t bytes = 0;
  };
  struct Overlap {
    Track first = Track::kTrain, second = Track::kTrain;
    Duration both{};  // Time in which both are busy.
  };
  struct Wait {
    std::string_view name;
    Duration time{};
  };

  size_t steps = 0;
  Step first_step = 0, last_step = 0;
  Duration wall{}, step_median{}, step_longest{};
  // Tracks that are busy at some time, in the order of Track.
  std::vector<Use> uses;
  std::vector<Overlap> overlaps;  // The longest first; only those above zero.
  // Neither cpu nor gpu is busy; if neither track has spans, train is not busy.
  Duration idle{};
  std::vector<Wait> waits;  // Waits of the train thread, the longest first.
  // The longest few spans that count as busy, the longest first.
  std::vector<RecordedSpan> longest;
};

TimelineSummary Summarize(std::span<const RecordedSpan> spans);
// The time in which all these tracks were busy at once.
Duration BusyTogether(std::span<const RecordedSpan> spans, std::span<const Track> tracks);
// Plain-text tables for people.
std::string ToText(const TimelineSummary& summary);
// The part's share of the wall time, in percent.
double ShareOf(const TimelineSummary& summary, Duration part);

}  // namespace dt
