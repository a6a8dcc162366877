// Goal: totals of what processes hold at the end are right. Method: reports made by the test.
#include "scheduler/job/totals.h"

#include <gtest/gtest.h>

#include "test/unit/scheduler/job/job_parts.h"

namespace dt::scheduler {
namespace {

TableReport TableReportOf(uint64_t rows, uint64_t low, uint64_t high = 0) {
  TableReport report;
  report.name = "item";
  report.rows = rows;
  report.checksum_low = low;
  report.checksum_high = high;
  report.rows_touched = 10;
  return report;
}

class TotalsTest : public ::testing::Test {
 protected:
  TotalsTest() {
    for (uint64_t id : {1, 2}) job_.Join(Role::kServer, id);
    for (uint64_t id : {3, 4}) job_.Join(Role::kWorker, id);
  }
  Result<Totals> Of(std::map<ProcessId, FinishDone> reports) {
    return TotalsOf(reports, job_.members, job_.options.job);
  }
  JobParts job_;
};

TEST_F(TotalsTest, RowsAndChecksumsOfServersAddUp) {
  const Totals totals = *Of({{ProcessId(1), {{TableReportOf(3, ~0ull, 1)}, "", {}}},
                             {ProcessId(2), {{TableReportOf(4, 2, 1)}, "", {}}}});
  const JobResult::Table& table = totals.tables.at("item");
  EXPECT_EQ(table.rows, 7u);
  EXPECT_EQ(table.rows_touched, 20u);
  EXPECT_EQ(table.checksum, "00000000000000020000000000000001") << "each half by itself";
}

TEST_F(TotalsTest, RowsThatAllWorkersHoldCountOnceButAreTouchedByEach) {
  const Totals totals = *Of({{ProcessId(3), {{TableReportOf(3, 5)}, "", {}}},
                             {ProcessId(4), {{TableReportOf(3, 5)}, "", {}}}});
  EXPECT_EQ(totals.tables.at("item").rows, 3u);
  EXPECT_EQ(totals.tables.at("item").rows_touched, 20u);
  EXPECT_EQ(totals.tables.at("item").checksum, "00000000000000000000000000000005");
}

TEST_F(TotalsTest, WorkersThatHoldOtherRowsAreNamed) {
  const Status status = Of({{ProcessId(3), {{TableReportOf(3, 5)}, "", {}}},
                            {ProcessId(4), {{TableReportOf(3, 6)}, "", {}}}})
                            .status();
  EXPECT_EQ(ToText(status),
            "worker 4 (pid 4 on host) holds other rows of table item than the workers before it");
}

TEST_F(TotalsTest, WorkersThatHoldOtherDenseParametersAreNamed) {
  EXPECT_EQ(Of({{ProcessId(3), {{}, "a", {}}}, {ProcessId(4), {{}, "a", {}}}})->dense_checksum,
            "a");
  const Status status = Of({{ProcessId(3), {{}, "a", {}}}, {ProcessId(4), {{}, "b", {}}}}).status();
  EXPECT_EQ(ToText(status),
            "worker 4 (pid 4 on host) holds other dense parameters than the workers before it");
}

TEST_F(TotalsTest, EachProcessTellsItsOwnUse) {
  const Totals totals = *Of({{ProcessId(1), {{}, "", {1.5, 100, 10, 20}}}});
  EXPECT_EQ(totals.stats.at(ProcessId(1)).cpu_seconds, 1.5);
}

}  // namespace
}  // namespace dt::scheduler
