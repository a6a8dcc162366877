#include "worker/engine/engine.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"

namespace dt::worker {
namespace {

// Infinities and NaNs are the floats whose exponent is all ones; integers, so that it vectorises.
bool AllFinite(std::span<const float> values) {
  uint32_t largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::bit_cast<uint32_t>(value) & 0x7fffffffu);
  }
  return largest < 0x7f800000u;
}

std::span<const float> FloatsOf(const TensorView& view) {
  return {static_cast<const float*>(view.data), static_cast<size_t>(view.size())};
}

Status NotFinite(std::string_view what, Step step) {
  return WithHint(
      Unavailable("{} is not finite at step {}", what, step),
      "lower the learning rate, set optimizer.clip_norm, or look for extreme input values");
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Create(Plan plan, TaskPool& pool) {
  DT_TRY_STATUS(CheckPlan(plan));
  auto engine = std::make_unique<Engine>(std::move(plan), pool);
  DT_TRY_STATUS(engine->Prepare());
  return engine;
}

Engine::Engine(Plan plan, TaskPool& pool)
    : plan_(std::move(plan)), pool_(pool), parameters_(plan_), packs_(plan_), bindings_(plan_) {}

Status Engine::Prepare() {
  const Graph& graph = plan_.graph;
  DT_TRY_STATUS(bindings_.Open(parameters_));
  nodes_.resize(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    nodes_[n].kernel = FindKernel(node.op);
    nodes_[n].inputs.resize(node.inputs.size());
    nodes_[n].outputs.resize(node.outputs.size());
    if (nodes_[n].kernel == nullptr && !IsCommunication(node)) {
      return NotYet("operator {} of node {} has no CPU kernel", node.op, node.name);
    }
  }
  for (const LossSpec& loss : graph.losses) {
    const auto piece = std::ranges::find_if(packs_.pieces(), [&](const SlicePacks::Piece& p) {
      return p.in == loss.loss && !p.summed;
    });
    if (piece == packs_.pieces().end()) return Internal("loss {} is not gathered", loss.name);
    loss_pieces_.push_back(piece - packs_.pieces().begin());
  }
  row_grads_.resize(graph.tables.size());
  outputs_.resize(graph.losses.size());
  summed_.Reserve(packs_.sum_floats() * sizeof(float));
  gathered_.Reserve(plan_.slices * packs_.gather_floats() * sizeof(float));
  return OkStatus();
}

void Engine::Run(NodeIndex index, const RunInfo& run) {
  const Node& node = plan_.graph.nodes[index];
  if (IsCommunication(node)) return;  // Exchange has done it.
  Prepared& prepared = nodes_[index];
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    prepared.inputs[i] = bindings_.view(node.inputs[i]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    prepared.outputs[i] = bindings_.view(node.outputs[i]);
  }
  const TimePoint begun = SystemClock().Now();
  KernelContext context{.node = node,
                        .inputs = prepared.inputs,
                        .outputs = prepared.outputs,
                        .run = run,
                        .pool = pool_,
                        .scratch = prepared.scratch};
  prepared.kernel(context);
  prepared.time += SystemClock().Now() - begun;
  ++prepared.runs;
}

void Engine::RunPhase(std::span<const Subgraph> subgraphs, Phase phase, const RunInfo& run) {
  for (const Subgraph& subgraph : subgraphs) {
    if (subgraph.phase != phase) continue;
    for (const NodeIndex n : subgraph.nodes) Run(n, run);
  }
}

// ------------------------------------------------------------ a slice

Result<std::span<const std::span<const float>>> Engine::RunSlice(const SliceInputs& inputs,
                                                                 const RunInfo& run) {
  const Batch& batch = inputs.plan.batch;
  std::ranges::fill(row_grads_, std::span<const float>());
  if (batch.samples == 0) {
    packs_.Clear(batch.slice);
    return row_grads_;
  }
  bindings_.BindSlice(inputs);
  PlacePieces(batch.slice);
  RunPhase(plan_.train, Phase::kSlice, run);
  CopyPieces(batch.slice);
  for (size_t t = 0; t < row_grads_.size(); ++t) {
    const ValueIndex grad = plan_.graph.tables[t].row_grad;
    if (grad != kNone) row_grads_[t] = FloatsOf(bindings_.view(grad));
  }
  DT_TRY_STATUS(CheckFinite(batch));
  return row_grads_;
}

// What is exchanged goes into the slice's pack without a copy.
void Engine::PlacePieces(SliceIndex slice) {
  for (const SlicePacks::Piece& piece : packs_.pieces()) {
    float* const memory = packs_.PieceOf(slice, piece);
    if (piece.direct) bindings_.Place(piece.in, memory);
  }
}

void Engine::CopyPieces(SliceIndex slice) {
  for (const SlicePacks::Piece& piece : packs_.pieces()) {
    if (piece.direct) continue;
    const auto* const from = static_cast<const float*>(bindings_.view(piece.in).data);
    std::copy_n(from, piece.floats, packs_.PieceOf(slice, piece));
  }
}

Status Engine::CheckFinite(const Batch& batch) {
  for (const LossSpec& loss : plan_.graph.losses) {
    if (AllFinite(FloatsOf(bindings_.view(loss.loss)))) continue;
    return NotFinite(
        fmt::format("loss {} of slice {} (samples {} to {} of the epoch)", loss.name, batch.slice,
                    batch.first_sample, batch.first_sample + batch.samples - 1),
        batch.step);
  }
  for (size_t t = 0; t < row_grads_.size(); ++t) {
    if (AllFinite(row_grads_[t])) continue;
    return NotFinite(fmt::format("the gradient of table {} in slice {}", plan_.graph.tables[t].name,
                                 batch.slice),
                     batch.step);
  }
  return OkStatus();
}

// ------------------------------------------------------------ a step

Status Engine::Exchange(Collective& collective, std::span<const uint32_t> owner, Step step) {
  DT_CHECK(owner.size() == plan_.slices);
  auto* const summed = static_cast<float*>(summed_.Reserve(0));
  auto* const gathered = static_cast<float*>(gathered_.Reserve(0));
  const std::span<float> sums(summed, packs_.sum_floats());
  DT_TRY_STATUS(
      collective.ExchangeSlices({.owner = owner,
                                 .sum = packs_.sums(),
                                 .gather = packs_.gathers(),
                                 .summed = sums,
                                 .gathered = {gathered, plan_.slices * packs_.gather_floats()}}));
  packs_.Begin();
  if (!AllFinite(sums)) return NotFinite("the gradient of the dense parameters", step);
  SpreadResults();
  return OkStatus();
}

void Engine::SpreadResults() {
  auto* const summed = static_cast<float*>(summed_.Reserve(0));
  const auto* const gathered = static_cast<const float*>(gathered_.Reserve(0));
  for (const SlicePacks::Piece& piece : packs_.pieces()) {
    if (piece.summed) {
      bindings_.Place(piece.out, summed + piece.offset);
      continue;
    }
    auto* out = static_cast<float*>(bindings_.view(piece.out).data);
    for (uint32_t k = 0; k < plan_.slices; ++k) {
      const float* const from = gathered + k * packs_.gather_floats() + piece.offset;
      out = std::copy_n(from, piece.floats, out);
    }
  }
  step_loss_ = 0;
  for (uint32_t k = 0; k < plan_.slices; ++k) {
    for (const size_t p : loss_pieces_) {
      step_loss_ += double{gathered[k * packs_.gather_floats() + packs_.pieces()[p].offset]};
    }
  }
}

void Engine::Update(const RunInfo& run) { RunPhase(plan_.train, Phase::kStep, run); }

std::span<const float> Engine::pushed(size_t parameter) const {
  return FloatsOf(bindings_.view(plan_.graph.parameters[parameter].pushed));
}

// ------------------------------------------------------------ evaluation

std::span<const std::span<const float>> Engine::Evaluate(const SliceInputs& inputs,
                                                         const RunInfo& run) {
  DT_CHECK(inputs.plan.batch.samples > 0 && !run.training);
  bindings_.BindSlice(inputs);
  RunPhase(plan_.evaluate, Phase::kSlice, run);
  for (size_t l = 0; l < outputs_.size(); ++l) {
    outputs_[l] = FloatsOf(bindings_.view(plan_.graph.losses[l].output));
  }
  return outputs_;
}

std::vector<NodeTiming> Engine::Timings() const {
  std::vector<NodeTiming> timings;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    const Node& node = plan_.graph.nodes[n];
    timings.push_back({node.name, node.op, nodes_[n].runs, nodes_[n].time});
  }
  return timings;
}

}  // namespace dt::worker
