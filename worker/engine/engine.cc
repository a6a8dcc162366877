#include "worker/engine/engine.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/check.h"

namespace dt::worker {
namespace {

constexpr Duration kMovePatience = std::chrono::minutes(1);

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

Result<std::unique_ptr<Engine>> Engine::Create(Plan plan, const Options& options) {
  DT_TRY_STATUS(CheckPlan(plan));
  auto engine = std::make_unique<Engine>(std::move(plan), options);
  DT_TRY_STATUS(engine->Prepare());
  return engine;
}

Engine::Engine(Plan plan, const Options& options)
    : plan_(std::move(plan)),
      options_(options),
      parameters_(plan_),
      packs_(plan_),
      bindings_(plan_, options.accelerator) {}

Status Engine::Prepare() {
  const Graph& graph = plan_.graph;
  const bool needs_accelerator = std::ranges::any_of(
      graph.values, [](const Value& value) { return value.device == Device::kGpu; });
  if (needs_accelerator && options_.accelerator == nullptr) {
    return WithHint(Unavailable("the plan needs an accelerator, and this worker has none"),
                    "set cluster.devices to auto or emulated");
  }
  DT_TRY_STATUS(bindings_.Open(parameters_));
  nodes_.resize(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    nodes_[n].kernel = FindKernel(node.op);
    nodes_[n].inputs.resize(node.inputs.size());
    nodes_[n].outputs.resize(node.outputs.size());
    if (nodes_[n].kernel == nullptr && !IsCommunication(node) && !IsCopy(node)) {
      return NotYet("operator {} of node {} has no CPU kernel", node.op, node.name);
    }
  }
  if (needs_accelerator) {
    DT_TRY(parameter_queue_, options_.accelerator->NewQueue());
    DT_TRY(parameters_moved_, options_.accelerator->NewEvent());
  }
  DT_TRY(streams_,
         Streams::Create(
             {.plan = plan_,
              .pool = options_.pool,
              .accelerator = needs_accelerator ? options_.accelerator : nullptr,
              .timeline = options_.timeline,
              .prepare = [this](NodeIndex n) -> PreparedNode& { return PrepareNode(n); }}));
  FindLastForPush();
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

PreparedNode& Engine::PrepareNode(NodeIndex index) {
  const Node& node = plan_.graph.nodes[index];
  PreparedNode& prepared = nodes_[index];
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    prepared.inputs[i] = bindings_.view(node.inputs[i]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    prepared.outputs[i] = bindings_.view(node.outputs[i]);
  }
  return prepared;
}

void Engine::FindLastForPush() {
  for (const TableUse& table : plan_.graph.tables) {
    if (table.row_grad == kNone) continue;
    const NodeIndex producer = plan_.graph.value(table.row_grad).producer;
    for (uint32_t s = 0; s < plan_.train.size(); ++s) {
      const std::vector<NodeIndex>& nodes = plan_.train[s].nodes;
      if (std::ranges::find(nodes, producer) != nodes.end()) for_push_.push_back(s);
    }
  }
}

// ------------------------------------------------------------ parameters

Status Engine::MoveParameter(ValueIndex device, const Parameters::Array& array, bool to_device) {
  const TensorView& view = bindings_.view(device);
  auto* const host = const_cast<float*>(array.values.data());
  return to_device ? parameter_queue_->CopyToDevice(view.data, host, view.bytes())
                   : parameter_queue_->CopyToHost(host, view.data, view.bytes());
}

// What somebody may have written on the host, to wherever else it lies. REQUIRES: nothing runs.
Status Engine::SendParameters() {
  if (!std::exchange(parameters_touched_, false)) return OkStatus();
  const Graph& graph = plan_.graph;
  for (const Parameters::Array& array : parameters_.arrays()) {
    if (graph.value(array.value).device == Device::kGpu) {
      DT_TRY_STATUS(MoveParameter(array.value, array, true));
    }
    for (const ReplicaSpec& replica : graph.replicas) {
      if (replica.of != array.value) continue;
      if (graph.value(replica.value).device == Device::kGpu) {
        DT_TRY_STATUS(MoveParameter(replica.value, array, true));
      } else {
        std::ranges::copy(array.values, static_cast<float*>(bindings_.view(replica.value).data));
      }
    }
  }
  if (parameter_queue_ == nullptr) return OkStatus();
  DT_TRY_STATUS(parameter_queue_->Record(*parameters_moved_));
  return parameters_moved_->Wait(kMovePatience);
}

Status Engine::FetchParameters() {
  DT_TRY_STATUS(EndPass());
  if (parameter_queue_ == nullptr || parameters_touched_) return OkStatus();
  for (const Parameters::Array& array : parameters_.arrays()) {
    if (plan_.graph.value(array.value).device != Device::kGpu) continue;
    DT_TRY_STATUS(MoveParameter(array.value, array, false));
  }
  DT_TRY_STATUS(parameter_queue_->Record(*parameters_moved_));
  return parameters_moved_->Wait(kMovePatience);
}

// ------------------------------------------------------------ a slice

// Waits for what was started last.
Status Engine::EndPass() {
  DT_TRY_STATUS(streams_->Wait());
  if (!std::exchange(slice_, false)) return OkStatus();
  CopyPieces(batch_.slice);
  return CheckLosses();
}

Status Engine::BeginSlice(const LookupPlan& slice, const RunInfo& run) {
  DT_TRY_STATUS(EndPass());
  DT_TRY_STATUS(SendParameters());
  const Batch& batch = slice.batch;
  std::ranges::fill(row_grads_, std::span<const float>());
  if (batch.samples == 0) {
    packs_.Clear(batch.slice);
    return OkStatus();
  }
  DT_TRY_STATUS(bindings_.BindSlice(slice));
  PlacePieces(batch.slice);
  batch_ = {batch.step, batch.slice, batch.first_sample, batch.samples};
  slice_ = true;
  streams_->Start(plan_.train, Phase::kSlice, run, batch.slice);
  return OkStatus();
}

Result<TableRows> Engine::FinishSlice(TableRows rows) {
  if (!slice_) return TableRows(row_grads_);
  bindings_.BindRows(rows);
  streams_->GiveRows();
  for (const uint32_t subgraph : for_push_) DT_TRY_STATUS(streams_->WaitFor(subgraph));
  for (size_t t = 0; t < row_grads_.size(); ++t) {
    const ValueIndex grad = plan_.graph.tables[t].row_grad;
    if (grad != kNone) row_grads_[t] = FloatsOf(bindings_.view(grad));
  }
  DT_TRY_STATUS(CheckRowGrads());
  return TableRows(row_grads_);
}

Result<TableRows> Engine::RunSlice(const SliceInputs& inputs, const RunInfo& run) {
  DT_TRY_STATUS(BeginSlice(inputs.plan, run));
  return FinishSlice(inputs.rows);
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

Status Engine::CheckLosses() {
  for (const LossSpec& loss : plan_.graph.losses) {
    if (AllFinite(FloatsOf(bindings_.view(loss.loss)))) continue;
    return NotFinite(
        fmt::format("loss {} of slice {} (samples {} to {} of the epoch)", loss.name, batch_.slice,
                    batch_.first_sample, batch_.first_sample + batch_.samples - 1),
        batch_.step);
  }
  return OkStatus();
}

Status Engine::CheckRowGrads() {
  for (size_t t = 0; t < row_grads_.size(); ++t) {
    if (AllFinite(row_grads_[t])) continue;
    DT_TRY_STATUS(EndPass());  // A loss says more.
    return NotFinite(fmt::format("the gradient of table {} in slice {}", plan_.graph.tables[t].name,
                                 batch_.slice),
                     batch_.step);
  }
  return OkStatus();
}

// ------------------------------------------------------------ a step

Status Engine::Exchange(Collective& collective, std::span<const uint32_t> owner, Step step) {
  DT_CHECK(owner.size() == plan_.slices);
  DT_TRY_STATUS(EndPass());
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
  if (!AllFinite(sums) || !OwnGradsFinite()) {
    return NotFinite("the gradient of the dense parameters", step);
  }
  SpreadResults();
  return OkStatus();
}

// Of gradients that nobody else adds to; what lies on the accelerator shows in the next loss.
bool Engine::OwnGradsFinite() const {
  if (packs_.sum_floats() > 0) return true;
  return std::ranges::all_of(plan_.graph.parameters, [this](const ParameterSpec& p) {
    if (p.grad == kNone || plan_.graph.value(p.grad).device == Device::kGpu) return true;
    return AllFinite(FloatsOf(bindings_.view(p.grad)));
  });
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

Status Engine::Update(const RunInfo& run) {
  DT_TRY_STATUS(EndPass());
  DT_TRY_STATUS(SendParameters());
  streams_->Start(plan_.train, Phase::kStep, run);
  return OkStatus();
}

Status Engine::FinishUpdate() { return EndPass(); }

std::span<const float> Engine::pushed(size_t parameter) const {
  return FloatsOf(bindings_.view(plan_.graph.parameters[parameter].pushed));
}

// ------------------------------------------------------------ evaluation

Result<TableRows> Engine::Evaluate(const SliceInputs& inputs, const RunInfo& run) {
  DT_CHECK(inputs.plan.batch.samples > 0 && !run.training);
  DT_TRY_STATUS(EndPass());
  DT_TRY_STATUS(SendParameters());
  DT_TRY_STATUS(bindings_.BindSlice(inputs.plan));
  bindings_.BindRows(inputs.rows);
  streams_->Start(plan_.evaluate, Phase::kSlice, run);
  streams_->GiveRows();
  DT_TRY_STATUS(EndPass());
  for (size_t l = 0; l < outputs_.size(); ++l) {
    outputs_[l] = FloatsOf(bindings_.view(plan_.graph.losses[l].output));
  }
  return TableRows(outputs_);
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
