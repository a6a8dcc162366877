// Runs one operator, its shape rule and its gradient without an engine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/kernel.h"
#include "ops/op_spec.h"

namespace dt::test {

// Symbols of a case's graph, in addition to kConstant and kBatch.
inline constexpr SymbolIndex kRowsSymbol = 2, kIdsSymbol = 3;
inline Dim Batch(int64_t times = 1) { return {kBatch, times}; }

using Numbers = std::vector<double>;

struct CaseInput {
  SymShape shape;
  Numbers values;
  bool index = false;  // The input is of type u32.
  bool smooth = true;  // A gradient is wanted, and finite differences are meaningful.
};

struct OpCase {
  std::string name;
  std::string op;
  Attrs attrs;
  std::vector<CaseInput> inputs;
  std::map<SymbolIndex, int64_t> sizes = {{kBatch, 0}, {kRowsSymbol, 0}, {kIdsSymbol, 0}};
  RunInfo run;
};

// The concrete shape for the case's sizes.
Shape ShapeIn(const OpCase& c, const SymShape& shape);

// Runs a case's nodes. Tensors are in host memory before and after the run.
class Backend {
 public:
  struct Work {
    const Graph& graph;
    const Node& node;
    std::span<const TensorView> inputs, outputs;
    const RunInfo& run;
    std::span<const int64_t> sizes;  // The size of each symbol.
  };
  virtual ~Backend() = default;
  virtual void Run(const Work& work) = 0;
};

struct RunResult {
  std::vector<Numbers> outputs;
  std::vector<Shape> shapes;    // Shapes of the outputs.
  std::vector<Numbers> inputs;  // Inputs after the run, because in-place operators write to them.
};

Result<std::vector<Value>> InferCase(const OpCase& c);
// Outputs are filled with NaN beforehand. REQUIRES: InferCase succeeds.
RunResult RunCase(const OpCase& c, DType dtype, uint32_t threads = 1);
RunResult RunCase(const OpCase& c, DType dtype, Backend& backend);
// The gradient of Σ outputs · output_grads for each input; empty for inputs without a gradient.
std::vector<Numbers> GradientOf(const OpCase& c, const std::vector<Numbers>& output_grads,
                                DType dtype, uint32_t threads = 1);
std::vector<Numbers> GradientOf(const OpCase& c, const std::vector<Numbers>& output_grads,
                                DType dtype, Backend& backend);
// True if only the first output of the operator has a gradient.
inline bool PassesFirstOnly(const OpCase& c) {
  return c.op == "batch_norm" || c.op == "in_batch_softmax" || c.op == "top_k" ||
         c.op == "merge_top_k" || c.op == "dispatch";
}
bool HasGradient(const OpCase& c);
// Random gradients for the outputs of a run.
std::vector<Numbers> RandomGrads(const OpCase& c, const RunResult& result);
// A case of `op`, with the same name, for a slice of `batch` samples.
OpCase CaseOf(std::string op, Attrs attrs, std::vector<CaseInput> inputs, int64_t batch);
// The value rounded to bf16.
double RoundedToBf16(double value);

// Standard normal values; the same for the same arguments.
Numbers Normals(size_t count, uint64_t stream);
CaseInput Floats(const OpCase& c, SymShape shape, uint64_t stream);

// Cases of every operator that has a kernel, with all kinds of gradients, for a slice of `batch`
// samples.
std::vector<OpCase> CasesFor(int64_t batch);
// A case of an operator that runs once per step, with constant shapes.
OpCase StepCase(std::string op, Attrs attrs, const std::vector<SymShape>& shapes);
// StepCases are the operators that run once per step and change parameters; AllCases adds CasesFor.
std::vector<OpCase> StepCases();
std::vector<OpCase> AllCases(int64_t batch);
// The values that the case's operator should give, computed from its definition by plain loops in
// float64; empty if this operator has no definition here.
std::vector<Numbers> Definition(const OpCase& c);

}  // namespace dt::test
