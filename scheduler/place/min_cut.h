// A minimum cut between two nodes of a network, by Dinic's algorithm (1970).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace dt::scheduler {

class MinCut {
 public:
  static constexpr uint32_t kSource = 0, kSink = 1;
  // Larger than all finite capacities together may be.
  static constexpr int64_t kInfinite = int64_t{1} << 60;

  MinCut() : first_(2, kNoArc) {}

  uint32_t AddNode();
  // Adds an arc of that capacity from `a` to `b`, and one of capacity `back` from `b` to `a`.
  void AddArc(uint32_t a, uint32_t b, int64_t capacity, int64_t back = 0);

  // For each node, whether it is on the source's side of the minimum cut nearest to the source.
  // Empty if that takes more than `arcs_max` visits of arcs. Call once.
  std::optional<std::vector<bool>> Solve(uint64_t arcs_max);

 private:
  static constexpr uint32_t kNoArc = ~uint32_t{0};
  struct Arc {
    uint32_t to = 0;
    uint32_t next = kNoArc;  // The next arc of the same node.
    int64_t left = 0;
  };

  bool FindLevels();
  // Pushes flow until no shortest path to the sink is left.
  void Saturate();
  void Push();

  std::vector<Arc> arcs_;  // Arc a has the reverse arc a ^ 1.
  std::vector<uint32_t> first_, level_, current_, path_;
  uint64_t looks_ = 0, looks_max_ = 0;
};

}  // namespace dt::scheduler
