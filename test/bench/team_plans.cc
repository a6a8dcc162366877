// Prints how long it takes to plan a chain of dense layers for a large team: all passes for every
// position, and the check of all plans together. Layers are cut alternately by columns and by the
// inner dimension, and by samples. Usage: team_plans [LAYERS WORKERS COLUMNS [WIDTH]]; with a width
// that COLUMNS do not divide, positions have different shapes.
#include <cstdlib>
#include <string>

#include <fmt/core.h>

#include "common/base/clock.h"
#include "scheduler/plan/plan.h"

namespace dt {
namespace {

struct Size {
  uint32_t layers = 1000, workers = 1024, columns = 32;
  int64_t width = 1024;
};

NodeConfig Dense(uint32_t number, int64_t units) {
  NodeConfig node;
  node.name = "d" + std::to_string(number);
  node.op = "dense";
  if (number == 0) {
    for (int i = 0; i < 13; ++i) node.inputs.push_back("I" + std::to_string(i));
  } else {
    node.inputs = {"d" + std::to_string(number - 1)};
  }
  node.attrs = {{"units", units}};
  if (units > 1) node.attrs["activation"] = std::string("relu");
  return node;
}

JobConfig JobOf(const Size& size) {
  JobConfig job;
  for (uint32_t i = 0; i < size.layers; ++i) job.model.nodes.push_back(Dense(i, size.width));
  job.model.nodes.push_back(Dense(size.layers, 1));
  LossConfig loss;
  loss.type = "binary_cross_entropy";
  loss.input = "d" + std::to_string(size.layers);
  loss.label = loss.name = "label";
  job.model.losses = {loss};
  job.optimizer.clip_norm = 0;
  job.train.batch_size = 4096;
  job.cluster.workers = size.workers;
  job.parallel.data = 1;
  const uint32_t rows = size.workers / size.columns;
  const auto cut = [&](uint32_t layer, const char* op, const std::string& strategy) {
    job.parallel.cut.push_back({.match = fmt::format("d{}.{}", layer, op),
                                .strategy = *ParseStrategy(strategy),
                                .out = {}});
  };
  for (uint32_t i = 0; i < size.layers; ++i) {
    const uint32_t k = size.columns;
    if (i % 2 == 1) {
      cut(i, "matmul", fmt::format("(({0},{1}),({1},1))", rows, k));
      continue;
    }
    cut(i, "matmul", fmt::format("(({},1),(1,{}))", rows, k));
    cut(i, "bias_add", fmt::format("(({},{}),({}))", rows, k, k));
    cut(i, "relu", fmt::format("(({},{}))", rows, k));
  }
  return job;
}

std::vector<ColumnSpec> Columns() {
  std::vector<ColumnSpec> columns(14);
  for (size_t i = 0; i < columns.size(); ++i) {
    columns[i].name = i == 0 ? "label" : "I" + std::to_string(i - 1);
    columns[i].type = ColumnType::kFloat;
    columns[i].role = i == 0 ? ColumnRole::kLabel : ColumnRole::kFeature;
  }
  return columns;
}

int Run(const Size& size) {
  const JobConfig job = JobOf(size);
  scheduler::PlanRequest request{job, Columns(), 1};
  request.workers = size.workers;
  const TimePoint begin = SystemClock().Now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(SystemClock().Now() - begin).count();
  };
  const auto team = scheduler::MakePlans(request, [&](std::string_view pass, const Plan& plan) {
    fmt::print("{:6.2f} s  {}, {} nodes\n", seconds(), pass, plan.graph.nodes.size());
  });
  if (!team.ok()) {
    fmt::print("{}\n", ToText(team.status()));
    return 1;
  }
  fmt::print("{:6.2f} s  all: {} plans for {} workers\n", seconds(), team->different(),
             team->positions());
  return 0;
}

}  // namespace
}  // namespace dt

int main(int count, char** arguments) {
  dt::Size size;
  const auto number = [&](int i) { return static_cast<uint32_t>(std::atoi(arguments[i])); };
  if (count > 3) {
    size = {.layers = number(1), .workers = number(2), .columns = number(3)};
  }
  if (count > 4) size.width = std::atoi(arguments[4]);
  return dt::Run(size);
}
