#include "common/metrics/timeline.h"

#include <thread>

#include <gtest/gtest.h>

namespace dt {
namespace {

constexpr SpanLabel kCompute{Track::kCpu, "compute"};

TEST(TimelineTest, OnlyTheChosenStepsAreWanted) {
  Timeline timeline({.first = 5, .last = 7});
  for (Step step = 0; step < 20; ++step) {
    EXPECT_EQ(timeline.Wants(step), step >= 5 && step <= 7) << step;
    const TimelineSpan span(&timeline, kCompute, step);
  }
  const std::vector<RecordedSpan> spans = timeline.Spans();
  ASSERT_EQ(spans.size(), 3);
  for (size_t i = 0; i < spans.size(); ++i) EXPECT_EQ(spans[i].step, 5 + i);
  timeline.Close();
  EXPECT_FALSE(timeline.Wants(6));
  timeline.Record({.label = kCompute, .step = 6});
  EXPECT_EQ(timeline.Spans().size(), 3);
}

TEST(TimelineTest, ASpanLastsFromItsConstructionToItsDestruction) {
  ManualClock clock;
  clock.Advance(seconds(1));
  Timeline timeline({.clock = &clock});
  {
    TimelineSpan outer(&timeline, kCompute, 0, 3);
    outer.set_bytes(99);
    clock.Advance(milliseconds(2));
    const TimelineSpan inner(&timeline, {Track::kPull, "pull", kWait}, 0);
    clock.Advance(milliseconds(5));
  }
  {
    TimelineSpan cancelled(&timeline, kCompute, 0);
    cancelled.Cancel();
  }
  const std::vector<RecordedSpan> spans = timeline.Spans();
  // Spans are ordered by their start, though the inner one was recorded first.
  ASSERT_EQ(spans.size(), 2);
  EXPECT_EQ(spans[0].label.name, "compute");
  EXPECT_EQ(spans[0].slice, 3);
  EXPECT_EQ(spans[0].bytes, 99);
  EXPECT_EQ(spans[0].begin, TimePoint(seconds(1)));
  EXPECT_EQ(spans[0].end, TimePoint(milliseconds(1007)));
  EXPECT_EQ(spans[1].label.category, kWait);
  EXPECT_EQ(spans[1].slice, kNoSlice);
  EXPECT_EQ(spans[1].end - spans[1].begin, milliseconds(5));
}

TEST(TimelineTest, OfTwoThatBeginTogetherTheLongerIsFirst) {
  Timeline timeline({});
  const TimePoint begin{};
  timeline.Record({.label = kCompute, .begin = begin, .end = begin + milliseconds(1)});
  timeline.Record({.label = kCompute, .begin = begin, .end = begin + milliseconds(2)});
  EXPECT_EQ(timeline.Spans().front().end, begin + milliseconds(2));
}

TEST(TimelineTest, NoTimelineRecordsNothing) {
  TimelineSpan span(nullptr, kCompute, 0);
  span.set_bytes(1);
}

// Each span names its thread twice, so torn spans are detected. No span may be lost unless it is
// counted.
TEST(TimelineTest, ThreadsRecordAtOnceAndWhatDoesNotFitIsCounted) {
  constexpr size_t kThreads = 4, kEach = 1000, kRoom = 3000;
  Timeline timeline({.first = 0, .last = kThreads, .spans_max = kRoom});
  {
    std::vector<std::jthread> threads;
    for (Step t = 0; t < kThreads; ++t) {
      threads.emplace_back([&timeline, t] {
        for (uint64_t i = 0; i < kEach; ++i) {
          TimelineSpan span(&timeline, {static_cast<Track>(t), "work"}, t);
          span.set_bytes(t * kEach + i);
        }
      });
    }
    // Reads while other threads record.
    for (int i = 0; i < 10; ++i) EXPECT_LE(timeline.Spans().size(), kRoom);
  }
  const std::vector<RecordedSpan> spans = timeline.Spans();
  EXPECT_EQ(spans.size(), kRoom);
  EXPECT_EQ(timeline.dropped(), kThreads * kEach - kRoom);
  std::vector<bool> seen(kThreads * kEach);
  for (const RecordedSpan& span : spans) {
    EXPECT_EQ(span.bytes / kEach, span.step);
    EXPECT_EQ(static_cast<Step>(span.label.track), span.step);
    EXPECT_LE(span.begin, span.end);
    EXPECT_FALSE(seen[span.bytes]) << span.bytes;
    seen[span.bytes] = true;
  }
}

}  // namespace
}  // namespace dt
