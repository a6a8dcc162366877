#include "worker/engine/engine.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace dt::worker {

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
      bindings_(plan_, options.accelerator),
      exchange_(plan_, bindings_, options.accelerator) {}

Status Engine::Prepare() {
  const Graph& graph = plan_.graph;
  const bool needs_accelerator = std::ranges::any_of(
      graph.values, [](const Value& value) { return value.device == Device::kGpu; });
  if (needs_accelerator && options_.accelerator == nullptr) {
    return WithHint(Unavailable("the plan needs an accelerator, and this worker has none"),
                    "set cluster.devices to auto or emulated");
  }
  for (const TableUse& table : graph.tables) {
    if (table.store == kNone || options_.tables != nullptr) continue;
    return Internal("table {} is on the worker, and the engine was given none", table.name);
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
  Accelerator* const accelerator = needs_accelerator ? options_.accelerator : nullptr;
  DT_TRY(copies_, ParameterCopies::Create({.plan = plan_,
                                           .bindings = bindings_,
                                           .parameters = parameters_,
                                           .accelerator = accelerator}));
  DT_TRY(streams_, Streams::Create({.plan = plan_,
                                    .pool = options_.pool,
                                    .accelerator = accelerator,
                                    .timeline = options_.timeline,
                                    .prepare = [this](NodeIndex n) -> PreparedNode& {
                                      return PrepareNode(n);
                                    }}));
  FindLastForPush();
  row_grads_.resize(graph.tables.size());
  outputs_.resize(graph.losses.size());
  return exchange_.Open();
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

Status Engine::FetchParameters() {
  DT_TRY_STATUS(EndPass());
  return copies_->Fetch();
}

// ------------------------------------------------------------ a slice

Pass Engine::PassOf(const std::vector<Subgraph>& subgraphs, Phase phase, const RunInfo& run,
                    SliceIndex slice) const {
  return {.subgraphs = &subgraphs,
          .phase = phase,
          .run = run,
          .slice = slice,
          .sizes = bindings_.sizes(),
          .extents = bindings_.extents()};
}

// Waits for what was started last.
Status Engine::EndPass() {
  DT_TRY_STATUS(streams_->Wait());
  if (!std::exchange(slice_, false)) return OkStatus();
  exchange_.CopyPieces(at_hand_.slice);
  DT_TRY_STATUS(CheckLosses(plan_.graph, bindings_, at_hand_));
  return CheckUpdatedRows(plan_.graph, bindings_, at_hand_);
}

Status Engine::Bind(const LookupPlan& slice, LookupFor purpose) {
  if (options_.tables == nullptr) return bindings_.BindSlice(slice);
  DT_TRY_STATUS(options_.tables->Bind(slice, purpose));
  return bindings_.BindSlice(slice, options_.tables->places());
}

Status Engine::BeginSlice(const LookupPlan& slice, const RunInfo& run) {
  DT_TRY_STATUS(EndPass());
  DT_TRY_STATUS(copies_->Send());
  const Batch& batch = slice.batch;
  std::ranges::fill(row_grads_, std::span<const float>());
  if (batch.samples == 0) {
    exchange_.AddNothing(batch.slice);
    return OkStatus();
  }
  DT_TRY_STATUS(Bind(slice, LookupFor::kTrain));
  exchange_.PlacePieces(batch.slice);
  at_hand_ = {batch.step, batch.slice, batch.first_sample, batch.samples};
  slice_ = true;
  streams_->Start(PassOf(plan_.train, Phase::kSlice, run, batch.slice));
  return OkStatus();
}

Result<TableRows> Engine::FinishSlice(TableRows rows) {
  if (!slice_) return TableRows(row_grads_);
  bindings_.BindRows(rows);
  streams_->GiveRows();
  for (const uint32_t subgraph : for_push_) DT_TRY_STATUS(streams_->WaitFor(subgraph));
  for (size_t t = 0; t < row_grads_.size(); ++t) {
    const ValueIndex grad = plan_.graph.tables[t].row_grad;
    if (grad != kNone) row_grads_[t] = bindings_.floats(grad);
  }
  Status finite = CheckRowGrads(plan_.graph, row_grads_, at_hand_);
  if (finite.ok()) return TableRows(row_grads_);
  DT_TRY_STATUS(EndPass());  // A loss says more.
  return finite;
}

Result<TableRows> Engine::RunSlice(const SliceInputs& inputs, const RunInfo& run) {
  DT_TRY_STATUS(BeginSlice(inputs.plan, run));
  return FinishSlice(inputs.rows);
}

// ------------------------------------------------------------ a step

Status Engine::Exchange(Collective& collective, std::span<const uint32_t> owner, Step step) {
  DT_TRY_STATUS(EndPass());
  return exchange_.Join(collective, owner, step);
}

Status Engine::Update(const RunInfo& run) {
  DT_TRY_STATUS(EndPass());
  DT_TRY_STATUS(copies_->Send());
  streams_->Start(PassOf(plan_.train, Phase::kStep, run, kNoSlice));
  return OkStatus();
}

Status Engine::FinishUpdate() { return EndPass(); }

std::span<const float> Engine::pushed(size_t parameter) const {
  return bindings_.floats(plan_.graph.parameters[parameter].pushed);
}

// ------------------------------------------------------------ evaluation

Result<TableRows> Engine::Evaluate(const SliceInputs& inputs, const RunInfo& run) {
  DT_CHECK(inputs.plan.batch.samples > 0 && !run.training);
  DT_TRY_STATUS(EndPass());
  DT_TRY_STATUS(copies_->Send());
  DT_TRY_STATUS(Bind(inputs.plan, LookupFor::kEvaluate));
  bindings_.BindRows(inputs.rows);
  streams_->Start(PassOf(plan_.evaluate, Phase::kSlice, run, kNoSlice));
  streams_->GiveRows();
  DT_TRY_STATUS(EndPass());
  for (size_t l = 0; l < outputs_.size(); ++l) {
    outputs_[l] = bindings_.floats(plan_.graph.losses[l].output);
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
