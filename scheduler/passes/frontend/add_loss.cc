#include "scheduler/passes/frontend/add_loss.h"

#include <vector>

#include "common/base/text.h"
#include "common/specs/loss_type.h"

namespace dt::scheduler {
namespace {

class LossAdder {
 public:
  LossAdder(const PlanRequest& request, const NamedValues& named, GraphBuilder& builder)
      : request_(request), named_(named), builder_(builder) {}

  Status Add(const LossConfig& loss) {
    LossSpec spec;
    spec.name = loss.name.empty() ? loss.label : loss.name;
    spec.type = loss.type;
    spec.weight = loss.weight;
    spec.pos_weight = loss.pos_weight;
    spec.gamma = loss.gamma;
    spec.alpha = loss.alpha;
    if (!IsOfPairs(loss.type) || !loss.label.empty()) {
      DT_TRY(spec.label_column, LabelColumn(loss));
    }
    DT_TRY(spec.group_column, GroupColumn(loss));
    DT_TRY(spec.output, LossInput(loss, loss.input));
    if (spec.label_column != kNone) {
      spec.label = builder_.Target(InputKind::kLabel, spec.label_column);
    }
    NodeConfig node;
    node.name = "loss." + spec.name;
    node.mark = loss.mark;
    builder_.Enter(node);
    if (HasNegatives(loss.type)) {
      DT_TRY_STATUS(AddWithNegatives(loss, spec));
    } else if (IsOfPairs(loss.type)) {
      DT_TRY_STATUS(AddInBatch(loss, spec));
    } else {
      DT_TRY_STATUS(AddLabelled(loss, spec));
    }
    builder_.graph().losses.push_back(std::move(spec));
    return OkStatus();
  }

 private:
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
    if (loss.type == "focal") return {"focal_with_logits", "[B, 1]", 1, "units: 1"};
    if (loss.type == "mse" || HasNegatives(loss.type)) return {loss.type, "[B, 1]", 1, "units: 1"};
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
    if (column == kNone || request_.columns[column].is_keys() ||
        request_.columns[column].is_vector()) {
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

  // The scores of the positive item and of its negatives, side by side.
  Result<ValueIndex> Scores(const LossConfig& loss, ValueIndex positive) {
    const auto found = named_.find(loss.negatives);
    if (found == named_.end()) {
      return AboutLoss(loss, fmt::format("there is no node \"{}\"{}", loss.negatives,
                                         DidYouMean(loss.negatives, KnownNames())));
    }
    const ValueIndex negatives = found->second.value;
    const SymShape& shape = builder_.shape(negatives);
    if (shape.size() != 2 || shape[0] != Dim{kBatch, 1} || shape[1].symbol != kConstant) {
      return WithHint(
          AboutLoss(loss, fmt::format("negatives \"{}\" has shape {}, expected [B, negatives]",
                                      loss.negatives, ShapeText(builder_.graph(), shape))),
          "give it one score for each negative item of a sample");
    }
    return builder_.Add("concat", "scores", {positive, negatives}, {{"axis", int64_t{1}}});
  }

  // The product of label and sample weight, or the one that there is; kNone without both.
  Result<ValueIndex> LabelledWeight(ValueIndex label) {
    const ValueIndex weight = SampleWeight();
    if (label == kNone || weight == kNone) return label == kNone ? weight : label;
    return builder_.Add("mul", "weight", {label, weight}, {});
  }

  // Attributes of the loss's operator that are keys of the job file.
  static Attrs AttrsOf(const LossConfig& loss) {
    if (loss.type == "focal") {
      return {{"gamma", double{loss.gamma}}, {"alpha", double{loss.alpha}}};
    }
    if (loss.pos_weight != 1) return {{"pos_weight", double{loss.pos_weight}}};
    return {};
  }

  Status AddWithNegatives(const LossConfig& loss, LossSpec& spec) {
    DT_TRY(spec.output, Scores(loss, spec.output));
    DT_TRY(const ValueIndex weight, LabelledWeight(spec.label));
    std::vector<ValueIndex> inputs = {spec.output};
    if (weight != kNone) inputs.push_back(weight);
    DT_TRY(spec.loss, builder_.Add(loss.type, "", std::move(inputs), {}));
    return OkStatus();
  }

  Status AddInBatch(const LossConfig& loss, LossSpec& spec) {
    std::vector<ValueIndex> inputs = {spec.output};
    Attrs attrs;
    if (spec.label != kNone) {
      inputs.push_back(spec.label);
      attrs["label"] = true;
    }
    if (const ValueIndex weight = SampleWeight(); weight != kNone) {
      inputs.push_back(weight);
      attrs["weight"] = true;
    }
    DT_TRY_STATUS(AddItems(loss, inputs, attrs));
    DT_TRY(spec.loss, builder_.Add(loss.type, "", std::move(inputs), std::move(attrs)));
    spec.output = builder_.graph().nodes.back().outputs[1];
    return OkStatus();
  }

  Status AddLabelled(const LossConfig& loss, LossSpec& spec) {
    std::vector<ValueIndex> inputs = {spec.output, spec.label};
    if (const ValueIndex weight = SampleWeight(); weight != kNone) inputs.push_back(weight);
    DT_TRY(spec.loss, builder_.Add(FormOf(loss).op, "", std::move(inputs), AttrsOf(loss)));
    return OkStatus();
  }

  uint32_t ColumnNamed(std::string_view name) const { return ColumnIndex(request_.columns, name); }

  std::vector<std::string> KnownNames() const {
    std::vector<std::string> names;
    for (const auto& [name, entry] : named_) names.push_back(name);
    for (const ColumnSpec& column : request_.columns) names.push_back(column.name);
    return names;
  }

  const PlanRequest& request_;
  const NamedValues& named_;
  GraphBuilder& builder_;
};

}  // namespace

uint32_t ColumnIndex(std::span<const ColumnSpec> columns, std::string_view name) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return static_cast<uint32_t>(i);
  }
  return kNone;
}

Status AddLoss(const LossConfig& loss, const PlanRequest& request, const NamedValues& named,
               GraphBuilder& builder) {
  return LossAdder(request, named, builder).Add(loss);
}

}  // namespace dt::scheduler
