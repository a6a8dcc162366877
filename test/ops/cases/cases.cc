#include <algorithm>
#include <cmath>

#include "common/base/philox.h"
#include "test/ops/cases/case_maker.h"

namespace dt::test {
namespace {

Attrs Axis(int64_t axis) { return {{"axis", axis}}; }

void AddDense(CaseMaker& make) {
  const Dim b = Batch();
  make.Add("matmul", "matmul", {}, {{b, Const(5)}, {Const(5), Const(3)}});
  make.Add("matmul, b transposed", "matmul", {{"transpose_b", true}},
           {{b, Const(5)}, {Const(3), Const(5)}});
  make.Add("matmul, a transposed", "matmul", {{"transpose_a", true}},
           {{b, Const(5)}, {b, Const(3)}});
  make.Add("matmul, both transposed", "matmul", {{"transpose_a", true}, {"transpose_b", true}},
           {{b, Const(5)}, {Const(3), b}});
  make.Add("matmul of fields", "matmul", {}, {{b, Const(2), Const(5)}, {Const(5), Const(3)}});
  make.Add("matmul to one column", "matmul", {}, {{b, Const(9)}, {Const(9), Const(1)}});
  make.Add("matmul, wide", "matmul", {}, {{b, Const(70)}, {Const(70), Const(900)}});
  make.Add("bias_add", "bias_add", {}, {{b, Const(4)}, {Const(4)}});
  make.Add("bias_add of fields", "bias_add", {}, {{b, Const(3), Const(4)}, {Const(4)}});
  for (const char* activation : {"none", "relu"}) {
    const Attrs attrs = {{"activation", std::string(activation)}};
    make.Add("dense_layer", "dense_layer", attrs,
             {{b, Const(5)}, {Const(5), Const(9)}, {Const(9)}});
    make.Add("dense_layer of fields", "dense_layer", attrs,
             {{b, Const(3), Const(5)}, {Const(5), Const(2)}, {Const(2)}});
  }
  make.Add("dense_layer_back", "dense_layer_back", {},
           {{b, Const(5)}, {Const(9), Const(5)}, {b, Const(9)}});
  make.Add("dense_layer_back to fields", "dense_layer_back", {},
           {{b, Const(3), Const(2)}, {Const(5), Const(2)}, {b, Const(3), Const(5)}});
  make.Add("dense_layer_back through dropout", "dense_layer_back", {{"dropout", 0.3}},
           {{b, Const(5)}, {Const(9), Const(5)}, {b, Const(9)}});
  make.Add("relu_bias_grad", "relu_bias_grad", {}, {{b, Const(6)}, {b, Const(6)}});
  make.Add("relu_bias_grad through dropout", "relu_bias_grad", {{"dropout", 0.3}},
           {{b, Const(6)}, {b, Const(6)}});
  make.Add("relu_bias_grad of fields", "relu_bias_grad", {},
           {{b, Const(2), Const(6)}, {b, Const(2), Const(6)}});
}

void AddElementwise(CaseMaker& make) {
  const Dim b = Batch();
  for (const char* op : {"add", "sub", "mul"}) {
    const std::string name = op;
    make.Add(name, op, {}, {{b, Const(17)}, {b, Const(17)}});
    make.Add(name + ", a row for all", op, {}, {{b, Const(17)}, {Const(17)}});
    make.Add(name + ", a column for all", op, {}, {{b, Const(17)}, {b, Const(1)}});
    make.Add(name + ", one for all", op, {}, {{Const(1)}, {b, Const(17)}});
    make.Add(name + ", fields by columns", op, {}, {{b, Const(3), Const(1)}, {Const(1), Const(4)}});
    make.Add(name + ", both ways", op, {}, {{b, Const(1), Const(4)}, {b, Const(3), Const(1)}});
  }
  for (const char* op : {"relu", "sigmoid", "tanh", "gelu", "exp", "square", "neg"}) {
    make.Add(op, op, {}, {{b, Const(19)}});
  }
  for (const char* op : {"log", "sqrt"}) {
    OpCase& c = make.Add(op, op, {}, {{b, Const(19)}});
    for (double& x : c.inputs[0].values) x = 0.5 + std::fabs(x);
  }
  make.Add("scale", "scale", {{"factor", -1.5}}, {{b, Const(19)}});
  make.Add("add_const", "add_const", {{"value", 0.25}}, {{b, Const(19)}});
  make.Add("clip", "clip", {{"min", -0.5}, {"max", 0.75}}, {{b, Const(19)}});
  make.Add("clip, above only", "clip", {{"max", 0.75}}, {{b, Const(19)}});
  make.Add("stop_gradient", "stop_gradient", {}, {{b, Const(19)}});
  make.Add("redistribute", "redistribute", {}, {{b, Const(19)}});
  make.Add("cast to fp32", "cast", {{"to", std::string("fp32")}}, {{b, Const(19)}});
  OpCase& narrow =
      make.Add("cast to bf16", "cast", {{"to", std::string("bf16")}}, {{b, Const(19)}});
  narrow.inputs[0].smooth = false;  // Rounding makes it a step function.
}

void AddNorm(CaseMaker& make) {
  const Dim b = Batch();
  OpCase& norm = make.Add("batch_norm", "batch_norm", {{"epsilon", 1e-3}},
                          {{b, Const(6)}, {Const(6)}, {Const(6)}, {Const(6)}, {Const(6)}});
  for (double& var : norm.inputs[4].values) var = std::fabs(var);
  norm.inputs[3].smooth = norm.inputs[4].smooth = false;
  OpCase& frozen = make.cases.emplace_back(norm);
  frozen.name = "batch_norm in evaluation";
  frozen.run.training = false;
  for (CaseInput& input : frozen.inputs) input.smooth = false;
  for (const bool training : {true, false}) {
    OpCase layer = norm;
    layer.name = fmt::format("norm_layer, training {}", training);
    layer.op = "norm_layer";
    layer.attrs["dropout"] = 0.4;
    layer.run.training = training;
    make.cases.push_back(layer);
  }
  make.Add("norm_layer_back", "norm_layer_back", {{"dropout", 0.4}},
           {{b, Const(6)}, {b, Const(6)}, {Const(6)}, {Const(6)}, {Const(6)}, {b, Const(6)}});
  OpCase& statistics = make.Add("batch_norm_statistics", "batch_norm_statistics", {},
                                std::vector<SymShape>(6, {Const(6)}));
  for (double& deviation : statistics.inputs[4].values) deviation = 1 + std::fabs(deviation);
  statistics.inputs[5].values.assign(6, 9.0);  // Every channel has as many samples.
  for (CaseInput& input : statistics.inputs) input.smooth = false;
  OpCase& choice = make.Add("in_training", "in_training", {}, {{b, Const(6)}, {b, Const(6)}});
  choice.inputs[1].smooth = false;
  make.Add("in evaluation", "in_training", {}, {{b, Const(6)}, {b, Const(6)}}).run.training = false;
  for (CaseInput& input : make.cases.back().inputs) input.smooth = false;
  make.Add("batch_count", "batch_count", {}, {{b, Const(3), Const(6)}}).inputs[0].smooth = false;
  make.Add("dropout", "dropout", {{"rate", 0.4}}, {{b, Const(21)}});
  make.Add("dropout of fields", "dropout", {{"rate", 0.1}}, {{b, Const(3), Const(11)}});
  make.Add("dropout of a part", "dropout",
           {{"rate", 0.3},
            {"first", std::vector<int64_t>{0, 1, 5}},
            {"whole", std::vector<int64_t>{0, 6, 30}}},
           {{b, Const(3), Const(19)}});
  make.Add("dropout in evaluation", "dropout", {{"rate", 0.4}}, {{b, Const(21)}}).run.training =
      false;
}

void AddShapes(CaseMaker& make) {
  const Dim b = Batch();
  make.Add("concat", "concat", {}, {{b, Const(3)}, {b, Const(1)}, {b, Const(4)}});
  make.Add("concat of fields", "concat", Axis(1),
           {{b, Const(3), Const(2)}, {b, Const(1), Const(2)}});
  make.Add("slice", "slice", {{"begin", int64_t{1}}, {"end", int64_t{4}}}, {{b, Const(6)}});
  make.Add("slice of fields", "slice", {{"axis", int64_t{1}}, {"begin", int64_t{2}}},
           {{b, Const(4), Const(3)}});
  make.Add("pad", "pad", {{"axis", int64_t{1}}, {"before", int64_t{1}}, {"after", int64_t{2}}},
           {{b, Const(4), Const(3)}});
  make.Add("stack", "stack", {}, {{b, Const(5)}, {b, Const(2), Const(5)}, {b, Const(5)}});
  make.Add("reshape", "reshape", {{"shape", std::vector<int64_t>{-1, 2, 6}}},
           {{b, Const(3), Const(4)}});
  make.Add("reshape across samples", "reshape", {{"shape", std::vector<int64_t>{-3, 4}}},
           {{b, Const(3), Const(4)}});
  make.Add("flatten", "flatten", {}, {{b, Const(3), Const(4)}});
  make.Add("transpose", "transpose", {{"perm", std::vector<int64_t>{0, 2, 1}}},
           {{b, Const(3), Const(4)}});
  make.Add("transpose, batch last", "transpose", {{"perm", std::vector<int64_t>{2, 1, 0}}},
           {{b, Const(3), Const(4)}});
  OpCase& repeated = make.Add("broadcast_to", "broadcast_to", {},
                              {{b, Const(1), Const(4)}, {b, Const(3), Const(4)}});
  repeated.inputs[1].smooth = false;
  make.Add("fill", "fill", {{"shape", std::vector<int64_t>{2, 3}}, {"value", 1.5}}, {});
}

void AddReductions(CaseMaker& make) {
  const Dim b = Batch();
  for (const char* op : {"reduce_sum", "reduce_mean"}) {
    const std::string name = op;
    make.Add(name + " of the last", op, Axis(-1), {{b, Const(3), Const(11)}});
    make.Add(name + " of fields", op, Axis(1), {{b, Const(3), Const(11)}});
    Attrs kept = {{"axis", std::vector<int64_t>{1, 2}}, {"keep_dims", true}};
    make.Add(name + " of two", op, kept, {{b, Const(3), Const(11)}});
    make.Add(name + " to one column", op, {{"axis", int64_t{1}}, {"keep_dims", true}},
             {{b, Const(9)}});
    make.Add(name + " of a parameter", op, Axis(0), {{Const(700), Const(3)}});
  }
  make.Add("reduce_batch", "reduce_batch", {}, {{b, Const(2), Const(5)}});
  for (const SymShape& like :
       {SymShape{Const(5)}, SymShape{b, Const(1), Const(5)}, SymShape{Const(1)},
        SymShape{Const(3), Const(1)}, SymShape{b, Const(3), Const(1)}}) {
    make.Add("reduce_to", "reduce_to", {}, {{b, Const(3), Const(5)}, like});
  }
}

void AddSparse(CaseMaker& make) {
  const Dim b = Batch(), n = {kIdsSymbol, 1};
  for (const bool weighted : {false, true}) {
    const std::string how = weighted ? ", weighted" : "";
    OpCase& gather = make.Add("gather_rows" + how, "gather_rows",
                              {{"length", int64_t{3}}, {"weighted", weighted}}, {});
    AddLookup(make, gather, {Batch(3)}, {7, 5});
    if (weighted) gather.inputs.push_back(Floats(gather, {Batch(3)}, make.NextStream()));
    gather.inputs.back().smooth = false;
    for (const char* combiner : {"sum", "mean", "sqrtn"}) {
      OpCase& fixed = make.Add(
          std::string("bag ") + combiner + how, "bag",
          {{"length", int64_t{2}}, {"combiner", std::string(combiner)}, {"weighted", weighted}},
          {});
      AddLookup(make, fixed, {Batch(2)}, {6, 17});
      if (weighted) fixed.inputs.push_back(Floats(fixed, {Batch(2)}, make.NextStream()));
      fixed.inputs.back().smooth = false;

      OpCase& ragged = make.Add(
          std::string("ragged bag ") + combiner + how, "bag",
          {{"ragged", true}, {"combiner", std::string(combiner)}, {"weighted", weighted}}, {});
      const Numbers ends = ListEnds(make, ragged, 3);
      AddLookup(make, ragged, {n}, {6, 4});
      ragged.inputs.push_back({{b}, ends, true, false});
      if (weighted) ragged.inputs.push_back(Floats(ragged, {n}, make.NextStream()));
      ragged.inputs.back().smooth = false;
    }
  }
}

void AddInteractions(CaseMaker& make) {
  const Dim b = Batch();
  make.Add("fm", "fm", {}, {{b, Const(4), Const(5)}});
  make.Add("fm, wide", "fm", {}, {{b, Const(3), Const(150)}});
  make.Add("fm of one field", "fm", {}, {{b, Const(1), Const(5)}});
  make.Add("dot", "dot", {}, {{b, Const(4), Const(19)}});
  make.Add("dot of two", "dot", {}, {{b, Const(2), Const(3)}});
  for (const auto& [fields, dim] :
       {std::pair{15, 7}, {16, 16}, {17, 17}, {19, 16}, {33, 48}, {5, 1}}) {
    make.Add(fmt::format("dot of {} fields, {} columns", fields, dim), "dot", {},
             {{b, Const(fields), Const(dim)}});
  }
  make.Add("dot of several", "dot", {}, {{b, Const(16)}, {b, Const(9), Const(16)}, {b, Const(16)}});
  make.Add("dot of single fields", "dot", {}, {{b, Const(5)}, {b, Const(5)}});
  make.Add("concat_dot", "concat_dot", {},
           {{b, Const(16)}, {b, Const(9), Const(16)}, {b, Const(7)}});
  make.Add("concat_dot of few", "concat_dot", {}, {{b, Const(3), Const(4)}, {b, Const(2)}});
  make.Add("concat_dot_grad", "concat_dot_grad", {},
           {{b, Const(16)}, {b, Const(9), Const(16)}, {b, Const(7 + 45)}});
  make.Add("cross_layer", "cross_layer", {},
           {{b, Const(11)}, {b, Const(11)}, {Const(11), Const(1)}, {Const(11)}});
}

}  // namespace

void AddLookup(CaseMaker& make, OpCase& c, SymShape index_shape, const RowShape& of) {
  const auto [rows, dim] = of;
  c.sizes[kRowsSymbol] = rows;
  const auto count = static_cast<size_t>(ElementCount(ShapeIn(c, index_shape)));
  Numbers index(count), ends, order;
  for (size_t i = 0; i < count; ++i) {
    index[i] =
        static_cast<double>(Philox(make.NextStream(), 0, i)[0] % static_cast<uint64_t>(rows));
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < count; ++i) {
      if (index[i] == static_cast<double>(row)) order.push_back(static_cast<double>(i));
    }
    ends.push_back(static_cast<double>(order.size()));
  }
  c.inputs = {Floats(c, {{kRowsSymbol, 1}, Const(dim)}, make.NextStream()),
              {index_shape, index, true, false},
              {{{kRowsSymbol, 1}}, ends, true, false},
              {index_shape, order, true, false}};
}

Numbers ListEnds(CaseMaker& make, OpCase& c, int64_t longest) {
  Numbers ends;
  for (int64_t i = 0; i < make.batch(); ++i) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + static_cast<double>(i % (longest + 1)));
  }
  c.sizes[kIdsSymbol] = ends.empty() ? 0 : static_cast<int64_t>(ends.back());
  return ends;
}

std::vector<OpCase> CasesFor(int64_t batch) {
  CaseMaker make(batch);
  AddDense(make);
  AddElementwise(make);
  AddNorm(make);
  AddShapes(make);
  AddReductions(make);
  AddSparse(make);
  AddInteractions(make);
  AddLossCases(make);
  AddAttentionCases(make);
  AddRaggedCases(make);
  AddMoeCases(make);
  return std::move(make.cases);
}

}  // namespace dt::test
