// Goal: where labels are optional (`predict`), samples without labels can be read, and nothing else
// changes.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/worker/data/data_files.h"

namespace dt::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNan;

// `test_text` is the test split of a job that was trained on `train_text`.
DataConfig PredictConfig(const TempDir& dir, DataFormat format, std::string_view train_text,
                         std::string_view test_text) {
  DataConfig config = ConfigFor(dir, format, train_text);
  config.test = {dir.Write("test.txt", test_text)};
  config.labels_optional = true;
  return config;
}

Batch TestBatch(const DataConfig& config) {
  TaskPool pool(2);
  const auto data = Dataset::Open(config, Split::kTest, pool);
  EXPECT_TRUE(data.ok()) << data.status();
  return data.ok() ? AllOf(**data) : Batch();
}

TEST(Unlabelled, CsvMayLackTheColumnsOrLeaveCellsEmpty) {
  const TempDir dir;
  DataConfig config = PredictConfig(dir, DataFormat::kCsv, "y,a,w\n1,7,2\n", "a\n8\n9\n");
  config.columns = {Column("y", ColumnType::kFloat, ColumnRole::kLabel),
                    Column("w", ColumnType::kFloat, ColumnRole::kWeight),
                    Column("a", ColumnType::kId)};
  Batch batch = TestBatch(config);
  EXPECT_THAT(batch.columns[0].floats, ElementsAre(IsNan(), IsNan()));
  EXPECT_THAT(batch.columns[1].floats, ElementsAre(1, 1));
  EXPECT_THAT(batch.columns[2].keys, ElementsAre(8, 9));
  config.test = {dir.Write("cells.txt", "w,y,a\n3,,8\n,1,9\n")};
  batch = TestBatch(config);
  EXPECT_THAT(batch.columns[0].floats, ElementsAre(IsNan(), 1));
  EXPECT_THAT(batch.columns[1].floats, ElementsAre(3, 1));
  // A feature is still required, and training data still needs its labels.
  config.test = {dir.Write("features.txt", "y,w\n1,3\n")};
  config.train = {dir.Write("no_header.txt", "1,7,2\n")};
  EXPECT_THAT(OpenError(dir, config, Split::kTest), HasSubstr("column \"a\""));
  config.train = {dir.Write("no_label.txt", "a,w\n7,2\n")};
  EXPECT_THAT(OpenError(dir, config), HasSubstr("column \"y\""));
}

TEST(Unlabelled, CriteoMayStartWithTheFirstCount) {
  const TempDir dir;
  const std::string features = "1" + std::string(38, '\t') + "\n";
  const DataConfig config =
      PredictConfig(dir, DataFormat::kCriteo, "0\t" + features, features + features);
  const Batch batch = TestBatch(config);
  EXPECT_EQ(batch.samples, 2);
  EXPECT_THAT(batch.columns[0].floats, ElementsAre(IsNan(), IsNan()));
  EXPECT_THAT(batch.columns[1].floats, ElementsAre(std::log(2.0f), std::log(2.0f)));
}

TEST(Unlabelled, LibsvmMayStartWithAPair) {
  const TempDir dir;
  const DataConfig config =
      PredictConfig(dir, DataFormat::kLibsvm, "1 5:1 6:1\n", "5:1 7:1\n0 8:1 9:1\n");
  const Batch batch = TestBatch(config);
  EXPECT_THAT(batch.columns[0].floats, ElementsAre(IsNan(), 0));
  EXPECT_THAT(batch.columns[1].keys, ElementsAre(5, 7, 8, 9));
}

}  // namespace
}  // namespace dt::worker
