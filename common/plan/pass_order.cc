#include "common/plan/pass_order.h"

#include <algorithm>

namespace dt {

PassOrder::PassOrder(std::span<const Subgraph> pass, Phases phases, size_t nodes)
    : begin_(pass.size()), positions_(nodes) {
  std::vector<Clock> end(pass.size());
  std::array<uint32_t, kStreams> last;  // The last subgraph of each stream.
  last.fill(kNone);
  for (uint32_t s = 0; s < pass.size(); ++s) {
    const Subgraph& subgraph = pass[s];
    if (!phases.Has(subgraph.phase)) continue;
    const auto stream = static_cast<uint8_t>(subgraph.stream);
    Clock& clock = begin_[s];
    const auto join = [&](uint32_t other) {
      for (size_t k = 0; k < kStreams; ++k) clock[k] = std::max(clock[k], end[other][k]);
    };
    if (last[stream] != kNone) join(last[stream]);
    for (const uint32_t w : subgraph.waits) join(w);
    last[stream] = s;
    end[s] = clock;
    for (const NodeIndex n : subgraph.nodes) positions_[n] = {s, stream, end[s][stream]++};
  }
}

bool PassOrder::Before(NodeIndex first, NodeIndex then) const {
  const Position& a = positions_[first];
  const Position& b = positions_[then];
  if (a.stream == b.stream) return a.index < b.index;
  return a.index < begin_[b.subgraph][a.stream];
}

}  // namespace dt
