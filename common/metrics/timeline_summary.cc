#include "common/metrics/timeline_summary.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

#include <fmt/format.h>

namespace dt {
namespace {

constexpr size_t kLongest = 8;
constexpr size_t kOverlapsShown = 10;

struct Interval {
  TimePoint begin, end;
};
using Intervals = std::vector<Interval>;  // Ascending, disjoint, none empty.

Intervals Merged(Intervals any) {
  std::ranges::sort(any, {}, &Interval::begin);
  Intervals out;
  for (const Interval& next : any) {
    if (next.begin >= next.end) continue;
    if (!out.empty() && next.begin <= out.back().end) {
      out.back().end = std::max(out.back().end, next.end);
    } else {
      out.push_back(next);
    }
  }
  return out;
}

Intervals Both(const Intervals& a, const Intervals& b) {
  Intervals out;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Interval both{std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)};
    if (both.begin < both.end) out.push_back(both);
    (a[i].end < b[j].end ? i : j)++;
  }
  return out;
}

Duration Total(const Intervals& intervals) {
  Duration total{};
  for (const Interval& interval : intervals) total += interval.end - interval.begin;
  return total;
}

Duration Within(const Intervals& intervals, const Interval& window) {
  Duration total{};
  auto at = std::ranges::upper_bound(intervals, window.begin, {}, &Interval::end);
  for (; at != intervals.end() && at->begin < window.end; ++at) {
    total += std::min(at->end, window.end) - std::max(at->begin, window.begin);
  }
  return total;
}

Duration Median(std::vector<Duration> times) {
  if (times.empty()) return {};
  std::ranges::sort(times);
  const size_t half = times.size() / 2;
  return times.size() % 2 == 1 ? times[half] : (times[half - 1] + times[half]) / 2;
}

bool MakesBusy(const RecordedSpan& span) {
  return span.label.category != kWait && span.label.category != kWholeStep;
}

bool IsWholeStep(const RecordedSpan& span) { return span.label.category == kWholeStep; }

// One interval for each step that was done.
Intervals StepsOf(std::span<const RecordedSpan> spans) {
  Intervals steps;
  for (const RecordedSpan& span : spans) {
    if (IsWholeStep(span)) steps.push_back({span.begin, span.end});
  }
  if (!steps.empty() || spans.empty()) return steps;
  Interval all{spans.front().begin, spans.front().end};
  for (const RecordedSpan& span : spans) {
    all = {std::min(all.begin, span.begin), std::max(all.end, span.end)};
  }
  return {all};
}

Intervals BusyOf(std::span<const RecordedSpan> spans, Track track, const Intervals& wall) {
  Intervals busy;
  for (const RecordedSpan& span : spans) {
    if (span.label.track == track && MakesBusy(span)) busy.push_back({span.begin, span.end});
  }
  return Both(Merged(std::move(busy)), wall);
}

TimelineSummary::Use UseOf(std::span<const RecordedSpan> spans, Track track, const Intervals& busy,
                           const Intervals& steps) {
  TimelineSummary::Use use{.track = track, .busy = Total(busy)};
  for (const RecordedSpan& span : spans) {
    if (span.label.track != track || !MakesBusy(span)) continue;
    ++use.spans;
    use.bytes += span.bytes;
  }
  std::vector<Duration> by_step;
  for (const Interval& step : steps) by_step.push_back(Within(busy, step));
  use.step_median = Median(std::move(by_step));
  return use;
}

std::vector<TimelineSummary::Wait> WaitsOf(std::span<const RecordedSpan> spans,
                                           const Intervals& wall) {
  std::map<std::string_view, Intervals> by_name;
  for (const RecordedSpan& span : spans) {
    if (span.label.track != Track::kTrain || span.label.category != kWait) continue;
    by_name[span.label.name].push_back({span.begin, span.end});
  }
  std::vector<TimelineSummary::Wait> waits;
  for (auto& [name, intervals] : by_name) {
    waits.push_back({name, Total(Both(Merged(std::move(intervals)), wall))});
  }
  std::ranges::stable_sort(waits, std::greater<>(), &TimelineSummary::Wait::time);
  return waits;
}

std::vector<RecordedSpan> LongestOf(std::span<const RecordedSpan> spans) {
  std::vector<RecordedSpan> longest;
  std::ranges::copy_if(spans, std::back_inserter(longest), MakesBusy);
  std::ranges::stable_sort(longest, std::greater<>(),
                           [](const RecordedSpan& span) { return span.end - span.begin; });
  longest.resize(std::min(longest.size(), kLongest));
  return longest;
}

double Milliseconds(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

}  // namespace

