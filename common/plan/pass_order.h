// What has ended when a node of a pass begins, given that each stream runs its subgraphs in order
// and a subgraph begins when those it waits for have ended: vector clocks (Mattern, 1989), one
// count of nodes for each stream.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "common/plan/plan.h"

namespace dt {

class PassOrder {
 public:
  // A pass, or the part of it with one phase. `nodes`: of the graph. REQUIRES: waits of every
  // subgraph name earlier ones.
  PassOrder(std::span<const Subgraph> pass, Phase phase, size_t nodes);

  bool Runs(NodeIndex node) const { return positions_[node].subgraph != kNone; }
  // `first` has ended when `then` begins. REQUIRES: both run.
  bool Before(NodeIndex first, NodeIndex then) const;

 private:
  using Clock = std::array<uint32_t, kStreams>;  // Nodes of each stream that have ended.
  struct Position {
    uint32_t subgraph = kNone;
    uint8_t stream = 0;
    uint32_t index = 0;  // The number of the node on its stream.
  };
  std::vector<Clock> begin_;  // By subgraph of the pass.
  std::vector<Position> positions_;
};

}  // namespace dt
