#include <memory>

#include "test/support/cuda_on_host/cublasLt.h"
#include "test/support/cuda_on_host/cuda_bf16.h"

namespace {

// One column-major matrix of a batch.
struct Matrix {
  cublasLtMatrixLayout_t layout;
  char* data;
  int64_t first;  // Index of its first element.

  Matrix(cublasLtMatrixLayout_t of, const void* memory, int64_t product)
      : layout(of),
        data(static_cast<char*>(const_cast<void*>(memory))),
        first(product * of->stride) {}
  float at(int64_t row, int64_t col) const {
    const int64_t i = first + col * layout->leading + row;
    if (layout->type == CUDA_R_32F) return reinterpret_cast<const float*>(data)[i];
    return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(data)[i]);
  }
  void Set(int64_t row, int64_t col, float value) const {
    const int64_t i = first + col * layout->leading + row;
    if (layout->type == CUDA_R_32F) {
      reinterpret_cast<float*>(data)[i] = value;
    } else {
      reinterpret_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(value);
    }
  }
};

template <class T>
cublasStatus_t Take(T* to, const void* value, size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// The bias has the type of the result.
float After(const cublasLtMatmulDescOpaque_t& desc, const Matrix& to, int64_t row, float value) {
  if (desc.epilogue == CUBLASLT_EPILOGUE_DEFAULT) return value;
  cublasLtMatrixLayoutOpaque_t line = *to.layout;
  line.stride = 0;
  value += Matrix(&line, desc.bias, 0).at(row, 0);
  return desc.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS && !(value > 0) ? 0 : value;
}

struct Sides {
  int64_t rows, cols;
  Sides(cublasLtMatrixLayout_t layout, cublasOperation_t op)
      : rows(static_cast<int64_t>(op == CUBLAS_OP_N ? layout->rows : layout->cols)),
        cols(static_cast<int64_t>(op == CUBLAS_OP_N ? layout->cols : layout->rows)) {}
};

}  // namespace

const char* cublasLtGetStatusString(cublasStatus_t) { return "an error of the matrix library"; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* out, cublasComputeType_t,
                                        cudaDataType_t) {
  *out = std::make_unique<cublasLtMatmulDescOpaque_t>().release();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  std::unique_ptr<cublasLtMatmulDescOpaque_t>(desc).reset();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return Take(&desc->a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return Take(&desc->b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return Take(&desc->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return Take(&desc->bias, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* out, cudaDataType_t type,
                                          uint64_t rows, uint64_t cols, int64_t leading) {
  if (leading < static_cast<int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *out = std::make_unique<cublasLtMatrixLayoutOpaque_t>().release();
  (*out)->type = type;
  (*out)->rows = rows;
  (*out)->cols = cols;
  (*out)->leading = leading;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  std::unique_ptr<cublasLtMatrixLayoutOpaque_t>(layout).reset();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return Take(&layout->batch, value, bytes);
  return Take(&layout->stride, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* out) {
  *out = std::make_unique<cublasLtMatmulPreferenceOpaque_t>().release();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  std::unique_ptr<cublasLtMatmulPreferenceOpaque_t>(preference).reset();
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void*, size_t bytes) {
  const bool is_size = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
  return bytes == (is_size ? 8 : 4) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t*, int* found) {
  const Sides left(a, desc->a), right(b, desc->b), out(d, CUBLAS_OP_N);
  const bool fits = left.cols == right.rows && left.rows == out.rows && right.cols == out.cols &&
                    a->batch == d->batch && b->batch == d->batch;
  *found = fits ? 1 : 0;
  return fits ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

namespace {

// A product with copies of its descriptors, which callers may change before the stream runs it.
struct Product {
  cublasLtMatmulDescOpaque_t desc;
  cublasLtMatrixLayoutOpaque_t a_layout, b_layout, d_layout;
  const void *a, *b;
  void* d;
  float factor, keep;

  void Run() const {
    for (int32_t product = 0; product < d_layout.batch; ++product) RunOne(product);
  }
  void RunOne(int32_t product) const {
    const auto layout = [](const cublasLtMatrixLayoutOpaque_t& of) {
      return const_cast<cublasLtMatrixLayout_t>(&of);
    };
    const Sides left(layout(a_layout), desc.a), out(layout(d_layout), CUBLAS_OP_N);
    const Matrix x(layout(a_layout), a, product), y(layout(b_layout), b, product),
        to(layout(d_layout), d, product);
    for (int64_t at = 0; at < out.rows * out.cols; ++at) {
      const int64_t i = at % out.rows, j = at / out.rows;
      float sum = 0;
      for (int64_t k = 0; k < left.cols; ++k) {
        sum += (desc.a == CUBLAS_OP_N ? x.at(i, k) : x.at(k, i)) *
               (desc.b == CUBLAS_OP_N ? y.at(k, j) : y.at(j, k));
      }
      to.Set(i, j, After(desc, to, i, factor * sum + (keep == 0 ? 0.0f : keep * to.at(i, j))));
    }
  }
};

}  // namespace

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void*,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t stream) {
  const Product product{*desc,
                        *a_layout,
                        *b_layout,
                        *d_layout,
                        a,
                        b,
                        d,
                        *static_cast<const float*>(alpha),
                        *static_cast<const float*>(beta)};
  dt::test::Give(stream, [product] { product.Run(); });
  return CUBLAS_STATUS_SUCCESS;
}
