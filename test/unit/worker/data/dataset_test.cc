// Goal: Gather returns what is in the files, for every format, number of threads, and with and
// without cache.
#include "worker/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "test/unit/worker/data/data_files.h"

namespace dt::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Dataset, LibsvmOfEqualLinesIsFixedAndUnweighted) {
  const TempDir dir;
  const DataConfig config =
      ConfigFor(dir, DataFormat::kLibsvm, "1 5:1 18446744073709551615:1\n0 7:1.0 8\n");
  TaskPool pool(2);
  const auto data = Dataset::Open(config, Split::kTrain, pool);
  ASSERT_TRUE(data.ok()) << data.status();
  const auto& columns = (*data)->columns();
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(columns[0].name, "label");
  EXPECT_EQ(columns[0].role, ColumnRole::kLabel);
  EXPECT_EQ(columns[1].name, "features");
  EXPECT_EQ(columns[1].length, 2u);
  EXPECT_FALSE(columns[1].weighted);
  const Batch batch = AllOf(**data);
  EXPECT_EQ(batch.samples, 2u);
  EXPECT_THAT(batch.columns[0].floats, ElementsAre(1, 0));
  EXPECT_THAT(batch.columns[1].keys, ElementsAre(5, 18446744073709551615ull, 7, 8));
  EXPECT_THAT(batch.columns[1].offsets, IsEmpty());
  EXPECT_THAT(batch.columns[1].weights, IsEmpty());
}

TEST(Dataset, LibsvmOfUnequalLinesIsRaggedAndWeighted) {
  const TempDir dir;
  const DataConfig config =
      ConfigFor(dir, DataFormat::kLibsvm, "+1 5:1 6:1\r\n-1.5 7:0.25\r\n\n0\n1 1:1 2:-3 3:1 # end");
  TaskPool pool(2);
  const auto data = Dataset::Open(config, Split::kTrain, pool);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_TRUE((*data)->columns()[1].is_ragged());
  EXPECT_TRUE((*data)->columns()[1].weighted);
  const Batch batch = AllOf(**data);
  EXPECT_THAT(batch.columns[0].floats, ElementsAre(1, -1.5, 0, 1));
  EXPECT_THAT(batch.columns[1].offsets, ElementsAre(0, 2, 3, 3, 6));
  EXPECT_THAT(batch.columns[1].keys, ElementsAre(5, 6, 7, 1, 2, 3));
  EXPECT_THAT(batch.columns[1].weights, ElementsAre(1, 1, 0.25, 1, -3, 1));
}

TEST(Dataset, NamedStringsOfTwoColumnsDiffer) {
  const TempDir dir;
  DataConfig config = ConfigFor(dir, DataFormat::kCsv, "y,a,b\n1,x,x\n");
  config.columns.resize(3);
  const char* const names[] = {"y", "a", "b"};
  for (size_t c = 0; c < 3; ++c) {
    config.columns[c].name = names[c];
    if (c > 0) config.columns[c].type = ColumnType::kString;
  }
  config.columns[0].role = ColumnRole::kLabel;
  config.columns[2].transform = "named";
  TaskPool pool(1);
  const auto data = Dataset::Open(config, Split::kTrain, pool);
  ASSERT_TRUE(data.ok()) << data.status();
  const Batch batch = AllOf(**data);
  EXPECT_THAT(batch.columns[1].keys, ElementsAre(HashString("x")));
  EXPECT_THAT(batch.columns[2].keys, ElementsAre(HashString("b=x")));
}

}  // namespace
}  // namespace dt::worker
