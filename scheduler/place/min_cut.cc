#include "scheduler/place/min_cut.h"

#include <algorithm>

namespace dt::scheduler {
namespace {

constexpr uint32_t kUnreached = ~uint32_t{0};

}  // namespace

uint32_t MinCut::AddNode() {
  first_.push_back(kNoArc);
  return static_cast<uint32_t>(first_.size() - 1);
}

void MinCut::AddArc(uint32_t a, uint32_t b, int64_t capacity, int64_t back) {
  const auto arc = static_cast<uint32_t>(arcs_.size());
  arcs_.push_back({b, first_[a], capacity});
  first_[a] = arc;
  arcs_.push_back({a, first_[b], back});
  first_[b] = arc + 1;
}

std::optional<std::vector<bool>> MinCut::Solve(uint64_t arcs_max) {
  looks_max_ = arcs_max;
  while (FindLevels()) {
    current_ = first_;
    Saturate();
    if (looks_ > looks_max_) return std::nullopt;
  }
  std::vector<bool> side;
  for (const uint32_t level : level_) side.push_back(level != kUnreached);
  return side;
}

bool MinCut::FindLevels() {
  level_.assign(first_.size(), kUnreached);
  level_[kSource] = 0;
  std::vector<uint32_t> queue = {kSource};
  for (size_t head = 0; head < queue.size(); ++head) {
    const uint32_t node = queue[head];
    for (uint32_t a = first_[node]; a != kNoArc; a = arcs_[a].next) {
      ++looks_;
      if (arcs_[a].left == 0 || level_[arcs_[a].to] != kUnreached) continue;
      level_[arcs_[a].to] = level_[node] + 1;
      queue.push_back(arcs_[a].to);
    }
  }
  return level_[kSink] != kUnreached;
}

void MinCut::Saturate() {
  path_.clear();
  uint32_t node = kSource;
  while (looks_ <= looks_max_) {
    if (node == kSink) {
      Push();
      node = path_.empty() ? kSource : arcs_[path_.back()].to;
      continue;
    }
    ++looks_;
    const uint32_t a = current_[node];
    if (a == kNoArc) {
      if (path_.empty()) return;
      // A dead end: this arc is not tried again.
      node = arcs_[path_.back() ^ 1].to;
      path_.pop_back();
      current_[node] = arcs_[current_[node]].next;
    } else if (arcs_[a].left > 0 && level_[arcs_[a].to] == level_[node] + 1) {
      path_.push_back(a);
      node = arcs_[a].to;
    } else {
      current_[node] = arcs_[a].next;
    }
  }
}

// Pushes as much as the path takes, then goes back to the node before its first full arc.
void MinCut::Push() {
  int64_t amount = kInfinite;
  for (const uint32_t a : path_) amount = std::min(amount, arcs_[a].left);
  size_t kept = path_.size();
  for (size_t i = path_.size(); i-- > 0;) {
    arcs_[path_[i]].left -= amount;
    arcs_[path_[i] ^ 1].left += amount;
    if (arcs_[path_[i]].left == 0) kept = i;
  }
  looks_ += path_.size();
  path_.resize(kept);
}

}  // namespace dt::scheduler
