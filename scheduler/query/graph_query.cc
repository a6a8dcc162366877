#include "scheduler/query/graph_query.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "scheduler/parallel/graph_layouts.h"
#include "scheduler/query/parts_query.h"
#include "scheduler/query/query_node.h"

namespace dt::scheduler {
namespace {

constexpr size_t kNodesMax = 100'000;

std::vector<std::string> ReadNames(const Json& node, const char* member) {
  const Json& json = Member(node, member);
  std::vector<std::string> names;
  if (!json.is_array()) throw QueryError("question", fmt::format("\"{}\" is no list", member));
  for (const Json& name : json) {
    if (!name.is_string()) throw QueryError("question", fmt::format("\"{}\" has no name", member));
    names.push_back(name.get<std::string>());
  }
  return names;
}

// Reads the graph of a question. Dimension 0 of the inputs is the batch if they agree in it.
class GraphReader {
 public:
  GraphReader(const Json& graph, uint32_t devices, bool with_batch) : graph_(graph) {
    problem.devices = devices;
    const Json& values = Member(graph, "values");
    if (!values.is_object()) throw QueryError("question", "\"values\" is no object");
    if (with_batch) FindBatch(values);
    for (const auto& [name, value] : values.items()) ReadValue(name, value);
    ReadNodes();
  }

  LayoutProblem problem;
  std::vector<QueryNode> nodes;
  int64_t batch = 0;  // 0: there is none.

 private:
  void FindBatch(const Json& values) {
    for (const auto& [name, value] : values.items()) {
      if (value.value("kind", "input") != "input" || !value.contains("shape")) continue;
      const Shape shape = ReadShape(value["shape"]);
      if (shape.empty()) continue;
      if (batch == 0) batch = shape[0];
    }
  }

  void ReadValue(const std::string& name, const Json& json) {
    const Json& kind = Member(json, "kind");
    LayoutValue value;
    if (kind == "input") {
      value.origin = ValueOrigin::kInput;
    } else if (kind == "parameter") {
      value.origin = ValueOrigin::kParameter;
    } else {
      throw QueryError("question", fmt::format("\"{}\" is no input and no parameter", name));
    }
    const Shape shape = ReadShape(Member(json, "shape"));
    SymShape symbolic;
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool is_batch =
          d == 0 && batch > 0 && shape[d] == batch && value.origin == ValueOrigin::kInput;
      symbolic.push_back(is_batch ? Dim{kBatch, 1} : Const(shape[d]));
    }
    Add(name, std::move(value), std::move(symbolic));
  }

  void Add(const std::string& name, LayoutValue value, SymShape symbolic) {
    if (!numbers_.emplace(name, static_cast<ValueIndex>(problem.values.size())).second) {
      throw QueryError("question", fmt::format("two values are named \"{}\"", name));
    }
    value.name = name;
    value.shape = NumbersOf(symbolic, batch);
    problem.values.push_back(std::move(value));
    shapes_.push_back(std::move(symbolic));
  }

  // In the order of the list, except where a node needs a later one's output.
  void ReadNodes() {
    const Json& list = Member(graph_, "nodes");
    if (!list.is_array() || list.size() > kNodesMax) {
      throw QueryError("question", "\"nodes\" is no list, or too long");
    }
    std::vector<const Json*> waiting;
    for (const Json& node : list) waiting.push_back(&node);
    while (!waiting.empty()) {
      std::vector<const Json*> later;
      for (const Json* node : waiting) {
        if (!TryNode(*node)) later.push_back(node);
      }
      if (later.size() == waiting.size()) MissingInput(*later[0]);
      waiting = std::move(later);
    }
  }
  [[noreturn]] void MissingInput(const Json& node) const {
    for (const std::string& name : ReadNames(node, "inputs")) {
      if (numbers_.contains(name)) continue;
      QueryError error("inputs", fmt::format("nothing makes \"{}\"", name));
      error.node = node.value("name", "");
      throw error;
    }
    throw QueryError("inputs", "the nodes form a cycle");
  }

  bool TryNode(const Json& json) {
    LayoutNode node;
    node.name = json.is_object() ? json.value("name", "") : "";
    std::vector<SymShape> inputs;
    for (const std::string& name : ReadNames(json, "inputs")) {
      const auto at = numbers_.find(name);
      if (at == numbers_.end()) return false;
      node.inputs.push_back(at->second);
      inputs.push_back(shapes_[at->second]);
    }
    try {
      AddNode(json, std::move(node), std::move(inputs));
    } catch (QueryError& error) {
      error.node = json.value("name", "");
      throw;
    }
    return true;
  }

