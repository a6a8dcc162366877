#include <algorithm>
#include <map>
#include <set>

#include "common/base/text.h"
#include "ops/op_spec.h"
#include "scheduler/composites/attributes.h"
#include "scheduler/composites/composite.h"
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
      if (IsBroken(loss.input) || IsBroken(loss.item)) continue;
      if (Status status = OneLoss(loss); !status.ok()) problems_.push_back(status);
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
    std::set<uint32_t> columns;
    for (const LookupSpec& lookup : graph.lookups) {
      if (lookup.table == table) columns.insert(lookup.columns.begin(), lookup.columns.end());
    }
    uint64_t rows = 0;
    for (const uint32_t c : columns) {
      const auto counted = request_.data_stats.find(request_.columns[c].name);
      if (counted == request_.data_stats.end()) return 0;
      rows += counted->second;
    }
    return rows;
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

  uint32_t ColumnNamed(std::string_view name) const {
    for (size_t i = 0; i < request_.columns.size(); ++i) {
      if (request_.columns[i].name == name) return static_cast<uint32_t>(i);
    }
    return kNone;
  }

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
      if (column.role != ColumnRole::kFeature || !MatchesPattern(column.name, name)) continue;
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

  Result<uint32_t> LabelColumn(const LossConfig& loss) {
    const uint32_t label = ColumnNamed(loss.label);
    std::vector<std::string> labels;
    for (const ColumnSpec& column : request_.columns) {
      if (column.role == ColumnRole::kLabel) labels.push_back(column.name);
    }
    if (label == kNone) {
      return AboutLoss(loss, fmt::format("there is no column \"{}\" for the label{}", loss.label,
                                         DidYouMean(loss.label, labels)));
    }
    if (request_.columns[label].role != ColumnRole::kLabel || request_.columns[label].is_keys()) {
      return AboutLoss(loss,
                       fmt::format("column \"{}\" is no label; give it role: label and type: float",
                                   loss.label));
    }
    return label;
  }

  static Status AboutLoss(const LossConfig& loss, std::string_view text) {
    const std::string where =
        loss.mark.line > 0 ? fmt::format("{}:{}", loss.mark.file, loss.mark.line) : loss.mark.file;
    const Status status = Invalid("model.loss: {}", text);
    return where.empty() ? status : WithWhere(status, where);
  }

  // Requirements of a loss type on its input.
  struct Form {
    std::string_view op;
    std::string_view shape;  // The required shape, for error texts.
    size_t columns = 1;      // Least number of columns; if it is 1, the only one allowed.
    std::string_view fix;
  };
  static Form FormOf(const LossConfig& loss) {
    if (loss.type == "binary_cross_entropy") return {"bce_with_logits", "[B, 1]", 1, "units: 1"};
    if (loss.type == "mse") return {"mse", "[B, 1]", 1, "units: 1"};
    if (loss.type == "softmax_cross_entropy") {
      return {loss.type, "[B, classes] with 2 classes or more", 2, "units: <classes>"};
    }
    return {loss.type, "[B, dim]", 2, "units: <dim>"};
  }

  // The node that a loss reads as `input` or `item`.
  Result<ValueIndex> LossInput(const LossConfig& loss, const std::string& name) {
    const auto found = named_.find(name);
    if (found == named_.end()) {
      return AboutLoss(
          loss, fmt::format("there is no node \"{}\"{}", name, DidYouMean(name, KnownNames())));
    }
    const Form form = FormOf(loss);
    const SymShape& shape = builder_.shape(found->second.value);
    const bool samples = shape.size() == 2 && shape[0] == Dim{kBatch, 1};
    if (samples && shape[1].symbol == kConstant &&
        (form.columns == 1 ? shape[1].times == 1 : shape[1].times >= 2)) {
      return found->second.value;
    }
    builder_.Enter(*found->second.node);
    return WithHint(
        builder_.Error("its shape is {}, the loss {} needs {}", ShapeText(builder_.graph(), shape),
                       loss.type, form.shape),
        fmt::format("put a node {{op: dense, inputs: [{}], {}}} between", name, form.fix));
  }

  // The sample weights, if there are any.
  ValueIndex SampleWeight() {
    for (size_t i = 0; i < request_.columns.size(); ++i) {
      if (request_.columns[i].role != ColumnRole::kWeight) continue;
      return builder_.Target(InputKind::kSampleWeight, static_cast<uint32_t>(i));
    }
    return kNone;
  }

  // A node or a float column with one number for each sample.
  Result<ValueIndex> LogQ(const LossConfig& loss) {
    const SymShape wanted = {Dim{kBatch, 1}, Const(1)};
    if (const auto found = named_.find(loss.log_q); found != named_.end()) {
      const ValueIndex value = found->second.value;
      if (builder_.shape(value) == wanted) return value;
      return AboutLoss(loss, fmt::format("log_q \"{}\" has shape {}, expected [B, 1]", loss.log_q,
                                         ShapeText(builder_.graph(), builder_.shape(value))));
    }
    const uint32_t column = ColumnNamed(loss.log_q);
    if (column == kNone || request_.columns[column].is_keys()) {
      return AboutLoss(loss, fmt::format("log_q \"{}\" is neither a node nor a float column{}",
                                         loss.log_q, DidYouMean(loss.log_q, KnownNames())));
    }
    return builder_.Floats({column});
  }

  // The keys of the items.
  Result<ValueIndex> ItemKeys(const LossConfig& loss) {
    const uint32_t column = ColumnNamed(loss.item_id);
    if (column != kNone && request_.columns[column].is_keys() &&
        request_.columns[column].length == 1) {
      return builder_.Keys(column);
    }
    return WithHint(
        AboutLoss(loss, fmt::format("item_id \"{}\" is no column of one key", loss.item_id)),
        "name the column from which the item vectors come");
  }

  // The column by which the loss's metrics group samples; kNone: they do not.
  Result<uint32_t> GroupColumn(const LossConfig& loss) {
    if (loss.group.empty()) return kNone;
    const uint32_t column = ColumnNamed(loss.group);
    if (column == kNone) {
      return AboutLoss(loss, fmt::format("there is no column \"{}\" for the group{}", loss.group,
                                         DidYouMean(loss.group, KnownNames())));
    }
    const ColumnSpec& keys = request_.columns[column];
    if (keys.is_keys() && keys.length == 1) return column;
    return WithHint(
        AboutLoss(loss, fmt::format("group \"{}\" is no column of one key", loss.group)),
        "name a column of type id or string with length 1, such as the user's");
  }

  // Adds the inputs of in_batch_softmax other than user vectors, label and weight.
  Status AddItems(const LossConfig& loss, std::vector<ValueIndex>& inputs, Attrs& attrs) {
    DT_TRY(const ValueIndex items, LossInput(loss, loss.item));
    inputs.insert(inputs.begin() + 1, items);
    if (builder_.shape(items) != builder_.shape(inputs[0])) {
      return AboutLoss(
          loss, fmt::format("item \"{}\" has shape {}, \"{}\" has {}: they must be equal",
                            loss.item, ShapeText(builder_.graph(), builder_.shape(items)),
                            loss.input, ShapeText(builder_.graph(), builder_.shape(inputs[0]))));
    }
    attrs["temperature"] = double{loss.temperature};
    if (!loss.log_q.empty()) {
      DT_TRY(const ValueIndex log_q, LogQ(loss));
      inputs.push_back(log_q);
      attrs["log_q"] = true;
    }
    if (loss.item_id.empty()) return OkStatus();
    DT_TRY(const ValueIndex keys, ItemKeys(loss));
    inputs.push_back(keys);
    attrs["key"] = true;
    return OkStatus();
  }

  Status OneLoss(const LossConfig& loss) {
    LossSpec spec;
    spec.name = loss.name.empty() ? loss.label : loss.name;
    spec.type = loss.type;
    spec.weight = loss.weight;
    const bool in_batch = loss.type == "in_batch_softmax";
    if (!in_batch || !loss.label.empty()) {
      DT_TRY(spec.label_column, LabelColumn(loss));
    }
    DT_TRY(spec.group_column, GroupColumn(loss));
    DT_TRY(spec.output, LossInput(loss, loss.input));
    std::vector<ValueIndex> inputs = {spec.output};
    Attrs attrs;
    if (spec.label_column != kNone) {
      spec.label = builder_.Target(InputKind::kLabel, spec.label_column);
      inputs.push_back(spec.label);
      if (in_batch) attrs["label"] = true;
    }
    if (const ValueIndex weight = SampleWeight(); weight != kNone) {
      inputs.push_back(weight);
      if (in_batch) attrs["weight"] = true;
    }
    NodeConfig node;
    node.name = "loss." + spec.name;
    node.mark = loss.mark;
    if (in_batch) DT_TRY_STATUS(AddItems(loss, inputs, attrs));
    builder_.Enter(node);
    DT_TRY(spec.loss, builder_.Add(FormOf(loss).op, "", std::move(inputs), std::move(attrs)));
    if (in_batch) spec.output = builder_.graph().nodes.back().outputs[1];
    builder_.graph().losses.push_back(std::move(spec));
    return OkStatus();
  }

  struct Named {
    ValueIndex value = kNone;
    const NodeConfig* node = nullptr;
  };

  const PlanRequest& request_;
  GraphBuilder builder_;
  std::map<std::string, Named> named_;
  std::set<std::string> broken_;  // Nodes with a mistake, and nodes that depend on them.
  std::vector<Status> problems_;
};

}  // namespace

// A GraphPass takes its graph by value.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
Result<Graph> Expand(Graph, const PlanRequest& request) { return Expander(request).Run(); }

}  // namespace dt::scheduler
