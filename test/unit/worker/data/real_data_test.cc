// Tests with real files, if they are available: in DOVETAIL_DATA, by default beside the source
// tree.
#include <cstdlib>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "test/unit/worker/data/data_files.h"

namespace dt::worker {
namespace {

std::string EnvOr(const char* name, const std::string& fallback) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

std::string RealFile(const std::string& name) {
  const std::string root = EnvOr("DOVETAIL_DATA", EnvOr("DT_SOURCE_DIR", ".") + "/../shared/data");
  return root + "/" + name;
}

#define SKIP_WITHOUT(file) \
  if (!std::filesystem::exists(file)) GTEST_SKIP() << (file) << " is not here (DOVETAIL_DATA)"

TEST(RealData, Frappe) {
  SKIP_WITHOUT(RealFile("frappe/train.libsvm"));
  const TempDir dir;
  DataConfig config;
  config.train = {RealFile("frappe/train.libsvm")};
  config.valid = {RealFile("frappe/valid.libsvm")};
  config.cache_dir = dir.path("cache");
  TaskPool pool(2);
  const auto train = Dataset::Open(config, Split::kTrain, pool);
  const auto valid = Dataset::Open(config, Split::kValid, pool);
  ASSERT_TRUE(train.ok()) << train.status();
  ASSERT_TRUE(valid.ok()) << valid.status();
  EXPECT_EQ((*train)->rows(), 202027u);
  EXPECT_EQ((*valid)->rows(), 57722u);
  EXPECT_EQ((*train)->columns(), (*valid)->columns());
  EXPECT_EQ((*train)->columns()[1].length, 10u);
  std::set<Key> keys;
  for (const Dataset* data : {train->get(), valid->get()}) {
    const Batch batch = AllOf(*data);
    keys.insert(batch.columns[1].keys.begin(), batch.columns[1].keys.end());
  }
  EXPECT_EQ(keys.size(), 5382u);
}

TEST(RealData, CriteoHead) {
  SKIP_WITHOUT(RealFile("criteo_head/criteo_10k.tsv"));
  const TempDir dir;
  DataConfig config;
  config.format = DataFormat::kCriteo;
  config.train = {RealFile("criteo_head/criteo_10k.tsv")};
  config.cache_dir = dir.path("cache");
  TaskPool pool(2);
  const auto data = Dataset::Open(config, Split::kTrain, pool);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->rows(), 10000u);
  const Batch batch = AllOf(**data);
  EXPECT_EQ(batch.columns[14].keys[0], HashString("68fd1e64"));
  EXPECT_EQ(batch.columns[12].floats[0], 0);  // The field is empty in the first row.
}

TEST(RealData, AvazuHeadWhereOnlyTheTrainingFileHasAHeader) {
  SKIP_WITHOUT(RealFile("avazu_head/train.csv"));
  const TempDir dir;
  DataConfig config;
  config.format = DataFormat::kCsv;
  config.train = {RealFile("avazu_head/train.csv")};
  config.valid = {RealFile("avazu_head/dev.csv")};
  config.test = {RealFile("avazu_head/test.csv")};
  config.columns = {Column("click", ColumnType::kFloat, ColumnRole::kLabel),
                    Column("id", ColumnType::kId), Column("site_id", ColumnType::kString),
                    Column("C20", ColumnType::kString)};
  config.cache_dir = dir.path("cache");
  TaskPool pool(2);
  uint64_t rows = 0;
  for (const Split split : {Split::kTrain, Split::kValid, Split::kTest}) {
    const auto data = Dataset::Open(config, split, pool);
    ASSERT_TRUE(data.ok()) << data.status();
    rows += (*data)->rows();
    if (split == Split::kTrain) {
      EXPECT_EQ(AllOf(**data).columns[1].keys[0], 10000169349117863715ull);
    }
  }
  EXPECT_EQ(rows, 8999u);
}

}  // namespace
}  // namespace dt::worker
