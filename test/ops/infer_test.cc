// Tests of shape rules: which inputs they refuse, and with which messages. Shapes that they accept
// are checked by every run of op_test.cc.
#include <set>

#include <gtest/gtest.h>

#include "ops/update/attrs.h"
#include "test/ops/op_case.h"

namespace dt::test {
namespace {

const Dim B = Batch();
const Dim U = {kRowsSymbol, 1}, N = {kIdsSymbol, 1};

struct Refusal {
  std::string op;
  Attrs attrs;
  std::vector<SymShape> shapes;
  std::string message;
  std::set<size_t> index = {};  // Indices of inputs that hold row positions.
};

Attrs Ints(const char* name, std::vector<int64_t> values) { return {{name, std::move(values)}}; }

std::vector<Refusal> DenseRefusals() {
  return {
      {"matmul",
       {},
       {{B, Const(40)}, {Const(41), Const(8)}},
       "matmul: inner dimensions differ: [B, 40] times [41, 8]"},
      {"matmul",
       {{"transpose_b", true}},
       {{B, Const(4)}, {Const(4), Const(8)}},
       "matmul: inner dimensions differ: [B, 4] times [4, 8] transposed"},
      {"matmul",
       {},
       {{B}, {Const(4), Const(8)}},
       "matmul: input 1 (\"in0\") needs two dimensions, is [B]"},
      {"matmul", {}, {{B, Const(4)}}, "matmul: takes 2 inputs, has 1"},
      {"matmul",
       {},
       {{B, U, Const(4)}, {Const(4), Const(8)}},
       "matmul: [B, U, 4] has two dimensions that vary"},
      {"matmul",
       {{"math", "fp16"}},
       {{B, Const(4)}, {Const(4), Const(8)}},
       "matmul: math \"fp16\" is none of fp32, tf32, bf16"},
      {"dense_layer",
       {{"activation", "gelu"}},
       {{B, Const(4)}, {Const(4), Const(8)}, {Const(8)}},
       "dense_layer: activation \"gelu\" is none of none, relu"},
      {"dense_layer",
       {},
       {{B, Const(5)}, {Const(4), Const(8)}, {Const(8)}},
       "dense_layer: a weight of [4, 8] does not fit [B, 5]"},
      {"dense_layer",
       {},
       {{B, Const(4)}, {Const(4), Const(8)}, {Const(4)}},
       "dense_layer: the bias must be [8], is [4]"},
      {"dense_layer_back",
       {},
       {{B, Const(4)}, {Const(4), Const(8)}, {B, Const(4)}},
       "dense_layer_back: a weight of [4, 8] does not fit [B, 4]"},
      {"dense_layer_back",
       {},
       {{B, Const(8)}, {Const(4), Const(8)}, {B, Const(8)}},
       "dense_layer_back: the layer before must be [B, 4], is [B, 8]"},
      {"relu_bias_grad",
       {},
       {{B, Const(4)}, {B, Const(5)}},
       "relu_bias_grad: the gradient must be [B, 4], is [B, 5]"},
      {"relu_bias_grad",
       {{"dropout", 1.0}},
       {{B, Const(4)}, {B, Const(4)}},
       "relu_bias_grad: a dropout of 1 is outside [0, 1)"},
      {"bias_add",
       {},
       {{B, Const(4)}, {Const(5)}},
       "bias_add: the bias [5] does not fit the last dimension of [B, 4]"},
      {"add",
       {},
       {{B, Const(4)}, {B, Const(5)}},
       "add: shapes do not fit together: [B, 4] and [B, 5]"},
      {"sub", {}, {{B, Const(4)}, {Const(2)}}, "sub: shapes do not fit together: [B, 4] and [2]"},
      {"mul", {}, {{B, Const(4)}}, "mul: takes 2 inputs, has 1"},
      {"relu", {}, {{B}, {B}}, "relu: takes 1 input, has 2"},
      {"relu", {}, {{B}}, "relu: input 1 (\"in0\") holds row positions, floats are needed", {0}},
      {"clip", {{"min", 1.0}, {"max", 0.0}}, {{B}}, "clip: min 1 is above max 0"},
      {"relu_grad", {}, {{B}, {Const(2)}}, "relu_grad: shapes differ: [B] and [2]"},
  };
}

std::vector<Refusal> ShapeRefusals() {
  return {
      {"concat",
       {},
       {{B, Const(2)}, {Const(3), Const(2)}},
       "concat: shapes do not fit along axis 1: [B, 2] and [3, 2]"},
      {"concat",
       {{"axis", int64_t{0}}},
       {{B, Const(2)}, {B, Const(2)}},
       "concat: axis 0 of [B, 2] varies, only constant dimensions are joined"},
      {"concat",
       {{"axis", int64_t{2}}},
       {{B, Const(2)}},
       "concat: axis 2 is outside the 2 dimensions of its input"},
      {"concat", {}, {}, "concat: takes at least 1 inputs, has 0"},
      {"slice",
       {{"begin", int64_t{2}}, {"end", int64_t{9}}},
       {{B, Const(4)}},
       "slice: [2, 9) is not within axis 1 of [B, 4]"},
      {"slice",
       {{"axis", int64_t{0}}},
       {{B, Const(4)}},
       "slice: axis 0 of [B, 4] varies, only constant dimensions are cut"},
      {"pad",
       {{"axis", int64_t{0}}},
       {{B, Const(4)}},
       "pad: cannot add 0 and 0 along axis 0 of [B, 4]"},
      {"stack", {}, {{B, Const(4)}, {B, Const(5)}}, "stack: shapes do not fit: [B, 4] and [B, 5]"},
      {"stack", {}, {{B}}, "stack: input 1 (\"in0\") must be [B, dim] or [B, fields, dim], is [B]"},
      {"reshape",
       Ints("shape", {-1, 5}),
       {{B, Const(4)}},
       "reshape: [B, 5] does not hold as many elements as [B, 4]"},
      {"reshape",
       Ints("shape", {-1, 0}),
       {{B, Const(4)}},
       "reshape: [B, 0] is no shape; 1 to 6 dimensions, -1 for the batch"},
      {"flatten", {}, {{B, U, N}}, "flatten: [B, U, N] has two dimensions that vary"},
      {"transpose",
       Ints("perm", {0, 0}),
       {{B, Const(4)}},
       "transpose: perm must name each of the 2 dimensions of [B, 4] once"},
      {"broadcast_to",
       {},
       {{B, Const(2)}, {B, Const(4)}},
       "broadcast_to: [B, 2] cannot be repeated to [B, 4]"},
      {"fill", {}, {}, "fill: needs a shape of 1 to 6 dimensions"},
      {"reduce_sum",
       {{"axis", int64_t{0}}},
       {{B, Const(4)}},
       "reduce_sum: axis 0 of [B, 4] varies; samples are not mixed in a model"},
      {"reduce_mean", {}, {{B, Const(4)}}, "reduce_mean: needs an axis"},
      {"reduce_to", {}, {{B, Const(4)}, {Const(2)}}, "reduce_to: [B, 4] cannot be summed to [2]"},
      {"reduce_batch", {}, {{}}, "reduce_batch: its input has no dimension"},
  };
}

std::vector<Refusal> SparseRefusals() {
  const SymShape rows = {U, Const(8)}, ids = {Batch(3)};
  const std::set<size_t> lists = {1, 2, 3};
  return {
      {"gather_rows",
       {{"length", int64_t{2}}},
       {rows, ids, {U}, ids},
       "gather_rows: an index of [3*B] is not 2 ids for each sample",
       lists},
      {"gather_rows",
       {},
       {rows, ids, {U}, ids},
       "gather_rows: input 2 (\"in1\") holds floats, row positions are needed"},
      {"gather_rows",
       {},
       {rows, {N}, {U}, {N}},
       "gather_rows: lists of varying length need bag; the index is [N]",
       lists},
      {"gather_rows",
       {},
       {rows, ids, {B}, ids},
       "gather_rows: row_ends must be [U], is [B]",
       lists},
      {"gather_rows",
       {{"weighted", true}},
       {rows, ids, {U}, ids},
       "gather_rows: takes 5 inputs, has 4",
       lists},
      {"gather_rows_grad",
       {},
       {{B, Const(8)}, {U}, ids},
       "gather_rows_grad: input 1 (\"in0\") must be [B, length, dim], is [B, 8]",
       {1, 2}},
      {"bag",
       {{"combiner", std::string("max")}},
       {rows, ids, {U}, ids},
       "bag: combiner \"max\" is none of sum, mean, sqrtn",
       lists},
      {"bag",
       {},
       {rows, {N}, {U}, {N}},
       "bag: an index of [N] is not 1 ids for each sample",
       lists},
      {"bag", {{"ragged", true}}, {rows, {N}, {U}, {N}}, "bag: takes 5 inputs, has 4", lists},
      {"bag",
       {{"weighted", true}},
       {rows, {B}, {U}, {B}, {N}},
       "bag: weights must be [B], is [N]",
       lists},
      {"bag_grad",
       {},
       {{B}, {U}, {N}},
       "bag_grad: input 1 (\"in0\") must be [B, dim], is [B]",
       {1, 2}},
  };
}

std::vector<Refusal> OtherRefusals() {
  const SymShape column = {B, Const(1)}, wide = {B, Const(4)};
  OptimizerSpec rowwise;
  rowwise.kind = OptimizerKind::kRowwiseAdagrad;
  return {
      {"fm", {}, {wide}, "fm: input 1 (\"in0\") must be [B, fields, dim], is [B, 4]"},
      {"fm_grad",
       {},
       {{B, Const(2), Const(3)}, {B}},
       "fm_grad: the gradient must be [B, 1], is [B]"},
      {"dot", {}, {{B, Const(1), Const(3)}}, "dot: needs at least two fields, has [B, 1, 3]"},
      {"dot",
       {},
       {{B, Const(2), Const(3)}, wide},
       "dot: input 2 (\"in1\") is [B, 4]; all must be [B, fields, dim] or [B, dim]"},
      {"concat_dot",
       {},
       {{B, Const(3), Const(4)}, {Const(2), Const(3)}},
       "concat_dot: [2, 3] does not fit before [B, 3, 4]"},
      {"dot_grad",
       {},
       {{B, Const(3), Const(3)}, wide},
       "dot_grad: the gradient must be [B, 3], is [B, 4]"},
      {"cross_layer",
       {},
       {wide, wide, {Const(4)}, {Const(4)}},
       "cross_layer: w must be [4, 1], is [4]"},
      {"cross_layer_grad",
       {},
       {wide, wide, {Const(4), Const(1)}, column},
       "cross_layer_grad: the gradient must be [B, 4], is [B, 1]"},
      {"batch_norm",
       {},
       {wide, {Const(4)}, {Const(3)}, {Const(4)}, {Const(4)}},
       "batch_norm: beta must be [4], is [3]"},
      {"batch_norm",
       {{"momentum", 2.0}},
       {wide, {Const(4)}, {Const(4)}, {Const(4)}, {Const(4)}},
       "batch_norm: momentum 2 is outside [0, 1]"},
      {"batch_norm_grad",
       {},
       {wide, wide, {Const(4)}, {Const(4)}, {Const(1)}},
       "batch_norm_grad: inv_std must be [4], is [1]"},
      {"batch_norm_running",
       {},
       {{Const(4)}, {Const(4)}, wide, wide, {Const(1)}},
       "batch_norm_running: the counts must be [B, 1], is [1]"},
      {"dropout", {{"rate", 1.0}}, {wide}, "dropout: rate 1 is outside [0, 1)"},
      {"dropout", {}, {{Const(4)}}, "dropout: the first dimension of [4] must be the batch"},
      {"bce_with_logits",
       {},
       {wide, column},
       "bce_with_logits: the prediction must be [B, 1], is [B, 4]"},
      {"bce_with_logits_grad",
       {},
       {{B}, column, column},
       "bce_with_logits_grad: the gradient of the loss must be [1], is [B]"},
      {"mse", {}, {column, wide}, "mse: the label must be [B, 1], is [B, 4]"},
      {"mse_grad", {}, {column}, "mse_grad: takes 3 to 4 inputs, has 1"},
      {"clip_by_global_norm", {}, {}, "clip_by_global_norm: takes at least 2 inputs, has 0"},
      {"clip_by_global_norm",
       {{"grads", int64_t{2}}},
       {wide, wide},
       "clip_by_global_norm: 2 of 2 inputs are gradients"},
      {"row_norms", {}, {{}}, "row_norms: its input has no dimension"},
      {"joint_norms", {}, {}, "joint_norms: takes at least 1 inputs, has 0"},
      {"pick", {}, {wide, wide}, "pick: the positions must be [B, 1], is [B, 4]"},
      {"sample_mean", {}, {wide}, "sample_mean: the column must be [B, 1], is [B, 4]"},
      {"add_l2", {{"l2", 0.1}}, {wide, column}, "add_l2: shapes differ: [B, 4] and [B, 1]"},
      {"update",
       OptimizerAttrs(rowwise),
       {{Const(4)}, {Const(4)}, {Const(4)}},
       "update: rowwise_adagrad is for tables; use adagrad for dense parameters"},
      {"update", OptimizerAttrs({}), {{Const(4)}, {Const(4)}}, "update: takes 4 inputs, has 2"},
      {"sum_slices", {}, {}, "sum_slices: takes 1 input, has 0"},
      {"gather_slices", {}, {{Const(4)}}, "gather_slices: slices is 0"},
  };
}

std::vector<Refusal> AttentionRefusals() {
  const SymShape wide = {B, Const(4)}, pairs = {B, Const(2), Const(3), Const(5)};
  return {
      {"batch_matmul",
       {},
       {{B, Const(2), Const(3)}, {B, Const(4), Const(5)}},
       "batch_matmul: inner dimensions differ: [B, 2, 3] times [B, 4, 5]"},
      {"batch_matmul",
       {{"transpose_a", true}},
       {{B, Const(2), Const(3)}, {B, Const(3), Const(5)}},
       "batch_matmul: inner dimensions differ: [B, 2, 3] transposed times [B, 3, 5]"},
      {"batch_matmul",
       {},
       {wide, {Const(4), Const(2)}},
       "batch_matmul: needs two inputs of 3 or 4 dimensions that agree in all but the last two, "
       "has "
       "[B, 4] and [4, 2]"},
      {"batch_matmul",
       {},
       {pairs, {B, Const(3), Const(5), Const(3)}},
       "batch_matmul: needs two inputs of 3 or 4 dimensions that agree in all but the last two, "
       "has "
       "[B, 2, 3, 5] and [B, 3, 5, 3]"},
      {"outer",
       {},
       {wide, {B, Const(2), Const(4)}},
       "outer: needs two inputs that agree in all but the last dimension, has [B, 4] and [B, 2, "
       "4]"},
      {"outer", {}, {{B}, {N}}, "outer: [B, N] has two dimensions that vary"},
      {"outer_grad",
       {},
       {wide, {B, Const(3)}, wide},
       "outer_grad: the gradient must be [B, 12], is [B, 4]"},
      {"cin_layer",
       {},
       {wide, {B, Const(3)}, {Const(7), Const(2)}},
       "cin_layer: w must be [12, units], is [7, 2]"},
      {"cin_layer",
       {},
       {wide, {Const(4)}, {Const(16), Const(2)}},
       "cin_layer: needs two inputs that agree in all but a constant last dimension, has [B, 4] "
       "and "
       "[4]"},
      {"cin_layer_grad",
       {},
       {wide, wide, {Const(16), Const(2)}, wide},
       "cin_layer_grad: the gradient must be [B, 2], is [B, 4]"},
      {"softmax", {}, {{}}, "softmax: its input has no dimension"},
      {"softmax", {{"scale", 0.0}}, {wide}, "softmax: scale 0 is not above 0"},
      {"masked_softmax",
       {},
       {wide, {B, Const(3)}},
       "masked_softmax: a mask of [B, 3] cannot be repeated to [B, 4]"},
      {"softmax_grad", {}, {wide, {B}}, "softmax_grad: shapes differ: [B, 4] and [B]"},
      {"layer_norm", {}, {wide, {Const(4)}, {Const(3)}}, "layer_norm: beta must be [4], is [3]"},
      {"layer_norm", {}, {{N}, {N}, {N}}, "layer_norm: the last dimension of [N] must be constant"},
      {"layer_norm_grad",
       {{"epsilon", 0.0}},
       {wide, {Const(4)}, wide},
       "layer_norm_grad: epsilon must be above 0"},
      {"layer_norm_grad",
       {},
       {wide, {Const(4)}, {Const(4)}},
       "layer_norm_grad: the gradient must be [B, 4], is [4]"},
      {"l2_normalize", {{"epsilon", 0.0}}, {wide}, "l2_normalize: epsilon must be above 0"},
      {"l2_normalize_grad", {}, {wide, {B}}, "l2_normalize_grad: shapes differ: [B, 4] and [B]"},
      {"split_heads",
       {{"heads", int64_t{3}}},
       {{B, Const(2), Const(4)}},
       "split_heads: the last dimension of [B, 2, 4] cannot be divided among 3 heads"},
      {"split_heads",
       {{"heads", int64_t{2}}},
       {wide},
       "split_heads: input 1 (\"in0\") must be [B, fields, dim], is [B, 4]"},
      {"merge_heads",
       {},
       {wide},
       "merge_heads: input 1 (\"in0\") must be [B, heads, fields, dim], is [B, 4]"},
  };
}

std::vector<Refusal> LossRefusals() {
  const SymShape vectors = {B, Const(4)}, column = {B, Const(1)};
  return {
      {"softmax_cross_entropy",
       {},
       {column, column},
       "softmax_cross_entropy: needs 2 classes or more, has [B, 1]"},
      {"softmax_cross_entropy",
       {},
       {vectors, vectors},
       "softmax_cross_entropy: the label must be [B, 1], is [B, 4]"},
      {"softmax_cross_entropy_grad",
       {},
       {column, vectors, column},
       "softmax_cross_entropy_grad: the gradient of the loss must be [1], is [B, 1]"},
      {"in_batch_softmax",
       {},
       {vectors, {B, Const(5)}},
       "in_batch_softmax: the item vectors must be [B, 4], is [B, 5]"},
      {"in_batch_softmax",
       {{"temperature", 0.0}},
       {vectors, vectors},
       "in_batch_softmax: temperature 0 is not above 0"},
      {"in_batch_softmax",
       {{"log_q", true}},
       {vectors, vectors, vectors},
       "in_batch_softmax: log_q must be [B, 1], is [B, 4]"},
      {"in_batch_softmax",
       {{"key", true}},
       {vectors, vectors, column},
       "in_batch_softmax: the key must be [B, 2], is [B, 1]",
       {2}},
      {"in_batch_softmax_grad",
       {},
       {column, vectors, vectors},
       "in_batch_softmax_grad: the gradient of the loss must be [1], is [B, 1]"},
      {"top_k",
       {{"k", int64_t{5}}},
       {vectors},
       "top_k: k is 5, expected 1 or more and at most the last dimension of [B, 4]"},
      {"top_k",
       {{"k", int64_t{5}}, {"lists", std::vector<int64_t>{2, 1}}},
       {vectors},
       "top_k: the lists do not fill the last dimension of [B, 4]"},
      {"top_k_grad",
       {{"size", int64_t{3}}},
       {vectors, vectors},
       "top_k_grad: rows of 3 do not hold [B, 4]",
       {0}},
      {"top_k_grad",
       {{"lists", std::vector<int64_t>{2, 1}}},
       {{B, Const(3), Const(4)}, {B, Const(3), Const(4)}},
       "top_k_grad: [B, 3, 4] are not of 2 lists",
       {0}},
      {"merge_top_k",
       {{"k", int64_t{5}}, {"size", int64_t{9}}},
       {{B, Const(3), Const(4)}, {B, Const(3), Const(4)}},
       "merge_top_k: k is 5, and 4 of 9 are given",
       {1}},
      {"merge_top_k",
       {{"k", int64_t{1}}, {"size", int64_t{9}}},
       {{Const(4)}, {Const(4)}},
       "merge_top_k: [4] are not the largest of parts of 9",
       {1}},
      {"merge_top_k_grad",
       {{"size", int64_t{9}}},
       {{B, Const(3), Const(4)}, {B, Const(2)}, {B, Const(1)}},
       "merge_top_k_grad: the chosen positions must be [B, 1], is [B, 2]",
       {0, 1}},
  };
}

std::string MessageFor(const Refusal& refusal) {
  OpCase c;
  c.name = c.op = refusal.op;
  c.attrs = refusal.attrs;
  for (size_t i = 0; i < refusal.shapes.size(); ++i) {
    c.inputs.push_back({refusal.shapes[i], {}, refusal.index.contains(i)});
  }
  const Result<std::vector<Value>> inferred = InferCase(c);
  return inferred.ok() ? "accepted" : std::string(MessageOf(inferred.status()));
}

TEST(Infer, RefusesWithASentence) {
  std::set<std::string> refused;
  for (const auto& part : {DenseRefusals(), ShapeRefusals(), SparseRefusals(), OtherRefusals(),
                           AttentionRefusals(), LossRefusals()}) {
    for (const Refusal& refusal : part) {
      EXPECT_EQ(MessageFor(refusal), refusal.message);
      refused.insert(refusal.op);
    }
  }
  EXPECT_GE(refused.size(), 40u);
}

TEST(Infer, EachOperatorRefusesAWrongNumberOfInputs) {
  for (const OpSpec* spec : AllOps()) {
    // Nine inputs of one shape suit only operators with any number of inputs.
    const bool any_number = spec->name == "concat" || spec->name == "stack" ||
                            spec->name == "clip_by_global_norm" || spec->name == "dot" ||
                            spec->name == "concat_dot" || spec->name == "joint_norms";
    // It takes any number of inputs, and the last has another shape.
    if (spec->name.ends_with("dot_grad")) continue;
    Attrs attrs = OptimizerAttrs({});
    attrs["shape"] = std::vector<int64_t>{1};
    attrs["axis"] = attrs["grads"] = int64_t{1};
    const SymShape shape = {B, Const(4)};
    const std::string message =
        MessageFor({std::string(spec->name), attrs, std::vector<SymShape>(9, shape), ""});
    EXPECT_EQ(message == "accepted", any_number) << spec->name << ": " << message;
    if (!any_number) {
      EXPECT_TRUE(message.starts_with(std::string(spec->name) + ": takes ")) << message;
      EXPECT_TRUE(message.ends_with(", has 9")) << message;
    }
  }
}

TEST(Infer, GivesTheShapesOfCommunication) {
  OpCase c;
  c.op = "gather_slices";
  c.attrs = {{"slices", int64_t{3}}};
  c.inputs = {{{Const(4)}, {}}};
  const Result<std::vector<Value>> gathered = InferCase(c);
  ASSERT_TRUE(gathered.ok());
  EXPECT_EQ((*gathered)[0].shape, SymShape({Const(3), Const(4)}));
  c.op = "sum_slices";
  const Result<std::vector<Value>> summed = InferCase(c);
  ASSERT_TRUE(summed.ok());
  EXPECT_EQ((*summed)[0].shape, SymShape({Const(4)}));
}

}  // namespace
}  // namespace dt::test
