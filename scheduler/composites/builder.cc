#include "scheduler/composites/builder.h"

#include <algorithm>

#include "common/base/text.h"
#include "ops/op_spec.h"
#include "ops/update/update.h"
#include "scheduler/composites/infer_node.h"

namespace dt::scheduler {

Status GraphBuilder::ErrorText(std::string_view text) const {
  return AboutNode(Invalid("{}", text), user_->name, user_->mark);
}

std::string GraphBuilder::Name(std::string_view part) const {
  return part.empty() ? user_->name : fmt::format("{}.{}", user_->name, part);
}

Result<ValueIndex> GraphBuilder::Add(std::string_view op, std::string_view part,
                                     std::vector<ValueIndex> inputs, Attrs attrs) {
  const OpSpec* spec = FindOp(op);
  if (spec == nullptr) return Internal("the planner names an operator that is none: {}", op);
  Node node;
  node.name = Name(part);
  node.op = op;
  node.attrs = std::move(attrs);
  node.inputs = std::move(inputs);
  node.device = user_->device;
  node.mark = user_->mark;
  size_t outputs = spec->outputs;
  if (spec->outputs == kVariableOutputs) {
    InferContext context{graph_, node, {}};
    if (Status status = spec->infer(context); !status.ok()) {
      return AboutNode(std::move(status), node.name, node.mark);
    }
    outputs = context.outputs.size();
  }
  const NodeIndex index = graph_.AddNode(std::move(node), outputs);
  DT_TRY_STATUS(InferNode(graph_, index));
  return graph_.nodes[index].outputs[0];
}

Result<ValueIndex> GraphBuilder::Parameter(const NewParameter& parameter) {
  Value value;
  value.name = Name(parameter.part);
  value.kind = parameter.trained ? ValueKind::kParameter : ValueKind::kState;
  for (const int64_t n : parameter.shape) value.shape.push_back(Const(n));
  const auto [owner, is_new] = parameter_owner_.emplace(value.name, user_->name);
  if (!is_new) {
    return Error("its parameter \"{}\" has the name of one of node \"{}\"; rename one of the nodes",
                 value.name, owner->second);
  }
  const std::string what = fmt::format("its parameter \"{}\"", value.name);
  if (Status status = CheckBounds(graph_, what, value.shape); !status.ok()) {
    return AboutNode(std::move(status), user_->name, user_->mark);
  }
  ParameterSpec spec;
  spec.init = parameter.init;
  spec.fan_in = parameter.fan_in;
  spec.fan_out = parameter.fan_out;
  spec.trained = parameter.trained;
  spec.value = graph_.AddValue(std::move(value));
  graph_.parameters.push_back(spec);
  return spec.value;
}

ValueIndex GraphBuilder::Input(InputSpec spec, Value value) {
  value.kind = ValueKind::kInput;
  spec.value = graph_.AddValue(std::move(value));
  graph_.inputs.push_back(spec);
  return spec.value;
}

ValueIndex GraphBuilder::Floats(const std::vector<uint32_t>& columns) {
  for (const InputSpec& input : graph_.inputs) {
    if (input.kind == InputKind::kFloats && input.columns == columns) return input.value;
  }
  Value value;
  value.name = column(columns.front()).name;
  if (columns.size() > 1) value.name += fmt::format("..{}", column(columns.back()).name);
  int64_t length = 0;
  for (const uint32_t c : columns) length += column(c).length;
  value.shape = {Dim{kBatch, 1}, Const(length)};
  InputSpec spec;
  spec.kind = InputKind::kFloats;
  spec.columns = columns;
  return Input(std::move(spec), std::move(value));
}

ValueIndex GraphBuilder::Ids(InputKind kind, const std::vector<uint32_t>& columns,
                             const std::vector<int64_t>& rows) {
  for (const InputSpec& input : graph_.inputs) {
    if (input.kind == kind && input.columns == columns && input.rows == rows) return input.value;
  }
  Value value;
  value.name = fmt::format("{}({})", kind == InputKind::kIds ? "ids" : "id_weights", user_->name);
  value.dtype = kind == InputKind::kIds ? DType::kU32 : DType::kF32;
  int64_t length = 0;
  for (const uint32_t c : columns) length += column(c).length;
  value.shape = {Dim{kBatch, 1}, Const(length)};
  InputSpec spec;
  spec.kind = kind;
  spec.columns = columns;
  spec.rows = rows;
  return Input(std::move(spec), std::move(value));
}

ValueIndex GraphBuilder::Keys(uint32_t of_column) {
  for (const InputSpec& input : graph_.inputs) {
    if (input.kind == InputKind::kKeys && input.columns.front() == of_column) return input.value;
  }
  Value value;
  value.name = fmt::format("keys({})", column(of_column).name);
  value.dtype = DType::kU32;
  value.shape = {Dim{kBatch, 1}, Const(2)};
  InputSpec spec;
  spec.kind = InputKind::kKeys;
  spec.columns = {of_column};
  return Input(std::move(spec), std::move(value));
}

ValueIndex GraphBuilder::Target(InputKind kind, uint32_t of_column) {
  for (const InputSpec& input : graph_.inputs) {
    if (input.kind == kind && input.columns.front() == of_column) return input.value;
  }
  Value value;
  value.name = column(of_column).name;
  value.shape = {Dim{kBatch, 1}, Const(1)};
  InputSpec spec;
  spec.kind = kind;
  spec.columns = {of_column};
  return Input(std::move(spec), std::move(value));
}

Result<uint32_t> GraphBuilder::Table() {
  const std::string name = TextAttr(user_->attrs, "table", "");
  for (size_t i = 0; i < graph_.tables.size(); ++i) {
    if (graph_.tables[i].name == name) return static_cast<uint32_t>(i);
  }
  const auto& tables = job().model.tables;
  const auto found =
      std::find_if(tables.begin(), tables.end(), [&](const auto& t) { return t.name == name; });
  if (found == tables.end()) {
    std::vector<std::string> names;
    for (const TableConfig& t : tables) names.push_back(t.name);
    return Error("there is no table \"{}\"{}", name, DidYouMean(name, names));
  }
  TableUse use;
  use.name = found->name;
  use.id = found->id;
  use.dim = found->dim;
  use.keys_end = found->keys_end;
  const auto index = static_cast<uint32_t>(graph_.tables.size());
  graph_.tables.push_back(std::move(use));
  if (found->on_worker() || on_worker_.contains(name)) {
    DT_TRY(graph_.tables[index].rows, RowsOnWorker(index, *found));
  } else {
    graph_.tables[index].rows = Rows(index);
  }
  return index;
}

// Rows that are pulled from servers.
ValueIndex GraphBuilder::Rows(uint32_t table) {
  const TableUse& use = graph_.tables[table];
  Value rows;
  rows.name = fmt::format("rows({})", use.name);
  rows.shape = {Dim{graph_.SymbolNamed("U." + use.name), 1}, Const(use.dim)};
  InputSpec spec;
  spec.kind = InputKind::kRows;
  spec.table = table;
  return Input(std::move(spec), std::move(rows));
}

// Rows that are taken from the table on the worker.
Result<ValueIndex> GraphBuilder::RowsOnWorker(uint32_t table, const TableConfig& config) {
  const std::string& name = config.name;
  Value store;
  store.name = fmt::format("table({})", name);
  store.kind = ValueKind::kTable;
  store.shape = {Dim{graph_.SymbolNamed("R." + name), 1},
                 Const(int64_t{config.dim} + StateFloats(config.optimizer, config.dim))};
  graph_.tables[table].store = graph_.AddValue(std::move(store));
  Value numbers;
  numbers.name = fmt::format("numbers({})", name);
  numbers.dtype = DType::kU32;
  numbers.shape = {Dim{graph_.SymbolNamed("U." + name), 1}};
  InputSpec spec;
  spec.kind = InputKind::kRowNumbers;
  spec.table = table;
  Node take;
  take.name = fmt::format("rows({})", name);
  take.op = "take_rows";
  take.attrs = {{"dim", int64_t{config.dim}}};
  take.inputs = {graph_.tables[table].store, Input(std::move(spec), std::move(numbers))};
  take.device = config.device;
  take.mark = config.mark;
  const NodeIndex index = graph_.AddNode(std::move(take), 1);
  DT_TRY_STATUS(InferNode(graph_, index));
  return graph_.nodes[index].outputs[0];
}

Result<LookupSpec> GraphBuilder::DescribeLookup(const std::vector<uint32_t>& columns,
                                                std::string_view part) {
  LookupSpec spec;
  spec.name = Name(part);
  spec.columns = columns;
  DT_TRY(spec.table, Table());
  for (const uint32_t c : columns) {
    const ColumnSpec& key = column(c);
    if (key.is_ragged() && columns.size() > 1) {
      return Error("column \"{}\" holds lists of varying length and needs a node of its own",
                   key.name);
    }
    spec.length += key.is_ragged() ? 0 : key.length;
    spec.weighted = spec.weighted || key.weighted;
  }
  spec.weighted = spec.weighted && BoolAttr(user_->attrs, "weighted", true);
  return spec;
}

LookupValues GraphBuilder::BindLookup(uint32_t lookup) {
  const LookupSpec spec = graph_.lookups[lookup];
  const TableUse table = graph_.tables[spec.table];
  const Dim ids =
      spec.length > 0 ? Dim{kBatch, spec.length} : Dim{graph_.SymbolNamed("N." + spec.name), 1};
  const auto bind = [&](InputKind kind, std::string_view what, DType dtype, Dim dim) {
    Value value;
    value.name = fmt::format("{}({})", what, spec.name);
    value.dtype = dtype;
    value.shape = {dim};
    InputSpec input;
    input.kind = kind;
    input.lookup = lookup;
    return Input(std::move(input), std::move(value));
  };
  LookupValues values;
  values.rows = table.rows;
  values.index = bind(InputKind::kLookupIndex, "index", DType::kU32, ids);
  values.row_ends =
      bind(InputKind::kRowEnds, "row_ends", DType::kU32, graph_.value(table.rows).shape[0]);
  values.row_order = bind(InputKind::kRowOrder, "row_order", DType::kU32, ids);
  if (spec.length == 0) {
    values.ends = bind(InputKind::kLookupEnds, "ends", DType::kU32, Dim{kBatch, 1});
  }
  if (spec.weighted) values.weights = bind(InputKind::kLookupWeights, "weights", DType::kF32, ids);
  return values;
}

Result<LookupValues> GraphBuilder::Lookup(const std::vector<uint32_t>& columns,
                                          std::string_view part) {
  DT_TRY(LookupSpec spec, DescribeLookup(columns, part));
  for (size_t i = 0; i < graph_.lookups.size(); ++i) {
    LookupSpec same = graph_.lookups[i];
    same.name = spec.name;
    if (same != spec) continue;
    LookupValues values;
    values.rows = graph_.tables[spec.table].rows;
    for (const InputSpec& input : graph_.inputs) {
      if (input.lookup != i) continue;
      if (input.kind == InputKind::kLookupIndex) values.index = input.value;
      if (input.kind == InputKind::kLookupWeights) values.weights = input.value;
      if (input.kind == InputKind::kLookupEnds) values.ends = input.value;
      if (input.kind == InputKind::kRowEnds) values.row_ends = input.value;
      if (input.kind == InputKind::kRowOrder) values.row_order = input.value;
    }
    return values;
  }
  graph_.lookups.push_back(std::move(spec));
  return BindLookup(static_cast<uint32_t>(graph_.lookups.size() - 1));
}

const LookupSpec& GraphBuilder::lookup_of(ValueIndex index) const {
  for (const InputSpec& input : graph_.inputs) {
    if (input.value == index) return graph_.lookups[input.lookup];
  }
  DT_UNREACHABLE();
}

Result<std::vector<ValueIndex>> GraphBuilder::Values(std::span<const Operand> operands,
                                                     bool grouped) {
  std::vector<ValueIndex> values;
  for (size_t i = 0; i < operands.size();) {
    if (operands[i].column == kNone) {
      values.push_back(operands[i++].value);
      continue;
    }
    std::vector<uint32_t> group;
    do {
      const ColumnSpec& c = column(operands[i].column);
      if (c.is_keys()) {
        return Error(
            "column \"{}\" holds keys: turn them into numbers with a lookup or bag node first",
            c.name);
      }
      group.push_back(operands[i++].column);
    } while (grouped && i < operands.size() && operands[i].column != kNone);
    values.push_back(Floats(group));
  }
  return values;
}

Result<ValueIndex> GraphBuilder::Flat(std::vector<ValueIndex> values, std::string_view part) {
  const std::string prefix = part.empty() ? "" : fmt::format("{}.", part);
  size_t number = 0;
  for (ValueIndex& v : values) {
    const SymShape& from = shape(v);
    if (from.empty() || from[0] != Dim{kBatch, 1}) {
      return Error("its input \"{}\" has shape {} where samples must come first",
                   graph_.value(v).name, ShapeText(graph_, from));
    }
    if (from.size() == 2) continue;
    const std::string name =
        number++ == 0 ? prefix + "flat" : fmt::format("{}flat{}", prefix, number);
    DT_TRY(v, Add("flatten", name, {v}));
  }
  if (values.size() == 1) return values[0];
  return Add("concat", prefix + "concat", std::move(values), {{"axis", int64_t{1}}});
}

Result<ValueIndex> GraphBuilder::Fields(std::vector<ValueIndex> values) {
  if (values.size() == 1 && shape(values[0]).size() == 3) return values[0];
  return Add("stack", "fields", std::move(values));
}

}  // namespace dt::scheduler
