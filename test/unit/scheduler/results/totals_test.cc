// Goal: totals of what processes hold at the end are right. Method: reports made by the test.
#include "scheduler/results/totals.h"

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
  const Totals totals = *Of({{ProcessId(1), {{TableReportOf(3, ~0ull, 1)}, {}, {}}},
                             {ProcessId(2), {{TableReportOf(4, 2, 1)}, {}, {}}}});
  const JobResult::Table& table = totals.tables.at("item");
  EXPECT_EQ(table.rows, 7u);
  EXPECT_EQ(table.rows_touched, 20u);
  EXPECT_EQ(table.checksum, "00000000000000020000000000000001") << "each half by itself";
}

TEST_F(TotalsTest, RowsThatAllWorkersHoldCountOnceButAreTouchedByEach) {
  const Totals totals = *Of({{ProcessId(3), {{TableReportOf(3, 5)}, {}, {}}},
                             {ProcessId(4), {{TableReportOf(3, 5)}, {}, {}}}});
  EXPECT_EQ(totals.tables.at("item").rows, 3u);
  EXPECT_EQ(totals.tables.at("item").rows_touched, 20u);
  EXPECT_EQ(totals.tables.at("item").checksum, "00000000000000000000000000000005");
}

TEST_F(TotalsTest, WorkersThatHoldOtherRowsAreNamed) {
  const Status status = Of({{ProcessId(3), {{TableReportOf(3, 5)}, {}, {}}},
                            {ProcessId(4), {{TableReportOf(3, 6)}, {}, {}}}})
                            .status();
  EXPECT_EQ(ToText(status),
            "worker 4 (pid 4 on host) holds other rows of table item than the workers before it");
}

TEST_F(TotalsTest, WorkersThatHoldOtherDenseParametersAreNamed) {
  EXPECT_EQ(Of({{ProcessId(3), {{}, {{0, 1, 2}}, {}}}, {ProcessId(4), {{}, {{0, 1, 2}}, {}}}})
                ->dense_checksum,
            "00000000000000020000000000000001");
  const Status status =
      Of({{ProcessId(3), {{}, {{0, 1, 2}}, {}}}, {ProcessId(4), {{}, {{0, 2, 2}}, {}}}}).status();
  EXPECT_EQ(ToText(status),
            "worker 4 (pid 4 on host) holds other dense parameters than the workers before it");
}

TEST_F(TotalsTest, PartsOfDenseParametersAddUp) {
  EXPECT_EQ(Of({{ProcessId(3), {{}, {{0, 1, 2}}, {}}}, {ProcessId(4), {{}, {{1, 4, 5}}, {}}}})
                ->dense_checksum,
            "00000000000000070000000000000005");
}

FinishDone CopiesOf(std::vector<CopySum> copies) { return {{}, {}, {}, std::move(copies)}; }

TEST_F(TotalsTest, CopiesOfAShardAreComparedAndNotAddedUp) {
  const CopySum one{ShardId(1), 5, 6}, other{ShardId(2), 7, 8};
  const Result<Totals> totals =
      Of({{ProcessId(1), CopiesOf({one, other})}, {ProcessId(2), CopiesOf({other, one})}});
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_TRUE(totals->tables.empty());
}

TEST_F(TotalsTest, ServersWithOtherCopiesAreNamed) {
  const CopySum same{ShardId(1), 5, 6};
  for (const CopySum& wrong : {CopySum{ShardId(3), 9, 6}, CopySum{ShardId(3), 5, 9}}) {
    const Status status = Of({{ProcessId(1), CopiesOf({same, {ShardId(3), 5, 6}})},
                              {ProcessId(2), CopiesOf({same, wrong})}})
                              .status();
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_EQ(
        ToText(status),
        "server 1 (pid 1 on host) and server 2 (pid 2 on host) hold different rows of shard 3");
  }
}

TEST_F(TotalsTest, CopiesWithRowsThatExpireByTimeMayDiffer) {
  const auto reports = [] {
    return std::map<ProcessId, FinishDone>{{ProcessId(1), CopiesOf({{ShardId(3), 5, 6}})},
                                           {ProcessId(2), CopiesOf({{ShardId(3), 5, 7}})}};
  };
  JobConfig job = job_.options.job;
  job.model.tables.emplace_back();
  EXPECT_FALSE(TotalsOf(reports(), job_.members, job).ok());
  job.model.tables.back().life.expiry_time = seconds(3600);
  EXPECT_TRUE(TotalsOf(reports(), job_.members, job).ok());
}

TEST_F(TotalsTest, EachProcessTellsItsOwnUse) {
  const Totals totals = *Of({{ProcessId(1), {{}, {}, {1.5, 100, 10, 20}}}});
  EXPECT_EQ(totals.stats.at(ProcessId(1)).cpu_seconds, 1.5);
}

}  // namespace
}  // namespace dt::scheduler
