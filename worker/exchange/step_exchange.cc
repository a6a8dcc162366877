#include "worker/exchange/step_exchange.h"

#include <algorithm>

#include "common/base/check.h"
#include "worker/exchange/finite_checks.h"

namespace dt::worker {
namespace {

std::span<float> Floats(AlignedBuffer& memory, size_t count) {
  return {static_cast<float*>(memory.Reserve(count * sizeof(float))), count};
}

}  // namespace

StepExchange::StepExchange(const Plan& plan, Accelerator* accelerator)
    : plan_(plan),
      packs_(plan, accelerator),
      rows_(plan, accelerator),
      summed_memory_(accelerator) {
  summed_ = Floats(summed_memory_, packs_.sum_floats());
  gathered_ = Floats(gathered_memory_, plan_.slices * packs_.gather_floats());
}

Status StepExchange::Open() {
  for (const LossSpec& loss : plan_.graph.losses) {
    const auto piece = std::ranges::find_if(packs_.pieces(), [&](const SlicePacks::Piece& p) {
      return p.in == loss.loss && !p.summed;
    });
    if (piece == packs_.pieces().end()) return Internal("loss {} is not gathered", loss.name);
    loss_pieces_.push_back(piece - packs_.pieces().begin());
  }
  step_losses_.resize(loss_pieces_.size());
  return rows_.Open();
}

void StepExchange::AddNothing(SliceIndex slice) {
  packs_.Clear(slice);
  rows_.AddNothing(slice);
}

void StepExchange::PlacePieces(const LookupPlan& slice, Bindings& bindings) {
  for (const SlicePacks::Piece& piece : packs_.pieces()) {
    float* const memory = packs_.PieceOf(slice.batch.slice, piece);
    if (piece.direct) bindings.Place(piece.in, memory);
  }
  rows_.PlacePieces(slice, bindings);
}

void StepExchange::CopyPieces(SliceIndex slice, const Bindings& bindings) {
  for (const SlicePacks::Piece& piece : packs_.pieces()) {
    if (piece.direct) continue;
    const auto* const from = static_cast<const float*>(bindings.view(piece.in).data);
    std::copy_n(from, piece.floats, packs_.PieceOf(slice, piece));
  }
  rows_.CopyPieces(slice, bindings);
}

Status StepExchange::Join(Collective& collective, const StepSlices& slices, Bindings& bindings) {
  DT_CHECK(slices.owner.size() == plan_.slices);
  DT_TRY_STATUS(collective.ExchangeSlices({.owner = slices.owner,
                                           .sum = packs_.sums(),
                                           .gather = packs_.gathers(),
                                           .summed = summed_,
                                           .gathered = gathered_}));
  packs_.Begin();
  DT_TRY_STATUS(CheckDenseGrads(plan_.graph, bindings, summed_, slices.step));
  DT_TRY_STATUS(rows_.Join(collective, slices.owner, slices.step, slices.tables, bindings));
  SpreadResults(bindings);
  return OkStatus();
}

void StepExchange::SpreadResults(Bindings& bindings) {
  const float* const gathered = gathered_.data();
  for (const SlicePacks::Piece& piece : packs_.pieces()) {
    if (piece.summed) {
      bindings.Place(piece.out, summed_.data() + piece.offset);
      continue;
    }
    auto* out = static_cast<float*>(bindings.view(piece.out).data);
    for (uint32_t k = 0; k < plan_.slices; ++k) {
      const float* const from = gathered + k * packs_.gather_floats() + piece.offset;
      out = std::copy_n(from, piece.floats, out);
    }
  }
  for (size_t l = 0; l < loss_pieces_.size(); ++l) {
    const float* part = gathered + packs_.pieces()[loss_pieces_[l]].offset;
    step_losses_[l] = 0;
    for (uint32_t k = 0; k < plan_.slices; ++k, part += packs_.gather_floats()) {
      step_losses_[l] += double{*part};
    }
  }
}

}  // namespace dt::worker
