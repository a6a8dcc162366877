#include "worker/exchange/slice_packs.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::worker {
namespace {

// Pieces begin at cache lines.
size_t Padded(size_t floats) { return (floats + 15) / 16 * 16; }

size_t FloatsOf(const Value& value) {
  size_t count = 1;
  for (const Dim& dim : value.shape) {
    DT_CHECK_MSG(dim.symbol == kConstant, "{} is exchanged and has no constant shape", value.name);
    count *= static_cast<size_t>(dim.times);
  }
  DT_CHECK(SizeOf(value.dtype) == sizeof(float));
  return count;
}

}  // namespace

SlicePacks::Holders SlicePacks::HoldersOf(const Graph& graph, const Node& node) {
  const auto members = [&](std::string_view attr) {
    return graph.groups[static_cast<size_t>(IntAttr(node.attrs, attr, 0))].members;
  };
  return {members("group"), members("terms"), !TextAttr(node.attrs, "rows", "").empty()};
}

SlicePacks::SlicePacks(const Plan& plan, const Subgraph& bucket, Accelerator* accelerator)
    : holders_(HoldersOf(plan.graph, plan.graph.nodes[bucket.nodes.front()])),
      terms_(holders_.terms.size()),
      packs_(plan.slices * terms_),
      sums_(packs_.size()),
      gathers_(packs_.size()) {
  const auto own = std::ranges::find(holders_.terms, plan.position);
  if (own != holders_.terms.end()) own_term_ = own - holders_.terms.begin();
  for (Pack& pack : packs_) pack.memory = AlignedBuffer(accelerator);
  for (const NodeIndex n : bucket.nodes) {
    const Node& node = plan.graph.nodes[n];
    DT_CHECK(node.inputs.size() == 1 && node.outputs.size() == 1);
    Piece piece{.node = n, .in = node.inputs[0], .out = node.outputs[0]};
    piece.summed = node.op == "sum_slices";
    piece.floats = FloatsOf(plan.graph.value(piece.in));
    size_t& end = piece.summed ? sum_floats_ : gather_floats_;
    piece.offset = end;
    end += Padded(piece.floats);
    pieces_.push_back(piece);
  }
}

std::optional<size_t> SlicePacks::OwnTerm(SliceIndex k) const {
  if (!own_term_) return std::nullopt;
  return k * terms_ + *own_term_;
}

SlicePacks::Pack& SlicePacks::Touch(size_t term) {
  Pack& pack = packs_[term];
  const size_t floats = sum_floats_ + gather_floats_;
  if (pack.sum.size() + pack.gather.size() < floats) {
    auto* const memory = static_cast<float*>(pack.memory.Reserve(floats * sizeof(float)));
    std::fill_n(memory, floats, 0.0f);
    pack.sum = {memory, sum_floats_};
    pack.gather = {memory + sum_floats_, gather_floats_};
  }
  sums_[term] = pack.sum;
  gathers_[term] = pack.gather;
  return pack;
}

float* SlicePacks::PieceOf(size_t term, const Piece& piece) {
  Pack& pack = Touch(term);
  return (piece.summed ? pack.sum.data() : pack.gather.data()) + piece.offset;
}

void SlicePacks::Clear(size_t term) {
  Pack& pack = Touch(term);
  std::ranges::fill(pack.sum, 0.0f);
  std::ranges::fill(pack.gather, 0.0f);
}

void SlicePacks::Begin() {
  std::ranges::fill(sums_, std::span<const float>());
  std::ranges::fill(gathers_, std::span<const float>());
}

}  // namespace dt::worker
