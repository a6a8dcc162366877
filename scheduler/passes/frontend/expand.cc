#include <algorithm>
#include <map>
#include <set>

#include "common/base/text.h"
#include "ops/op_spec.h"
#include "scheduler/composites/attributes.h"
#include "scheduler/composites/composite.h"
#include "scheduler/passes/frontend/add_loss.h"
#include "scheduler/passes/frontend/frontend.h"

namespace dt::scheduler {
namespace {

bool IsPattern(std::string_view name) { return name.find_first_of("*?") != std::string_view::npos; }

class Expander {
 public:
  explicit Expander(const PlanRequest& request)
      : request_(request), builder_(request.job, request.columns, request.on_worker) {}

  Result<Graph> Run() {
    for (const NodeConfig& node : request_.job.model.nodes) OneNode(node);
    for (const LossConfig& loss : request_.job.model.losses) {
      if (IsBroken(loss.input) || IsBroken(loss.item) || IsBroken(loss.negatives)) continue;
      const Status status = AddLoss(loss, request_, named_, builder_);
      if (!status.ok()) problems_.push_back(status);
    }
    if (!problems_.empty()) return Combined(problems_);
    if (builder_.graph().losses.empty()) {
      return Invalid("the model has no loss: add model.loss with an input and a label");
    }
    ExpectRows();
    return WithMath(std::move(builder_.graph()));
  }

 private:
  // Sets the expected number of rows of each table; 0 if unknown.
  void ExpectRows() {
    Graph& graph = builder_.graph();
    for (uint32_t t = 0; t < graph.tables.size(); ++t) {
      TableUse& table = graph.tables[t];
      const auto config =
          std::ranges::find(request_.job.model.tables, table.name, &TableConfig::name);
      table.expected_rows = table.keys_end != 0 ? table.keys_end : config->expected_rows;
      if (table.expected_rows == 0) table.expected_rows = CountedRows(graph, t);
    }
  }

  // The number of distinct keys in the table's columns; 0 if it is unknown for one of them.
  uint64_t CountedRows(const Graph& graph, uint32_t table) const {
    std::set<std::string> columns;
    for (const LookupSpec& lookup : graph.lookups) {
      for (const uint32_t c : lookup.columns) {
        const ColumnSpec& column = request_.columns[c];
        if (lookup.table == table)
          columns.insert(column.is_sampled() ? column.of.front() : column.name);
      }
    }
    uint64_t rows = 0;
    for (const std::string& column : columns) {
      const uint64_t distinct = DistinctKeys(column);
      if (distinct == 0) return 0;
      rows += distinct;
    }
    return rows;
  }

  uint64_t DistinctKeys(const std::string& name) const {
    const auto column = std::ranges::find(request_.columns, name, &ColumnSpec::name);
    if (column != request_.columns.end() && !column->edges.empty()) {
      return column->edges.size() + 2;  // The bins, and that of empty cells.
    }
    const auto counted = request_.data_stats.find(name);
    return counted == request_.data_stats.end() ? 0 : counted->second.distinct;
  }

  // Products without a `math` attribute get the job's arithmetic.
  Graph WithMath(Graph graph) const {
    if (request_.job.train.math == "fp32") return graph;
    for (Node& node : graph.nodes) {
      if (!FindOp(node.op)->TakesAttr("math")) continue;
      node.attrs.try_emplace("math", request_.job.train.math);
    }
    return graph;
  }

  // Expands one node. A node that reads a broken node is left out; only its own mistakes are
  // reported.
  void OneNode(const NodeConfig& said) {
    NodeConfig node = said;
    builder_.Enter(node);
    const size_t problems = problems_.size();
    Status status = CheckNode(node);
    const bool right = status.ok() && problems_.size() == problems;
    const bool reads_broken =
        std::ranges::any_of(node.inputs, [this](const auto& input) { return IsBroken(input); });
    if (right && !reads_broken) {
      const Result<ValueIndex> value = Expanded(node);
      status = value.ok() ? NameResults(said, *value) : value.status();
      if (status.ok()) return;
    }
    broken_.insert(node.name);
    if (!status.ok()) problems_.push_back(std::move(status));
  }

  // Names the results: "<node>", and "<node>.<part>" for further ones.
  Status NameResults(const NodeConfig& node, ValueIndex value) {
    named_[node.name] = {value, &node};
    for (const auto& [part, result] : builder_.parts()) {
      const std::string name = fmt::format("{}.{}", node.name, part);
      if (named_.contains(name) || ColumnNamed(name) != kNone) {
        return builder_.Error("its result \"{}\" has a name that is taken; rename the node", name);
      }
      named_[name] = {result, &node};
    }
    return OkStatus();
  }

