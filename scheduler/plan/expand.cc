#include <map>
#include <set>

#include "common/base/text.h"
#include "ops/op_spec.h"
#include "scheduler/composites/attributes.h"
#include "scheduler/composites/composite.h"
#include "scheduler/plan/passes.h"

namespace dt::scheduler {
namespace {

bool IsPattern(std::string_view name) { return name.find_first_of("*?") != std::string_view::npos; }

class Expander {
 public:
  explicit Expander(const PlanRequest& request)
      : request_(request), builder_(request.job, request.columns) {}

  Result<Graph> Run() {
    for (const NodeConfig& node : request_.job.model.nodes) OneNode(node);
    for (const LossConfig& loss : request_.job.model.losses) {
      if (IsBroken(loss.input)) continue;
      if (Status status = OneLoss(loss); !status.ok()) problems_.push_back(status);
    }
    for (const TableUse& table : builder_.graph().tables) CheckTable(table);
    if (problems_.empty() && builder_.graph().losses.empty()) {
      return Invalid("the model has no loss: add model.loss with an input and a label");
    }
    if (problems_.size() == 1) return problems_[0];
    if (problems_.empty()) return std::move(builder_.graph());
    std::string text;
    for (const Status& problem : problems_) text += ToText(problem) + "\n";
    return Invalid("{}{} problems", text, problems_.size());
  }

 private:
  // The rows of a table on the worker are of one worker, and change once a slice.
  void CheckTable(const TableUse& table) {
    const uint32_t workers = request_.job.cluster.workers;
    if (table.store == kNone || (request_.slices == 1 && workers == 1)) return;
    const Node& take = builder_.graph().nodes[builder_.graph().value(table.rows).producer];
    problems_.push_back(AboutNode(
        WithHint(NotYet("table \"{}\" on {} is not available yet with {} workers and {} slices",
                        table.name, take.device == Device::kGpu ? "gpu" : "cpu", workers,
                        request_.slices),
                 fmt::format("set cluster.workers and train.slices to 1, or "
                             "model.tables.{}.device to ps",
                             table.name)),
        take.name, take.mark));
  }

  // A node that reads a broken one is left out without another message.
  void OneNode(const NodeConfig& node) {
    for (const std::string& input : node.inputs) {
      if (!IsBroken(input)) continue;
      broken_.insert(node.name);
      return;
    }
    Result<ValueIndex> value = Expanded(node);
    const Status status = value.ok() ? NameResults(node, *value) : value.status();
    if (status.ok()) return;
    broken_.insert(node.name);
    problems_.push_back(status);
  }

  // "<node>", and "<node>.<part>" of its further results.
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

  // Also a further result of a broken node.
  bool IsBroken(const std::string& name) const {
    return broken_.contains(name) || broken_.contains(name.substr(0, name.rfind('.')));
  }

  Result<ValueIndex> Expanded(NodeConfig node) {
    builder_.Enter(node);
    if (named_.contains(node.name) || broken_.contains(node.name)) {
      return builder_.Error("the name is taken by an earlier node");
    }
    if (ColumnNamed(node.name) != kNone) {
      return builder_.Error("a column has this name too; rename the node");
    }
    const Composite* composite = FindComposite(node.op);
    const OpSpec* op = FindOp(node.op);
    if (composite == nullptr && (op == nullptr || !op->user_visible)) return UnknownOp(node);
    Result<Attrs> attrs = CheckedAttrs(node);
    if (!attrs.ok()) return AboutNode(attrs.status(), node.name, node.mark);
    node.attrs = *std::move(attrs);
    DT_TRY(const std::vector<Operand> operands, Operands(node));
    const size_t inputs_min = composite == nullptr ? 1 : composite->inputs_min;
    if (operands.size() < inputs_min) return builder_.Error("{} needs an input", node.op);
    if (composite != nullptr) return composite->expand(builder_, operands);
    DT_TRY(std::vector<ValueIndex> values, builder_.Values(operands, false));
    return builder_.Add(node.op, "", std::move(values), node.attrs);
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

  // The loss reads values of shape [B, 1].
  Result<ValueIndex> Logits(const LossConfig& loss) {
    const auto found = named_.find(loss.input);
    if (found == named_.end()) {
      return AboutLoss(loss, fmt::format("there is no node \"{}\"{}", loss.input,
                                         DidYouMean(loss.input, KnownNames())));
    }
    const ValueIndex value = found->second.value;
    const SymShape wanted = {Dim{kBatch, 1}, Const(1)};
    if (builder_.shape(value) == wanted) return value;
    builder_.Enter(*found->second.node);
    return WithHint(
        builder_.Error("its shape is {}, the loss needs [B, 1]",
                       ShapeText(builder_.graph(), builder_.shape(value))),
        fmt::format("put a node {{op: dense, inputs: [{}], units: 1}} between", loss.input));
  }

  Status OneLoss(const LossConfig& loss) {
    DT_TRY(const uint32_t label, LabelColumn(loss));
    DT_TRY(const ValueIndex logits, Logits(loss));
    LossSpec spec;
    spec.name = loss.name.empty() ? loss.label : loss.name;
    spec.type = loss.type;
    spec.output = logits;
    spec.label_column = label;
    spec.label = builder_.Target(InputKind::kLabel, label);
    std::vector<ValueIndex> inputs = {logits, spec.label};
    for (size_t i = 0; i < request_.columns.size(); ++i) {
      if (request_.columns[i].role != ColumnRole::kWeight) continue;
      inputs.push_back(builder_.Target(InputKind::kSampleWeight, static_cast<uint32_t>(i)));
    }
    NodeConfig node;
    node.name = "loss." + spec.name;
    node.mark = loss.mark;
    builder_.Enter(node);
    const bool is_bce = loss.type == "binary_cross_entropy";
    DT_TRY(spec.loss, builder_.Add(is_bce ? "bce_with_logits" : "mse", "", std::move(inputs)));
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
  std::set<std::string> broken_;  // Nodes with a problem, and those that depend on them.
  std::vector<Status> problems_;
};

}  // namespace

// A GraphPass takes its graph by value.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
Result<Graph> Expand(Graph, const PlanRequest& request) { return Expander(request).Run(); }

}  // namespace dt::scheduler
