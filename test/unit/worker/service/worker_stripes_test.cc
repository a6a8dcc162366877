// Goal: a worker reads the stripes that it is told, and before a view those of its slices in it.
// Method: a real file in four stripes, views made by the test.
#include "worker/service/worker_stripes.h"

#include <gmock/gmock.h>

#include "test/unit/worker/data/data_files.h"
#include "worker/data/striped_dataset.h"

namespace dt::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr uint64_t kRows = 10;  // Of each stripe: all rows have the same number of bytes.

class WorkerStripesTest : public ::testing::Test {
 protected:
  WorkerStripesTest() {
    std::string text;
    for (uint64_t i = 0; i < 4 * kRows; ++i) text += fmt::format("{} {}:1\n", i % 2, 100 + i);
    config_ = ConfigFor(dir_, DataFormat::kLibsvm, text);
    config_.columns = {Column("label", ColumnType::kFloat, ColumnRole::kLabel),
                       Column("item", ColumnType::kId)};
  }
  static View ViewOf(const std::vector<uint32_t>& workers) {
    View view;
    for (const uint32_t id : workers) view.workers.emplace_back(id);
    return view;
  }
  Status Start(std::vector<uint64_t> rows = {kRows, kRows, kRows, kRows}) {
    StartMessage start{.view = ViewOf({8, 9}), .team = 1};
    start.stripe_rows = std::move(rows);
    return stripes_.Start(start, interrupted_);
  }
  uint64_t RowsOpen() const { return data_.train->rows(); }

  TempDir dir_;
  DataConfig config_;
  TaskPool pool_{2};
  WorkerActivity activity_;
  Datasets data_;
  Status why_;
  WorkerStripes::Interrupted interrupted_ = [this] { return why_; };
  WorkerStripes stripes_{
      {.config = config_, .self = ProcessId(9), .pool = pool_, .activity = activity_}, data_};
};

TEST_F(WorkerStripesTest, ReadsThoseItIsTold) {
  const auto ready = stripes_.Read({.stripes = 4, .own = {2, 3}}, interrupted_);
  ASSERT_TRUE(ready.ok()) << ready.status();
  ASSERT_THAT(ready->stripes, SizeIs(2));
  EXPECT_EQ(ready->stripes[0].number, 2U);
  EXPECT_EQ(ready->stripes[0].train_rows, kRows);
  EXPECT_NE(ready->stripes[0].fingerprint, ready->stripes[1].fingerprint);
  EXPECT_THAT(ready->columns, SizeIs(2));
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(RowsOpen(), 2 * kRows) << "it is the second of two";
}

TEST_F(WorkerStripesTest, ReadsWhatItLacksForAView) {
  ASSERT_TRUE(stripes_.Read({.stripes = 4, .own = {3}}, interrupted_).ok());
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(RowsOpen(), 2 * kRows);
  ASSERT_TRUE(stripes_.ReadFor(ViewOf({5, 6}), interrupted_).ok());
  EXPECT_EQ(RowsOpen(), 2 * kRows) << "it is not in the view";
  ASSERT_TRUE(stripes_.ReadFor(ViewOf({9}), interrupted_).ok());
  EXPECT_EQ(RowsOpen(), 4 * kRows);
}

TEST_F(WorkerStripesTest, OtherRowsThanAtFirstAreRefused) {
  ASSERT_TRUE(stripes_.Read({.stripes = 4, .own = {2, 3}}, interrupted_).ok());
  EXPECT_THAT(ToText(Start({kRows, kRows, kRows, kRows + 1})),
              HasSubstr("stripe 4 of the training data has 10 samples, 11 were found"));
}

TEST_F(WorkerStripesTest, StopsBetweenStripes) {
  why_ = Cancelled("stopped on request");
  EXPECT_EQ(stripes_.Read({.stripes = 4, .own = {2, 3}}, interrupted_).status(), why_);
  EXPECT_EQ(RowsOpen(), 0U);
}

TEST_F(WorkerStripesTest, DoesNothingIfTheDataIsWhole) {
  EXPECT_TRUE(Start({}).ok());
  EXPECT_TRUE(stripes_.ReadFor(ViewOf({9}), interrupted_).ok());
}

TEST(WorkerActivity, SaysThatItReads) {
  WorkerActivity activity;
  std::vector<bool> said;
  const auto say = [&] {
    HeartbeatMessage heartbeat;
    activity.AddTo(TimePoint(), heartbeat);
    said.push_back(heartbeat.reading);
  };
  {
    const WorkerActivity::Reading reading(activity);
    say();
  }
  say();
  EXPECT_THAT(said, ElementsAre(true, false));
}

}  // namespace
}  // namespace dt::worker
