#include "server/shard/checksum.h"

#include <gtest/gtest.h>

#include "test/support/push_maker.h"

namespace dt::server {
namespace {

const std::vector<TableSpec> kOneTable = {test::SimpleTable("a", 2, OptimizerKind::kAdagrad)};

// The report of a shard after one push at `step` of the gradient `scale` for each key.
TableReport ReportOf(const std::vector<Key>& keys, float scale = 1, Step step = 0) {
  const std::unique_ptr<TableRows> rows[] = {std::make_unique<TableRows>(kOneTable[0])};
  Shard shard(ShardId(0), rows, MakeSyncClock(1));
  for (const Key key : keys) {
    std::vector<float> gradient = {scale, scale};
    shard.table(0).Push({&key, 1}, gradient, {.step = step});
  }
  return ReportTables(kOneTable, {&shard, 1})[0];
}

TEST(Checksum, DoesNotDependOnTheOrderOfRows) {
  const TableReport a = ReportOf({1, 2, 3}), b = ReportOf({3, 1, 2});
  EXPECT_EQ(a.checksum_low, b.checksum_low);
  EXPECT_EQ(a.checksum_high, b.checksum_high);
  EXPECT_EQ(a.rows, 3u);
  EXPECT_EQ(a.rows_in_memory, 3u);
  EXPECT_EQ(a.bytes, 3 * (8 + 2 * 4 + 2 * 4 + 8u));
}

TEST(Checksum, SeesKeysValuesStateAndLastPush) {
  const TableReport base = ReportOf({1, 2});
  for (const TableReport& other :
       {ReportOf({1, 3}), ReportOf({1}), ReportOf({1, 2}, 2.0f), ReportOf({1, 2}, 1.0f, 1)}) {
    EXPECT_NE(other.checksum_low, base.checksum_low);
    EXPECT_NE(other.checksum_high, base.checksum_high);
  }
}

TEST(Checksum, PartsAddUpToTheWhole) {
  std::vector<TableReport> sum = {ReportOf({1, 2})};
  AddReports(sum, std::vector<TableReport>{ReportOf({3})});
  const TableReport whole = ReportOf({1, 2, 3});
  EXPECT_EQ(sum[0].checksum_low, whole.checksum_low);
  EXPECT_EQ(sum[0].checksum_high, whole.checksum_high);
  EXPECT_EQ(sum[0].rows, whole.rows);
  EXPECT_EQ(sum[0].bytes, whole.bytes);
}

TEST(Checksum, OfNothingIsZero) {
  const TableReport none = ReportTables(kOneTable, {})[0];
  EXPECT_EQ(none.name, "a");
  EXPECT_EQ(none.rows + none.checksum_low + none.checksum_high, 0u);
}

}  // namespace
}  // namespace dt::server
