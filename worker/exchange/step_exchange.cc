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
    : plan_(plan), accelerator_(accelerator), rows_(plan, accelerator) {}

Status StepExchange::Open() {
  for (const Subgraph& subgraph : plan_.train) {
    for (const NodeIndex n : subgraph.nodes) {
      const Node& node = plan_.graph.nodes[n];
      if (node.op == "sum_slices" || node.op == "gather_slices") DT_TRY_STATUS(OpenBucket(node));
    }
  }
  for (const LossSpec& loss : plan_.graph.losses) {
    loss_places_.push_back(PlaceOf(loss));
    if (loss_places_.back().bucket == nullptr) {
      return Internal("loss {} is not gathered", loss.name);
    }
  }
  step_losses_.resize(loss_places_.size());
  return rows_.Open();
}

// Buckets are in the order of their first nodes, the same for all workers.
Status StepExchange::OpenBucket(const Node& node) {
  const SlicePacks::Holders holders = SlicePacks::HoldersOf(node);
  const bool known = std::ranges::any_of(
      buckets_, [&](const auto& bucket) { return bucket->packs.holders() == holders; });
  if (known) return OkStatus();
  for (const auto* positions : {&holders.group, &holders.terms}) {
    const bool fit = std::ranges::all_of(
        *positions, [this](int64_t p) { return p >= 0 && p < int64_t{plan_.devices}; });
    if (fit && positions->empty() == (plan_.devices == 1)) continue;
    return Internal("node \"{}\" names no positions of its team", node.name);
  }
  Bucket& bucket = *buckets_.emplace_back(std::make_unique<Bucket>(plan_, holders, accelerator_));
  const SlicePacks& packs = bucket.packs;
  bucket.summed = Floats(bucket.summed_memory, packs.sum_floats());
  bucket.gathered =
      Floats(bucket.gathered_memory, plan_.slices * packs.terms() * packs.gather_floats());
  std::ranges::fill(bucket.summed, 0.0f);
  for (const SlicePacks::Piece& piece : packs.pieces()) {
    if (!holders.rows) break;
    const auto rows = static_cast<size_t>(plan_.graph.value(piece.in).shape[0].times);
    bucket.rows.push_back({piece.offset, rows, piece.floats / rows});
  }
  return OkStatus();
}

StepExchange::LossPlace StepExchange::PlaceOf(const LossSpec& loss) const {
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    for (const SlicePacks::Piece& piece : bucket->packs.pieces()) {
      if (piece.in == loss.loss && !piece.summed) return {bucket.get(), piece.offset};
    }
  }
  return {};
}

void StepExchange::AddNothing(SliceIndex slice) {
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    if (const auto term = bucket->packs.OwnTerm(slice)) bucket->packs.Clear(*term);
  }
  rows_.AddNothing(slice);
}

void StepExchange::PlacePieces(const LookupPlan& slice, Bindings& bindings) {
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    const auto term = bucket->packs.OwnTerm(slice.batch.slice);
    if (!term) continue;
    for (const SlicePacks::Piece& piece : bucket->packs.pieces()) {
      float* const memory = bucket->packs.PieceOf(*term, piece);
      if (piece.direct) bindings.Place(piece.in, memory);
    }
  }
  rows_.PlacePieces(slice, bindings);
}

void StepExchange::CopyPieces(SliceIndex slice, const Bindings& bindings) {
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    const auto term = bucket->packs.OwnTerm(slice);
    if (!term) continue;
    for (const SlicePacks::Piece& piece : bucket->packs.pieces()) {
      if (piece.direct) continue;
      const auto* const from = static_cast<const float*>(bindings.view(piece.in).data);
      std::copy_n(from, piece.floats, bucket->packs.PieceOf(*term, piece));
    }
  }
  rows_.CopyPieces(slice, bindings);
}

// The ranks that have the terms, and those that get the sums: in each team those of the holders.
void StepExchange::FindRanks(const Collective& collective, std::span<const uint32_t> owner,
                             Bucket& bucket) {
  const SlicePacks::Holders& holders = bucket.packs.holders();
  bucket.owner.clear();
  bucket.ranks.clear();
  for (const uint32_t team : owner) {
    for (size_t t = 0; t < bucket.packs.terms(); ++t) {
      const auto position = holders.terms.empty() ? 0u : static_cast<uint32_t>(holders.terms[t]);
      bucket.owner.push_back(team * plan_.devices + position);
    }
  }
  for (uint32_t team = 0; team < collective.size() / plan_.devices; ++team) {
    for (const int64_t position : holders.group) {
      bucket.ranks.push_back(team * plan_.devices + static_cast<uint32_t>(position));
    }
  }
}

Status StepExchange::Join(Collective& collective, const StepSlices& slices, Bindings& bindings) {
  DT_CHECK(slices.owner.size() == plan_.slices);
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    FindRanks(collective, slices.owner, *bucket);
    SlicePacks& packs = bucket->packs;
    DT_TRY_STATUS(collective.ExchangeSlices({.owner = bucket->owner,
                                             .sum = packs.sums(),
                                             .gather = packs.gathers(),
                                             .summed = bucket->summed,
                                             .gathered = bucket->gathered,
                                             .rows = bucket->rows,
                                             .ranks = bucket->ranks,
                                             .number = packs.pieces().front().number,
                                             .step = slices.step}));
    packs.Begin();
    if (plan_.devices > 1 && bucket->summed.empty()) continue;
    DT_TRY_STATUS(CheckDenseGrads(plan_.graph, bindings, bucket->summed, slices.step));
  }
  DT_TRY_STATUS(rows_.Join(collective, slices.owner, slices.step, slices.tables, bindings));
  for (const std::unique_ptr<Bucket>& bucket : buckets_) SpreadResults(*bucket, bindings);
  AddLosses();
  return OkStatus();
}

void StepExchange::SpreadResults(const Bucket& bucket, Bindings& bindings) const {
  const SlicePacks& packs = bucket.packs;
  for (const SlicePacks::Piece& piece : packs.pieces()) {
    if (piece.summed) {
      const size_t first = bucket.rows.empty() ? 0 : bindings.FirstOwned(piece.out);
      bindings.Place(piece.out, bucket.summed.data() + piece.offset + first);
      continue;
    }
    auto* out = static_cast<float*>(bindings.view(piece.out).data);
    const float* from = bucket.gathered.data() + piece.offset;
    for (uint32_t k = 0; k < plan_.slices; ++k, out += piece.floats) {
      std::copy_n(from, piece.floats, out);
      from += packs.gather_floats();
      for (size_t t = 1; t < packs.terms(); ++t, from += packs.gather_floats()) {
        for (size_t i = 0; i < piece.floats; ++i) out[i] += from[i];
      }
    }
  }
}

void StepExchange::AddLosses() {
  for (size_t l = 0; l < loss_places_.size(); ++l) {
    const Bucket& bucket = *loss_places_[l].bucket;
    const float* part = bucket.gathered.data() + loss_places_[l].offset;
    step_losses_[l] = 0;
    const size_t terms = plan_.slices * bucket.packs.terms();
    for (size_t k = 0; k < terms; ++k, part += bucket.packs.gather_floats()) {
      step_losses_[l] += double{*part};
    }
  }
}

}  // namespace dt::worker