Duration BusyTogether(std::span<const RecordedSpan> spans, std::span<const Track> tracks) {
  const Intervals wall = Merged(StepsOf(spans));
  Intervals busy = wall;
  for (const Track track : tracks) busy = Both(busy, BusyOf(spans, track, wall));
  return tracks.empty() ? Duration{} : Total(busy);
}

TimelineSummary Summarize(std::span<const RecordedSpan> spans) {
  TimelineSummary out;
  if (spans.empty()) return out;
  const Intervals steps = StepsOf(spans);
  const Intervals wall = Merged(steps);
  out.wall = Total(wall);
  std::vector<Duration> times;
  for (const Interval& step : steps) times.push_back(step.end - step.begin);
  out.steps = steps.size();
  out.step_longest = *std::ranges::max_element(times);
  out.step_median = Median(std::move(times));
  const auto [first, last] = std::ranges::minmax(spans, {}, &RecordedSpan::step);
  out.first_step = first.step;
  out.last_step = last.step;

  std::vector<Intervals> busy(kTracks);
  for (size_t t = 0; t < kTracks; ++t) {
    const auto track = static_cast<Track>(t);
    busy[t] = BusyOf(spans, track, wall);
    const TimelineSummary::Use use = UseOf(spans, track, busy[t], steps);
    if (use.spans > 0) out.uses.push_back(use);
  }
  // The train thread only drives the CPU and GPU; if their spans are recorded, it does not count as
  // computing.
  const auto cpu = static_cast<size_t>(Track::kCpu), gpu = static_cast<size_t>(Track::kGpu);
  const auto train = static_cast<size_t>(Track::kTrain);
  const bool computing_seen = !busy[cpu].empty() || !busy[gpu].empty();
  Intervals computing = computing_seen ? busy[cpu] : busy[train];
  computing.insert(computing.end(), busy[gpu].begin(), busy[gpu].end());
  out.idle = out.wall - Total(Merged(std::move(computing)));
  if (computing_seen) busy[train].clear();
  for (size_t a = 0; a < kTracks; ++a) {
    for (size_t b = a + 1; b < kTracks; ++b) {
      const Duration both = Total(Both(busy[a], busy[b]));
      if (both == Duration::zero()) continue;
      out.overlaps.push_back({static_cast<Track>(a), static_cast<Track>(b), both});
    }
  }
  std::ranges::stable_sort(out.overlaps, std::greater<>(), &TimelineSummary::Overlap::both);
  out.waits = WaitsOf(spans, wall);
  out.longest = LongestOf(spans);
  return out;
}

double ShareOf(const TimelineSummary& summary, Duration part) {
  if (summary.wall == Duration::zero()) return 0;
  return 100.0 * static_cast<double>(part.count()) / static_cast<double>(summary.wall.count());
}

std::string ToText(const TimelineSummary& s) {
  std::string text = fmt::format(
      "steps {} to {}: {} recorded, median {:.3f} ms, longest {:.3f} ms, together {:.3f} ms\n",
      s.first_step, s.last_step, s.steps, Milliseconds(s.step_median), Milliseconds(s.step_longest),
      Milliseconds(s.wall));
  const auto put = [&](std::string_view name, Duration time) {
    text += fmt::format("{:<32}{:>12.3f}{:>9.1f} %", name, Milliseconds(time), ShareOf(s, time));
  };
  const auto head = [&](std::string_view title, std::string_view rest) {
    text += fmt::format("\n{:<32}{:>12}{:>11}{}\n", title, "ms", "share", rest);
  };
  head("busy", fmt::format("{:>18}{:>9}{:>12}", "median ms a step", "spans", "MB"));
  for (const TimelineSummary::Use& use : s.uses) {
    put(NameOf(use.track), use.busy);
    text += fmt::format("{:>18.3f}{:>9}{:>12.3f}\n", Milliseconds(use.step_median), use.spans,
                        static_cast<double>(use.bytes) / 1e6);
  }
  put("nothing computes", s.idle);
  text += "\n";
  if (!s.overlaps.empty()) head("busy at once", "");
  for (size_t i = 0; i < std::min(s.overlaps.size(), kOverlapsShown); ++i) {
    const TimelineSummary::Overlap& overlap = s.overlaps[i];
    put(fmt::format("{} and {}", NameOf(overlap.first), NameOf(overlap.second)), overlap.both);
    text += "\n";
  }
  if (!s.waits.empty()) head("the train thread waits for", "");
  for (const TimelineSummary::Wait& wait : s.waits) {
    put(wait.name, wait.time);
    text += "\n";
  }
  text += "\nlongest\n";
  for (const RecordedSpan& span : s.longest) {
    text +=
        fmt::format("{:>12.3f} ms  {:<15} {} ({}), step {}\n", Milliseconds(span.end - span.begin),
                    NameOf(span.label.track), span.label.name, span.label.category, span.step);
  }
  return text;
}

}  // namespace dt
