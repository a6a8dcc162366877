// Chooses the device of each node and value. Nodes without a tag or rule are placed by
// scheduler/place, by their cost.
#include <algorithm>

#include "common/base/text.h"
#include "common/graph/graph_index.h"
#include "ops/op_spec.h"
#include "scheduler/composites/infer_node.h"
#include "scheduler/passes/lowering/lowering.h"
#include "scheduler/passes/placement/devices.h"
#include "scheduler/passes/placement/graph_problem.h"
#include "scheduler/passes/placement/placement.h"

namespace dt::scheduler {
namespace {

// They take some tenths of a second on models of a few hundred nodes.
constexpr PlaceLimits kLimits = {.exact_groups = 64,
                                 .exact_steps = 5'000'000,
                                 .search_steps = 10'000'000,
                                 .search_restarts = 16,
                                 .explain_steps = 5'000'000};
// The number of placements that are tried while the plan needs more memory than the model
// predicted. After that the accelerator gets only the nodes that must be there.
constexpr int kRounds = 6;
// A card's driver, contexts and kernels use some of its memory.
constexpr double kShareOfCard = 15.0 / 16;
constexpr size_t kLargestNamed = 3;

std::string Bytes(double bytes) { return BytesText(static_cast<uint64_t>(std::min(bytes, 1e18))); }

double MemoryFor(const std::optional<DeviceInfo>& accelerator) {
  if (!accelerator.has_value()) return 0;
  const auto bytes = static_cast<double>(accelerator->memory_bytes);
  return accelerator->kind == DeviceKind::kCuda ? bytes * kShareOfCard : bytes;
}

class Placer {
 public:
  Placer(const Graph& graph, const PlanRequest& request)
      : graph_(graph),
        request_(request),
        index_(graph, TraitsOf),
        costs_(graph_, request.columns, StepSizeOf(request)),
        limit_(MemoryFor(request.accelerator)) {}

  Result<Graph> Run() {
    PlacementConstraints::Options options = {
        .automatic = MayBeChosen(request_.accelerator, request_.job),
        .tags_hold = request_.accelerator.has_value()};
    if (request_.accelerator) {
      options.without_kernel = request_.accelerator->without_kernel;
      options.cards_communicate = request_.accelerator->kind == DeviceKind::kCuda &&
                                  request_.accelerator->why_alone.empty();
    }
    if (!options.tags_hold) fallback_ = options.unheld = WhyNone();
    Result<Graph> placed = WithTags(options);
    if (placed.ok() || !too_large_ || !request_.job.parallel.fall_back_to_cpu) return placed;
    options.tags_hold = false;
    options.unheld = "that does not fit";
    fallback_ = MessageOf(placed.status());
    return WithTags(options);
  }

 private:
  std::string WhyNone() const {
    if (request_.job.cluster.devices == AcceleratorChoice::kCpu) return "cluster.devices is cpu";
    return request_.why_none.empty() ? "not every worker has an accelerator" : request_.why_none;
  }

  Result<Graph> WithTags(const PlacementConstraints::Options& options) {
    DT_TRY(const PlacementConstraints constraints,
           PlacementConstraints::Find(index_, request_.job, options));
    GraphProblem made = MakeProblem({.index = index_,
                                     .constraints = constraints,
                                     .costs = costs_,
                                     .profile = request_.profile,
                                     .step_share = 1.0 / Slices(),
                                     .without_kernel = options.without_kernel});
    DT_TRY(Fitted fitted, Fit(constraints, made));
    if (request_.report != nullptr) {
      *request_.report = {.automatic = options.automatic && !fitted.kept_off,
                          .slices = Slices(),
                          .placement = std::move(fitted.placement),
                          .accelerator_bytes = fitted.bytes,
                          .accelerator_limit = limit_,
                          .constants = SourceText(request_.profile)};
      request_.report->fallback = constraints.fell_back().empty() || fallback_.empty()
                                      ? constraints.fell_back()
                                      : fallback_;
      Explain(constraints, made, fitted.kept_off);
    }
    return std::move(fitted.graph);
  }

  uint32_t Slices() const {
    const uint32_t workers = std::max(1u, request_.workers);
    return std::max(1u, (request_.slices + workers - 1) / workers);
  }

  struct Fitted {
    Graph graph;
    Placement placement;
    double bytes = 0;  // Bytes on the accelerator.
    // Nodes that may run on the CPU were forced to, since no better placement fit in memory.
    bool kept_off = false;
  };

  // A plan may need more memory than the model predicts, because sharing of slots must be safe at
  // any speed of the streams. The model's limit is lowered in proportion until the plan fits.
  Result<Fitted> Fit(const PlacementConstraints& constraints, const GraphProblem& made) {
    double limit = limit_;
    for (int round = 0;; ++round) {
      const bool least = round == kRounds || limit <= 0;
      PlacementProblem problem = made.problem;
      problem.memory_limit[kOnAccelerator] = least ? kNoLimit : limit;
      if (least) KeepOffAccelerator(problem);
      Result<Placement> placement = PlaceItems(std::move(problem), kLimits);
      if (!placement.ok()) {
        if (least) return placement.status();
        limit = 0;
        continue;
      }
      Graph graph = Apply(constraints, made, placement->places);
      DT_TRY(const double bytes, BytesThere(graph));
      if (bytes <= limit_) return Fitted{std::move(graph), *std::move(placement), bytes, least};
      if (least) return TooLarge(graph, bytes);
      limit = 0.9 * placement->prediction.memory(kOnAccelerator) * limit_ / bytes;
    }
  }

