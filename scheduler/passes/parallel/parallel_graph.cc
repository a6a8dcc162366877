#include "scheduler/passes/parallel/parallel_graph.h"

#include <algorithm>

#include <fmt/format.h>

#include "ops/op_spec.h"
#include "ops/sharding.h"
#include "scheduler/composites/infer_node.h"
#include "scheduler/parallel/graph_layouts.h"

namespace dt::scheduler {
namespace {

// Describes a graph to the search for layouts.
class ProblemOf {
 public:
  ProblemOf(const Graph& graph, const TeamOptions& team) : graph_(graph), team_(team) {}

  Result<LayoutProblem> Make() {
    problem_.devices = team_.devices;
    problem_.all_to_all = team_.all_to_all;
    for (const Value& value : graph_.values) AddValue(value);
    for (const InputSpec& input : graph_.inputs) {
      if (input.kind == InputKind::kRows) problem_.values[input.value].origin = ValueOrigin::kRows;
    }
    for (const Node& node : graph_.nodes) DT_TRY_STATUS(AddNode(node));
    AddResults();
    return std::move(problem_);
  }

 private:
  // Sizes of symbols other than B are not known; they only weigh choices.
  int64_t Numbers(const Dim& dim) const {
    const int64_t units = (team_.samples + team_.devices - 1) / team_.devices;
    return dim.symbol == kConstant ? dim.times : dim.times * units * team_.devices;
  }

  void AddValue(const Value& value) {
    LayoutValue made;
    made.name = value.name;
    for (const Dim& dim : value.shape) {
      made.shape.push_back(Numbers(dim));
      made.varies = made.varies || dim.symbol != kConstant;
    }
    if (value.kind == ValueKind::kInput) made.origin = ValueOrigin::kInput;
    if (value.kind == ValueKind::kParameter || value.kind == ValueKind::kState) {
      made.origin = ValueOrigin::kParameter;
    }
    problem_.values.push_back(std::move(made));
  }

  Status AddNode(const Node& node) {
    if (node.phase != Phase::kSlice) {
      return NotYet("node \"{}\" runs once in a step, and is not divided yet", node.name);
    }
    LayoutNode made;
    made.name = node.name;
    made.inputs = node.inputs;
    made.outputs = node.outputs;
    made.forward = node.forward;
    DT_TRY(made.rule, ShardingOf(graph_, node));
    const auto strategy = team_.strategies.find(node.name);
    if (strategy != team_.strategies.end()) made.strategy = strategy->second;
    const auto cut = team_.cuts.find(node.name);
    if (cut != team_.cuts.end()) made.cut = cut->second;
    const auto out = team_.outs.find(node.name);
    if (out != team_.outs.end()) made.out = out->second;
    problem_.nodes.push_back(std::move(made));
    return OkStatus();
  }

  void AddResults() {
    for (const LossSpec& loss : graph_.losses) {
      problem_.results.push_back({.value = loss.loss, .may_be_partial = true});
      problem_.results.push_back({.value = loss.output, .own_samples = true});
    }
    for (const ParameterSpec& p : graph_.parameters) {
      AddGradient({.value = p.grad, .like = p.value, .may_be_partial = true});
    }
    for (const TableUse& table : graph_.tables) {
      AddGradient({.value = table.row_grad, .like = table.rows});
    }
  }
  // A gradient that is the sum of several is made by nodes without a forward node.
  void AddGradient(const LayoutResult& result) {
    if (result.value == kNone) return;
    problem_.results.push_back(result);
    for (NodeIndex n = graph_.value(result.value).producer; n != kNone;) {
      LayoutNode& node = problem_.nodes[n];
      if (node.forward != kNone) return;
      node.like = result.like;
      n = graph_.value(node.inputs[0]).producer;
    }
  }

  const Graph& graph_;
  const TeamOptions& team_;
  LayoutProblem problem_;
};

std::string_view OpOf(RedistributionKind kind) {
  switch (kind) {
    case RedistributionKind::kSplit:
      return "take_part";
    case RedistributionKind::kAllGather:
      return "all_gather";
    case RedistributionKind::kAllToAll:
      return "all_to_all";
    case RedistributionKind::kAllReduce:
      return "all_reduce";
    case RedistributionKind::kReduceScatter:
      return "reduce_scatter";
    case RedistributionKind::kReshape:
    case RedistributionKind::kSendRecv:
      break;
  }
  return "";
}

// The symbolic shape with the numbers `to`, into which a shape is regrouped: dimensions are joined,
// or divided by constant inner factors.
SymShape Regrouped(const SymShape& from, const Shape& numbers, const Shape& to) {
  SymShape shape;
  size_t k = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    Dim dim = from[i];
    int64_t whole = numbers[i], part = to[k++];
    for (; whole < part; whole *= numbers[i]) {
      ++i;
      dim.symbol = std::max(dim.symbol, from[i].symbol);
      dim.times *= from[i].times;
    }
    const size_t first = shape.size();
    shape.push_back(dim);
    for (; part < whole; part *= to[k++]) {
      shape.push_back(Const(to[k]));
      shape[first].times /= to[k];
    }
  }
  return shape;
}

// Writes the graph anew, with the changes of layouts as nodes before their first readers.
class Writer {
 public:
  Writer(const Graph& graph, const LayoutProblem& problem, const GraphLayouts& found)
      : graph_(graph), problem_(problem), found_(found) {
    made_.graph = graph;
    made_.graph.nodes.clear();
    made_.devices = problem.devices;
    made_.layouts.resize(graph.values.size());
    changed_.assign(found.changes.size(), kNone);
    number_.resize(graph.nodes.size());
  }

