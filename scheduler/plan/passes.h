// The passes of the planner, in their order. A graph pass is a function Graph → Graph; running the
// graph before and after it gives the same results. The last two cut the graph and give every value
// its memory.
#pragma once

#include <span>
#include <string_view>

#include "common/graph/graph_index.h"
#include "scheduler/composites/infer_node.h"
#include "scheduler/plan/plan.h"

namespace dt::scheduler {

struct GraphPass {
  std::string_view name;
  Result<Graph> (*run)(Graph graph, const PlanRequest& request);
};
std::span<const GraphPass> GraphPasses();

// The user's nodes and losses → operators. Ignores the given graph.
Result<Graph> Expand(Graph graph, const PlanRequest& request);
// Every shape and dtype anew, from inputs and parameters.
Result<Graph> InferShapes(Graph graph, const PlanRequest& request);
// Appends gradient nodes where a trained parameter or rows of a table are reached; sets
// ParameterSpec::grad and TableUse::row_grad.
Result<Graph> Differentiate(Graph graph, const PlanRequest& request);
// Appends the step nodes: sums over slices if there are several, regularisation, clipping, updates.
Result<Graph> Optimize(Graph graph, const PlanRequest& request);
// Gives every node and value its device.
Result<Graph> Place(Graph graph, const PlanRequest& request);
// Every worker has the whole graph, and a part of the batch: nothing is cut. Every node's sharding
// rule must fit its shapes.
Result<Graph> Parallelize(Graph graph, const PlanRequest& request);
// Products with their bias and activation, and the gradients between two layers, as one node each
// where nobody else reads what lies between. Values that are gone have no number any more.
Result<Graph> Fuse(Graph graph, const PlanRequest& request);
// Rows between layers that are multiplied in bf16 are stored in it.
Result<Graph> Narrow(Graph graph, const PlanRequest& request);
// Copies and replicas where a value is read on the other device.
Result<Graph> InsertCopies(Graph graph, const PlanRequest& request);

// The plan of a graph with copies: partitioned, with its memory, not yet checked.
Plan Cut(Graph graph, const PlanRequest& request);

// Which tables of `device: auto` go to workers; why each of them is where it is, in a few words.
struct TablePlaces {
  std::set<std::string, std::less<>> on_worker;
  std::map<std::string, std::string, std::less<>> why;
};
TablePlaces PlaceTables(const PlanRequest& request);
// What tables take in each step besides the workers' computing.
struct TableTimes {
  double servers = 0;      // Seconds of servers: pulls, pushes, updates.
  double server_work = 0;  // Of that, what the servers' processors do, one after the other.
  double exchange = 0;     // Of workers, to tell one another gradients of rows.
};
TableTimes TimesOfTables(const Graph& graph, const PlanRequest& request);
// REQUIRES: `graph` is placed, and request.report says how.
StepTime TimeOfStep(const Graph& graph, const PlanRequest& request);

// The order in which streams take nodes: slice nodes by what they wait for and what waits for them,
// then step nodes. Topological.
std::vector<NodeIndex> NodesAsTaken(const GraphIndex& index);
// Fills Plan::train and Plan::evaluate.
void Partition(Plan& plan);
// Fills Plan::slot. REQUIRES: partitioned.
void PlanMemory(Plan& plan);

}  // namespace dt::scheduler