  static void KeepOffAccelerator(PlacementProblem& problem) {
    for (PlacementProblem::Item& item : problem.items) {
      if (!item.fixed.has_value()) item.fixed = kOnCpu;
    }
  }

  Graph Apply(const PlacementConstraints& constraints, const GraphProblem& made,
              const Places& places) const {
    Graph graph = graph_;
    for (NodeIndex n = 0; n < graph.nodes.size(); ++n) {
      Node& node = graph.nodes[n];
      node.device = made.DeviceOf(constraints.of(n), places);
      for (const ValueIndex v : node.outputs) graph.values[v].device = node.device;
    }
    for (const ParameterSpec& p : graph.parameters) {
      graph.values[p.value].device = made.DeviceOf(constraints.of_lasting(p.value), places);
    }
    for (const TableUse& table : graph.tables) {
      if (table.store == kNone) continue;
      graph.values[table.store].device = made.DeviceOf(constraints.of_lasting(table.store), places);
    }
    return graph;
  }

  // Bytes that a plan of the placed graph needs on the accelerator.
  Result<double> BytesThere(const Graph& placed) const {
    const bool used = std::ranges::any_of(
        placed.values, [](const Value& value) { return value.device == Device::kGpu; });
    if (!used) return 0.0;
    DT_TRY(Graph fused, Fuse(placed, request_));
    DT_TRY(Graph graph, InsertCopies(std::move(fused), request_));
    const Plan plan = Scheduled(std::move(graph), request_);
    const SliceCosts costs(plan.graph, request_.columns, costs_.step());
    return MemoryOf(plan, costs, Device::kGpu).allocated(SlicesAtOnce());
  }

  // Number of slices that the engine may run at once: two of a step, or of neighbouring steps of an
  // asynchronous worker. Only one with tables on the worker.
  uint32_t SlicesAtOnce() const {
    const auto on_server = [](const TableUse& table) { return table.store == kNone; };
    const bool several = (Slices() > 1 || request_.job.train.asynchronous()) &&
                         std::ranges::all_of(graph_.tables, on_server);
    return request_.job.parallel.overlap && several ? 2 : 1;
  }

  // REQUIRES: only nodes that must be on the accelerator are there.
  Status TooLarge(const Graph& placed, double bytes) {
    too_large_ = true;
    std::vector<ValueIndex> there;
    for (ValueIndex v = 0; v < placed.values.size(); ++v) {
      if (placed.value(v).device == Device::kGpu) there.push_back(v);
    }
    std::ranges::stable_sort(there, std::greater<>(),
                             [&](ValueIndex v) { return costs_.Bytes(v); });
    const NodeIndex guilty = FirstToucher(there[0]);
    if (there.size() > kLargestNamed) there.resize(kLargestNamed);
    std::vector<std::string> largest;
    for (const ValueIndex v : there) {
      largest.push_back(fmt::format("{} ({})", placed.value(v).name, Bytes(costs_.Bytes(v))));
    }
    return AboutNode(
        WithHint(Invalid("what is to be on gpu does not fit: it needs {} of {} there, and most of "
                         "it are {}",
                         Bytes(bytes), Bytes(limit_), JoinText(largest, ", ")),
                 "a smaller train.batch_size or more train.slices, fewer nodes on gpu, "
                 "optimizer.device cpu, or parallel.fallback cpu"),
        placed.nodes[guilty].name, placed.nodes[guilty].mark);
  }

  // The node that makes the value, or the first that reads it.
  NodeIndex FirstToucher(ValueIndex v) const {
    const NodeIndex producer = graph_.value(v).producer;
    return producer != kNone ? producer : index_.readers(v).front();
  }

  void Explain(const PlacementConstraints& constraints, const GraphProblem& made,
               bool kept_off) const {
    const std::vector<std::string>& reasons = request_.report->placement.reasons;
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (node.phase != Phase::kSlice) continue;
      std::string& why = request_.report->why[node.name];
      why = constraints.why(n);
      if (!why.empty()) continue;
      why =
          kept_off ? "no placement with more on gpu was found that fits" : reasons[made.item_of[n]];
    }
  }

  const Graph& graph_;
  const PlanRequest& request_;
  const GraphIndex index_;
  const SliceCosts costs_;
  const double limit_;  // Bytes of memory on the accelerator.
  bool too_large_ = false;
  std::string fallback_;  // Why tags do not hold.
};

}  // namespace

// A GraphPass takes its graph by value.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
Result<Graph> PlaceNodes(Graph graph, const PlanRequest& request) {
  return Placer(graph, request).Run();
}

}  // namespace dt::scheduler