  Result<ParallelGraph> Write() {
    for (ValueIndex v = 0; v < graph_.values.size(); ++v) {
      if (found_.values[v]) made_.layouts[v] = *found_.values[v];
      made_.graph.values[v].producer = kNone;
    }
    for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) DT_TRY_STATUS(WriteNode(n));
    for (size_t r = 0; r < problem_.results.size(); ++r) {
      DT_TRY(const ValueIndex given, ValueAfter(problem_.results[r].value, found_.results[r]));
      Replace(problem_.results[r].value, given);
    }
    for (ValueIndex v = 0; v < graph_.values.size(); ++v) {
      // A value that no node reads has no layout yet.
      if (made_.layouts[v].matrix.empty()) made_.layouts[v] = WholeOf(graph_.value(v));
    }
    FindHolders();
    return std::move(made_);
  }

 private:
  Layout WholeOf(const Value& value) const {
    return {.matrix = {made_.devices}, .dims = std::vector<CutDim>(value.shape.size())};
  }

  Status WriteNode(NodeIndex n) {
    Node node = graph_.nodes[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueIndex v = node.inputs[i];
      if (graph_.value(v).kind == ValueKind::kInput && !found_.values[v]) {
        node.inputs[i] = InputAs(v, found_.layouts[n].inputs[i]);
      } else {
        DT_TRY(node.inputs[i], ValueAfter(v, found_.inputs[n][i].change));
      }
    }
    if (node.forward != kNone) node.forward = number_[node.forward];
    number_[n] = static_cast<NodeIndex>(made_.graph.nodes.size());
    for (const ValueIndex v : node.outputs) made_.graph.values[v].producer = number_[n];
    made_.graph.nodes.push_back(std::move(node));
    made_.cuts.push_back(found_.cuts[n]);
    return OkStatus();
  }

  // An input that several nodes read in different layouts is bound once for each layout.
  ValueIndex InputAs(ValueIndex v, const Layout& layout) {
    std::vector<ValueIndex>& forms = forms_[v];
    for (const ValueIndex form : forms) {
      if (made_.layouts[form] == layout) return form;
    }
    ValueIndex form = v;
    if (!forms.empty()) {
      Value value = graph_.value(v);
      value.name += fmt::format(".{}", forms.size());
      form = made_.graph.AddValue(std::move(value));
      made_.layouts.emplace_back();
      const auto spec = std::ranges::find(graph_.inputs, v, &InputSpec::value);
      InputSpec copy = *spec;
      copy.value = form;
      made_.graph.inputs.push_back(std::move(copy));
    }
    made_.layouts[form] = layout;
    forms.push_back(form);
    return form;
  }

  // The value after a change, whose nodes are written at its first use.
  Result<ValueIndex> ValueAfter(ValueIndex v, uint32_t change) {
    if (change == kNone) return v;
    if (changed_[change] != kNone) return changed_[change];
    const ValueChange& of = found_.changes[change];
    DT_TRY(ValueIndex now, ValueAfter(v, of.after));
    Shape shape = problem_.values[v].shape;
    for (const RedistributionStep& step : of.how.steps) {
      DT_TRY(now, WriteStep(now, shape, step));
      shape = step.shape;
    }
    made_.layouts[now] = of.to;
    changed_[change] = now;
    return now;
  }

  Result<ValueIndex> WriteStep(ValueIndex from, const Shape& shape,
                               const RedistributionStep& step) {
    const std::string name = made_.graph.value(from).name;
    if (step.kind == RedistributionKind::kReshape) return WriteReshape(from, shape, step);
    if (OpOf(step.kind).empty()) {
      return NotYet("\"{}\" would change its layout by {}", name, NameOf(step.kind));
    }
    Node node;
    node.op = OpOf(step.kind);
    const DeviceMatrix& matrix = step.after.matrix;
    std::vector<int64_t> lengths;
    for (const AxisIndex axis : step.axes) lengths.push_back(matrix[axis]);
    node.attrs["axes"] = lengths;
    node.attrs["group"] = int64_t{NumberOf({matrix, {step.axes.begin(), step.axes.end()}, {}})};
    node.attrs["number"] = std::ssize(made_.graph.nodes);
    node.attrs["dim"] = static_cast<int64_t>(step.dim);
    if (step.kind == RedistributionKind::kAllToAll) {
      node.attrs["from_dim"] = static_cast<int64_t>(step.from_dim);
    }
    node.attrs["reduce"] = std::string(step.after.join == Join::kMax ? "max" : "sum");
    made_.cuts.push_back({.matrix = step.after.matrix, .loops = {}});
    return AddOne(std::move(node), from, made_.graph.value(from).shape, step.after);
  }

