#include "scheduler/composites/infer_node.h"
#include "scheduler/passes/frontend/frontend.h"

namespace dt::scheduler {

Result<Graph> InferShapes(Graph graph, const PlanRequest&) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    DT_TRY_STATUS(InferNode(graph, static_cast<NodeIndex>(n)));
  }
  return graph;
}

}  // namespace dt::scheduler
