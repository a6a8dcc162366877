#include "test/ops/device_part.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "test/support/positions.h"

namespace dt::test {
namespace {

std::span<uint32_t> Ids(HostTensor& tensor) { return tensor.view().as<uint32_t>(); }

std::vector<HostTensor> RunNode(const Node& node, std::vector<HostTensor>& inputs,
                                std::vector<HostTensor> outputs, const RunInfo& run,
                                TaskPool& pool) {
  std::vector<TensorView> in, out;
  for (HostTensor& tensor : inputs) in.push_back(tensor.view());
  for (HostTensor& tensor : outputs) {
    std::ranges::fill(tensor.bytes, std::byte{0xff});
    out.push_back(tensor.view());
  }
  std::vector<std::byte> scratch;
  KernelContext context{node, in, out, run, pool, scratch};
  FindKernel(node.op)(context);
  return outputs;
}

}  // namespace

WholeNode::WholeNode(const Backend::Work& work, Sharding rule)
    : work_(work), rule_(std::move(rule)) {
  for (const TensorView& input : work.inputs) before_.push_back(HostTensor::Copy(input));
}

void WholeNode::Run(TaskPool& pool) {
  std::vector<std::byte> scratch;
  KernelContext context{work_.node, work_.inputs, work_.outputs, work_.run, pool, scratch};
  FindKernel(work_.node.op)(context);
  for (const TensorView& input : work_.inputs) inputs_.push_back(HostTensor::Copy(input));
  for (const TensorView& output : work_.outputs) outputs_.push_back(HostTensor::Copy(output));
}

std::vector<HostTensor> WholeNode::SumOfTerms(const std::vector<size_t>& inputs,
                                              TaskPool& pool) const {
  std::vector<HostTensor> first = before_, second = before_;
  std::mt19937_64 random(26);
  for (const size_t i : inputs) {
    for (size_t e = 0; e < before_[i].size(); ++e) {
      const double term = std::uniform_real_distribution<double>(-1, 1)(random);
      first[i].set(e, term);
      second[i].set(e, before_[i].at(e) - term);
    }
  }
  std::vector<HostTensor> sums = RunNode(work_.node, first, outputs_, work_.run, pool);
  const std::vector<HostTensor> more = RunNode(work_.node, second, outputs_, work_.run, pool);
  for (size_t o = 0; o < sums.size(); ++o) {
    for (size_t e = 0; e < sums[o].size(); ++e) sums[o].set(e, sums[o].at(e) + more[o].at(e));
  }
  return sums;
}

int64_t WholeNode::Extent(LoopIndex loop) const {
  const Dim& dim = rule_.loops[loop].extent;
  return dim.times * (dim.symbol == kConstant ? 1 : work_.sizes[dim.symbol]);
}

DevicePart::DevicePart(const WholeNode& whole, const scheduler::NodeCut& cut,
                       const scheduler::NodeLayouts& layouts, DeviceIndex device)
    : whole_(whole), cut_(cut), layouts_(layouts), device_(device) {
  FindOwnRows();
}

Range DevicePart::RangeOf(LoopIndex loop) const {
  Range range{0, whole_.Extent(loop)};
  const std::vector<uint32_t> at = CoordinatesOf(cut_.matrix, device_);
  for (const AxisIndex axis : cut_.loops[loop]) {
    range = EvenPart(range, cut_.matrix[axis], at[axis]);
  }
  return range;
}

// The number of list elements before this list.
int64_t DevicePart::EndBefore(int64_t list) const {
  for (size_t i = 0; i < whole_.before().size(); ++i) {
    if (whole_.rule().inputs[i].holds != Holds::kListEnds) continue;
    HostTensor ends = whole_.before()[i];
    return list == 0 ? 0 : Ids(ends)[static_cast<size_t>(list - 1)];
  }
  ADD_FAILURE() << whole_.node().op << ": lists without ends";
  return 0;
}

std::vector<int64_t> DevicePart::PositionsOf(const ShardAxis& axis, const Places& places) const {
  if (axis.own && !layouts_.inputs.empty() && !own_uses_.empty()) return own_rows_;
  Places all = places;
  const bool known = axis.lists && !whole_.rule().loops[axis.loops[0]].lists.empty();
  if (axis.lists && !known && !cut_.loops[axis.loops[0]].empty()) {
    const Range lists = RangeOf(axis.loops[0]);
    all = {{EndBefore(lists.begin), EndBefore(lists.end)}};
  }
  return ListOf(all);
}

void DevicePart::ForEachPlace(const ShardTensor& tensor, const Layout& layout, const Shape& whole,
                              const std::function<void(size_t, size_t)>& f) const {
  const dt::Slice slice = SliceOf(layout, whole, device_);
  Positions positions;
  for (size_t d = 0; d < whole.size(); ++d) {
    positions.push_back(PositionsOf(tensor.axes[d], slice[d]));
  }
  ForEachPosition(positions, whole, f);
}

double DevicePart::ShareWithout(const ShardTensor& tensor) const {
  double share = 1;
  for (LoopIndex loop = 0; loop < cut_.loops.size(); ++loop) {
    if (tensor.Has(loop)) continue;
    const auto extent = static_cast<double>(whole_.Extent(loop));
    if (!cut_.loops[loop].empty()) share *= static_cast<double>(RangeOf(loop).size()) / extent;
  }
  return share;
}

// Own rows and their uses follow from the ends and the order of uses that the node has as inputs.
void DevicePart::FindOwnRows() {
  const std::vector<ShardTensor>& rules = whole_.rule().inputs;
  for (size_t i = 0; i + 1 < whole_.before().size(); ++i) {
    if (rules[i].holds != Holds::kRowUses || rules[i + 1].holds != Holds::kRowUses) continue;
    HostTensor ends = whole_.before()[i], order = whole_.before()[i + 1];
    const dt::Slice slice = SliceOf(layouts_.inputs[i + 1], order.shape, device_);
    const std::vector<int64_t> kept = PositionsOf(rules[i + 1].axes[0], slice[0]);
    uint32_t use = 0;
    for (int64_t row = 0; row < ends.shape[0]; ++row) {
      std::vector<uint32_t> uses;
      for (; use < Ids(ends)[static_cast<size_t>(row)]; ++use) {
        const auto at = std::ranges::lower_bound(kept, int64_t{Ids(order)[use]});
        if (at == kept.end() || *at != Ids(order)[use]) continue;
        uses.push_back(static_cast<uint32_t>(at - kept.begin()));
      }
      if (uses.empty()) continue;
      own_rows_.push_back(row);
      own_uses_.push_back(std::move(uses));
    }
    if (own_uses_.empty()) own_uses_.emplace_back();  // Known: there are none.
    return;
  }
}

void DevicePart::MakeUses(HostTensor& ends, HostTensor& order) const {
  std::vector<uint32_t> uses, ends_of;
  for (size_t row = 0; row < own_rows_.size(); ++row) {
    uses.insert(uses.end(), own_uses_[row].begin(), own_uses_[row].end());
    ends_of.push_back(static_cast<uint32_t>(uses.size()));
  }
  ends = HostTensor::Of(DType::kU32, {std::ssize(ends_of)});
  std::ranges::copy(ends_of, Ids(ends).begin());
  order = HostTensor::Of(DType::kU32, {std::ssize(uses)});
  std::ranges::copy(uses, Ids(order).begin());
}

HostTensor DevicePart::Slice(size_t input) const {
  const ShardTensor& rule = whole_.rule().inputs[input];
  const HostTensor& of = whole_.before()[input];
  const dt::Slice slice = SliceOf(layouts_.inputs[input], of.shape, device_);
  Positions positions;
  for (size_t d = 0; d < of.shape.size(); ++d) {
    positions.push_back(PositionsOf(rule.axes[d], slice[d]));
  }
  HostTensor part = HostTensor::Of(of.dtype, LengthsOf(positions));
  const size_t size = SizeOf(of.dtype);
  ForEachPosition(positions, of.shape, [&](size_t to, size_t from) {
    std::memcpy(part.bytes.data() + to * size, of.bytes.data() + from * size, size);
  });
  if (of.dtype != DType::kU32) return part;
  if (rule.holds == Holds::kListEnds) {
    if (cut_.loops[rule.axes[0].loops[0]].empty()) return part;
    const auto base = static_cast<uint32_t>(EndBefore(RangeOf(rule.axes[0].loops[0]).begin));
    for (uint32_t& end : Ids(part)) end -= base;
  } else if (whole_.rule().inputs[0].HasOwnRows() && !own_uses_.empty() && !rule.HasOwnRows()) {
    // An index numbers the device's own rows.
    for (uint32_t& row : Ids(part)) {
      const auto at = std::ranges::lower_bound(own_rows_, int64_t{row});
      row = static_cast<uint32_t>(at - own_rows_.begin());
    }
  }
  return part;
}

Node DevicePart::LocalNode() const {
  Node node = whole_.node();
  std::vector<int64_t> firsts, wholes;
  bool divided = false;
  for (const ShardAttr& attr : whole_.rule().attrs) {
    if (attr.axis.lists) {
      const Range range = RangeOf(attr.axis.loops[0]);
      auto& lengths = std::get<std::vector<int64_t>>(node.attrs[attr.name]);
      lengths = {lengths.begin() + range.begin, lengths.begin() + range.end};
      continue;
    }
    int64_t first = 0, count = 1, all = 1;
    for (const LoopIndex loop : attr.axis.loops) {
      if (whole_.rule().loops[loop].extent.symbol != kConstant) continue;
      const Range range = RangeOf(loop);
      first = first * whole_.Extent(loop) + range.begin;
      count *= range.size();
      all *= whole_.Extent(loop);
    }
    divided = divided || (attr.first && count != all);
    if (attr.first) firsts.push_back(first);
    if (attr.first) wholes.push_back(all);
    if (attr.first || count == all) continue;
    AttrValue& value = node.attrs[attr.name];
    auto* const numbers = std::get_if<std::vector<int64_t>>(&value);
    (numbers == nullptr ? std::get<int64_t>(value) : (*numbers)[attr.at]) = count;
  }
  if (divided) node.attrs["first"] = firsts;
  if (divided) node.attrs["whole"] = wholes;
  return node;
}

DevicePart::Result DevicePart::Run(TaskPool& pool) const {
  const std::vector<ShardTensor>& rules = whole_.rule().inputs;
  Result local;
  for (size_t i = 0; i < whole_.before().size(); ++i) {
    const bool uses = rules[i].holds == Holds::kRowUses;
    local.inputs.push_back(uses ? whole_.before()[i] : Slice(i));
    const bool has_both = uses && i > 0 && rules[i - 1].holds == Holds::kRowUses;
    if (has_both) MakeUses(local.inputs[i - 1], local.inputs[i]);
  }
  std::vector<HostTensor> outputs;
  for (size_t i = 0; i < whole_.outputs().size(); ++i) {
    const HostTensor& of = whole_.outputs()[i];
    const dt::Slice slice = SliceOf(layouts_.outputs[i], of.shape, device_);
    Shape shape;
    for (size_t d = 0; d < of.shape.size(); ++d) {
      shape.push_back(std::ssize(PositionsOf(whole_.rule().outputs[i].axes[d], slice[d])));
    }
    outputs.push_back(HostTensor::Of(of.dtype, shape));
  }
  RunInfo run = whole_.run();
  for (LoopIndex loop = 0; loop < cut_.loops.size(); ++loop) {
    if (whole_.rule().loops[loop].extent == Batch()) {
      const auto begin = static_cast<uint64_t>(RangeOf(loop).begin);
      run.first_sample += begin;
      run.first_in_slice += begin;
    }
  }
  local.outputs = RunNode(LocalNode(), local.inputs, std::move(outputs), run, pool);
  return local;
}

}  // namespace dt::test
