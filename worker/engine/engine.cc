#include "worker/engine/engine.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/plan/check_plan.h"
#include "ops/op_spec.h"
#include "worker/engine/check_attrs.h"
#include "worker/engine/op_work.h"

namespace dt::worker {
namespace {

// What the operator says; by default, one operation for each element of its results.
double FlopsOf(const Graph& graph, const Node& node, const PreparedNode& prepared) {
  const OpSpec* const op = FindOp(node.op);
  if (op != nullptr && op->cost != nullptr) return op->cost(graph, node, prepared.samples).flops;
  double elements = 0;
  for (const TensorView& view : prepared.outputs) elements += static_cast<double>(view.size());
  return elements;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Create(Plan plan, const Options& options) {
  DT_TRY_STATUS(CheckAttrs(plan.graph));
  DT_TRY_STATUS(CheckPlan(plan, TraitsOf));
  auto engine = std::make_unique<Engine>(std::move(plan), options);
  DT_TRY_STATUS(engine->Prepare());
  return engine;
}

Engine::Engine(Plan plan, const Options& options)
    : plan_(std::move(plan)),
      index_(plan_.graph, TraitsOf),
      options_(options),
      team_(options.team != nullptr ? *options.team
                                    : alone_.emplace(std::move(MakeMemoryMesh(1, {}).front()))),
      parameters_(plan_, team_.place),
      exchange_(plan_, options.accelerator) {}

// The first lane has the memory that all lanes share, so it is destroyed last.
Engine::~Engine() {
  team_.mesh->Cancel();
  streams_.reset();
  while (!lanes_.empty()) lanes_.pop_back();
}

Status Engine::Prepare() {
  const Graph& graph = plan_.graph;
  if (team_.all.size() % plan_.devices != 0) {
    return Internal("the plan is for a team of {}, and there are {} workers", plan_.devices,
                    team_.all.size());
  }
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
  Accelerator* const accelerator = needs_accelerator ? options_.accelerator : nullptr;
  const size_t lanes = options_.overlap && SlicesMayOverlap() ? 2 : 1;
  while (lanes_.size() < lanes) DT_TRY_STATUS(OpenLane(accelerator));
  DT_TRY_STATUS(OpenStreams(accelerator));
  DT_TRY(copies_, ParameterCopies::Create({.plan = plan_,
                                           .bindings = lanes_.front()->bindings,
                                           .parameters = parameters_,
                                           .accelerator = accelerator}));
  FindLastForPush();
  outputs_.resize(graph.losses.size());
  return exchange_.Open();
}

// True if slices of a step only read lasting values, and leave everything that the step's nodes
// read of them in the exchange. Tables on the worker are bound to one slice at a time.
bool Engine::SlicesMayOverlap() const {
  const Graph& graph = plan_.graph;
  const auto is_of_slice = [&](ValueIndex v) {
    const NodeIndex producer = graph.value(v).producer;
    return producer != kNone && graph.nodes[producer].phase == Phase::kSlice;
  };
  const auto allows = [&](NodeIndex n) {
    const Node& node = graph.nodes[n];
    const OpTraits& traits = index_.traits(n);
    if (node.phase == Phase::kJoin) return true;
    if (node.phase == Phase::kStep) return std::ranges::none_of(node.inputs, is_of_slice);
    return traits.writes.empty();
  };
  const auto on_server = [](const TableUse& table) { return table.store == kNone; };
  const auto count = static_cast<NodeIndex>(graph.nodes.size());
  return plan_.slices > 1 && std::ranges::all_of(graph.tables, on_server) &&
         std::ranges::all_of(std::views::iota(NodeIndex{0}, count), allows);
}

Status Engine::OpenLane(Accelerator* accelerator) {
  Lane& lane = *lanes_.emplace_back(std::make_unique<Lane>(plan_, accelerator));
  const Bindings* const lasting = lanes_.size() > 1 ? &lanes_.front()->bindings : nullptr;
  DT_TRY_STATUS(lane.bindings.Open(parameters_, lasting));
  DT_TRY_STATUS(PrepareNodes(lane));
  lane.row_grads.resize(plan_.graph.tables.size());
  return OkStatus();
}

Status Engine::OpenStreams(Accelerator* accelerator) {
  const auto prepare = [this](size_t lane, NodeIndex n) -> PreparedNode& {
    return PrepareNode(*lanes_[lane], n);
  };
  const auto join = [this](const Subgraph& bucket) {
    PassFailpoint("join", step_);
    return exchange_.Join(bucket, team_, lanes_.front()->bindings);
  };
  DT_TRY(streams_, Streams::Create({.plan = plan_,
                                    .index = index_,
                                    .pool = options_.pool,
                                    .team = team_,
                                    .accelerator = accelerator,
                                    .timeline = options_.timeline,
                                    .overlap = options_.overlap,
                                    .comm_thread = options_.comm_thread,
                                    .lanes = lanes_.size(),
                                    .prepare = prepare,
                                    .join = join}));
  return OkStatus();
}

Status Engine::PrepareNodes(Lane& lane) const {
  const Graph& graph = plan_.graph;
  lane.nodes.resize(graph.nodes.size());
  for (NodeIndex n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    lane.nodes[n].kernel = FindKernel(node.op);
    lane.nodes[n].work = &WorkOfOp(node.op);
    lane.nodes[n].inputs.resize(node.inputs.size());
    lane.nodes[n].outputs.resize(node.outputs.size());
    lane.nodes[n].sample_part = IntsAttr(node.attrs, "sample_part");
    if (lane.nodes[n].kernel == nullptr && index_.traits(n).has_kernel()) {
      return NotYet("operator {} of node {} has no CPU kernel", node.op, node.name);
    }
  }
  return OkStatus();
}

PreparedNode& Engine::PrepareNode(Lane& lane, NodeIndex index) const {
  const Node& node = plan_.graph.nodes[index];
  PreparedNode& prepared = lane.nodes[index];
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    prepared.inputs[i] = lane.bindings.view(node.inputs[i]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    prepared.outputs[i] = lane.bindings.view(node.outputs[i]);
  }
  prepared.first_sample =
      static_cast<uint64_t>(lane.bindings.SamplesIn(prepared.sample_part).begin);
  if (node.device == Device::kGpu && prepared.samples != lane.bindings.sizes()[kBatch]) {
    prepared.samples = lane.bindings.sizes()[kBatch];
    prepared.flops = FlopsOf(plan_.graph, node, prepared);
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
  if (!abandoned_) DT_TRY_STATUS(EndPasses());
  return copies_->Fetch();
}

// ------------------------------------------------------------ a slice

Pass Engine::PassOf(size_t lane, const std::vector<Subgraph>& subgraphs, const Phases& phases,
                    const RunInfo& run) const {
  const Lane& of = *lanes_[lane];
  RunInfo counted = run;
  counted.steps_before = options_.steps_before;
  return {.subgraphs = &subgraphs,
          .phases = phases,
          .lane = lane,
          .run = counted,
          .slice = of.slice ? of.at_hand.slice : kNoSlice,
          .sizes = of.bindings.sizes(),
          .extents = of.bindings.extents()};
}

// Waits for what was started last on a lane.
Status Engine::EndPass(size_t lane) {
  DT_TRY_STATUS(streams_->Wait(lane));
  Lane& ended = *lanes_[lane];
  if (!std::exchange(ended.slice, false)) return OkStatus();
  DT_TRY_STATUS(CheckLosses(plan_.graph, ended.bindings, ended.at_hand));
  return CheckUpdatedRows(index_, ended.bindings, ended.at_hand);
}

Status Engine::EndPasses() {
  for (size_t lane = 0; lane < lanes_.size(); ++lane) DT_TRY_STATUS(EndPass(lane));
  updating_ = false;
  return OkStatus();
}

// Other workers may never send what the stream of communication waits for. An update that has begun
// ends first, so that it is made as a whole.
void Engine::Abandon() {
  if (updating_) EndPass(0).IgnoreError();
  team_.mesh->Cancel();
  streams_->Abandon();
  abandoned_ = true;
}

Status Engine::Bind(Lane& lane, const LookupPlan& slice, LookupFor purpose) {
  if (options_.tables == nullptr) return lane.bindings.BindSlice(slice);
  DT_TRY_STATUS(options_.tables->Bind(slice, purpose));
  return lane.bindings.BindSlice(slice, options_.tables->views());
}

void Engine::BeginStep(Step step, std::span<const uint32_t> owner) {
  step_ = step;
  own_slices_ = static_cast<size_t>(std::ranges::count(owner, team_.place.team));
  joins_started_ = false;
  exchange_.BeginStep(step, owner, options_.tables);
}

Status Engine::BeginSlice(const LookupPlan& slice, const RunInfo& run) {
  DT_CHECK(begun_ - taken_ < lanes_.size() && own_slices_ > 0);
  if (begun_ == taken_) begun_ = taken_ = 0;
  const size_t number = begun_++ % lanes_.size();
  Lane& lane = *lanes_[number];
  DT_TRY_STATUS(updating_ || copies_->touched() ? EndPasses() : EndPass(number));
  DT_TRY_STATUS(copies_->Send());
  const bool last = --own_slices_ == 0;
  const Batch& batch = slice.batch;
  std::ranges::fill(lane.row_grads, std::span<const float>());
  if (batch.samples == 0) {
    exchange_.AddNothing(batch.slice);
    if (last) StartJoins(number);
    return OkStatus();
  }
  DT_TRY_STATUS(Bind(lane, slice, LookupFor::kTrain));
  exchange_.PlacePieces(slice, lane.bindings);
  lane.at_hand = {batch.step, batch.slice, batch.first_sample, batch.samples};
  lane.slice = true;
  streams_->Start(PassOf(number, plan_.train, last ? kSlicesAndJoins : kSlices, run));
  joins_started_ = last;
  return OkStatus();
}

void Engine::StartJoins(size_t lane) {
  streams_->Start(PassOf(lane, plan_.train, kJoins, {.step = step_, .training = true}));
  joins_started_ = true;
}

void Engine::GiveRows(RowSpans rows) {
  DT_CHECK(begun_ > taken_);
  const size_t lane = (begun_ - 1) % lanes_.size();
  if (!lanes_[lane]->slice) return;
  lanes_[lane]->bindings.BindRows(rows);
  streams_->GiveRows(lane);
}

Result<RowSpans> Engine::RowGrads() {
  DT_CHECK(begun_ > taken_);
  const size_t number = taken_++ % lanes_.size();
  Lane& lane = *lanes_[number];
  if (!lane.slice) return RowSpans(lane.row_grads);
  for (const uint32_t subgraph : for_push_) DT_TRY_STATUS(streams_->WaitFor(number, subgraph));
  for (size_t t = 0; t < lane.row_grads.size(); ++t) {
    const ValueIndex grad = plan_.graph.tables[t].row_grad;
    if (grad != kNone) lane.row_grads[t] = lane.bindings.floats(grad);
  }
  Status finite = CheckRowGrads(plan_.graph, lane.row_grads, lane.at_hand);
  if (finite.ok()) return RowSpans(lane.row_grads);
  DT_TRY_STATUS(EndPass(number));  // If a loss is not finite either, its error says more.
  return finite;
}

Result<RowSpans> Engine::RunSlice(const SliceInputs& inputs, const RunInfo& run) {
  DT_TRY_STATUS(BeginSlice(inputs.plan, run));
  GiveRows(inputs.rows);
  return RowGrads();
}

// ------------------------------------------------------------ a step

Status Engine::FinishExchange() {
  DT_CHECK(own_slices_ == 0);
  if (!joins_started_) {
    DT_TRY_STATUS(EndPasses());
    StartJoins(0);
  }
  DT_TRY_STATUS(EndPasses());
  return exchange_.Finish(lanes_.front()->bindings);
}

Status Engine::Update(const RunInfo& run) {
  DT_TRY_STATUS(EndPasses());
  DT_TRY_STATUS(copies_->Send());
  if (options_.tables != nullptr) options_.tables->BeginUpdate();
  updating_ = true;
  streams_->Start(PassOf(0, plan_.train, kSteps, run));
  return OkStatus();
}

Status Engine::FinishUpdate() { return EndPasses(); }

std::span<const float> Engine::pushed(size_t parameter) const {
  return lanes_.front()->bindings.floats(plan_.graph.parameters[parameter].pushed);
}

// ------------------------------------------------------------ evaluation

Result<RowSpans> Engine::Evaluate(const SliceInputs& inputs, const RunInfo& run) {
  DT_CHECK(inputs.plan.batch.samples > 0 && !run.training);
  DT_TRY_STATUS(EndPasses());
  DT_TRY_STATUS(copies_->Send());
  Lane& lane = *lanes_.front();
  DT_TRY_STATUS(Bind(lane, inputs.plan, LookupFor::kEvaluate));
  lane.bindings.BindRows(inputs.rows);
  streams_->Start(PassOf(0, plan_.evaluate, kSlices, run));
  streams_->GiveRows(0);
  DT_TRY_STATUS(EndPass(0));
  for (size_t l = 0; l < outputs_.size(); ++l) {
    outputs_[l] = OwnOutput(lane.bindings, inputs.plan.batch, l);
  }
  return RowSpans(outputs_);
}

// A worker of a team may have the output of more samples than its own.
std::span<const float> Engine::OwnOutput(const Bindings& bindings, const Batch& batch,
                                         size_t loss) const {
  const ValueIndex output = plan_.graph.losses[loss].output;
  const Range here = bindings.SamplesIn(output);
  const std::span<const float> values = bindings.floats(output);
  const SampleRange own = batch.own();
  if (own.size() == 0) return {};
  const auto begin = static_cast<int64_t>(own.begin), end = static_cast<int64_t>(own.end);
  DT_CHECK(here.begin <= begin && end <= here.end);
  const size_t width = values.size() / static_cast<size_t>(here.size());
  return values.subspan(static_cast<size_t>(begin - here.begin) * width, own.size() * width);
}

std::vector<NodeTiming> Engine::Timings() const {
  std::vector<NodeTiming> timings;
  for (size_t n = 0; n < plan_.graph.nodes.size(); ++n) {
    const Node& node = plan_.graph.nodes[n];
    NodeTiming& timing = timings.emplace_back(NodeTiming{.node = node.name, .op = node.op});
    for (const std::unique_ptr<Lane>& lane : lanes_) {
      timing.runs += lane->nodes[n].runs;
      timing.time += lane->nodes[n].time;
    }
  }
  return timings;
}

uint64_t Engine::bytes() const {
  uint64_t bytes = parameters_.bytes();
  for (const std::unique_ptr<Lane>& lane : lanes_) bytes += lane->bindings.bytes();
  return bytes;
}

Bindings::DeviceBytes Engine::device_bytes() const {
  Bindings::DeviceBytes all;
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    const Bindings::DeviceBytes own = lane->bindings.device_bytes();
    all.lasting += own.lasting;
    all.arena += own.arena;
    all.arena_growths += own.arena_growths;
  }
  return all;
}

uint64_t Engine::cuda_graphs_made() const { return streams_->graphs_made(); }

}  // namespace dt::worker
