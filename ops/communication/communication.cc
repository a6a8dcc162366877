#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// Run by the engine's collectives: no kernel. Step nodes whose input is a slice value.
//
// sum_slices(x): the sum of x over the step's slices, in slice order.
// gather_slices(x [C]): [slices, C], one row for each slice.
Status InferGatherSlices(InferContext& context) {
  DT_TRY_STATUS(ExpectFloats(context, 1));
  const int64_t slices = IntAttr(context.node.attrs, "slices", 0);
  if (slices < 1) return Invalid("gather_slices: slices is {}", slices);
  SymShape out = context.in(0).shape;
  out.insert(out.begin(), Const(slices));
  context.outputs = {Output(context.in(0).dtype, std::move(out))};
  return OkStatus();
}

// Run by the engine's streams, too: copy(x) is x on the node's device; refresh(x, replica) writes x
// into its replica there.
Status InferCopy(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 1));
  context.outputs = {Output(context.in(0).dtype, context.in(0).shape)};
  return OkStatus();
}

Status InferRefresh(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 2));
  DT_TRY_STATUS(ExpectShape(context, 1, context.in(0).shape, "the replica"));
  context.outputs = {};
  return OkStatus();
}

constexpr AttrSpec kSlices[] = {{.name = "slices", .required = true}};
constexpr OpSpec kSpecs[] = {
    {.name = "copy",
     .infer = InferCopy,
     .sharding = ShardingRule::kElementwise,
     .user_visible = false,
     .takes_bf16 = true},
    {.name = "refresh",
     .outputs = 0,
     .infer = InferRefresh,
     .sharding = ShardingRule::kReplicated,
     .user_visible = false},
    {.name = "sum_slices",
     .infer = InferSame,
     .sharding = ShardingRule::kReplicated,
     .user_visible = false},
    {.name = "gather_slices",
     .infer = InferGatherSlices,
     .sharding = ShardingRule::kReplicated,
     .user_visible = false,
     .attrs = kSlices},
};

}  // namespace

std::span<const OpSpec> CommunicationSpecs() { return kSpecs; }

}  // namespace dt
