#include "common/wire/plan_codec.h"

#include <flatbuffers/flatbuffers.h>

#include "plan_generated.h"

namespace dt {
namespace {

namespace fbs = dt::plan_fbs;
using Builder = flatbuffers::FlatBufferBuilder;
template <class T>
using Offset = flatbuffers::Offset<T>;
template <class T>
using Offsets = Offset<flatbuffers::Vector<Offset<T>>>;

template <class Enum>
uint8_t Code(Enum value) {
  return static_cast<uint8_t>(value);
}

Offset<fbs::Attr> WriteAttr(Builder& b, const std::string& name, const AttrValue& value) {
  Offset<flatbuffers::String> text;
  Offset<flatbuffers::Vector<int64_t>> wholes;
  Offset<flatbuffers::Vector<double>> reals;
  Offsets<flatbuffers::String> texts;
  if (const auto* v = std::get_if<std::string>(&value)) text = b.CreateString(*v);
  if (const auto* v = std::get_if<std::vector<int64_t>>(&value)) wholes = b.CreateVector(*v);
  if (const auto* v = std::get_if<std::vector<double>>(&value)) reals = b.CreateVector(*v);
  if (const auto* v = std::get_if<std::vector<std::string>>(&value)) {
    texts = b.CreateVectorOfStrings(*v);
  }
  const auto key = b.CreateString(name);
  fbs::AttrBuilder attr(b);
  attr.add_name(key);
  attr.add_kind(static_cast<uint8_t>(value.index()));
  if (const auto* v = std::get_if<bool>(&value)) attr.add_whole(*v ? 1 : 0);
  if (const auto* v = std::get_if<int64_t>(&value)) attr.add_whole(*v);
  if (const auto* v = std::get_if<double>(&value)) attr.add_real(*v);
  if (!text.IsNull()) attr.add_text(text);
  if (!wholes.IsNull()) attr.add_wholes(wholes);
  if (!reals.IsNull()) attr.add_reals(reals);
  if (!texts.IsNull()) attr.add_texts(texts);
  return attr.Finish();
}

Offset<fbs::Value> Write(Builder& b, const Value& value) {
  std::vector<fbs::Dim> shape;
  for (const Dim& dim : value.shape) shape.emplace_back(dim.times, dim.symbol);
  return fbs::CreateValueDirect(b, value.name.c_str(), Code(value.dtype), Code(value.kind),
                                value.producer, Code(value.device), &shape);
}

Offset<fbs::Node> Write(Builder& b, const Node& node) {
  std::vector<Offset<fbs::Attr>> attrs;
  for (const auto& [name, value] : node.attrs) attrs.push_back(WriteAttr(b, name, value));
  return fbs::CreateNodeDirect(b, node.name.c_str(), node.op.c_str(), &attrs, &node.inputs,
                               &node.outputs, Code(node.device), Code(node.phase), node.stage,
                               node.forward, node.mark.file.c_str(), node.mark.line);
}

Offset<fbs::Input> Write(Builder& b, const InputSpec& input) {
  return fbs::CreateInputDirect(b, input.value, Code(input.kind), &input.columns, input.lookup,
                                input.table);
}

Offset<fbs::Lookup> Write(Builder& b, const LookupSpec& lookup) {
  return fbs::CreateLookupDirect(b, lookup.name.c_str(), lookup.table, &lookup.columns,
                                 lookup.length, lookup.weighted);
}

Offset<fbs::TableUse> Write(Builder& b, const TableUse& table) {
  return fbs::CreateTableUseDirect(b, table.name.c_str(), table.id.value(), table.dim, table.rows,
                                   table.row_grad, table.store, table.keys_end,
                                   table.expected_rows);
}

Offset<fbs::Parameter> Write(Builder& b, const ParameterSpec& p) {
  return fbs::CreateParameter(b, p.value, Code(p.init.kind), p.init.value, p.fan_in, p.fan_out,
                              p.trained, p.grad, p.pushed);
}

Offset<fbs::Replica> Write(Builder& b, const ReplicaSpec& r) {
  return fbs::CreateReplica(b, r.value, r.of);
}

Offset<fbs::Loss> Write(Builder& b, const LossSpec& loss) {
  return fbs::CreateLossDirect(b, loss.name.c_str(), loss.type.c_str(), loss.output, loss.label,
                               loss.loss, loss.label_column, loss.weight);
}

Offset<fbs::Column> Write(Builder& b, const ColumnSpec& column) {
  std::vector<Offset<flatbuffers::String>> of;
  for (const std::string& name : column.of) of.push_back(b.CreateString(name));
  return fbs::CreateColumnDirect(b, column.name.c_str(), Code(column.type), Code(column.role),
                                 column.separator.c_str(), column.length, column.max_len,
                                 column.fill, column.weighted, column.transform.c_str(), &of);
}

Offset<fbs::Subgraph> Write(Builder& b, const Subgraph& subgraph) {
  return fbs::CreateSubgraphDirect(b, subgraph.name.c_str(), Code(subgraph.stream),
                                   Code(subgraph.phase), subgraph.stage, subgraph.needs_rows,
                                   &subgraph.waits, &subgraph.nodes);
}

// Write(builder, item) of each item, as a vector.
template <class To, class From>
Offsets<To> Each(Builder& b, const std::vector<From>& items) {
  std::vector<Offset<To>> written;
  written.reserve(items.size());
  for (const From& item : items) written.push_back(Write(b, item));
  return b.CreateVector(written);
}

Offset<fbs::Graph> Write(Builder& b, const Graph& graph) {
  const auto symbols = b.CreateVectorOfStrings(graph.symbols);
  const auto values = Each<fbs::Value>(b, graph.values);
  const auto nodes = Each<fbs::Node>(b, graph.nodes);
  const auto inputs = Each<fbs::Input>(b, graph.inputs);
  const auto parameters = Each<fbs::Parameter>(b, graph.parameters);
  const auto replicas = Each<fbs::Replica>(b, graph.replicas);
  const auto tables = Each<fbs::TableUse>(b, graph.tables);
  const auto lookups = Each<fbs::Lookup>(b, graph.lookups);
  const auto losses = Each<fbs::Loss>(b, graph.losses);
  return fbs::CreateGraph(b, symbols, values, nodes, inputs, parameters, replicas, tables, lookups,
                          losses);
}

}  // namespace

std::string Encode(const Plan& plan) {
  Builder b;
  const auto graph = Write(b, plan.graph);
  const auto columns = Each<fbs::Column>(b, plan.columns);
  const auto train = Each<fbs::Subgraph>(b, plan.train);
  const auto evaluate = Each<fbs::Subgraph>(b, plan.evaluate);
  const auto slot = b.CreateVector(plan.slot);
  fbs::FinishPlanBuffer(b, fbs::CreatePlan(b, graph, columns, plan.batch_size, plan.slices,
                                           plan.seed, train, evaluate, slot, plan.slot_count));
  return {reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize()};
}

}  // namespace dt
