#include <algorithm>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "common/wire/aligned.h"
#include "common/wire/plan_codec.h"
#include "plan_generated.h"

namespace dt {
namespace {

namespace fbs = dt::plan_fbs;

// FlatBuffers may hold one vector and point to it many times, so that a small message decodes to a
// huge plan. Our encoder never does that: everything read is charged against the length of the
// message.
class Reader {
 public:
  explicit Reader(size_t bytes) : budget_(bytes) {}
  bool ok() const { return ok_; }
  // False, from then on, if more is read than the message holds.
  bool Charge(size_t bytes) {
    ok_ = ok_ && bytes <= budget_;
    if (ok_) budget_ -= bytes;
    return ok_;
  }

  bool Require(bool condition) {
    ok_ = ok_ && condition;
    return ok_;
  }

  std::string Text(const flatbuffers::String* text) {
    if (text == nullptr || !Charge(text->size())) return {};
    // Operators and files are C strings to some of their readers.
    if (text->str().find('\0') != std::string::npos) ok_ = false;
    return text->str();
  }
  template <class T>
  std::vector<T> Numbers(const flatbuffers::Vector<T>* from) {
    if (from == nullptr || !Charge(from->size() * sizeof(T))) return {};
    if (!Require(HasAlignedItems(*from, alignof(T)))) return {};
    return {from->begin(), from->end()};
  }
  template <class Enum>
  Enum Code(uint8_t value, Enum last) {
    if (value > static_cast<uint8_t>(last)) ok_ = false;
    return ok_ ? static_cast<Enum>(value) : last;
  }
  // Read(reader, item) of each item.
  template <class To, class From>
  std::vector<To> Each(const flatbuffers::Vector<flatbuffers::Offset<From>>* from,
                       To (*read)(Reader&, const From&)) {
    std::vector<To> items;
    if (from == nullptr || !Charge(from->size() * sizeof(flatbuffers::uoffset_t))) return items;
    for (const From* item : *from) {
      if (!ok_) return {};
      items.push_back(read(*this, *item));
    }
    return items;
  }
  std::vector<std::string> Texts(
      const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* from) {
    return Each<std::string, flatbuffers::String>(
        from, [](Reader& in, const flatbuffers::String& text) { return in.Text(&text); });
  }

  AttrValue Attribute(const fbs::Attr& from);

 private:
  size_t budget_;
  bool ok_ = true;
};

AttrValue Reader::Attribute(const fbs::Attr& from) {
  switch (from.kind()) {
    case 0:
      return from.whole() != 0;
    case 1:
      return int64_t{from.whole()};
    case 2:
      return from.real();
    case 3:
      return Text(from.text());
    case 4:
      return Numbers(from.wholes());
    case 5:
      return Numbers(from.reals());
    case 6:
      return Texts(from.texts());
    default:
      ok_ = false;
      return false;
  }
}
static_assert(std::variant_size_v<AttrValue> == 7);

Value ReadValue(Reader& in, const fbs::Value& from) {
  Value to;
  to.name = in.Text(from.name());
  to.dtype = in.Code(from.dtype(), DType::kBf16);
  to.kind = in.Code(from.kind(), ValueKind::kTable);
  to.producer = from.producer();
  to.device = in.Code(from.device(), Device::kPs);
  if (from.shape() == nullptr) return to;
  if (!in.Require(HasAlignedItems(*from.shape(), alignof(fbs::Dim)))) return to;
  for (const fbs::Dim* dim : *from.shape()) {
    if (to.shape.size() > 16) return to;  // CheckGraph refuses it.
    to.shape.push_back({dim->symbol(), dim->times()});
  }
  return to;
}

Node ReadNode(Reader& in, const fbs::Node& from) {
  Node to;
  to.name = in.Text(from.name());
  to.op = in.Text(from.op());
  if (from.attrs() != nullptr && in.Charge(from.attrs()->size() * sizeof(uint32_t))) {
    for (const fbs::Attr* attr : *from.attrs()) {
      if (!in.ok()) return to;
      to.attrs[in.Text(attr->name())] = in.Attribute(*attr);
    }
  }
  to.inputs = in.Numbers(from.inputs());
  to.outputs = in.Numbers(from.outputs());
  to.device = in.Code(from.device(), Device::kPs);
  to.phase = in.Code(from.phase(), Phase::kStep);
  to.stage = from.stage();
  to.forward = from.forward();
  to.mark = {in.Text(from.file()), from.line()};
  return to;
}

InputSpec ReadInput(Reader& in, const fbs::Input& from) {
  return {from.value(), in.Code(from.kind(), InputKind::kRowGaps), in.Numbers(from.columns()),
          from.lookup(), from.table()};
}

LookupSpec ReadLookup(Reader& in, const fbs::Lookup& from) {
  return {in.Text(from.name()), from.table(), in.Numbers(from.columns()), from.length(),
          from.weighted()};
}

TableUse ReadTable(Reader& in, const fbs::TableUse& from) {
  return {in.Text(from.name()), TableId(from.id()), from.dim(),      from.keys_end(),
          from.expected_rows(), from.rows(),        from.row_grad(), from.store()};
}

ParameterSpec ReadParameter(Reader& in, const fbs::Parameter& from) {
  return {from.value(),   {in.Code(from.init(), InitKind::kXavierUniform), from.init_value()},
          from.fan_in(),  from.fan_out(),
          from.trained(), from.grad(),
          from.pushed()};
}

ReplicaSpec ReadReplica(Reader&, const fbs::Replica& from) { return {from.value(), from.of()}; }

LossSpec ReadLoss(Reader& in, const fbs::Loss& from) {
  return {in.Text(from.name()), in.Text(from.type()), from.output(), from.label(),
          from.loss(),          from.label_column(),  from.weight()};
}

ColumnSpec ReadColumn(Reader& in, const fbs::Column& from) {
  return {in.Text(from.name()),
          in.Code(from.type(), ColumnType::kStrings),
          in.Code(from.role(), ColumnRole::kWeight),
          in.Text(from.separator()),
          from.length(),
          from.max_len(),
          from.fill(),
          from.weighted(),
          in.Text(from.transform()),
          in.Texts(from.of())};
}

Subgraph ReadSubgraph(Reader& in, const fbs::Subgraph& from) {
  return {in.Text(from.name()),
          in.Code(from.stream(), Stream::kToCpu),
          in.Code(from.phase(), Phase::kStep),
          from.stage(),
          from.needs_rows(),
          in.Numbers(from.waits()),
          in.Numbers(from.nodes())};
}

Graph ReadGraph(Reader& in, const fbs::Graph& from) {
  Graph to;
  to.symbols = in.Texts(from.symbols());
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
  Reader in(bytes.size());
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
