#include "ops/infer.h"
#include "ops/op_families.h"

namespace dt {
namespace {

// Operators that change how a value lies on the devices of a team. The planner puts them between
// nodes; none of them changes the value. In the graph of a team they have `matrix` and `axes`: the
// devices of a group differ along these axes. In the graph of one position the shapes are local,
// and they have `group`, the positions of its group in their order, `axes`, the lengths of these
// axes, and `number`, by which the members of a group know the node.
//
// all_reduce(x): the sum, or with reduce: max the maximum, of the group's terms.
// reduce_scatter(x): of the same, this device's part along `dim`.
// all_gather(x): the parts of the group, joined along `dim`.
// all_to_all(x): joined along `from_dim`, and divided along `dim`.
// take_part(x): this device's part along `dim`.
Status InferCollective(InferContext& context) {
  DT_TRY_STATUS(ExpectInputs(context, 1));
  context.outputs = {Output(context.in(0).dtype, context.in(0).shape)};
  return OkStatus();
}

constexpr AttrSpec kAttrs[] = {
    {.name = "reduce", .type = AttrType::kText}, {.name = "dim"},   {.name = "from_dim"},
    {.name = "axes", .type = AttrType::kInts},   {.name = "group"}, {.name = "number"}};
constexpr OpSpec Collective(std::string_view name) {
  return {.name = name,
          .infer = InferCollective,
          .sharding = {.loops = "~->~"},
          .user_visible = false,
          .attrs = kAttrs,
          .traits = {.kind = OpKind::kCommunication}};
}

constexpr OpSpec kSpecs[] = {Collective("all_gather"), Collective("all_reduce"),
                             Collective("all_to_all"), Collective("reduce_scatter"),
                             Collective("take_part")};

}  // namespace

std::span<const OpSpec> CollectivesSpecs() { return kSpecs; }

}  // namespace dt