  void AddNode(const Json& json, LayoutNode node, std::vector<SymShape> inputs) {
    QueryNode read = ReadNode(json, std::move(inputs));
    node.rule = read.rule;
    const std::vector<std::string> outputs = ReadNames(json, "outputs");
    if (outputs.size() != read.outputs.size()) {
      throw QueryError("question", fmt::format("{} outputs are named, and the node has {}",
                                               outputs.size(), read.outputs.size()));
    }
    if (json.contains("strategy") && !json["strategy"].is_null()) {
      node.strategy = ReadStrategy(json["strategy"]);
    }
    if (json.contains("out") && !json["out"].is_null()) node.out = ReadStrategy(json["out"]);
    for (size_t o = 0; o < outputs.size(); ++o) {
      node.outputs.push_back(static_cast<ValueIndex>(problem.values.size()));
      Add(outputs[o], {}, read.outputs[o]);
    }
    if (node.strategy) {
      if (auto parts =
              PartsOf({read, *node.strategy, problem.devices, std::max<int64_t>(batch, 1)})) {
        AddParts(node, *parts);
        return;
      }
    }
    nodes.push_back(std::move(read));
    problem.nodes.push_back(std::move(node));
  }

  // A node by parts: all of its parts, of which the last one has its name.
  void AddParts(const LayoutNode& whole, const NodeParts& parts) {
    std::vector<ValueIndex> numbers = whole.inputs;
    numbers.insert(numbers.end(), whole.outputs.begin(), whole.outputs.end());
    for (ValueIndex v = static_cast<ValueIndex>(numbers.size()); v < parts.graph.values.size();
         ++v) {
      numbers.push_back(static_cast<ValueIndex>(problem.values.size()));
      Add(whole.name + "/" + parts.graph.value(v).name, {}, parts.graph.value(v).shape);
    }
    for (const Node& part : parts.graph.nodes) {
      LayoutNode node;
      node.name = whole.name + part.name.substr(part.name.find('.') == part.name.npos
                                                    ? part.name.size()
                                                    : part.name.find('.'));
      const Result<Sharding> rule = ShardingOf(parts.graph, part);
      CheckOk(rule.status(), "shapes");
      QueryNode read{.as_node = part, .rule = *rule, .inputs = {}, .outputs = {}};
      for (const ValueIndex v : part.inputs) {
        node.inputs.push_back(numbers[v]);
        read.inputs.push_back(parts.graph.value(v).shape);
      }
      for (const ValueIndex v : part.outputs) {
        node.outputs.push_back(numbers[v]);
        read.outputs.push_back(parts.graph.value(v).shape);
      }
      node.rule = *rule;
      node.cut = parts.team.cuts.at(part.name);
      if (&part == &parts.graph.nodes.back()) node.out = whole.out;
      nodes.push_back(std::move(read));
      problem.nodes.push_back(std::move(node));
    }
  }

  const Json& graph_;
  std::map<std::string, ValueIndex> numbers_;
  std::vector<SymShape> shapes_;  // By value.
};

struct OptimizerSharding {
  bool on = false;
  int64_t threshold = 64 * 1024;  // Bytes.
  int64_t group = 0;              // 0: as large as possible.
};

OptimizerSharding ReadOptimizer(const Json& question) {
  OptimizerSharding sharding;
  if (!question.contains("optimizer") || question["optimizer"].is_null()) return sharding;
  const Json& json = question["optimizer"];
  if (!json.is_object()) throw QueryError("question", "\"optimizer\" is no object");
  sharding.on = json.contains("shard") && json["shard"] == true;
  if (json.contains("threshold")) sharding.threshold = ReadInt(json["threshold"], "\"threshold\"");
  if (json.contains("group") && !json["group"].is_null()) {
    sharding.group = ReadInt(json["group"], "\"group\"");
  }
  return sharding;
}

class GraphAnswer {
 public:
  GraphAnswer(const Json& question, const GraphReader& graph, const GraphLayouts& layouts)
      : graph_(graph), layouts_(layouts), optimizer_(ReadOptimizer(question)) {
    if (question.contains("rank") && !question["rank"].is_null()) {
      const int64_t rank = ReadInt(question["rank"], "\"rank\"");
      if (rank < 0 || rank >= graph.problem.devices) {
        throw QueryError("rank", fmt::format("rank {} of {} devices", rank, graph.problem.devices));
      }
      device_ = static_cast<DeviceIndex>(rank);
    }
  }

  Json All() {
    Json nodes = Json::array(), changes = Json::array(), parameters = Json::object();
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
      nodes.push_back(OneNode(n));
      for (size_t i = 0; i < layouts_.inputs[n].size(); ++i) {
        const uint32_t change = layouts_.inputs[n][i].change;
        if (change == kNone) continue;
        // The producer has already done the changes that `out` asks for.
        const uint32_t done = layouts_.at_producer[graph_.problem.nodes[n].inputs[i]];
        Json steps = StepsTo(change, done);
        if (steps.empty()) continue;
        changes.push_back({{"node", graph_.problem.nodes[n].name},
                           {"input", i},
                           {"operators", std::move(steps)}});
      }
    }
    for (ValueIndex v = 0; v < graph_.problem.values.size(); ++v) {
      const LayoutValue& value = graph_.problem.values[v];
      if (value.origin != ValueOrigin::kParameter || !layouts_.values[v]) continue;
      parameters[value.name] = Parameter(v, *layouts_.values[v]);
    }
    return {{"nodes", nodes}, {"redistributions", changes}, {"parameters", parameters}};
  }

