// Runs one operator, its shape rule and its gradient outside any engine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ops/kernel.h"
#include "ops/op_spec.h"

namespace dt::test {

// Symbols of a case's graph, beside kConstant and kBatch.
inline constexpr SymbolIndex kRowsSymbol = 2, kIdsSymbol = 3;
inline Dim Batch(int64_t times = 1) { return {kBatch, times}; }

using Numbers = std::vector<double>;

struct CaseInput {
  SymShape shape;
  Numbers values;
  bool index = false;  // u32
  bool smooth = true;  // A gradient is wanted, and finite differences make sense.
};

struct OpCase {
  std::string name;
  std::string op;
  Attrs attrs;
  std::vector<CaseInput> inputs;
  std::map<SymbolIndex, int64_t> sizes = {{kBatch, 0}, {kRowsSymbol, 0}, {kIdsSymbol, 0}};
  RunInfo run;
};

// The concrete shape under the case's sizes.
Shape ShapeIn(const OpCase& c, const SymShape& shape);

// Where a case's nodes run. Tensors lie in the host's memory before and after.
class Backend {
 public:
  struct Work {
    const Graph& graph;
    const Node& node;
    std::span<const TensorView> inputs, outputs;
    const RunInfo& run;
    std::span<const int64_t> sizes;  // By symbol.
  };
  virtual ~Backend() = default;
  virtual void Run(const Work& work) = 0;
};

struct RunResult {
  std::vector<Numbers> outputs;
  std::vector<Shape> shapes;    // Of the outputs.
  std::vector<Numbers> inputs;  // After the run: in-place operators write them.
};

Result<std::vector<Value>> InferCase(const OpCase& c);
// Outputs are filled with NaN beforehand. REQUIRES: InferCase succeeds.
RunResult RunCase(const OpCase& c, DType dtype, uint32_t threads = 1);
RunResult RunCase(const OpCase& c, DType dtype, Backend& backend);
// The gradient of Σ outputs · output_grads for each input; empty where the operator gives none.
std::vector<Numbers> GradientOf(const OpCase& c, const std::vector<Numbers>& output_grads,
                                DType dtype, uint32_t threads = 1);
std::vector<Numbers> GradientOf(const OpCase& c, const std::vector<Numbers>& output_grads,
                                DType dtype, Backend& backend);
// The operator passes on the gradient of its first output only: the others have none.
inline bool PassesFirstOnly(const OpCase& c) {
  return c.op == "batch_norm" || c.op == "in_batch_softmax" || c.op == "top_k" ||
         c.op == "dispatch";
}
bool HasGradient(const OpCase& c);
// Of the outputs of a run.
std::vector<Numbers> RandomGrads(const OpCase& c, const RunResult& result);
// One case of `op`, named as it, for a slice of `batch` samples.
OpCase CaseOf(std::string op, Attrs attrs, std::vector<CaseInput> inputs, int64_t batch);
// As bf16 holds it.
double RoundedToBf16(double value);

// Standard normal values; the same for the same arguments.
Numbers Normals(size_t count, uint64_t stream);
CaseInput Floats(const OpCase& c, SymShape shape, uint64_t stream);

// Every operator that has a kernel, with gradients of all kinds, for a slice of `batch` samples.
std::vector<OpCase> CasesFor(int64_t batch);
// Of an operator that is run once per step, with constant shapes.
OpCase StepCase(std::string op, Attrs attrs, const std::vector<SymShape>& shapes);
// Operators of a step, which change parameters; and with CasesFor.
std::vector<OpCase> StepCases();
std::vector<OpCase> AllCases(int64_t batch);
// What the case's operator should give, from its definition, by plain loops in float64; empty if
// there is no definition for this operator.
std::vector<Numbers> Definition(const OpCase& c);

}  // namespace dt::test
