#include "scheduler/query/query_node.h"

#include <algorithm>
#include <bit>
#include <optional>

#include <fmt/format.h>

#include "common/base/text.h"
#include "ops/op_spec.h"

namespace dt::scheduler {
namespace {

AttrValue ReadAttr(const std::string& name, const Json& json, AttrType type) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_number_integer() && type == AttrType::kInts) return std::vector{json.get<int64_t>()};
  if (json.is_number_integer() && type != AttrType::kFloat) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_array()) return ReadInts(json, name.c_str());
  throw QueryError("attrs", fmt::format("attribute \"{}\" is no value", name));
}

Attrs ReadAttrs(const Json& question, const OpSpec* op) {
  Attrs attrs;
  if (!question.contains("attrs") || question["attrs"].is_null()) return attrs;
  const Json& json = question["attrs"];
  if (!json.is_object()) throw QueryError("attrs", "\"attrs\" is no object");
  for (const auto& [name, value] : json.items()) {
    AttrType type = AttrType::kInt;
    if (op != nullptr) {
      const auto spec = std::ranges::find(op->attrs, std::string_view(name), &AttrSpec::name);
      if (spec == op->attrs.end()) {
        throw QueryError("attrs", fmt::format("{} takes no attribute \"{}\"", op->name, name));
      }
      type = spec->type;
    }
    attrs[name] = ReadAttr(name, value, type);
  }
  if (op == nullptr) return attrs;
  for (const AttrSpec& spec : op->attrs) {
    if (!spec.required || attrs.contains(std::string(spec.name))) continue;
    throw QueryError("attrs", fmt::format("{} needs the attribute \"{}\"", op->name, spec.name));
  }
  return attrs;
}

std::string NearestOp(const std::string& name) {
  std::vector<std::string> names;
  for (const OpSpec* op : AllOps()) names.emplace_back(op->name);
  return LikelySpelling(name, names);
}

// The outputs of a node whose inputs have these types; bit i: input i holds numbers of rows.
Result<std::vector<SymShape>> Infer(const OpSpec& op, const Node& like,
                                    const std::vector<SymShape>& inputs, uint32_t u32) {
  Graph graph;
  Node node = like;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Value value;
    value.name = fmt::format("input{}", i);
    value.dtype = (u32 >> i & 1) != 0 ? DType::kU32 : DType::kF32;
    value.shape = inputs[i];
    node.inputs.push_back(graph.AddValue(std::move(value)));
  }
  InferContext context{graph, node, {}};
  DT_TRY_STATUS(op.infer(context));
  std::vector<SymShape> outputs;
  for (const Value& value : context.outputs) outputs.push_back(value.shape);
  return outputs;
}

// Takes the first combination of types that the operator accepts, those with fewest u32 first.
std::vector<SymShape> InferAnyTypes(const OpSpec& op, const Node& node,
                                    const std::vector<SymShape>& inputs) {
  constexpr size_t kTypedMax = 8;
  const uint32_t combinations = 1U << std::min(inputs.size(), kTypedMax);
  Status first;
  for (int count = 0; count <= static_cast<int>(kTypedMax); ++count) {
    for (uint32_t u32 = 0; u32 < combinations; ++u32) {
      if (std::popcount(u32) != count) continue;
      Result<std::vector<SymShape>> outputs = Infer(op, node, inputs, u32);
      if (outputs.ok()) return *std::move(outputs);
      if (first.ok()) first = outputs.status();
    }
  }
  throw QueryError("shapes", std::string(MessageOf(first)));
}

QueryNode ReadOperator(const Json& question, std::vector<SymShape> inputs) {
  if (!question["op"].is_string()) throw QueryError("operator", "\"op\" is no name");
  const auto name = question["op"].get<std::string>();
  const OpSpec* op = FindOp(name);
  if (op == nullptr) {
    QueryError error("operator", fmt::format("there is no operator \"{}\"", name));
    if (const std::string nearest = NearestOp(name); !nearest.empty()) error.nearest = nearest;
    throw error;
  }
  Node node;
  node.name = node.op = name;
  node.attrs = ReadAttrs(question, op);
  QueryNode read{
      .as_node = node, .rule = {}, .inputs = inputs, .outputs = InferAnyTypes(*op, node, inputs)};
  Graph graph;
  for (const auto* shapes : {&read.inputs, &read.outputs}) {
    for (const SymShape& shape : *shapes) {
      Value value;
      value.shape = shape;
      (shapes == &read.inputs ? node.inputs : node.outputs).push_back(graph.AddValue(value));
    }
  }
  Result<Sharding> rule = ShardingOf(graph, node);
  CheckOk(rule.status(), "shapes");
  read.rule = *std::move(rule);
  return read;
}

}  // namespace

QueryNode ReadNode(const Json& question, std::vector<SymShape> inputs) {
  for (const SymShape& shape : inputs) {
    for (const Dim& dim : shape) {
      if (dim.times < 1) throw QueryError("shape", "a node's inputs have 1 or more of everything");
    }
  }
  if (question.contains("op")) return ReadOperator(question, std::move(inputs));
  const Json& loops = Member(question, "loops");
  if (!loops.is_string()) throw QueryError("loops", "\"loops\" is no text");
  const auto text = loops.get<std::string>();
  ShardingText rule{.name = "the question",
                    .text = text,
                    .inputs = std::move(inputs),
                    .attrs = ReadAttrs(question, nullptr)};
  Result<Sharding> sharding = ReadSharding(rule);
  CheckOk(sharding.status(), "loops");
  return {.as_node = {},
          .rule = *std::move(sharding),
          .inputs = std::move(rule.inputs),
          .outputs = std::move(rule.outputs)};
}

Shape NumbersOf(const SymShape& shape, int64_t batch) {
  Shape numbers;
  for (const Dim& dim : shape) {
    numbers.push_back(dim.symbol == kConstant ? dim.times : dim.times * batch);
  }
  return numbers;
}

Json NodeJson(const NodeView& view) {
  const auto slice_of = [&](const Layout& layout, const SymShape& shape) {
    return LocalShape(layout, NumbersOf(shape, view.batch), view.device);
  };
  Json answer;
  answer["device_matrix"] = view.cut.matrix;
  answer["inputs"] = Json::array();
  for (size_t i = 0; i < view.layouts.inputs.size(); ++i) {
    const Layout& layout = view.layouts.inputs[i];
    Json input = {{"map", MapJson(layout)}};
    if (!PartialJson(layout).empty()) input["partial"] = PartialJson(layout);
    input["slice"] = slice_of(layout, view.node.inputs[i]);
    answer["inputs"].push_back(std::move(input));
  }
  answer["outputs"] = Json::array();
  for (size_t o = 0; o < view.layouts.outputs.size(); ++o) {
    const Layout& layout = view.layouts.outputs[o];
    answer["outputs"].push_back({{"map", MapJson(layout)},
                                 {"partial", PartialJson(layout)},
                                 {"reduce", NameOf(layout.join)},
                                 {"slice", slice_of(layout, view.node.outputs[o])}});
  }
  Json gradients = Json::array();
  for (const AxisList& axes : GradientAxes(view.node.rule, view.cut)) {
    const std::vector<RankList> groups = GroupsAlong(view.cut.matrix, axes);
    const bool alone = std::ranges::all_of(groups, [](const RankList& g) { return g.size() == 1; });
    gradients.push_back(alone ? Json() : GroupsJson(groups, Layout()));
  }
  answer["gradient_groups"] = std::move(gradients);
  return answer;
}

}  // namespace dt::scheduler
