#include "server/table/table_specs.h"

#include "common/config/dense_tables.h"

namespace dt::server {
namespace {

LifeSpec LifeSpecOf(const TableConfig& table, uint32_t shards) {
  return {.admission_pushes = table.life.admission_pushes,
          .sketch_bytes = table.life.sketch_bytes / shards,
          .expiry_steps = table.life.expiry_steps,
          .expiry_time = table.life.expiry_time,
          .freeze = table.life.freeze};
}

}  // namespace

std::vector<TableSpec> TableSpecsOf(const JobConfig& job) {
  std::vector<TableSpec> specs;
  for (const TableConfig& t : TablesOnServers(job)) {
    specs.push_back({t.name, t.id, t.dim, t.init, t.optimizer, t.scheduled, t.eval_default,
                     job.seed, t.wire, t.dtype, t.all_in_memory,
                     LifeSpecOf(t, job.cluster.shards)});
  }
  return specs;
}

}  // namespace dt::server
