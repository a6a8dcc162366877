#include "common/layout/transfer.h"

#include <algorithm>
#include <map>
#include <optional>

#include "common/base/check.h"

namespace dt {
namespace {

Places Common(const Places& a, const Places& b) {
  Places common;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const Range both{std::max(a[i].begin, b[k].begin), std::min(a[i].end, b[k].end)};
    if (both.begin < both.end) common.push_back(both);
    (a[i].end < b[k].end ? i : k)++;
  }
  return common;
}

// The positions that at least one device has alone: the ranges of all devices, cut where any of
// them begins or ends.
std::vector<Range> Cells(const std::vector<Slice>& slices, size_t dim) {
  std::vector<int64_t> ends;
  for (const Slice& slice : slices) {
    for (const Range& range : slice[dim]) {
      ends.push_back(range.begin);
      ends.push_back(range.end);
    }
  }
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::vector<Range> cells;
  for (size_t i = 0; i + 1 < ends.size(); ++i) cells.push_back({ends[i], ends[i + 1]});
  return cells;
}

// Adds the second move to the first, if they come from one rank and their boxes make one along d.
bool JoinAlong(size_t d, BoxMove& first, const BoxMove& second) {
  if (first.from != second.from || first.box[d].end != second.box[d].begin) return false;
  Box box = second.box;
  box[d].begin = first.box[d].begin;
  Box shorter = box;
  shorter[d].end = first.box[d].end;
  if (shorter != first.box) return false;
  first.box = std::move(box);
  return true;
}

// Joins boxes from number `first` on.
void JoinBoxes(std::vector<BoxMove>& moves, size_t first) {
  for (size_t d = moves[first].box.size(); d-- > 0;) {
    for (size_t i = first; i < moves.size(); ++i) {
      const auto later = moves.begin() + static_cast<ptrdiff_t>(i) + 1;
      const auto joined = [&, d](const BoxMove& move) { return JoinAlong(d, moves[i], move); };
      moves.erase(std::remove_if(later, moves.end(), joined), moves.end());
    }
  }
}

bool Holds(const Slice& slice, const Box& box) {
  for (size_t d = 0; d < box.size(); ++d) {
    const bool inside = std::ranges::any_of(slice[d], [&](const Range& range) {
      return range.begin <= box[d].begin && box[d].end <= range.end;
    });
    if (!inside) return false;
  }
  return true;
}

class Planner {
 public:
  Planner(const Layout& from, const Shape& shape) : from_(from) {
    for (DeviceIndex i = 0; i < DeviceCount(from.matrix); ++i) {
      slices_.push_back(SliceOf(from, shape, i));
    }
    for (size_t d = 0; d < shape.size(); ++d) cells_.push_back(Cells(slices_, d));
  }

  void Fill(uint32_t rank, const Slice& wanted, std::vector<BoxMove>& moves) {
    const size_t first = moves.size();
    Slice cut;
    for (size_t d = 0; d < wanted.size(); ++d) cut.push_back(CutByCells(wanted[d], cells_[d]));
    for (const Box& box : BoxesOf(cut)) {
      const uint32_t sender = SenderOf(rank, box);
      if (sender != rank) {
        sent_[sender] += ElementsOf(box);
        received_[rank] += ElementsOf(box);
      }
      moves.push_back({sender, rank, box});
    }
    if (moves.size() > first) JoinBoxes(moves, first);
  }

  int64_t most() const {
    int64_t most = 0;
    for (const auto& [rank, elements] : sent_) most = std::max(most, elements);
    for (const auto& [rank, elements] : received_) most = std::max(most, elements);
    return most;
  }

 private:
  static Places CutByCells(const Places& wanted, const std::vector<Range>& cells) {
    Places cut;
    for (const Range& cell : cells) {
      for (const Range& range : Common(wanted, {cell})) cut.push_back(range);
    }
    return cut;
  }

  uint32_t SenderOf(uint32_t rank, const Box& box) {
    std::optional<uint32_t> best;
    const auto cost = [&](uint32_t sender) {
      const uint32_t distance = sender > rank ? sender - rank : rank - sender;
      return std::tuple(sent_[sender], distance, sender);
    };
    for (DeviceIndex i = 0; i < slices_.size(); ++i) {
      if (!Holds(slices_[i], box)) continue;
      const uint32_t sender = RankOf(from_, i);
      if (sender == rank) return rank;
      if (!best || cost(sender) < cost(*best)) best = sender;
    }
    DT_CHECK(best.has_value());
    return *best;
  }

  const Layout& from_;
  std::vector<Slice> slices_;              // By device of `from`.
  std::vector<std::vector<Range>> cells_;  // By dimension.
  std::map<uint32_t, int64_t> sent_, received_;
};

}  // namespace

std::vector<Box> BoxesOf(const Slice& slice) {
  std::vector<Box> boxes = {{}};
  for (const Places& places : slice) {
    std::vector<Box> longer;
    for (const Box& box : boxes) {
      for (const Range& range : places) {
        longer.push_back(box);
        longer.back().push_back(range);
      }
    }
    boxes = std::move(longer);
  }
  return boxes;
}

int64_t ElementsOf(const Box& box) {
  int64_t elements = 1;
  for (const Range& range : box) elements *= range.size();
  return elements;
}

Transfer TransferBetween(const Layout& from, const Layout& to, const Shape& shape) {
  DT_CHECK(from.partial.empty() && to.partial.empty());
  Planner planner(from, shape);
  Transfer transfer;
  for (DeviceIndex i = 0; i < DeviceCount(to.matrix); ++i) {
    planner.Fill(RankOf(to, i), SliceOf(to, shape, i), transfer.moves);
  }
  transfer.most = planner.most();
  return transfer;
}

RankList SendersTo(const Layout& from, const Layout& to, const Shape& shape, DeviceIndex device) {
  RankList senders;
  const uint32_t rank = RankOf(to, device);
  for (const BoxMove& move : TransferBetween(from, to, shape).moves) {
    if (move.to == rank) senders.push_back(move.from);
  }
  std::ranges::sort(senders);
  senders.erase(std::unique(senders.begin(), senders.end()), senders.end());
  return senders;
}

}  // namespace dt
