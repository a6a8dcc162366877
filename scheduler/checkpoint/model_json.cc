#include "scheduler/checkpoint/model_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "common/base/text.h"
#include "common/config/load_job.h"
#include "common/specs/loss_type.h"
#include "common/storage/json_file.h"

namespace dt::scheduler {
namespace {

Json RuleJson(const OptimizerSpec& spec) {
  Json json = {{"name", NameOf(spec.kind)}};
  for (const OptimizerNumber& number : kOptimizerNumbers) {
    json[std::string(number.name)] = spec.*number.value;
  }
  json["l2"] = spec.l2;
  return json;
}

Json TablesJson(const ModelConfig& model) {
  Json all = Json::object();
  for (const TableConfig& t : model.tables) {
    Json rule = RuleJson(t.optimizer);
    rule["scope"] = NameOf(t.optimizer.scope);
    rule["l2_scope"] = NameOf(t.optimizer.l2_scope);
    rule["clip_row_norm"] = t.optimizer.clip_row_norm;
    all[t.name] = {{"id", HexOf(t.id.value())},
                   {"dim", t.dim},
                   {"init", {{"kind", NameOf(t.init.kind)}, {"value", t.init.value}}},
                   {"eval_default", NameOf(t.eval_default)},
                   {"dtype", NameOf(t.dtype)},
                   {"wire", NameOf(t.wire)},
                   {"optimizer", std::move(rule)}};
  }
  return all;
}

Json ColumnsJson(const std::vector<ColumnSpec>& columns) {
  Json all = Json::object();
  for (const ColumnSpec& c : columns) {
    if (c.role != ColumnRole::kFeature) continue;
    Json& json = all[c.name] = {{"type", NameOf(c.type)},
                                {"transform", c.transform.empty() ? "none" : c.transform}};
    if (!c.is_keys()) json["fill"] = c.fill;
    if (c.is_vector()) json["length"] = c.length;
    if (c.is_ragged() && c.max_len != 0) json["max_len"] = c.max_len;
    if (!c.of.empty()) json["of"] = c.of;
    if (!c.from.empty()) json["from"] = c.from;
    if (!c.weights.empty()) json["weights"] = c.weights;
    if (c.hash != 0) json["hash"] = c.hash;
    if (!c.clip.empty()) json["clip"] = c.clip;
    if (c.standardise) json["standardise"] = {{"mean", c.mean}, {"deviation", c.deviation}};
    if (!c.edges.empty()) json["edges"] = c.edges;
  }
  return all;
}

std::vector<std::string> ColumnNames(const Plan& plan, const std::vector<uint32_t>& columns) {
  std::vector<std::string> names;
  for (const uint32_t c : columns) names.push_back(plan.columns[c].name);
  return names;
}

// Describes a graph input; null for inputs that only training reads.
Json InputJson(const Plan& plan, const InputSpec& input) {
  const auto of_lookup = [&](std::string_view kind) -> Json {
    const LookupSpec& lookup = plan.graph.lookups[input.lookup];
    return {{"kind", kind},
            {"table", plan.graph.tables[lookup.table].name},
            {"columns", ColumnNames(plan, lookup.columns)}};
  };
  switch (input.kind) {
    case InputKind::kFloats:
      return {{"kind", "floats"}, {"columns", ColumnNames(plan, input.columns)}};
    case InputKind::kIds:
      return {{"kind", "ids"}, {"columns", ColumnNames(plan, input.columns)}};
    case InputKind::kIdWeights:
      return {{"kind", "id_weights"}, {"columns", ColumnNames(plan, input.columns)}};
    case InputKind::kLookupIndex:
      return of_lookup("keys");
    case InputKind::kLookupWeights:
      return of_lookup("weights");
    case InputKind::kLookupEnds:
      return of_lookup("ends");
    default:
      return nullptr;
  }
}

// The value that is predicted: of a loss over negative items the score of the item, which comes
// first among the scores.
ValueIndex PredictedValue(const Graph& graph, const LossSpec& loss) {
  if (!HasNegatives(loss.type)) return loss.output;
  return graph.nodes[graph.value(loss.output).producer].inputs[0];
}

// The values that prediction needs, except rows, which follow from their keys.
std::set<ValueIndex> ValuesOfPrediction(const Graph& graph) {
  std::set<ValueIndex> rows, needed;
  for (const TableUse& table : graph.tables) rows.insert(table.rows);
  std::vector<ValueIndex> open;
  for (const LossSpec& loss : graph.losses) open.push_back(PredictedValue(graph, loss));
  while (!open.empty()) {
    const ValueIndex value = open.back();
    open.pop_back();
    if (rows.contains(value) || !needed.insert(value).second) continue;
    const NodeIndex producer = graph.value(value).producer;
    if (producer == kNone) continue;
    const std::vector<ValueIndex>& inputs = graph.nodes[producer].inputs;
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
  return needed;
}

// `unread`: inputs of nodes that are left out.
Json NodesJson(const Graph& graph, const std::set<ValueIndex>& needed,
               const std::set<ValueIndex>& unread) {
  Json all = Json::array();
  for (const Node& node : graph.nodes) {
    const auto is_needed = [&](ValueIndex v) { return needed.contains(v); };
    if (std::ranges::none_of(node.outputs, is_needed)) continue;
    Json inputs = Json::array(), outputs = Json::array(), attrs = Json::object();
    for (const ValueIndex v : node.inputs) {
      if (!unread.contains(v)) inputs.push_back(graph.value(v).name);
    }
    for (const ValueIndex v : node.outputs) outputs.push_back(graph.value(v).name);
    for (const auto& [key, value] : node.attrs) {
      std::visit([&, &name = key](const auto& v) { attrs[name] = v; }, value);
    }
    all.push_back({{"op", node.op},
                   {"inputs", std::move(inputs)},
                   {"outputs", std::move(outputs)},
                   {"attrs", std::move(attrs)}});
  }
  return all;
}

}  // namespace

std::string ModelJson(const Plan& plan, const JobConfig& job) {
  const Graph& graph = plan.graph;
  const std::set<ValueIndex> needed = ValuesOfPrediction(graph);
  // Values that are left out: those only training reads, and rows, which follow from their keys.
  std::set<ValueIndex> unread;
  for (const TableUse& table : graph.tables) unread.insert(table.rows);
  Json inputs = Json::object(), losses = Json::array();
  for (const InputSpec& input : graph.inputs) {
    Json json = InputJson(plan, input);
    if (json.is_null()) {
      unread.insert(input.value);
    } else if (needed.contains(input.value)) {
      inputs[graph.value(input.value).name] = std::move(json);
    }
  }
  for (const LossSpec& loss : graph.losses) {
    losses.push_back({{"name", loss.name},
                      {"type", loss.type},
                      {"weight", loss.weight},
                      {"output", graph.value(PredictedValue(graph, loss)).name}});
  }
  const Json json = {{"seed", job.seed},
                     {"columns", ColumnsJson(plan.columns)},
                     {"tables", TablesJson(job.model)},
                     {"inputs", std::move(inputs)},
                     {"nodes", NodesJson(graph, needed, unread)},
                     {"losses", std::move(losses)},
                     {"optimizer", RuleJson(job.optimizer.spec)}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

namespace {

constexpr std::string_view kOtherColumns = "set the columns as they were when it was trained";

// The number, if there is one, that fits a float.
std::optional<float> FloatIn(const Json& json) {
  if (!json.is_number()) return std::nullopt;
  const double value = json.get<double>();
  const bool fits = std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max());
  return fits ? std::optional(static_cast<float>(value)) : std::nullopt;
}

bool TakeStandard(const Json& saved, ColumnSpec& column) {
  const Json& standard = MemberOf(saved, "standardise");
  const auto mean = FloatIn(MemberOf(standard, "mean"));
  const auto deviation = FloatIn(MemberOf(standard, "deviation"));
  column.mean = mean.value_or(0);
  column.deviation = deviation.value_or(1);
  return mean.has_value() && deviation.has_value();
}

bool TakeEdges(const Json& saved, ColumnSpec& column) {
  column.edges.clear();
  const Json& edges = MemberOf(saved, "edges");
  if (!edges.is_array()) return false;
  for (const Json& item : edges) {
    const auto edge = FloatIn(item);
    if (!edge.has_value()) return false;
    column.edges.push_back(*edge);
  }
  return !column.edges.empty() && std::ranges::is_sorted(column.edges);
}

}  // namespace

Status TakeConstants(const std::string& model, const std::string& folder,
                     std::vector<ColumnSpec>& columns) {
  DT_TRY(const Json json, ParseJson(model, folder));
  for (ColumnSpec& column : columns) {
    const Json& saved = MemberOf(MemberOf(json, "columns"), column.name);
    if (column.standardise && !TakeStandard(saved, column)) {
      return WithHint(
          Invalid("{}: its model has no mean and deviation of column \"{}\"", folder, column.name),
          kOtherColumns);
    }
    if (column.quantiles > 0 && !TakeEdges(saved, column)) {
      return WithHint(Invalid("{}: its model has no edges of column \"{}\"", folder, column.name),
                      kOtherColumns);
    }
  }
  return OkStatus();
}

}  // namespace dt::scheduler
