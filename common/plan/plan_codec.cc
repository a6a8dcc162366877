#include "common/plan/plan_codec.h"

#include "common/plan/check_plan.h"
#include "common/wire/spec_tables.h"
#include "common/wire/table_reader.h"
#include "common/wire/table_writer.h"
#include "plan_generated.h"

namespace dt {
namespace tables {

namespace fbs = dt::plan_fbs;

DT_UNION(fbs::AttrValue);
DT_LAST(DType, kBf16);
DT_LAST(Device, kPs);
DT_LAST(InputKind, kStepsSinceUpdate);
DT_LAST(Phase, kStep);
DT_LAST(Stream, kComm);
DT_LAST(ValueKind, kTable);

using Attr = std::pair<std::string, AttrValue>;
DT_TABLE(Attr, fbs::Attr);
DT_TABLE(bool, fbs::Bool);
DT_TABLE(int64_t, fbs::Whole);
DT_TABLE(double, fbs::Real);
DT_TABLE(std::string, fbs::Text);
DT_TABLE(std::vector<int64_t>, fbs::Wholes);
DT_TABLE(std::vector<double>, fbs::Reals);
DT_TABLE(std::vector<std::string>, fbs::Texts);
DT_TABLE(Dim, fbs::Dim);
DT_TABLE(Value, fbs::Value);
DT_TABLE(Node, fbs::Node);
DT_TABLE(InputSpec, fbs::Input);
DT_TABLE(LookupSpec, fbs::Lookup);
DT_TABLE(TableUse, fbs::TableUse);
DT_TABLE(ParameterSpec, fbs::Parameter);
DT_TABLE(ReplicaSpec, fbs::Replica);
DT_TABLE(PartSpec, fbs::Part);
DT_TABLE(GroupSpec, fbs::Group);
DT_TABLE(LossSpec, fbs::Loss);
DT_TABLE(Graph, fbs::Graph);
DT_TABLE(Subgraph, fbs::Subgraph);
DT_TABLE(Plan, fbs::Plan);

}  // namespace tables

namespace {
constexpr char kIdentifier[] = "DTPL";
}  // namespace

std::string Encode(const Plan& plan) { return tables::Encode(plan, kIdentifier); }

Result<Plan> DecodePlan(std::span<const std::byte> bytes, TraitsLookup traits_of) {
  BudgetReader in(bytes.size());
  Plan plan;
  if (!tables::Decode(bytes, kIdentifier, in, plan)) {
    return Malformed("a plan of {} bytes is damaged", bytes.size());
  }
  if (Status status = CheckPlan(plan, traits_of); !status.ok()) {
    return Malformed("a plan was refused: {}", MessageOf(status));
  }
  return plan;
}

}  // namespace dt
