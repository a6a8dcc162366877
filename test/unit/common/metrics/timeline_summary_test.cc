// Method: hand-made spans whose sums are easy to check.
#include "common/metrics/timeline_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/common/metrics/hand_made_spans.h"

namespace dt {
namespace {

using ::testing::HasSubstr;

constexpr SpanLabel kCpuWork{Track::kCpu, "tower", "MatMul"};
constexpr SpanLabel kGpuWork{Track::kGpu, "mlp", "MatMul"};
constexpr SpanLabel kRun{Track::kTrain, "run slice"};
constexpr SpanLabel kRows{Track::kTrain, "rows", kWait};
constexpr SpanLabel kCopy{Track::kCopyToDevice, "rows to device"};

const TimelineSummary::Use* Find(const TimelineSummary& summary, Track track) {
  for (const TimelineSummary::Use& use : summary.uses) {
    if (use.track == track) return &use;
  }
  return nullptr;
}

// Steps 10 and 11 take 100 ms each, with 10 ms between them in which a computation continues:
//   cpu   [10,40) [30,60)        [90,      130) [150,160)
//   gpu      [20,50)                          [120,    210)
const std::vector<RecordedSpan>& TwoSteps() {
  static const std::vector<RecordedSpan> spans = {
      WholeStep(10, 0, 100),          WholeStep(11, 110, 210),      SpanOf(kRows, 0, 10, 10),
      SpanOf(kRows, 110, 115, 11),    SpanOf(kRun, 10, 100, 10),    SpanOf(kRun, 115, 210, 11),
      SpanOf(kCpuWork, 10, 40, 10),   SpanOf(kCpuWork, 30, 60, 10), SpanOf(kCpuWork, 90, 130, 11),
      SpanOf(kCpuWork, 150, 160, 11), SpanOf(kGpuWork, 20, 50, 10), SpanOf(kGpuWork, 120, 210, 11)};
  return spans;
}

TEST(TimelineSummaryTest, BusyTimeCountsOnceAndWithinStepsOnly) {
  const TimelineSummary summary = Summarize(TwoSteps());
  EXPECT_EQ(summary.steps, 2);
  EXPECT_EQ(summary.first_step, 10);
  EXPECT_EQ(summary.last_step, 11);
  EXPECT_EQ(summary.wall, milliseconds(200));
  EXPECT_EQ(summary.step_median, milliseconds(100));
  EXPECT_EQ(summary.step_longest, milliseconds(100));
  ASSERT_EQ(summary.uses.size(), 3);
  const TimelineSummary::Use* const cpu = Find(summary, Track::kCpu);
  ASSERT_NE(cpu, nullptr);
  // 10..60 and 90..100 in step 10; 110..130 and 150..160 in step 11.
  EXPECT_EQ(cpu->busy, milliseconds(60 + 30));
  EXPECT_EQ(cpu->step_median, milliseconds(45));
  EXPECT_EQ(cpu->spans, 4);
  EXPECT_DOUBLE_EQ(ShareOf(summary, cpu->busy), 45.0);
  EXPECT_EQ(Find(summary, Track::kGpu)->busy, milliseconds(30 + 90));
  EXPECT_EQ(Find(summary, Track::kTrain)->busy, milliseconds(90 + 95));
}

TEST(TimelineSummaryTest, OverlapIsTheTimeInWhichBothAreBusy) {
  const TimelineSummary summary = Summarize(TwoSteps());
  // The train thread only controls the other two, so it does not count.
  ASSERT_EQ(summary.overlaps.size(), 1);
  EXPECT_EQ(summary.overlaps[0].first, Track::kCpu);
  EXPECT_EQ(summary.overlaps[0].second, Track::kGpu);
  // 20..50 in step 10; 120..130 and 150..160 in step 11.
  EXPECT_EQ(summary.overlaps[0].both, milliseconds(30 + 20));
  // Neither computes in 0..10 and 60..90; in 110..120 the CPU does.
  EXPECT_EQ(summary.idle, milliseconds(10 + 30));
  ASSERT_EQ(summary.waits.size(), 1);
  EXPECT_EQ(summary.waits[0].name, "rows");
  EXPECT_EQ(summary.waits[0].time, milliseconds(15));
}

TEST(TimelineSummaryTest, AnyNumberOfTracksMayBeAskedFor) {
  std::vector<RecordedSpan> spans = TwoSteps();
  spans.push_back(SpanOf(kCopy, 45, 125, 10));
  const Track all[] = {Track::kCpu, Track::kGpu, Track::kCopyToDevice};
  EXPECT_EQ(BusyTogether(spans, std::span(all).first(1)), milliseconds(90));
  EXPECT_EQ(BusyTogether(spans, std::span(all).first(2)), milliseconds(50));
  EXPECT_EQ(BusyTogether(spans, all), milliseconds(5 + 5));
  EXPECT_EQ(BusyTogether(spans, {}), Duration::zero());
}

TEST(TimelineSummaryTest, WithoutComputingTracksTheTrainThreadIsWhatComputes) {
  const std::vector<RecordedSpan> spans = {WholeStep(0, 0, 10), SpanOf(kRows, 0, 4, 0),
                                           SpanOf(kRun, 4, 10, 0),
                                           SpanOf({Track::kPull, "pull"}, 0, 5, 0)};
  const TimelineSummary summary = Summarize(spans);
  EXPECT_EQ(summary.idle, milliseconds(4));
  ASSERT_EQ(summary.overlaps.size(), 1);
  EXPECT_EQ(summary.overlaps[0].both, milliseconds(1));
}

TEST(TimelineSummaryTest, WithoutWholeStepsAllTheTimeCounts) {
  const std::vector<RecordedSpan> spans = {SpanOf(kCpuWork, 10, 20), SpanOf(kGpuWork, 30, 50)};
  const TimelineSummary summary = Summarize(spans);
  EXPECT_EQ(summary.wall, milliseconds(40));
  EXPECT_EQ(summary.idle, milliseconds(10));
  EXPECT_TRUE(summary.overlaps.empty());
}

TEST(TimelineSummaryTest, MediansAreOfTheSteps) {
  std::vector<RecordedSpan> spans;
  for (int step = 0; step < 5; ++step) {
    const int begin = 100 * step, length = step == 4 ? 90 : 10 + step;
    spans.push_back(WholeStep(step, begin, begin + length));
    if (step > 0) spans.push_back(SpanOf(kCpuWork, begin, begin + 2 * step, step));
  }
  const TimelineSummary summary = Summarize(spans);
  EXPECT_EQ(summary.step_median, milliseconds(12));
  EXPECT_EQ(summary.step_longest, milliseconds(90));
  EXPECT_EQ(Find(summary, Track::kCpu)->step_median, milliseconds(4));
}

TEST(TimelineSummaryTest, NothingRecordedIsNothing) {
  const TimelineSummary summary = Summarize({});
  EXPECT_EQ(summary.steps, 0);
  EXPECT_EQ(ShareOf(summary, summary.idle), 0.0);
  EXPECT_FALSE(ToText(summary).empty());
}

TEST(TimelineSummaryTest, TheTextHasTheFigures) {
  const std::string text = ToText(Summarize(TwoSteps()));
  EXPECT_THAT(text, HasSubstr("steps 10 to 11: 2 recorded, median 100.000 ms"));
  EXPECT_THAT(text, HasSubstr("cpu                                   90.000     45.0 %"));
  EXPECT_THAT(text, HasSubstr("cpu and gpu                           50.000     25.0 %"));
  EXPECT_THAT(text, HasSubstr("nothing computes                      40.000     20.0 %"));
  EXPECT_THAT(text, HasSubstr("rows                                  15.000      7.5 %"));
  // The longest span is listed first, and waits are not in the list.
  EXPECT_LT(text.find("run slice (work), step 11"), text.find("mlp (MatMul), step 11"));
}

}  // namespace
}  // namespace dt