  // Also true for a further result of a broken node.
  bool IsBroken(const std::string& name) const {
    return broken_.contains(name) || broken_.contains(name.substr(0, name.rfind('.')));
  }

  // Checks what does not depend on the node's inputs, and gives its attributes their types.
  // Problems of attributes go to problems_.
  Status CheckNode(NodeConfig& node) {
    if (named_.contains(node.name) || broken_.contains(node.name)) {
      return builder_.Error("the name is taken by an earlier node");
    }
    if (ColumnNamed(node.name) != kNone) {
      return builder_.Error("a column has this name too; rename the node");
    }
    const Composite* composite = FindComposite(node.op);
    const OpSpec* op = FindOp(node.op);
    if (composite == nullptr && (op == nullptr || !op->user_visible)) return UnknownOp(node);
    node.attrs = CheckedAttrs(node, problems_);
    return OkStatus();
  }

  Result<ValueIndex> Expanded(const NodeConfig& node) {
    const Composite* composite = FindComposite(node.op);
    DT_TRY(const std::vector<Operand> operands, Operands(node));
    const size_t inputs_min = composite == nullptr ? 1 : composite->inputs_min;
    if (operands.size() < inputs_min) return builder_.Error("{} needs an input", node.op);
    if (composite != nullptr) return composite->expand(builder_, operands);
    DT_TRY(std::vector<ValueIndex> values, builder_.Values(operands, false));
    DT_TRY(const ValueIndex first, builder_.Add(node.op, "", std::move(values), node.attrs));
    const std::vector<ValueIndex>& results = builder_.graph().nodes.back().outputs;
    for (size_t i = 1; i < results.size(); ++i) builder_.NamePart(fmt::format("{}", i), results[i]);
    return first;
  }

  Status UnknownOp(const NodeConfig& node) const {
    std::vector<std::string> names;
    for (const Composite* composite : AllComposites()) names.emplace_back(composite->name);
    for (const OpSpec* op : AllOps()) {
      if (op->user_visible) names.emplace_back(op->name);
    }
    return builder_.Error("there is no operator \"{}\"{}", node.op, DidYouMean(node.op, names));
  }

  uint32_t ColumnNamed(std::string_view name) const { return ColumnIndex(request_.columns, name); }

  Result<std::vector<Operand>> Operands(const NodeConfig& node) {
    std::vector<Operand> operands;
    for (const std::string& name : node.inputs) {
      if (const auto found = named_.find(name); found != named_.end()) {
        operands.push_back({name, found->second.value, kNone});
      } else if (const uint32_t column = ColumnNamed(name); column != kNone) {
        if (request_.columns[column].role != ColumnRole::kFeature) {
          return builder_.Error("column \"{}\" is a label or weight, not a feature", name);
        }
        operands.push_back({name, kNone, column});
      } else {
        DT_TRY_STATUS(Pattern(name, operands));
      }
    }
    return operands;
  }

  Status Pattern(const std::string& name, std::vector<Operand>& operands) {
    bool found = false;
    for (size_t i = 0; IsPattern(name) && i < request_.columns.size(); ++i) {
      const ColumnSpec& column = request_.columns[i];
      if (column.role != ColumnRole::kFeature || column.is_derived()) continue;
      if (!MatchesPattern(column.name, name)) continue;
      operands.push_back({column.name, kNone, static_cast<uint32_t>(i)});
      found = true;
    }
    if (found) return OkStatus();
    if (IsPattern(name)) return builder_.Error("its input \"{}\" matches no column", name);
    return builder_.ErrorText(
        fmt::format("its input \"{}\" is neither a column nor an earlier node{}", name,
                    DidYouMean(name, KnownNames())));
  }

  std::vector<std::string> KnownNames() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : named_) names.push_back(name);
    for (const ColumnSpec& column : request_.columns) names.push_back(column.name);
    return names;
  }

  const PlanRequest& request_;
  GraphBuilder builder_;
  NamedValues named_;
  std::set<std::string> broken_;  // Nodes with a mistake, and nodes that depend on them.
  std::vector<Status> problems_;
};

}  // namespace

// A GraphPass takes its graph by value.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
Result<Graph> Expand(Graph, const PlanRequest& request) { return Expander(request).Run(); }

}  // namespace dt::scheduler
