// Dense parameters that live on servers, as the worker sees them: the blocks of two tables
// (common/config/dense_tables.h) on one side, the engine's arrays on the other. Owned by the train
// thread.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "common/config/job_config.h"
#include "worker/engine/engine.h"
#include "worker/lookup/lookup_planner.h"

namespace dt::worker {

class DenseBlocks {
 public:
  // `engine` outlives it. A running value's change counts for one of `workers`: together they
  // change it as much as one of them would alone, however stale what they see.
  DenseBlocks(const JobConfig& job, Engine& engine, uint32_t workers);

  // Their keys, for the planner. Tables without blocks are among them.
  std::vector<DenseBlockTable> tables() const;

  // Pulled rows → arrays. plan.tables and rows: of the graph, then these.
  void Take(const LookupPlan& plan, std::span<const std::span<const float>> rows);
  // After Engine::Update: what is pushed for these tables, in row order of `plan`; valid until the
  // next call of one of these two.
  using Rows = std::array<std::span<const float>, 2>;
  Rows Changes(const LookupPlan& plan);
  // The arrays' values, likewise.
  Rows Values(const LookupPlan& plan);

 private:
  // Of one table: which arrays, one after the other.
  struct Table {
    DenseBlockTable keys;
    std::vector<size_t> arrays;     // Indices of parameters.
    std::vector<float> pulled;      // [blocks, kDenseBlockFloats], in key order; last Take.
    std::vector<float> flat, rows;  // Working memory: in key order, in row order.
  };
  void Add(const TableConfig& config, uint32_t wire, std::vector<size_t> arrays);
  // Fills table.flat, array after array.
  template <class Fill>
  void FillFlat(Table& table, const Fill& fill);
  Rows InRowOrder(const LookupPlan& plan);

  Engine& engine_;
  const float share_;
  const size_t first_;  // Of these tables, behind those of the graph.
  std::vector<Table> tables_;
};

}  // namespace dt::worker
