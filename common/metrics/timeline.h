// Records when each part of a process was busy: spans of chosen steps, from many threads.
// timeline_trace.h draws them, timeline_summary.h computes figures. Tells what threads do now, in
// any step.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/metrics/activity.h"

namespace dt {

// A row of the drawing. Spans of one track may overlap: kernels on several threads, requests to
// several servers.
enum class Track : uint8_t {
  kTrain,     // The train thread's stages: its work and its waits.
  kReader,    // Gathers samples and finds distinct keys.
  kPull,      // Requests in flight, until their replies are taken.
  kPush,      // Requests in flight, until they are acknowledged.
  kExchange,  // Dense sums and barriers with the other workers.
  kCpu,
  kGpu,
  kCopyToDevice,
  kCopyToHost,
};
inline constexpr size_t kTracks = 9;
// "train", "copy to device", …
std::string_view NameOf(Track track);

// These categories have a meaning; any other, such as an operator's name, counts as work.
inline constexpr std::string_view kWork = "work";
// Waits for something else; the track is not busy.
inline constexpr std::string_view kWait = "wait";
// A whole step, the base of all shares; it does not make its track busy.
inline constexpr std::string_view kWholeStep = "step";

// The texts must outlive the last use of the timeline's spans.
struct SpanLabel {
  Track track = Track::kTrain;
  std::string_view name;
  std::string_view category = kWork;
  bool waits() const { return category == kWait; }
};

inline constexpr SliceIndex kNoSlice = ~SliceIndex{0};

struct RecordedSpan {
  SpanLabel label;
  Step step = 0;
  SliceIndex slice = kNoSlice;
  TimePoint begin{}, end{};
  uint64_t bytes = 0;  // Bytes moved; 0: unknown.
};

// Has space for a fixed number of spans, which are taken one by one without locks or allocation.
// Any thread.
class Timeline {
 public:
  struct Options {
    Step first = 0, last = 0;  // Both are recorded.
    size_t spans_max = size_t{1} << 16;
    const Clock* clock = &SystemClock();
    // Told what the threads do; null: nobody asks. Outlives the timeline.
    Activities* activities = nullptr;
  };
  explicit Timeline(const Options& options);

  // Whether spans of this step are currently recorded.
  bool Wants(Step step) const {
    return open_.load(std::memory_order_relaxed) && step - options_.first <= steps_after_first_;
  }
  TimePoint Now() const { return options_.clock->Now(); }
  // The thread whose work is on this track tells it what it does. Null if nobody asks.
  Activity* ActivityOf(Track track) const;
  // REQUIRES: the step is wanted. If no space is left, the span is only counted as dropped.
  void Record(const RecordedSpan& span);
  // After this call no step is wanted.
  void Close() { open_.store(false, std::memory_order_relaxed); }

  // The complete spans, ordered by their begin; of two that begin together the longer comes first.
  std::vector<RecordedSpan> Spans() const;
  uint64_t dropped() const;
  Step first() const { return options_.first; }
  Step last() const { return options_.last; }

 private:
  struct Slot {
    RecordedSpan span;
    std::atomic<bool> complete{false};
  };

  const Options options_;
  const Step steps_after_first_;
  const std::unique_ptr<Slot[]> slots_;
  std::atomic<bool> open_{true};
  std::atomic<size_t> next_{0};
};

// Records the time from its construction to its destruction, if the timeline wants the step. Until
// its end, the thread does this; then again what it did before. The timeline may be null.
class TimelineSpan {
 public:
  TimelineSpan(Timeline* timeline, const SpanLabel& label, Step step, SliceIndex slice = kNoSlice)
      : timeline_(timeline != nullptr && timeline->Wants(step) ? timeline : nullptr),
        activity_(timeline != nullptr ? timeline->ActivityOf(label.track) : nullptr) {
    if (timeline_ == nullptr && activity_ == nullptr) return;
    const TimePoint now = timeline->Now();
    if (activity_ != nullptr) before_ = activity_->Set({label.name, label.waits(), step, now});
    if (timeline_ == nullptr) return;
    span_ = {.label = label, .step = step, .slice = slice, .begin = now};
  }
  ~TimelineSpan() {
    if (activity_ != nullptr) activity_->Set(before_);
    if (timeline_ == nullptr) return;
    span_.end = timeline_->Now();
    timeline_->Record(span_);
  }
  TimelineSpan(const TimelineSpan&) = delete;
  TimelineSpan& operator=(const TimelineSpan&) = delete;

  void set_bytes(uint64_t bytes) { span_.bytes = bytes; }
  // Records nothing at destruction.
  void Cancel() { timeline_ = nullptr; }

 private:
  Timeline* timeline_;
  Activity* const activity_;
  Activity::Begun before_;
  RecordedSpan span_;
};

}  // namespace dt
