#include "scheduler/plan/strategies.h"

#include <algorithm>

#include "common/base/text.h"
#include "scheduler/composites/infer_node.h"

namespace dt::scheduler {
namespace {

class Finder {
 public:
  Finder(const Graph& graph, const JobConfig& job, TeamOptions& team)
      : graph_(graph), job_(job), team_(team) {}

  Status Find() {
    for (const NodeConfig& node : job_.model.nodes) {
      if (node.strategy) OfNode(node);
    }
    for (const CutRule& rule : job_.parallel.cut) OfRule(rule);
    if (problems_.empty()) return OkStatus();
    return problems_.size() == 1 ? problems_.front() : Combined(problems_);
  }

 private:
  static bool IsWhole(const Strategy& strategy) {
    for (const std::vector<DimParts>& dims : strategy) {
      for (const DimParts& parts : dims) {
        if (std::ranges::any_of(parts, [](uint32_t n) { return n > 1; })) return false;
      }
    }
    return true;
  }

  void OfNode(const NodeConfig& config) {
    std::vector<const Node*> found;
    for (const Node& node : graph_.nodes) {
      // Rows of an embedding are a product with what the ids say of them.
      const bool product =
          node.op == "matmul" || node.op == "batch_matmul" || node.op == "embedding";
      if (node.name == config.name && node.op == config.op) found.push_back(&node);
      if (product && node.name.starts_with(config.name + ".")) found.push_back(&node);
    }
    if (found.empty()) {
      problems_.push_back(
          AboutNode(WithHint(Invalid("it has a strategy, and no product that it could be of"),
                             "say with parallel.cut which of its operators it means"),
                    config.name, config.mark));
      return;
    }
    for (const Node* const node : found) Take(*node, *config.strategy, std::nullopt);
  }

  void OfRule(const CutRule& rule) {
    bool meant = false;
    for (const Node& node : graph_.nodes) {
      if (!MatchesPattern(node.name, rule.match)) continue;
      meant = true;
      if (!team_.strategies.contains(node.name)) Take(node, rule.strategy, rule.out);
    }
    if (meant) return;
    problems_.push_back(
        AtMark(WithHint(Invalid("{}: no operator matches \"{}\"", rule.path, rule.match),
                        "`dovetail plan JOB --after infer` shows their names"),
               rule.mark));
  }

  void Take(const Node& node, const Strategy& strategy, const std::optional<Strategy>& out) {
    if (team_.devices == 1 && !IsWhole(strategy)) {
      problems_.push_back(AboutNode(
          WithHint(Invalid("strategy {} cuts it, and a team has one worker", TextOf(strategy)),
                   "set parallel.data: there are cluster.workers / data workers in a team"),
          node.name, node.mark));
      return;
    }
    team_.strategies[node.name] = strategy;
    if (out) team_.outs[node.name] = *out;
  }

  const Graph& graph_;
  const JobConfig& job_;
  TeamOptions& team_;
  std::vector<Status> problems_;
};

}  // namespace

Status FindStrategies(const Graph& graph, const JobConfig& job, TeamOptions& team) {
  return Finder(graph, job, team).Find();
}

}  // namespace dt::scheduler
