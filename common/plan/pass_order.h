// Tells which nodes of a pass have certainly ended when a node begins. Each stream runs its
// subgraphs in order, and a subgraph begins when those that it waits for have ended. Uses vector
// clocks (Mattern, 1989), with one count of nodes for each stream.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "common/plan/plan.h"

namespace dt {

class PassOrder {
 public:
  // The order of those subgraphs of a pass that run in these phases. `nodes` is the number of nodes
  // in the graph. REQUIRES: each subgraph waits only for earlier ones.
  PassOrder(std::span<const Subgraph> pass, Phases phases, size_t nodes);

  bool Runs(NodeIndex node) const { return positions_[node].subgraph != kNone; }
  // `first` has ended when `then` begins. REQUIRES: both run.
  bool Before(NodeIndex first, NodeIndex then) const;

 private:
  using Clock = std::array<uint32_t, kStreams>;  // Number of ended nodes of each stream.
  struct Position {
    uint32_t subgraph = kNone;
    uint8_t stream = 0;
    uint32_t index = 0;  // Number of the node on its stream.
  };
  std::vector<Clock> begin_;  // By subgraph of the pass.
  std::vector<Position> positions_;
};

}  // namespace dt
