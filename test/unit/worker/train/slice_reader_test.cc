// Method: a made-up data set of two columns; what comes out is what was asked for, in order.
#include "worker/train/slice_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"

namespace dt::worker {
namespace {

// Row r: label r mod 2 (but `bad_row`'s), key r.
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
  void Gather(std::span<const uint64_t> rows, Batch& batch) const override {
    batch.columns.resize(2);
    batch.columns[0].floats.clear();
    batch.columns[1].keys.assign(rows.begin(), rows.end());
    for (const uint64_t row : rows) {
      batch.columns[0].floats.push_back(row == bad_row ? 2.0f : static_cast<float>(row % 2));
    }
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
  // Slices of ten rows.
  std::unique_ptr<SliceReader> Open(uint64_t slices) {
    return std::make_unique<SliceReader>(SliceReader::Options{
        .data = data_,
        .plan = plan_,
        .routes = std::make_shared<const Routes>(
            MakeRoutes(MakeShardMap(MapVersion(1), 4, {{ProcessId(1), {"a"}}}))),
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
        .timeline = timeline_});
  }
  Plan plan_;
  MadeUpData data_;
  SparePlans spare_{4};
  Timeline* timeline_ = nullptr;
  std::atomic<bool> ended_ = false;
};

TEST_F(SliceReaderTest, EverySliceComesInOrderAndThenTheEnd) {
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

TEST_F(SliceReaderTest, ABadLabelNamesColumnAndRow) {
  data_.bad_row = 25;
  const auto reader = Open(50);
  ASSERT_TRUE(reader->Next().ok());
  ASSERT_TRUE(reader->Next().ok());
  const auto third = reader->Next();
  EXPECT_EQ(third.status().code(), StatusCode::kOutOfRange);  // Malformed
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

TEST_F(SliceReaderTest, ItCanBeLeftAtAnyTime) {
  for (int taken = 0; taken < 5; ++taken) {
    const auto reader = Open(1000);
    for (int k = 0; k < taken; ++k) ASSERT_TRUE(reader->Next().ok());
  }
}

}  // namespace
}  // namespace dt::worker
