// Measures the planning of perceptrons with different depths.
#include "cli/bench/bench.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "scheduler/plan/plan.h"

namespace dt::cli {
namespace {

constexpr int kRepeats = 5;

// A job with one table, `layers` dense layers of 64, and one loss.
JobConfig DeepJob(int layers) {
  JobConfig job;
  job.job = "bench";
  job.data.format = DataFormat::kCriteo;
  TableConfig table;
  table.name = "t";
  table.id = TableIdOf(table.name);
  table.dim = 16;
  job.model.tables.push_back(table);
  NodeConfig lookup{.name = "e", .op = "lookup", .inputs = {"C1", "C2"}};
  lookup.attrs["table"] = std::string("t");
  job.model.nodes.push_back(lookup);
  std::string last = "e";
  for (int i = 0; i <= layers; ++i) {
    NodeConfig dense{.name = "d" + std::to_string(i), .op = "dense", .inputs = {last}};
    dense.attrs["units"] = int64_t{i == layers ? 1 : 64};
    if (i < layers) dense.attrs["activation"] = std::string("relu");
    last = dense.name;
    job.model.nodes.push_back(std::move(dense));
  }
  job.model.losses.push_back(
      {.type = "binary_cross_entropy", .input = last, .label = "label", .name = "label"});
  return job;
}

std::vector<ColumnSpec> Columns() {
  return {{.name = "label", .role = ColumnRole::kLabel},
          {.name = "C1", .type = ColumnType::kString},
          {.name = "C2", .type = ColumnType::kString}};
}

}  // namespace

std::vector<BenchCase> BenchPlan() {
  std::vector<BenchCase> cases;
  for (const int layers : {3, 30, 300}) {
    const JobConfig job = DeepJob(layers);
    const scheduler::PlanRequest request{job, Columns(), 1};
    const auto nodes = static_cast<double>(layers + 1);
    cases.push_back({.name = "plan a perceptron of " + std::to_string(layers) + " layers",
                     .unit = "k layers/s",
                     .runs = MeasureRate(nodes / 1e3, kRepeats, [&] {
                       const Result<Plan> plan = scheduler::MakePlan(request);
                       DT_CHECK_MSG(plan.ok(), "{}", ToText(plan.status()));
                     })});
  }
  return cases;
}

}  // namespace dt::cli
