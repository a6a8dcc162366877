#include "common/plan/wait_circle.h"

#include <algorithm>

#include "common/graph/graph.h"

namespace dt {

std::vector<uint32_t> WaitCircle::Find(uint32_t count) const {
  std::vector<uint32_t> waits(count, 0), begin(count + 1, 0), follow(edges_.size());
  for (const auto& [before, after] : edges_) ++waits[after], ++begin[before + 1];
  for (uint32_t v = 0; v < count; ++v) begin[v + 1] += begin[v];
  std::vector<uint32_t> end(begin.begin(), begin.end() - 1);
  for (const auto& [before, after] : edges_) follow[end[before]++] = after;
  std::vector<uint32_t> ready;
  for (uint32_t v = 0; v < count; ++v) {
    if (waits[v] == 0) ready.push_back(v);
  }
  uint32_t ended = 0;
  for (; !ready.empty(); ++ended) {
    const uint32_t v = ready.back();
    ready.pop_back();
    for (uint32_t e = begin[v]; e < begin[v + 1]; ++e) {
      if (--waits[follow[e]] == 0) ready.push_back(follow[e]);
    }
  }
  if (ended == count) return {};
  // Walks back along what is still waited for until a vertex comes again.
  std::vector<uint32_t> from(count, kNone);
  for (const auto& [before, after] : edges_) {
    if (waits[before] > 0 && waits[after] > 0) from[after] = before;
  }
  uint32_t at = 0;
  while (waits[at] == 0 || from[at] == kNone) ++at;
  std::vector<uint32_t> path;
  while (std::ranges::find(path, at) == path.end()) {
    path.push_back(at);
    at = from[at];
  }
  std::vector<uint32_t> circle(std::ranges::find(path, at), path.end());
  circle.push_back(at);
  std::ranges::reverse(circle);
  return circle;
}

}  // namespace dt