  // Dimensions become their factors, or the reverse.
  Result<ValueIndex> WriteReshape(ValueIndex from, const Shape& numbers,
                                  const RedistributionStep& step) {
    const SymShape shape = Regrouped(made_.graph.value(from).shape, numbers, step.shape);
    Node node;
    node.op = "reshape";
    std::vector<int64_t> attr;
    for (const Dim& dim : shape) attr.push_back(dim.symbol == kConstant ? dim.times : -1);
    node.attrs["shape"] = attr;
    const ValueIndex out = AddOne(std::move(node), from, shape, step.after);
    const Node& added = made_.graph.nodes.back();
    DT_TRY(const Sharding rule, ShardingOf(made_.graph, added));
    auto cut = CutOfLayouts(rule, {{nullptr}, {&step.after}});
    if (const auto* problem = std::get_if<CutProblem>(&cut)) {
      return Internal("{}: {}", added.name, problem->what);
    }
    made_.cuts.push_back(std::get<HeldCut>(std::move(cut)).cut);
    return out;
  }

  // The number of groups, which are added if they are new.
  GroupIndex NumberOf(const DeviceGroups& groups) {
    const DeviceGroups simple = Simplest(groups);
    const auto known = std::ranges::find(made_.groups, simple);
    const auto number = static_cast<GroupIndex>(known - made_.groups.begin());
    if (known == made_.groups.end()) made_.groups.push_back(simple);
    return number;
  }

  // Losses, gradients and statistics are exchanged between the slices of a step.
  void FindHolders() {
    made_.held.resize(made_.graph.values.size());
    const auto find = [this](ValueIndex v) {
      if (v == kNone || made_.held[v].group != kNone) return;
      const HeldTogether held = HeldBy(made_.layouts[v]);
      made_.held[v] = {NumberOf(held.group), NumberOf(held.terms), NumberOf(held.parts)};
    };
    for (const LossSpec& loss : made_.graph.losses) find(loss.loss);
    for (const ParameterSpec& p : made_.graph.parameters) find(p.grad);
    for (const Node& node : made_.graph.nodes) {
      for (const size_t i : FindOp(node.op)->running.statistics) find(node.outputs[i]);
    }
  }

  // Adds a node that makes one value of another.
  ValueIndex AddOne(Node node, ValueIndex from, SymShape shape, const Layout& layout) {
    node.name = fmt::format("{}.{}{}", made_.graph.value(from).name, node.op, ++count_);
    node.inputs = {from};
    const NodeIndex index = made_.graph.AddNode(std::move(node), 1);
    const ValueIndex out = made_.graph.nodes[index].outputs[0];
    made_.graph.values[out].dtype = made_.graph.value(from).dtype;
    made_.graph.values[out].shape = std::move(shape);
    made_.layouts.push_back(layout);
    return out;
  }

  // Losses and gradients are read outside of the graph, where their layouts have been changed.
  void Replace(ValueIndex before, ValueIndex after) {
    for (LossSpec& loss : made_.graph.losses) {
      if (loss.loss == before) loss.loss = after;
      if (loss.output == before) loss.output = after;
    }
    for (ParameterSpec& p : made_.graph.parameters) {
      if (p.grad == before) p.grad = after;
    }
    for (TableUse& table : made_.graph.tables) {
      if (table.row_grad == before) table.row_grad = after;
    }
  }

  const Graph& graph_;
  const LayoutProblem& problem_;
  const GraphLayouts& found_;
  ParallelGraph made_;
  std::vector<ValueIndex> changed_;  // By change: the value that it gives.
  std::map<ValueIndex, std::vector<ValueIndex>> forms_;
  std::vector<NodeIndex> number_;  // By node: its new number.
  size_t count_ = 0;               // Communication nodes so far.
};

Status About(const Graph& graph, const NodeProblem& problem) {
  const Node& node = graph.nodes[problem.node];
  std::string shapes;
  for (const ValueIndex v : node.inputs) {
    shapes += (shapes.empty() ? "" : " ") + ShapeText(graph, graph.value(v).shape);
  }
  Status status = Invalid("strategy ({}): {}; inputs are {}", problem.problem.rule,
                          problem.problem.what, shapes);
  if (problem.nearest) {
    status =
        WithHint(status, fmt::format("the nearest that is valid is {}", TextOf(*problem.nearest)));
  }
  return AboutNode(std::move(status), node.name, node.mark);
}

}  // namespace

Result<ParallelGraph> Parallelized(const Graph& graph, const TeamOptions& team) {
  DT_TRY(const LayoutProblem problem, ProblemOf(graph, team).Make());
  std::vector<NodeProblem> problems;
  const GraphLayouts found = FindLayouts(problem, problems);
  if (problems.empty()) return Writer(graph, problem, found).Write();
  std::vector<Status> statuses;
  for (const NodeProblem& p : problems) statuses.push_back(About(graph, p));
  return Combined(statuses);
}

}  // namespace dt::scheduler
