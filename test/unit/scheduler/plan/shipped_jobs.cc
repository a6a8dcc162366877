#include "test/unit/scheduler/plan/shipped_jobs.h"

#include <algorithm>
#include <cstdlib>

#include "common/config/load_job.h"
#include "test/support/tiny_model.h"

namespace dt::test {

std::vector<std::filesystem::path> ShippedJobs() {
  std::vector<std::filesystem::path> jobs;
  const std::filesystem::path root = std::getenv("DT_SOURCE_DIR");
  for (const auto& entry : std::filesystem::directory_iterator(root / "configs")) {
    if (entry.path().extension() == ".yaml") jobs.push_back(entry.path());
  }
  std::sort(jobs.begin(), jobs.end());
  return jobs;
}

std::vector<ColumnSpec> ColumnsOf(const JobConfig& job) {
  std::vector<ColumnSpec> columns = ConfiguredColumns(job.data);
  if (!columns.empty()) return columns;
  columns = {TinyColumn("label", ColumnType::kFloat, ColumnRole::kLabel),
             TinyColumn("features", ColumnType::kIds)};
  columns[1].length = 10;
  return columns;
}

}  // namespace dt::test
