// Method: a made-up data set of two columns; the slices must be those that were requested, in
// order.
#include "worker/train/slice_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"

namespace dt::worker {
namespace {

// Row r has label r mod 2 (except `bad_row`) and key r.
class MadeUpData : public Dataset {
 public:
  MadeUpData() {
    columns_.resize(2);
    columns_[0].name = "click";
    columns_[1].name = "item";
    columns_[1].type = ColumnType::kId;
  }
  uint64_t rows() const override { return 1000; }
  const std::vector<ColumnSpec>& columns() const override { return columns_; }
  uint64_t fingerprint() const override { return 1; }
  const OpenStats& open_stats() const override { return stats_; }
  Status Gather(std::span<const uint64_t> rows, Batch& batch) const override {
    batch.columns.resize(2);
    batch.columns[0].floats.clear();
    batch.columns[1].keys.assign(rows.begin(), rows.end());
    for (const uint64_t row : rows) {
      batch.columns[0].floats.push_back(row == bad_row ? 2.0f : static_cast<float>(row % 2));
    }
    return OkStatus();
  }
  uint64_t bad_row = ~uint64_t{0};

 private:
  std::vector<ColumnSpec> columns_;
  OpenStats stats_;
};

class SliceReaderTest : public ::testing::Test {
 protected:
  SliceReaderTest() {
    plan_.graph.tables = {{.name = "t", .id = TableIdOf("t"), .dim = 1}};
    plan_.graph.lookups = {{.name = "l", .table = 0, .columns = {1}, .length = 1}};
    plan_.graph.losses = {{.name = "click", .type = "binary_cross_entropy", .label_column = 0}};
  }
  // Opens a reader of slices of ten rows.
  std::unique_ptr<SliceReader> Open(uint64_t slices) {
    return std::make_unique<SliceReader>(SliceReader::Options{
        .data = data_,
        .plan = plan_,
        .shards = 4,
        .wire_tables = {0},
        .purpose = LookupFor::kTrain,
        .spare = spare_,
        .interrupted = [this] { return ended_ ? Cancelled("the job was stopped") : OkStatus(); },
        .next =
            [slices, at = uint64_t{0}](LookupPlan& plan) mutable {
              if (at == slices) return false;
              for (uint64_t i = 0; i < 10; ++i) plan.rows.push_back(10 * at + i);
              plan.batch.samples = 10;
              plan.batch.step = at++;
              return true;
            },
        .ahead = ahead_,
        .timeline = timeline_});
  }
  Plan plan_;
  MadeUpData data_;
  SparePlans spare_{4};
  bool ahead_ = true;
  Timeline* timeline_ = nullptr;
  std::atomic<bool> ended_ = false;
};

TEST_F(SliceReaderTest, EverySliceComesInOrderAndThenTheEnd) {
  for (const bool ahead : {true, false}) {
    ahead_ = ahead;
    const auto reader = Open(50);
    for (uint64_t k = 0; k < 50; ++k) {
      auto plan = reader->Next();
      ASSERT_TRUE(plan.ok());
      ASSERT_NE(*plan, nullptr);
      EXPECT_EQ((*plan)->batch.step, k);
      EXPECT_EQ((*plan)->tables[0].size(), 10);
      EXPECT_EQ((*plan)->tables[0][(*plan)->lookups[0].index[3]], 10 * k + 3);
      reader->Recycle(*std::move(plan));
    }
    EXPECT_EQ(*reader->Next(), nullptr);
    EXPECT_EQ(*reader->Next(), nullptr);
  }
}

// Spans show when a slice was read.
TEST_F(SliceReaderTest, NothingIsReadBeforeItIsAskedForUnlessAhead) {
  for (const bool ahead : {true, false}) {
    Timeline timeline({.first = 0, .last = 100});
    timeline_ = &timeline;
    ahead_ = ahead;
    const auto reader = Open(50);
    ASSERT_TRUE(reader->Next().ok());
    const TimePoint until = SystemClock().Now() + seconds(10);
    while (ahead && timeline.Spans().size() < 8 && SystemClock().Now() < until) {
    }
    const size_t spans = timeline.Spans().size();
    EXPECT_TRUE(ahead ? spans >= 8 : spans == 2) << spans;
  }
}

TEST_F(SliceReaderTest, ABadLabelNamesColumnAndRow) {
  data_.bad_row = 25;
  const auto reader = Open(50);
  ASSERT_TRUE(reader->Next().ok());
  ASSERT_TRUE(reader->Next().ok());
  const auto third = reader->Next();
  EXPECT_EQ(third.status().code(), StatusCode::kOutOfRange);  // The code for malformed data.
  EXPECT_THAT(ToText(third.status()), ::testing::HasSubstr("column click of sample 26 is 2"));
}

TEST_F(SliceReaderTest, TheTimelineHasBothPartsOfTheWork) {
  Timeline timeline({.first = 3, .last = 5});
  timeline_ = &timeline;
  const auto reader = Open(10);
  while (*reader->Next() != nullptr) {
  }
  std::vector<std::pair<Step, std::string>> seen;
  for (const RecordedSpan& span : timeline.Spans()) {
    EXPECT_EQ(span.label.track, Track::kReader);
    seen.emplace_back(span.step, span.label.name);
  }
  EXPECT_THAT(seen,
              ::testing::ElementsAre(std::pair(3, "gather samples"), std::pair(3, "find keys"),
                                     std::pair(4, "gather samples"), std::pair(4, "find keys"),
                                     std::pair(5, "gather samples"), std::pair(5, "find keys")));
}

std::string LabelProblem(const std::string& type, int64_t width, std::vector<float> labels) {
  Graph graph;
  graph.values.push_back({.name = "logits", .shape = {Dim{kBatch, 1}, Const(width)}});
  graph.losses = {{.name = "genre", .type = type, .output = 0, .label_column = 0}};
  LookupPlan plan;
  plan.batch.columns.resize(1);
  plan.batch.columns[0].floats = std::move(labels);
  plan.rows = {10, 11, 12};
  const Status status = CheckLabels(graph, {{.name = "genre"}}, plan);
  if (status.ok()) return "";
  EXPECT_EQ(ExitCodeOf(status), 3) << "bad data";
  return ToText(status);
}

TEST(CheckLabelsTest, ALabelThatTheLossDoesNotTakeIsNamed) {
  const float none = std::nanf("");
  EXPECT_EQ(LabelProblem("softmax_cross_entropy", 3, {0, 2, none}), "");
  EXPECT_EQ(LabelProblem("mse", 1, {-1.5f, 7, none}), "");
  for (const auto& [label, text] : {std::pair{3.0f, "3"}, {-1.0f, "-1"}, {0.5f, "0.5"}}) {
    EXPECT_EQ(
        LabelProblem("softmax_cross_entropy", 3, {0, label, 1}),
        fmt::format("column genre of sample 12 is {}; softmax_cross_entropy takes the numbers "
                    "of its 3 classes, 0 to 2; number the classes from 0, or give the loss's "
                    "input a column for each",
                    text));
  }
  EXPECT_EQ(LabelProblem("in_batch_softmax", 3, {0, 1, 2}),
            "column genre of sample 13 is 2; in_batch_softmax takes labels 0 and 1; map the labels "
            "to 0 and 1");
  EXPECT_EQ(LabelProblem("focal", 1, {0, 1, 2}),
            "column genre of sample 13 is 2; focal takes labels 0 and 1; map the labels to 0 and "
            "1, or use the loss mse");
}

// Two columns, of which the second has two ids for each sample.
std::string IdProblem(std::vector<int64_t> rows, std::vector<Key> second) {
  Graph graph;
  graph.values.push_back({.name = "ids(e)", .dtype = DType::kU32});
  graph.inputs = {{.value = 0, .kind = InputKind::kIds, .columns = {0, 1}, .rows = rows}};
  LookupPlan plan;
  plan.batch.samples = 2;
  plan.batch.whole_columns = {0, 1};
  plan.batch.columns.resize(2);
  plan.batch.columns[0].keys = {0, 4};
  plan.batch.columns[1].keys = std::move(second);
  plan.rows = {10, 11};
  const Status status = CheckIds(graph, {{.name = "user"}, {.name = "items"}}, plan);
  EXPECT_TRUE(status.ok() || ExitCodeOf(status) == 3) << "bad data";
  return status.ok() ? "" : ToText(status);
}

TEST(CheckIdsTest, AnIdWithoutARowIsNamed) {
  EXPECT_EQ(IdProblem({5}, {0, 1, 2, 4}), "");
  EXPECT_EQ(IdProblem({5, 3, 8}, {0, 7, 2, 4}), "");
  const std::string hint =
      "; give the embedding more rows, or use a lookup in a table, whose keys may be any number or "
      "text";
  EXPECT_EQ(IdProblem({5}, {0, 1, 5, 4}),
            "column items of sample 12 holds id 5; ids(e) has rows 0 to 4" + hint);
  EXPECT_EQ(IdProblem({5, 3, 8}, {0, 1, 3, 4}),
            "column items of sample 12 holds id 3; ids(e) has rows 0 to 2" + hint);
  EXPECT_EQ(
      IdProblem({5}, {0, ~Key{0}, 1, 4}),
      fmt::format("column items of sample 11 holds id {}; ids(e) has rows 0 to 4", ~Key{0}) + hint);
}

TEST_F(SliceReaderTest, ItCanBeLeftAtAnyTime) {
  for (int taken = 0; taken < 5; ++taken) {
    const auto reader = Open(1000);
    for (int k = 0; k < taken; ++k) ASSERT_TRUE(reader->Next().ok());
  }
}

}  // namespace
}  // namespace dt::worker
