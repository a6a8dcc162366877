#include "worker/exchange/step_exchange.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/float_formats.h"
#include "worker/exchange/finite_checks.h"

namespace dt::worker {
namespace {

constexpr uint32_t kJoinGroup = 2;  // In tags of messages.

std::span<float> Floats(AlignedBuffer& memory, size_t count) {
  return {static_cast<float*>(memory.Reserve(count * sizeof(float))), count};
}

}  // namespace

StepExchange::StepExchange(const Plan& plan, Accelerator* accelerator)
    : plan_(plan),
      accelerator_(accelerator),
      rows_(plan, accelerator),
      sources_(plan.graph.values.size()) {}

Status StepExchange::Open() {
  for (const Subgraph& subgraph : plan_.train) {
    if (subgraph.phase != Phase::kJoin) continue;
    if (plan_.graph.nodes[subgraph.nodes.front()].op == "sum_rows") continue;
    DT_TRY_STATUS(OpenBucket(subgraph));
  }
  FindSources();
  for (const LossSpec& loss : plan_.graph.losses) {
    loss_places_.push_back(PlaceOf(loss));
    if (loss_places_.back().bucket == nullptr) {
      return Internal("loss {} is not gathered", loss.name);
    }
  }
  step_losses_.resize(loss_places_.size());
  return rows_.Open();
}

Status StepExchange::OpenBucket(const Subgraph& subgraph) {
  const SlicePacks::Holders holders =
      SlicePacks::HoldersOf(plan_.graph, plan_.graph.nodes[subgraph.nodes.front()]);
  for (const NodeIndex n : subgraph.nodes) {
    const Node& node = plan_.graph.nodes[n];
    if (SlicePacks::HoldersOf(plan_.graph, node) == holders) continue;
    return Internal("node \"{}\" is in a bucket of other positions", node.name);
  }
  Bucket& bucket = *buckets_.emplace_back(std::make_unique<Bucket>(plan_, subgraph, accelerator_));
  const SlicePacks& packs = bucket.packs;
  bucket.summed = Floats(bucket.summed_memory, packs.sum_floats());
  bucket.gathered =
      Floats(bucket.gathered_memory, plan_.slices * packs.terms() * packs.gather_floats());
  std::ranges::fill(bucket.summed, 0.0f);
  bucket.bf16 = std::ranges::any_of(subgraph.nodes, [this](NodeIndex n) {
    return TextAttr(plan_.graph.nodes[n].attrs, "wire", "fp32") == "bf16";
  });
  return OkStatus();
}

void StepExchange::FindSources() {
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    for (const SlicePacks::Piece& piece : bucket->packs.pieces()) {
      Source& source = sources_[piece.in];
      if (source.bucket == nullptr) source = {bucket.get(), &piece};
    }
  }
}

StepExchange::LossPlace StepExchange::PlaceOf(const LossSpec& loss) const {
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    for (const SlicePacks::Piece& piece : bucket->packs.pieces()) {
      if (piece.in == loss.loss && !piece.summed) return {bucket.get(), piece.offset};
    }
  }
  return {};
}

// ------------------------------------------------------------ own slices

void StepExchange::BeginStep(Step step, std::span<const uint32_t> owner, WorkerTables* tables) {
  DT_CHECK(owner.size() == plan_.slices);
  step_ = step;
  owner_.assign(owner.begin(), owner.end());
  tables_ = tables;
  for (const std::unique_ptr<Bucket>& bucket : buckets_) bucket->packs.Begin();
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
      if (sources_[piece.in].piece != &piece) continue;
      if (plan_.graph.value(piece.in).kind == ValueKind::kNode) {
        bindings.Place(piece.in, memory);
      } else {  // Nothing changes it while the slice runs.
        std::ranges::copy(bindings.floats(piece.in), memory);
      }
    }
  }
  rows_.PlacePieces(slice, bindings);
}

// ------------------------------------------------------------ all slices

Status StepExchange::Join(const Subgraph& subgraph, const TeamLink& team, Bindings& bindings) {
  const Node& first = plan_.graph.nodes[subgraph.nodes.front()];
  CollectiveCall call{.group = team.all,
                      .name = subgraph.name,
                      .node = static_cast<uint32_t>(IntAttr(first.attrs, "number", 0)),
                      .step = step_};
  if (first.op == "sum_rows") {
    return rows_.Join({call, *team.communicator, owner_, tables_}, bindings);
  }
  const auto found = std::ranges::find_if(
      buckets_, [&](const auto& bucket) { return &bucket->subgraph == &subgraph; });
  DT_CHECK(found != buckets_.end());
  Bucket& bucket = **found;
  FindMembers(team, bucket);
  CopyAgain(bucket);
  const CollectiveCall own{bucket.members, call.name, call.node, 0, step_};
  DT_TRY_STATUS(Sum(own, team, bucket));
  return Gather(own, team, bucket);
}

// The ranks that get the results: in each team those of the holders. Some of them have terms.
void StepExchange::FindMembers(const TeamLink& team, Bucket& bucket) const {
  const SlicePacks::Holders& holders = bucket.packs.holders();
  bucket.members.id = kJoinGroup;
  bucket.members.ranks.clear();
  for (uint32_t t = 0; t < team.place.teams; ++t) {
    for (const uint32_t p : holders.group) bucket.members.ranks.push_back(t * plan_.devices + p);
  }
  bucket.owner.clear();
  for (const uint32_t t : owner_) {
    for (const uint32_t p : holders.terms) {
      bucket.owner.push_back(bucket.members.PositionOf(t * plan_.devices + p));
    }
  }
  bucket.ranges.clear();
  if (!holders.rows) return;
  for (uint32_t m = 0; m < bucket.members.size(); ++m) {
    const Sharers sharers = SharersOf(m, bucket.members.size(), plan_.sharers);
    for (const SlicePacks::Piece& piece : bucket.packs.pieces()) {
      const int64_t rows = plan_.graph.value(piece.in).shape[0].times;
      const size_t width = piece.floats / static_cast<size_t>(rows);
      const Range own = EvenPart({0, rows}, sharers.count, m - sharers.first);
      const auto at = [&](int64_t row) {
        return (piece.offset + static_cast<size_t>(row) * width) * sizeof(float);
      };
      bucket.ranges.push_back({m, at(own.begin), at(own.end)});
    }
  }
}

