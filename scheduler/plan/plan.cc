#include "scheduler/plan/plan.h"

#include <set>

#include "scheduler/plan/passes.h"

namespace dt::scheduler {
namespace {

constexpr GraphPass kGraphPasses[] = {
    {"expand", Expand},     {"infer", InferShapes},  {"differentiate", Differentiate},
    {"optimize", Optimize}, {"place", Place},        {"fuse", Fuse},
    {"narrow", Narrow},     {"copies", InsertCopies}};

Status CheckRequest(const PlanRequest& request) {
  if (request.slices == 0 || request.job.train.batch_size == 0) {
    return Invalid("train: batch_size and slices must be 1 or more");
  }
  std::set<std::string_view> names;
  uint32_t weights = 0;
  for (const ColumnSpec& column : request.columns) {
    if (!names.insert(column.name).second)
      return Invalid("two columns are named \"{}\"", column.name);
    if (column.role != ColumnRole::kWeight) continue;
    if (column.is_keys())
      return Invalid("column \"{}\" is a weight and must be a float", column.name);
    if (++weights > 1) return Invalid("column \"{}\" is a second sample weight", column.name);
  }
  return OkStatus();
}

// Calls seen(name, graph) after each graph pass.
template <class Seen>
Result<Graph> RunPasses(const PlanRequest& request, const Seen& seen) {
  DT_TRY_STATUS(CheckRequest(request));
  Graph graph;
  for (const GraphPass& pass : kGraphPasses) {
    DT_TRY(graph, pass.run(std::move(graph), request));
    DT_TRY_STATUS(Prefixed(CheckGraph(graph), pass.name));
    seen(pass.name, graph);
  }
  return graph;
}

Result<Plan> Finished(Graph graph, const PlanRequest& request) {
  Plan plan = Cut(std::move(graph), request);
  DT_TRY_STATUS(CheckPlan(plan));
  return plan;
}

std::string WaitsText(const std::vector<Subgraph>& pass, const Subgraph& subgraph) {
  std::string text;
  if (subgraph.needs_rows) text = "pulled rows";
  for (const uint32_t w : subgraph.waits) {
    if (!text.empty()) text += ", ";
    text += pass[w].name;
  }
  return text.empty() ? text : " after " + text;
}

std::string SubgraphsText(const Plan& plan) {
  std::string text;
  const auto list = [&](std::string_view pass, const std::vector<Subgraph>& subgraphs) {
    for (const Subgraph& subgraph : subgraphs) {
      text +=
          fmt::format("{} {} on {} ({} nodes){}\n", pass, subgraph.name, NameOf(subgraph.stream),
                      subgraph.nodes.size(), WaitsText(subgraphs, subgraph));
      for (const NodeIndex n : subgraph.nodes) {
        const Node& node = plan.graph.nodes[n];
        text += fmt::format("  {}", node.name);
        for (const ValueIndex v : node.outputs) text += fmt::format(" ${}", plan.slot[v]);
        text += "\n";
      }
    }
  };
  list("train", plan.train);
  list("evaluate", plan.evaluate);
  return text;
}

// The nodes of each training subgraph in a frame of their own.
std::string SubgraphsDot(const Plan& plan) {
  std::string dot = DumpDot(plan.graph);
  dot.resize(dot.rfind('}'));
  for (size_t s = 0; s < plan.train.size(); ++s) {
    dot += fmt::format("  subgraph cluster_{} {{ label=\"{}\";", s, s);
    for (const NodeIndex n : plan.train[s].nodes) dot += fmt::format(" n{};", n);
    dot += " }\n";
  }
  return dot + "}\n";
}

}  // namespace

Plan Cut(Graph graph, const PlanRequest& request) {
  Plan plan;
  plan.graph = std::move(graph);
  plan.columns = request.columns;
  plan.batch_size = request.job.train.batch_size;
  plan.slices = request.slices;
  plan.seed = request.job.seed;
  Partition(plan);
  PlanMemory(plan);
  return plan;
}

std::span<const GraphPass> GraphPasses() { return kGraphPasses; }

Result<Plan> MakePlan(const PlanRequest& request) {
  DT_TRY(Graph graph, RunPasses(request, [](std::string_view, const Graph&) {}));
  return Finished(std::move(graph), request);
}

Result<std::vector<PassDump>> DumpPasses(const PlanRequest& request) {
  std::vector<PassDump> dumps;
  const auto dump = [&dumps](std::string_view name, const Graph& graph) {
    dumps.push_back({std::string(name), DumpText(graph), DumpDot(graph), DumpJson(graph)});
  };
  Result<Graph> graph = RunPasses(request, dump);
  if (!graph.ok()) {
    if (dumps.empty()) return graph.status();
    return dumps;
  }
  DT_TRY(const Plan plan, Finished(*std::move(graph), request));
  dumps.push_back({"schedule", SubgraphsText(plan), SubgraphsDot(plan), DumpJson(plan.graph)});
  return dumps;
}

}  // namespace dt::scheduler
