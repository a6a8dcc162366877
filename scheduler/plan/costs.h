// What nodes and values cost at the full size of a slice. Lists of varying length count with their
// bound, or as one id a sample; distinct keys as one for each id that is looked up.
#pragma once

#include <span>

#include "ops/op_spec.h"

namespace dt::scheduler {

class SliceCosts {
 public:
  // All outlive it. `samples` of a slice.
  SliceCosts(const Graph& graph, std::span<const ColumnSpec> columns, int64_t samples)
      : graph_(graph), columns_(columns), samples_(samples) {}

  int64_t samples() const { return samples_; }
  double Elements(const SymShape& shape) const;
  double Bytes(ValueIndex v) const;
  double Ids(const LookupSpec& lookup) const;
  OpCost Of(const Node& node) const;

 private:
  double SymbolSize(SymbolIndex symbol) const;

  const Graph& graph_;
  const std::span<const ColumnSpec> columns_;
  const int64_t samples_;
};

}  // namespace dt::scheduler
