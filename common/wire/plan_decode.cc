#include <algorithm>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "common/wire/aligned.h"
#include "common/wire/budget_reader.h"
#include "common/wire/plan_codec.h"
#include "plan_generated.h"

namespace dt {
namespace {

namespace fbs = dt::plan_fbs;

AttrValue ReadAttribute(BudgetReader& in, const fbs::Attr& from) {
  switch (from.kind()) {
    case 0:
      return from.whole() != 0;
    case 1:
      return int64_t{from.whole()};
    case 2:
      return from.real();
    case 3:
      return in.Name(from.text());
    case 4:
      return in.Numbers(from.wholes());
    case 5:
      return in.Numbers(from.reals());
    case 6:
      return in.Names(from.texts());
    default:
      return in.Require(false);
  }
}
static_assert(std::variant_size_v<AttrValue> == 7);

Value ReadValue(BudgetReader& in, const fbs::Value& from) {
  Value to;
  to.name = in.Name(from.name());
  to.dtype = in.Code(from.dtype(), DType::kBf16);
  to.kind = in.Code(from.kind(), ValueKind::kTable);
  to.producer = from.producer();
  to.device = in.Code(from.device(), Device::kPs);
  if (from.shape() == nullptr) return to;
  if (!in.Require(HasAlignedItems(*from.shape(), alignof(fbs::Dim)))) return to;
  if (!in.Charge(from.shape()->size(), sizeof(to.shape[0]))) return to;
  for (const fbs::Dim* dim : *from.shape()) {
    if (to.shape.size() > 16) return to;  // CheckGraph refuses it.
    to.shape.push_back({dim->symbol(), dim->times()});
  }
  return to;
}

Node ReadNode(BudgetReader& in, const fbs::Node& from) {
  Node to;
  to.name = in.Name(from.name());
  to.op = in.Name(from.op());
  if (from.attrs() != nullptr && in.Charge(from.attrs()->size(), sizeof(*to.attrs.begin()))) {
    for (const fbs::Attr* attr : *from.attrs()) {
      if (!in.ok()) return to;
      to.attrs[in.Name(attr->name())] = ReadAttribute(in, *attr);
    }
  }
  to.inputs = in.Numbers(from.inputs());
  to.outputs = in.Numbers(from.outputs());
  to.device = in.Code(from.device(), Device::kPs);
  to.phase = in.Code(from.phase(), Phase::kStep);
  to.stage = from.stage();
  to.forward = from.forward();
  to.mark = {in.Name(from.file()), from.line()};
  return to;
}

InputSpec ReadInput(BudgetReader& in, const fbs::Input& from) {
  return {from.value(), in.Code(from.kind(), InputKind::kRowGaps), in.Numbers(from.columns()),
          from.lookup(), from.table()};
}

LookupSpec ReadLookup(BudgetReader& in, const fbs::Lookup& from) {
  return {in.Name(from.name()), from.table(), in.Numbers(from.columns()), from.length(),
          from.weighted()};
}

TableUse ReadTable(BudgetReader& in, const fbs::TableUse& from) {
  return {in.Name(from.name()), TableId(from.id()), from.dim(),      from.keys_end(),
          from.expected_rows(), from.rows(),        from.row_grad(), from.store()};
}

ParameterSpec ReadParameter(BudgetReader& in, const fbs::Parameter& from) {
  return {from.value(),   {in.Code(from.init(), InitKind::kXavierUniform), from.init_value()},
          from.fan_in(),  from.fan_out(),
          from.trained(), from.grad(),
          from.pushed()};
}

ReplicaSpec ReadReplica(BudgetReader&, const fbs::Replica& from) {
  return {from.value(), from.of()};
}

LossSpec ReadLoss(BudgetReader& in, const fbs::Loss& from) {
  return {in.Name(from.name()), in.Name(from.type()), from.output(), from.label(),
          from.loss(),          from.label_column(),  from.weight()};
}

ColumnSpec ReadColumn(BudgetReader& in, const fbs::Column& from) {
  return {in.Name(from.name()),
          in.Code(from.type(), ColumnType::kStrings),
          in.Code(from.role(), ColumnRole::kWeight),
          in.Name(from.separator()),
          from.length(),
          from.max_len(),
          from.fill(),
          from.weighted(),
          in.Name(from.transform()),
          in.Names(from.of())};
}

Subgraph ReadSubgraph(BudgetReader& in, const fbs::Subgraph& from) {
  return {in.Name(from.name()),
          in.Code(from.stream(), Stream::kToCpu),
          in.Code(from.phase(), Phase::kStep),
          from.stage(),
          from.needs_rows(),
          in.Numbers(from.waits()),
          in.Numbers(from.nodes())};
}

Graph ReadGraph(BudgetReader& in, const fbs::Graph& from) {
  Graph to;
  to.symbols = in.Names(from.symbols());
  to.values = in.Each(from.values(), ReadValue);
  to.nodes = in.Each(from.nodes(), ReadNode);
  to.inputs = in.Each(from.inputs(), ReadInput);
  to.parameters = in.Each(from.parameters(), ReadParameter);
  to.replicas = in.Each(from.replicas(), ReadReplica);
  to.tables = in.Each(from.tables(), ReadTable);
  to.lookups = in.Each(from.lookups(), ReadLookup);
  to.losses = in.Each(from.losses(), ReadLoss);
  return to;
}

}  // namespace

Result<Plan> DecodePlan(std::span<const std::byte> bytes) {
  // Messages can start at any address; FlatBuffers reads aligned ones only.
  std::vector<uint64_t> aligned((bytes.size() + 7) / 8);
  if (!bytes.empty())
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(aligned.data()));
  const auto* data = reinterpret_cast<const uint8_t*>(aligned.data());
  flatbuffers::Verifier verifier(data, bytes.size());
  if (bytes.size() < 8 || !fbs::VerifyPlanBuffer(verifier)) {
    return Malformed("a plan of {} bytes is damaged", bytes.size());
  }
  const fbs::Plan& from = *fbs::GetPlan(data);
  BudgetReader in(bytes.size());
  Plan plan;
  if (from.graph() != nullptr) plan.graph = ReadGraph(in, *from.graph());
  plan.columns = in.Each(from.columns(), ReadColumn);
  plan.batch_size = from.batch_size();
  plan.slices = from.slices();
  plan.seed = from.seed();
  plan.train = in.Each(from.train(), ReadSubgraph);
  plan.evaluate = in.Each(from.evaluate(), ReadSubgraph);
  plan.slot = in.Numbers(from.slot());
  plan.slot_count = from.slot_count();
  if (!in.ok()) return Malformed("a plan of {} bytes is damaged", bytes.size());
  if (Status status = CheckPlan(plan); !status.ok()) {
    return Malformed("a plan was refused: {}", MessageOf(status));
  }
  return plan;
}

}  // namespace dt