// A value that two nodes exchange is in the pack of the first one.
void StepExchange::CopyAgain(Bucket& bucket) const {
  for (const SlicePacks::Piece& piece : bucket.packs.pieces()) {
    const Source& source = sources_[piece.in];
    for (SliceIndex k = 0; source.piece != &piece && k < plan_.slices; ++k) {
      const auto term = bucket.packs.OwnTerm(k), from = source.bucket->packs.OwnTerm(k);
      if (!term || !from || bucket.packs.sums()[*term].data() == nullptr) continue;
      std::copy_n(source.bucket->packs.PieceOf(*from, *source.piece), piece.floats,
                  bucket.packs.PieceOf(*term, piece));
    }
  }
}

Status StepExchange::Sum(const CollectiveCall& call, const TeamLink& team, Bucket& bucket) {
  if (bucket.summed.empty()) return OkStatus();
  if (bucket.bf16) return SumInBf16(call, team, bucket);
  bucket.terms.clear();
  for (const std::span<const float>& pack : bucket.packs.sums()) {
    bucket.terms.push_back(std::as_bytes(pack));
  }
  return team.communicator->ReduceTerms(call, {}, {bucket.owner, bucket.terms, bucket.ranges},
                                        std::as_writable_bytes(bucket.summed));
}

// The same with all terms rounded first, the own ones too, so that sums do not depend on who adds.
Status StepExchange::SumInBf16(const CollectiveCall& call, const TeamLink& team, Bucket& bucket) {
  const std::span<const std::span<const float>> packs = bucket.packs.sums();
  const size_t bytes = bucket.summed.size() * sizeof(uint16_t);
  const auto own = std::ranges::count_if(packs, [](const auto& pack) { return !pack.empty(); });
  auto* const memory =
      static_cast<std::byte*>(bucket.wire_memory.Reserve((static_cast<size_t>(own) + 1) * bytes));
  std::byte* to = memory;
  bucket.terms.clear();
  for (const std::span<const float>& pack : packs) {
    bucket.terms.emplace_back();
    if (pack.empty()) continue;
    EncodeRow(FloatFormat::kBf16, pack, to);
    bucket.terms.back() = {to, bytes};
    to += bytes;
  }
  std::vector<Terms::Range>& ranges = bucket.ranges;
  for (Terms::Range& range : ranges) range.begin /= 2, range.end /= 2;
  const std::span<std::byte> sums(to, bytes);
  if (!ranges.empty()) std::ranges::fill(sums, std::byte{0});
  DT_TRY_STATUS(team.communicator->ReduceTerms(call, {.dtype = DType::kBf16},
                                               {bucket.owner, bucket.terms, ranges}, sums));
  DecodeRow(FloatFormat::kBf16, sums.data(), bucket.summed);
  return OkStatus();
}

Status StepExchange::Gather(const CollectiveCall& call, const TeamLink& team, Bucket& bucket) {
  const size_t each = bucket.packs.gather_floats();
  const uint32_t me = bucket.members.PositionOf(team.communicator->rank());
  send_.clear();
  receive_.clear();
  for (size_t k = 0; each > 0 && k < bucket.owner.size(); ++k) {
    const std::span<float> place = bucket.gathered.subspan(k * each, each);
    if (bucket.owner[k] != me) {
      receive_.push_back({bucket.owner[k], std::as_writable_bytes(place)});
      continue;
    }
    const std::span<const float> own = bucket.packs.gathers()[k];
    std::ranges::copy(own, place.begin());
    for (uint32_t m = 0; m < bucket.members.size(); ++m) {
      if (m != me) send_.push_back({m, std::as_bytes(own)});
    }
  }
  if (send_.empty() && receive_.empty()) return OkStatus();
  CollectiveCall gather = call;
  gather.slice = 1;
  return team.communicator->NeighborExchange(gather, send_, receive_);
}

void StepExchange::SpreadResults(const Bucket& bucket, Bindings& bindings) const {
  const SlicePacks& packs = bucket.packs;
  for (const SlicePacks::Piece& piece : packs.pieces()) {
    if (piece.summed) {
      const size_t first = bucket.ranges.empty() ? 0 : bindings.FirstOwned(piece.out);
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

Status StepExchange::Finish(Bindings& bindings) {
  bool summed = false;
  for (const std::unique_ptr<Bucket>& bucket : buckets_) {
    SpreadResults(*bucket, bindings);
    if (bucket->summed.empty()) continue;
    summed = true;
    DT_TRY_STATUS(CheckDenseGrads(plan_.graph, bindings, bucket->summed, step_));
  }
  if (!summed) DT_TRY_STATUS(CheckDenseGrads(plan_.graph, bindings, {}, step_));
  for (size_t l = 0; l < loss_places_.size(); ++l) {
    const Bucket& bucket = *loss_places_[l].bucket;
    const float* part = bucket.gathered.data() + loss_places_[l].offset;
    step_losses_[l] = 0;
    const size_t terms = plan_.slices * bucket.packs.terms();
    for (size_t k = 0; k < terms; ++k, part += bucket.packs.gather_floats()) {
      step_losses_[l] += double{*part};
    }
  }
  return OkStatus();
}

}  // namespace dt::worker
