// Rows of a table on the worker: read, and updated as a server would.
#include "ops/cuda/kernels.cuh"
#include "ops/update/rules_cuda.cuh"

namespace dt {
namespace {

// ------------------------------------------------------------------ take_rows

template <class T>
struct TakeRow {
  Count dim, width;
  const T* table;
  const uint32_t* numbers;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const Division at = Divide(i, dim.At(run));
    out[i] = table[int64_t{numbers[at.quotient]} * width.At(run) + at.rest];
  }
};
CudaError TakeRows(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(call.outputs[0]),
            TakeRow<T>{ColsOf(call.outputs[0]), ColsOf(call.inputs[0]), DataOf<T>(call.inputs[0]),
                       IndexOf(call.inputs[1]), DataOf<T>(call.outputs[0])});
  });
}

// ------------------------------------------------------------------ update_rows

// The optimizer, with the settings that only rows have.
struct RowRules {
  OptimizerSpec optimizer;
  double l2;
  float clip_row_norm;
  bool by_gap, scheduled;
  explicit RowRules(const CudaCall& call)
      : optimizer(OptimizerOf(call)),
        l2(FloatAttr(call, "l2", 0)),
        clip_row_norm(static_cast<float>(FloatAttr(call, "clip_row_norm", 0))),
        by_gap(BoolAttr(call, "l2_by_gap", true)),
        scheduled(BoolAttr(call, "scheduled", true)) {}
};

struct RowRates {
  Rates all;
  double keep;  // AdamW: factor of the value for each step since the last update.
};
template <class Rule>
__device__ RowRates RowRatesFor(const RowRules& rules, const CudaRun& run) {
  const float lr_scale = rules.scheduled ? run.lr_scale : 1.0f;
  const OptimizerSpec& spec = rules.optimizer;
  const double lr = static_cast<double>(spec.lr) * lr_scale;
  RowRates rates{RatesFor(spec, run.update_step, lr_scale), 1.0 - lr * spec.weight_decay};
  if constexpr (Rule::kLazy) {
    // SparseAdam corrects the rate, so epsilon is added to the uncorrected root.
    const double root2 = sqrt(1.0 - Power(spec.beta2, run.update_step + 1));
    rates.all.adam_rate =
        static_cast<float>(lr * root2 / (1.0 - Power(spec.beta1, run.update_step + 1)));
    rates.all.adam_root = 1.0f;
  }
  return rates;
}

struct TableArrays {
  float* table;
  const uint32_t* numbers;
  const float* grads;
  const uint32_t* steps_since_update;
  Count dim, width;
};

// The row that a warp updates.
struct CurrentRow {
  float *value, *state;
  const float* grad;
  int64_t dim;
  int lane;
  // l2: added to the gradient as l2 · value. factor: applied to the gradient to clip its norm.
  float l2, factor;

  __device__ float GradAt(int64_t i) const { return (grad[i] + l2 * value[i]) * factor; }
  __device__ double Squares() const {
    double sum = 0;
    for (int64_t i = lane; i < dim; i += kWarp) {
      const double g = GradAt(i);
      sum += g * g;
    }
    return WarpSum(sum);
  }
};

template <class Rule>
__device__ void UpdateRow(const OptimizerSpec& spec, const Rates& rates, const CurrentRow& row,
                          float decay1, float decay2) {
  if constexpr (Rule::kRowwise) {
    // When the sum is known, every lane has read the accumulator.
    const float before = row.state[0];
    const float sum = before + static_cast<float>(row.Squares() / static_cast<double>(row.dim));
    const float rate = rates.lr / (sqrtf(sum) + spec.epsilon);
    for (int64_t i = row.lane; i < row.dim; i += kWarp) row.value[i] -= rate * row.GradAt(i);
    if (row.lane == 0) row.state[0] = sum;
  } else {
    for (int64_t i = row.lane; i < row.dim; i += kWarp) {
      Element e{row.value[i], row.GradAt(i), 0, 0};
      if constexpr (Rule::kStates > 0) e.first = row.state[i] * decay1;
      if constexpr (Rule::kStates > 1) e.second = row.state[row.dim + i] * decay2;
      Rule::Apply(spec, rates, e);
      row.value[i] = e.value;
      if constexpr (Rule::kStates > 0) row.state[i] = e.first;
      if constexpr (Rule::kStates > 1) row.state[row.dim + i] = e.second;
    }
  }
}

template <class Rule>
__global__ void __launch_bounds__(kThreads)
    UpdateRowsKernel(RowRules rules, TableArrays arrays, Count rows, const CudaRun* run) {
  __shared__ RowRates shared;
  if (threadIdx.x == 0) shared = RowRatesFor<Rule>(rules, *run);
  __syncthreads();
  const RowRates rates = shared;
  const OptimizerSpec& spec = rules.optimizer;
  const int64_t count = rows.At(*run), warps = kThreads / kWarp;
  const int64_t dim = arrays.dim.At(*run), width = arrays.width.At(*run);
  for (int64_t r = blockIdx.x * warps + threadIdx.x / kWarp; r < count; r += gridDim.x * warps) {
    float* const value = arrays.table + int64_t{arrays.numbers[r]} * width;
    const uint64_t steps_since_update = arrays.steps_since_update[r],
                   times = rules.by_gap ? steps_since_update : 1;
    CurrentRow row{value,
                   value + dim,
                   arrays.grads + r * dim,
                   dim,
                   static_cast<int>(threadIdx.x % kWarp),
                   static_cast<float>(rules.l2 * static_cast<double>(times)),
                   1.0f};
    if (rules.clip_row_norm > 0) {
      const double norm = sqrt(row.Squares());
      if (norm > rules.clip_row_norm) row.factor = static_cast<float>(rules.clip_row_norm / norm);
    }
    Rates own = rates.all;
    own.keep = static_cast<float>(Power(rates.keep, times));
    const float decay1 =
        Rule::kFades ? static_cast<float>(Power(spec.beta1, steps_since_update - 1)) : 1.0f;
    const float decay2 =
        Rule::kFades ? static_cast<float>(Power(spec.beta2, steps_since_update - 1)) : 1.0f;
    UpdateRow<Rule>(spec, own, row, decay1, decay2);
  }
}

template <class Rule>
CudaError RunUpdateRows(const CudaCall& call) {
  const CudaTensor* const in = call.inputs;
  const TableArrays arrays{DataOf<float>(in[0]), IndexOf(in[1]), DataOf<float>(in[2]),
                           IndexOf(in[3]),       ColsOf(in[2]),  ColsOf(in[0])};
  const Count rows = RowsOf(in[2]);
  LaunchKernel(call, {BlocksFor(rows.extent, kThreads / kWarp)}, UpdateRowsKernel<Rule>,
               RowRules(call), arrays, rows, call.run);
  return Launched();
}

CudaError UpdateRows(const CudaCall& call) {
  uint8_t type = kCudaF32;
  if (CudaError e = CheckCall(call, &type)) return e;
  if (type != kCudaF32) return "update_rows: rows and states are f32";
  const auto run = [&]<class Rule>(Rule) { return RunUpdateRows<Rule>(call); };
  return RunNamedRule(call, run, AllRules());
}

constexpr CudaKernel kKernels[] = {
    {"take_rows", TakeRows},
    {"update_rows", UpdateRows},
};

}  // namespace

CudaKernelList TableRowCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
