// Cases of the operators that attention and xDeepFM are made of.
#include <cmath>

#include "test/ops/cases/case_maker.h"

namespace dt::test {
namespace {

// Makes a mask of zeros and ones from random values; every third row of `cols` is all zeros.
void MakeMask(CaseInput& mask, size_t cols) {
  for (size_t i = 0; i < mask.values.size(); ++i) {
    mask.values[i] = i / cols % 3 != 2 && mask.values[i] > -0.5 ? 1 : 0;
  }
  mask.smooth = false;
}

void AddProducts(CaseMaker& make) {
  const Dim b = Batch();
  const auto transposed = [](bool left, bool right) {
    return Attrs{{"transpose_a", left}, {"transpose_b", right}};
  };
  make.Add("batch_matmul", "batch_matmul", {}, {{b, Const(7), Const(5)}, {b, Const(5), Const(21)}});
  make.Add("batch_matmul, a transposed", "batch_matmul", transposed(true, false),
           {{b, Const(5), Const(6)}, {b, Const(5), Const(16)}});
  make.Add("batch_matmul, b transposed", "batch_matmul", transposed(false, true),
           {{b, Const(2), Const(4), Const(9)}, {b, Const(2), Const(3), Const(9)}});
  make.Add("batch_matmul, both transposed", "batch_matmul", transposed(true, true),
           {{b, Const(2), Const(9), Const(5)}, {b, Const(2), Const(17), Const(9)}});
  make.Add("batch_matmul of single rows", "batch_matmul", {},
           {{b, Const(1), Const(1)}, {b, Const(1), Const(1)}});
  // This size is computed by the matrix library; smaller ones are not.
  make.Add("batch_matmul, large", "batch_matmul", transposed(false, true),
           {{Const(2), Const(3), Const(200)}, {Const(2), Const(40), Const(200)}});
  make.Add("outer", "outer", {}, {{b, Const(3), Const(4)}, {b, Const(3), Const(11)}});
  make.Add("outer of columns", "outer", {}, {{b, Const(5)}, {b, Const(1)}});
  make.Add("cin_layer", "cin_layer", {},
           {{b, Const(3), Const(4)}, {b, Const(3), Const(9)}, {Const(36), Const(5)}});
  // With 300 or more samples this takes several chunks.
  make.Add("cin_layer of many", "cin_layer", {},
           {{b, Const(40)}, {b, Const(130)}, {Const(5200), Const(2)}});
}

void AddSoftmax(CaseMaker& make) {
  const Dim b = Batch();
  make.Add("softmax", "softmax", {}, {{b, Const(13)}});
  make.Add("softmax of pairs", "softmax", {{"scale", 0.25}}, {{b, Const(2), Const(3), Const(3)}});
  OpCase& large = make.Add("softmax of large numbers", "softmax", {}, {{b, Const(9)}});
  // These numbers are exact in f32.
  for (double& x : large.inputs[0].values) x = std::round(x * 64) / 16 + 2000;
  const SymShape pairs = {b, Const(2), Const(3), Const(11)};
  MakeMask(make.Add("masked_softmax", "masked_softmax", {}, {pairs, pairs}).inputs[1], 11);
  OpCase& keys = make.Add("masked_softmax, a mask of keys", "masked_softmax", {{"scale", 2.0}},
                          {pairs, {b, Const(1), Const(1), Const(11)}});
  MakeMask(keys.inputs[1], 11);
  OpCase& queries = make.Add("masked_softmax, a mask of queries", "masked_softmax", {},
                             {pairs, {Const(3), Const(1)}});
  MakeMask(queries.inputs[1], 1);
  OpCase& row =
      make.Add("masked_softmax, one row for all", "masked_softmax", {}, {pairs, {Const(11)}});
  MakeMask(row.inputs[1], 11);
}

void AddNorms(CaseMaker& make) {
  const Dim b = Batch();
  make.Add("layer_norm", "layer_norm", {}, {{b, Const(3), Const(19)}, {Const(19)}, {Const(19)}});
  make.Add("layer_norm of few", "layer_norm", {{"epsilon", 1e-2}},
           {{b, Const(3)}, {Const(3)}, {Const(3)}});
  make.Add("l2_normalize", "l2_normalize", {}, {{b, Const(2), Const(11)}});
  make.Add("l2_normalize of short rows", "l2_normalize", {{"epsilon", 100.0}}, {{b, Const(11)}});
}

}  // namespace

void AddAttentionCases(CaseMaker& make) {
  AddProducts(make);
  AddSoftmax(make);
  AddNorms(make);
  const Dim b = Batch();
  make.Add("split_heads", "split_heads", {{"heads", int64_t{3}}}, {{b, Const(4), Const(15)}});
  make.Add("merge_heads", "merge_heads", {}, {{b, Const(3), Const(4), Const(5)}});
}

}  // namespace dt::test
