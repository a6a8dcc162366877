#include <cmath>

#include "ops/update/attrs.h"
#include "ops/update/update.h"
#include "test/ops/op_case.h"

namespace dt::test {
namespace {

CaseInput Numbers32(Numbers values) {
  return {{Const(static_cast<int64_t>(values.size()))}, std::move(values), true, false};
}

// Rows of a table on the worker, of several widths; on a GPU one warp computes a row.
void AddTableCases(std::vector<OpCase>& cases) {
  for (const int64_t dim : {1, 5, 40}) {
    OpCase take = StepCase("take_rows", {{"dim", dim}}, {{Const(9), Const(dim + 3)}});
    take.inputs.push_back(Numbers32({8, 0, 3, 3, 1}));
    cases.push_back(std::move(take));
    for (const OptimizerInfo& optimizer : kOptimizers) {
      for (const bool clip : {false, true}) {
        const OptimizerSpec spec{.kind = optimizer.kind,
                                 .lr = 0.1f,
                                 .ftrl_l1 = 0.5f,
                                 .weight_decay = 0.1f,
                                 .l2 = 0.02f,
                                 .l2_scope = clip ? L2Scope::kTouched : L2Scope::kGap,
                                 .clip_row_norm = clip ? 0.75f : 0.0f};
        const int64_t width = dim + StateFloats(spec, static_cast<uint32_t>(dim));
        OpCase update = StepCase("update_rows", RowOptimizerAttrs(spec, !clip),
                                 {{Const(9), Const(width)}, {Const(4)}, {Const(4), Const(dim)}});
        for (double& x : update.inputs[0].values) x = std::fabs(x);
        update.inputs[1] = Numbers32({8, 0, 3, 1});
        update.inputs.push_back(Numbers32({1, 6, 2, 1}));
        cases.push_back(std::move(update));
      }
    }
  }
}

}  // namespace

OpCase StepCase(std::string op, Attrs attrs, const std::vector<SymShape>& shapes) {
  OpCase c;
  c.name = op;
  c.op = std::move(op);
  c.attrs = std::move(attrs);
  c.run = {.seed = 3, .step = 5, .step_samples = 7, .lr_scale = 0.5f};
  for (const SymShape& shape : shapes) c.inputs.push_back(Floats(c, shape, c.inputs.size() + 1));
  return c;
}

std::vector<OpCase> StepCases() {
  std::vector<OpCase> cases;
  const Dim n = Const(700), k = Const(3), c = Const(5);
  for (const double limit : {0.0, 0.5, 1e6}) {
    cases.push_back(StepCase("clip_by_global_norm", {{"clip_norm", limit}, {"grads", int64_t{3}}},
                             {{n}, {k, c}, {n, k}, {n}, {k}}));
  }
  for (const SymShape& shape : {SymShape{n}, SymShape{k, n}, SymShape{n, k, c}}) {
    cases.push_back(StepCase("row_norms", {}, {shape}));
  }
  cases.push_back(StepCase("joint_norms", {}, {{n}, {k}}));
  cases.push_back(StepCase("add_l2", {{"l2", 0.25}}, {{n}, {n}}));
  cases.push_back(StepCase("batch_norm_running", {{"momentum", 0.3}},
                           {{c}, {c}, {k, c}, {k, c}, {k, Const(1)}}));
  cases.back().inputs[4].values = {4, 0, 1};
  // The same with counts for each channel.
  cases.push_back(
      StepCase("batch_norm_running", {{"momentum", 0.3}}, {{c}, {c}, {k, c}, {k, c}, {k, c}}));
  cases.back().inputs[4].values = {4, 4, 4, 4, 4, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
  for (const OptimizerInfo& optimizer : kOptimizers) {
    if (optimizer.row_states > 0) continue;  // This optimizer is for tables only.
    const OptimizerSpec spec{
        .kind = optimizer.kind, .lr = 0.1f, .ftrl_l1 = 0.5f, .weight_decay = 0.1f};
    OpCase update = StepCase("update", OptimizerAttrs(spec),
                             std::vector<SymShape>(2 + DenseStates(spec), SymShape{n}));
    for (size_t i = 2; i < update.inputs.size(); ++i) {
      for (double& x : update.inputs[i].values) x = std::fabs(x);
    }
    cases.push_back(std::move(update));
  }
  AddTableCases(cases);
  return cases;
}

std::vector<OpCase> AllCases(int64_t batch) {
  std::vector<OpCase> cases = CasesFor(batch);
  for (OpCase& c : StepCases()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace dt::test