 private:
  // All steps from the layout that change `done` gives.
  Json StepsTo(uint32_t change, uint32_t done) const {
    if (change == done) return Json::array();
    const ValueChange& last = layouts_.changes[change];
    Json steps = last.after == kNone ? Json::array() : StepsTo(last.after, done);
    for (Json& step : StepsJson(last.how)) steps.push_back(std::move(step));
    return steps;
  }

  Json OneNode(NodeIndex n) const {
    const LayoutNode& node = graph_.problem.nodes[n];
    Json json = {{"name", node.name}};
    json.update(
        NodeJson({graph_.nodes[n], layouts_.cuts[n], layouts_.layouts[n], graph_.batch, device_}));
    Json communication = Json::array();
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const uint32_t change = layouts_.at_producer[node.outputs[o]];
      if (change == kNone) continue;
      for (Json& step : StepsTo(change, kNone)) {
        Json renamed = {{"op", step["kind"]}, {"output", o}};
        step.erase("kind");
        renamed.update(step);
        communication.push_back(std::move(renamed));
      }
    }
    json["communication"] = std::move(communication);
    return json;
  }

  Json Parameter(ValueIndex v, const Layout& layout) const {
    const Shape& shape = graph_.problem.values[v].shape;
    AxisList axes;
    for (NodeIndex n = 0; n < graph_.problem.nodes.size(); ++n) {
      const LayoutNode& node = graph_.problem.nodes[n];
      const std::vector<AxisList> of_inputs = GradientAxes(node.rule, layouts_.cuts[n]);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != v) continue;
        axes.insert(axes.end(), of_inputs[i].begin(), of_inputs[i].end());
      }
    }
    std::ranges::sort(axes);
    axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
    const std::vector<RankList> groups = GroupsAlong(layout.matrix, axes);
    Json json = {{"device_matrix", layout.matrix},
                 {"map", MapJson(layout)},
                 {"slice", LocalShape(layout, shape, device_)}};
    json["gradient_groups"] = groups[0].size() > 1 ? GroupsJson(groups, layout) : Json();
    json["optimizer_group"] = OptimizerGroup(layout, shape);
    return json;
  }

  // The ranks that share a parameter's slice and its optimizer state, in the group of this rank.
  Json OptimizerGroup(const Layout& layout, const Shape& shape) const {
    if (!optimizer_.on) return nullptr;
    const Shape slice = LocalShape(layout, shape, 0);
    const int64_t bytes = ElementCount(slice) * static_cast<int64_t>(sizeof(float));
    RankList group = ReplicasOf(layout, device_);
    if (slice.empty() || slice[0] < 2 || bytes < optimizer_.threshold) return nullptr;
    if (optimizer_.group > 0) {
      const auto size = static_cast<size_t>(optimizer_.group);
      const auto at = static_cast<size_t>(std::ranges::find(group, device_) - group.begin());
      const size_t begin = at / size * size;
      group =
          RankList(group.begin() + static_cast<ptrdiff_t>(begin),
                   group.begin() + static_cast<ptrdiff_t>(std::min(group.size(), begin + size)));
    }
    return group.size() < 2 ? Json() : Json(group);
  }

  const GraphReader& graph_;
  const GraphLayouts& layouts_;
  const OptimizerSharding optimizer_;
  DeviceIndex device_ = 0;
};

GraphReader ReadGraph(const Json& graph, uint32_t devices) {
  try {
    return {graph, devices, true};
  } catch (const QueryError& error) {
    if (error.problem.rule != "shapes" && error.problem.rule != "loops") throw;
    try {
      return {graph, devices, false};
    } catch (const QueryError&) {
    }
    throw;
  }
}

}  // namespace

Json AnswerGraph(const Json& question) {
  GraphReader graph = ReadGraph(Member(question, "graph"), ReadDevices(question));
  if (question.contains("all_to_all")) graph.problem.all_to_all = question["all_to_all"] == true;
  std::vector<NodeProblem> problems;
  const GraphLayouts layouts = FindLayouts(graph.problem, problems);
  if (problems.empty()) return GraphAnswer(question, graph, layouts).All();
  QueryError error(problems[0].problem);
  error.node = graph.problem.nodes[problems[0].node].name;
  if (problems[0].nearest) error.nearest = StrategyJson(*problems[0].nearest);
  if (problems.size() > 1)
    error.problem.what += fmt::format("; {} nodes have problems", problems.size());
  throw error;
}

}  // namespace dt::scheduler
