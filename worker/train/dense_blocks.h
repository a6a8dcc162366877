// Copies dense parameters that are on servers, as blocks of two tables
// (common/config/dense_tables.h), from and to the engine's arrays. Owned by the train thread.
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
  // `engine` outlives it.
  DenseBlocks(const JobConfig& job, Engine& engine);

  // The tables with their keys, for the planner; including tables without blocks.
  std::vector<DenseBlockTable> tables() const;

  // Copies pulled rows to the arrays. In plan.tables and `rows`, these tables follow those of the
  // graph.
  void Take(const LookupPlan& plan, std::span<const std::span<const float>> rows);
  // After Engine::Update: what to push for these tables, in row order of `plan`. Valid until the
  // next call of Changes or Values. `share` is 1 / the slices of a step. A change of a running
  // value is multiplied by it, so that all slices together change it as much as one of them alone,
  // however stale the values are that they see.
  using Rows = std::array<std::span<const float>, 2>;
  Rows Changes(const LookupPlan& plan, float share);
  // The arrays' values, in the form of Changes.
  Rows Values(const LookupPlan& plan);

 private:
  // One table, and the arrays that it holds one after the other.
  struct Table {
    DenseBlockTable keys;
    std::vector<size_t> arrays;  // Indices of parameters.
    std::vector<float> pulled;   // From the last Take: [blocks, kDenseBlockFloats], in key order.
    std::vector<float> flat, rows;  // Working memory: flat in key order, rows in row order.
  };
  void Add(const TableConfig& config, uint32_t wire, std::vector<size_t> arrays);
  // Fills table.flat, array after array.
  template <class Fill>
  void FillFlat(Table& table, const Fill& fill);
  Rows InRowOrder(const LookupPlan& plan);

  Engine& engine_;
  const size_t first_;  // Index of the first of these tables, after those of the graph.
  std::vector<Table> tables_;
};

}  // namespace dt::worker
