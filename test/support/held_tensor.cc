#include "test/support/held_tensor.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "test/support/positions.h"

namespace dt::test {
namespace {

using Kind = RedistributionKind;

LocalTensor Cut(const LocalTensor& of, const Slice& slice) {
  LocalTensor part{ShapeOf(slice), {}};
  part.values.resize(static_cast<size_t>(ElementCount(part.shape)));
  ForEachPosition(PositionsIn(slice), of.shape,
                  [&](size_t to, size_t from) { part.values[to] = of.values[from]; });
  return part;
}

Slice WholeOf(const Shape& shape) {
  Slice slice;
  for (const int64_t n : shape) slice.push_back(n == 0 ? Places() : Places{{0, n}});
  return slice;
}

// The position within `places` of a position of the dimension.
int64_t Within(const Places& places, int64_t position) {
  int64_t before = 0;
  for (const Range& range : places) {
    if (position < range.end) return before + position - range.begin;
    before += range.size();
  }
  ADD_FAILURE() << "a box outside of a slice";
  return 0;
}

// The box as it lies in a slice that contains it.
Slice Inside(const Box& box, const Slice& slice) {
  Slice inside;
  for (size_t d = 0; d < box.size(); ++d) {
    const int64_t begin = Within(slice[d], box[d].begin);
    inside.push_back({{begin, begin + box[d].size()}});
  }
  return inside;
}

double Size(const LocalTensor& tensor) { return static_cast<double>(tensor.values.size()); }

}  // namespace

HeldTensor::HeldTensor(const Layout& layout, const Shape& shape, const std::vector<double>& whole)
    : layout_(layout), shape_(shape) {
  for (DeviceIndex i = 0; i < DeviceCount(layout.matrix); ++i) {
    const RankList group = GroupOf(layout.matrix, layout.partial, i);
    const auto at = static_cast<size_t>(std::ranges::find(group, i) - group.begin());
    LocalTensor terms{shape, whole};
    for (size_t e = 0; e < terms.values.size(); ++e) {
      double& value = terms.values[e];
      const size_t chosen = e % group.size();
      if (layout.join == Join::kMax) {
        if (at != chosen) value -= static_cast<double>(1 + at);
      } else {
        value = at == chosen ? value - static_cast<double>(group.size() - 1) * 3 : 3;
      }
    }
    local_[RankOf(layout, i)] = Cut(terms, SliceOf(layout, shape, i));
  }
}

LocalTensor PartOf(const LocalTensor& of, size_t dim, const Range& range) {
  Slice slice = WholeOf(of.shape);
  slice[dim] = range.size() == 0 ? Places() : Places{range};
  return Cut(of, slice);
}

LocalTensor EvenPartOf(const LocalTensor& of, size_t dim, int64_t count, int64_t index) {
  return PartOf(of, dim, EvenPart({0, of.shape[dim]}, count, index));
}

LocalTensor JoinedAlong(const std::vector<LocalTensor>& parts, size_t dim) {
  LocalTensor joined{parts[0].shape, {}};
  joined.shape[dim] = 0;
  for (const LocalTensor& part : parts) joined.shape[dim] += part.shape[dim];
  joined.values.resize(static_cast<size_t>(ElementCount(joined.shape)));
  int64_t begin = 0;
  for (const LocalTensor& part : parts) {
    Slice slice = WholeOf(joined.shape);
    const int64_t end = begin + part.shape[dim];
    slice[dim] = begin == end ? Places() : Places{{begin, end}};
    ForEachPosition(PositionsIn(slice), joined.shape,
                    [&](size_t from, size_t to) { joined.values[to] = part.values[from]; });
    begin = end;
  }
  return joined;
}

LocalTensor HeldTensor::Reduced(const RankList& group) const {
  LocalTensor sum = Of(group[0]);
  for (size_t m = 1; m < group.size(); ++m) {
    const LocalTensor& term = Of(group[m]);
    for (size_t e = 0; e < sum.values.size(); ++e) {
      double& value = sum.values[e];
      value = layout_.join == Join::kMax ? std::max(value, term.values[e]) : value + term.values[e];
    }
  }
  return sum;
}

void HeldTensor::Gather(const RedistributionStep& step, const RankList& group,
                        std::map<uint32_t, LocalTensor>& after) {
  std::vector<LocalTensor> parts;
  for (const DeviceIndex member : group) parts.push_back(Of(member));
  const LocalTensor joined = JoinedAlong(parts, step.dim);
  for (const DeviceIndex member : group) {
    received_[RankOf(layout_, member)] += Size(joined) - Size(Of(member));
    after[RankOf(layout_, member)] = joined;
  }
}

void HeldTensor::Exchange(const RedistributionStep& step, const RankList& group,
                          std::map<uint32_t, LocalTensor>& after) {
  const auto count = static_cast<int64_t>(group.size());
  for (int64_t m = 0; m < count; ++m) {
    std::vector<LocalTensor> parts;
    for (const DeviceIndex from : group) {
      parts.push_back(EvenPartOf(Of(from), step.dim, count, m));
    }
    after[RankOf(layout_, group[static_cast<size_t>(m)])] = JoinedAlong(parts, step.from_dim);
  }
  for (const DeviceIndex member : group) {
    const double n = static_cast<double>(count);
    received_[RankOf(layout_, member)] += Size(Of(member)) * (n - 1) / n;
  }
}

void HeldTensor::Send(const RedistributionStep& step, std::map<uint32_t, LocalTensor>& after) {
  std::map<uint32_t, Slice> from, to;
  for (DeviceIndex i = 0; i < DeviceCount(layout_.matrix); ++i) {
    from[RankOf(layout_, i)] = SliceOf(layout_, shape_, i);
  }
  for (DeviceIndex i = 0; i < DeviceCount(step.after.matrix); ++i) {
    const uint32_t rank = RankOf(step.after, i);
    to[rank] = SliceOf(step.after, step.shape, i);
    after[rank].shape = ShapeOf(to[rank]);
    const auto size = static_cast<size_t>(ElementCount(after[rank].shape));
    after[rank].values.assign(size, std::numeric_limits<double>::quiet_NaN());
  }
  std::map<uint32_t, double> sent, received;
  for (const BoxMove& move : step.transfer.moves) {
    const LocalTensor box = Cut(local_.at(move.from), Inside(move.box, from.at(move.from)));
    LocalTensor& target = after.at(move.to);
    ForEachPosition(PositionsIn(Inside(move.box, to.at(move.to))), target.shape,
                    [&](size_t e, size_t at) { target.values[at] = box.values[e]; });
    if (move.from == move.to) continue;
    sent[move.from] += Size(box);
    received[move.to] += Size(box);
  }
  for (const auto& [rank, elements] : received) sent[rank] = std::max(sent[rank], elements);
  for (const auto& [rank, elements] : sent) received_[rank] += elements;
}

// The parts have the lengths that the new layout says.
void HeldTensor::Split(const RedistributionStep& step, const RankList& group,
                       std::map<uint32_t, LocalTensor>& after) {
  int64_t begin = 0;
  for (const DeviceIndex member : group) {
    const int64_t end = begin + LocalShape(step.after, step.shape, member)[step.dim];
    after[RankOf(layout_, member)] = PartOf(Of(member), step.dim, {begin, end});
    begin = end;
  }
}

void HeldTensor::Reduce(const RedistributionStep& step, const RankList& group,
                        std::map<uint32_t, LocalTensor>& after) {
  const LocalTensor result = Reduced(group);
  const bool scatters = step.kind == Kind::kReduceScatter;
  const auto count = static_cast<int64_t>(group.size());
  for (int64_t m = 0; m < count; ++m) {
    const uint32_t rank = RankOf(layout_, group[static_cast<size_t>(m)]);
    after[rank] = scatters ? EvenPartOf(result, step.dim, count, m) : result;
    const double n = static_cast<double>(count);
    received_[rank] += (scatters ? 1 : 2) * Size(result) * (n - 1) / n;
  }
}

void HeldTensor::Apply(const RedistributionStep& step) {
  std::map<uint32_t, LocalTensor> after;
  if (step.kind == Kind::kSendRecv) {
    Send(step, after);
  } else if (step.kind == Kind::kReshape) {
    after = local_;
    for (DeviceIndex i = 0; i < DeviceCount(step.after.matrix); ++i) {
      after.at(RankOf(step.after, i)).shape = LocalShape(step.after, step.shape, i);
    }
  } else {
    for (const RankList& group : GroupsAlong(step.after.matrix, step.axes)) {
      if (step.kind == Kind::kSplit) Split(step, group, after);
      if (step.kind == Kind::kAllGather) Gather(step, group, after);
      if (step.kind == Kind::kAllToAll) Exchange(step, group, after);
      if (step.kind == Kind::kAllReduce || step.kind == Kind::kReduceScatter) {
        Reduce(step, group, after);
      }
    }
  }
  layout_ = step.after;
  shape_ = step.shape;
  local_ = std::move(after);
  for (DeviceIndex i = 0; i < DeviceCount(layout_.matrix); ++i) {
    ASSERT_EQ(Of(i).shape, LocalShape(layout_, shape_, i)) << NameOf(step.kind);
    ASSERT_EQ(std::ssize(Of(i).values), ElementCount(Of(i).shape)) << NameOf(step.kind);
  }
}

double HeldTensor::received() const {
  double most = 0;
  for (const auto& [rank, elements] : received_) most = std::max(most, elements);
  return most;
}

}  // namespace dt::test
