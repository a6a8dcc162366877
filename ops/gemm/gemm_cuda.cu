#include <array>
#include <map>
#include <memory>

#include "ops/gemm/gemm_cuda.cuh"

namespace dt {
namespace {

template <class T, cublasStatus_t (*destroy)(T)>
struct Destroy {
  void operator()(T handle) const { destroy(handle); }
};
template <class T, cublasStatus_t (*destroy)(T)>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Destroy<T, destroy>>;
using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// cuBLASLt stores matrices by columns, so it computes the transpose: Cᵀ = op(B)ᵀ op(A)ᵀ. `left` is
// the layout of B, `right` that of A.
struct Plan {
  Operation operation;
  Layout left, right, out;
  cublasLtMatmulAlgo_t algorithm;
};

// Everything that the choice of the algorithm depends on.
using Key = std::array<int64_t, 14>;

cudaDataType_t TypeOf(uint8_t dtype) { return dtype == kCudaBf16 ? CUDA_R_16BF : CUDA_R_32F; }

// The alignment of a pointer, at most 256.
uint32_t AlignmentOf(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const uintptr_t lowest = address & (~address + 1);
  return static_cast<uint32_t>(lowest == 0 || lowest > 256 ? 256 : lowest);
}

Key KeyOf(const CudaStream& stream, const GemmTask& t) {
  return {stream.device,
          t.m,
          t.n,
          t.k,
          t.transpose_a,
          t.transpose_b,
          t.batch,
          t.in_type,
          t.out_type,
          static_cast<int64_t>(t.math) * 2 + t.adds,
          (t.bias != nullptr) * 2 + t.relu,
          AlignmentOf(t.a),
          AlignmentOf(t.b),
          AlignmentOf(t.c)};
}

// The layout of `batch` matrices [rows, cols] stored by rows.
cublasStatus_t MakeLayout(const GemmTask& task, uint8_t type, int64_t rows, int64_t cols,
                          Layout* out) {
  cublasLtMatrixLayout_t made = nullptr;
  const auto size = [](int64_t n) { return static_cast<uint64_t>(n); };
  if (auto e = cublasLtMatrixLayoutCreate(&made, TypeOf(type), size(cols), size(rows), cols)) {
    return e;
  }
  out->reset(made);
  const auto batch = static_cast<int32_t>(task.batch);
  const int64_t stride = rows * cols;
  if (auto e = cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                                sizeof(batch))) {
    return e;
  }
  return cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                          &stride, sizeof(stride));
}

cublasStatus_t MakeOperation(const GemmTask& task, Operation* out) {
  cublasLtMatmulDesc_t made = nullptr;
  const bool tf32 = task.math == GemmMath::kTf32 && task.in_type == kCudaF32;
  const cublasComputeType_t compute = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  if (auto e = cublasLtMatmulDescCreate(&made, compute, CUDA_R_32F)) return e;
  out->reset(made);
  const cublasOperation_t left = task.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t right = task.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  if (auto e =
          cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof(left))) {
    return e;
  }
  if (auto e = cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_TRANSB, &right,
                                              sizeof(right))) {
    return e;
  }
  if (task.bias == nullptr) return CUBLAS_STATUS_SUCCESS;
  // cuBLASLt's matrix is the transpose, so the bias has one value for each of its rows.
  const cublasLtEpilogue_t after = task.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  return cublasLtMatmulDescSetAttribute(made, CUBLASLT_MATMUL_DESC_EPILOGUE, &after, sizeof(after));
}
cublasStatus_t SetBias(const Operation& operation, const void* bias) {
  if (bias == nullptr) return CUBLAS_STATUS_SUCCESS;
  return cublasLtMatmulDescSetAttribute(operation.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                        sizeof(bias));
}

cublasStatus_t MakePreference(const CudaStream& stream, const GemmTask& task, Preference* out) {
  cublasLtMatmulPreference_t made = nullptr;
  if (auto e = cublasLtMatmulPreferenceCreate(&made)) return e;
  out->reset(made);
  if (auto e = cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                    &stream.workspace_bytes,
                                                    sizeof(stream.workspace_bytes))) {
    return e;
  }
  const uint32_t left = AlignmentOf(task.b), right = AlignmentOf(task.a), c = AlignmentOf(task.c);
  const struct {
    cublasLtMatmulPreferenceAttributes_t attribute;
    uint32_t value;
  } alignments[] = {{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, left},
                    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, right},
                    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c},
                    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c}};
  for (const auto& [attribute, value] : alignments) {
    if (auto e = cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof(value))) {
      return e;
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

CudaError MakePlan(const CudaStream& stream, const GemmTask& task, Plan* plan) {
  const int64_t a_rows = task.transpose_a ? task.k : task.m;
  const int64_t b_rows = task.transpose_b ? task.n : task.k;
  const int64_t a_cols = task.m * task.k / a_rows, b_cols = task.n * task.k / b_rows;
  if (auto e = MakeOperation(task, &plan->operation)) return TextOf(e);
  if (auto e = SetBias(plan->operation, task.bias)) return TextOf(e);
  if (auto e = MakeLayout(task, task.in_type, b_rows, b_cols, &plan->left)) return TextOf(e);
  if (auto e = MakeLayout(task, task.in_type, a_rows, a_cols, &plan->right)) return TextOf(e);
  if (auto e = MakeLayout(task, task.out_type, task.m, task.n, &plan->out)) return TextOf(e);
  Preference preference;
  if (auto e = MakePreference(stream, task, &preference)) return TextOf(e);
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  if (auto e = cublasLtMatmulAlgoGetHeuristic(stream.blas, plan->operation.get(), plan->left.get(),
                                              plan->right.get(), plan->out.get(), plan->out.get(),
                                              preference.get(), 1, &result, &found)) {
    return TextOf(e);
  }
  if (found == 0) return "cuBLASLt knows no algorithm for a matrix product";
  plan->algorithm = result.algo;
  return nullptr;
}

}  // namespace

CudaError Gemm(CudaStream& stream, const GemmTask& task) {
  if (task.m == 0 || task.n == 0 || task.batch == 0) return nullptr;
  const cudaStream_t on = LaunchOn(stream);
  if (task.k == 0 && task.bias == nullptr) {
    if (task.adds) return nullptr;
    const size_t element = task.out_type == kCudaBf16 ? 2 : 4;
    const auto count = static_cast<size_t>(task.batch * task.m * task.n);
    return TextOf(cudaMemsetAsync(task.c, 0, count * element, on));
  }
  thread_local std::map<Key, Plan> plans;
  const auto [at, is_unknown] = plans.try_emplace(KeyOf(stream, task));
  if (is_unknown) {
    if (CudaError e = MakePlan(stream, task, &at->second)) {
      plans.erase(at);
      return e;
    }
  }
  const Plan& plan = at->second;
  if (auto e = SetBias(plan.operation, task.bias)) return TextOf(e);
  const float alpha = 1, beta = task.adds ? 1 : 0;
  return TextOf(cublasLtMatmul(stream.blas, plan.operation.get(), &alpha, task.b, plan.left.get(),
                               task.a, plan.right.get(), &beta, task.c, plan.out.get(), task.c,
                               plan.out.get(), &plan.algorithm, stream.workspace,
                               stream.workspace_bytes, on));
}

}  // namespace dt
