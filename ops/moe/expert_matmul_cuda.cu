// Products of each expert's rows with its own matrix, and sums of each expert's rows. No atomics:
// equal inputs give equal bits on a card.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/util.cuh"

namespace dt {
namespace {

// ------------------------------------------------------------------ products

// cuBLASLt needs sizes at the call, but an expert's number of rows is known only on the card. A
// block of kThreads threads computes a tile of kTile × kTile in steps of kInner of the inner
// dimension; a thread computes kOwn × kOwn numbers of it.
constexpr int kTile = 64, kInner = 16, kSide = 16, kOwn = kTile / kSide;

struct Range {
  int64_t begin, end;
};
__device__ inline Range RangeOf(const uint32_t* ends, int64_t expert) {
  return {expert == 0 ? 0 : int64_t{ends[expert - 1]}, int64_t{ends[expert]}};
}

// The parts of both operands for one step.
struct TileParts {
  float left[kInner][kTile + 1], right[kInner][kTile + 1];
};
__device__ inline void AddOuter(const float (&left)[kOwn], const float (&right)[kOwn],
                                float (&sum)[kOwn][kOwn]) {
  for (int r = 0; r < kOwn; ++r) {
    for (int c = 0; c < kOwn; ++c) sum[r][c] += left[r] * right[c];
  }
}
__device__ inline void AddParts(const TileParts& parts, int row, int col,
                                float (&sum)[kOwn][kOwn]) {
  for (int p = 0; p < kInner; ++p) {
    float left[kOwn], right[kOwn];
    for (int i = 0; i < kOwn; ++i) {
      left[i] = parts.left[p][row + i * kSide];
      right[i] = parts.right[p][col + i * kSide];
    }
    AddOuter(left, right, sum);
  }
}

// Computes Σ a(i, p) b(p, j) over p below `inner`, and calls store(i, j, sum) for each element of
// the tile.
template <class A, class B, class Store>
__device__ void TileProduct(int64_t inner, const A& a, const B& b, const Store& store) {
  __shared__ TileParts parts;
  const int thread = static_cast<int>(threadIdx.x), row = thread / kSide, col = thread % kSide;
  float sum[kOwn][kOwn] = {};
  for (int64_t at = 0; at < inner; at += kInner) {
    for (int i = thread; i < kTile * kInner; i += static_cast<int>(kThreads)) {
      const int64_t p = at + i % kInner, q = at + i / kTile;
      parts.left[i % kInner][i / kInner] = p < inner ? a(i / kInner, p) : 0.0f;
      parts.right[i / kTile][i % kTile] = q < inner ? b(q, i % kTile) : 0.0f;
    }
    __syncthreads();
    AddParts(parts, row, col, sum);
    __syncthreads();
  }
  for (int r = 0; r < kOwn; ++r) {
    for (int c = 0; c < kOwn; ++c) store(row + r * kSide, col + c * kSide, sum[r][c]);
  }
}

template <class T>
struct ExpertProduct {
  int64_t experts, inner, cols;
  int64_t by_inner, by_col;  // Elements of a weight from one inner index, or column, to the next.
  const uint32_t* ends;
  const T *rows, *weights, *biases;
  T* out;

  // Computes a tile of `own` rows from row `begin` on, and columns from `left` on.
  __device__ void Tile(int64_t expert, int64_t begin, int64_t own, int64_t left) const {
    const T* const x = rows + begin * inner;
    const T* const weight = weights + expert * inner * cols + left * by_col;
    const T* const bias = biases == nullptr ? nullptr : biases + expert * cols + left;
    T* const y = out + begin * cols + left;
    TileProduct(
        inner, [&](int i, int64_t p) { return i < own ? ToFloat(x[i * inner + p]) : 0.0f; },
        [&](int64_t p, int j) {
          return left + j < cols ? ToFloat(weight[p * by_inner + j * by_col]) : 0.0f;
        },
        [&](int i, int j, float sum) {
          if (i >= own || left + j >= cols) return;
          y[i * cols + j] = To<T>(bias == nullptr ? sum : sum + ToFloat(bias[j]));
        });
  }
};

// Computes tile t of all experts' rows; each expert's rows are divided separately.
template <class T>
__global__ void __launch_bounds__(kThreads) ExpertProductKernel(ExpertProduct<T> of) {
  int64_t expert = 0, first = 0;  // `first`: number of tiles of the experts before.
  for (int64_t t = blockIdx.y; expert < of.experts;) {
    const Range range = RangeOf(of.ends, expert);
    const int64_t tiles = (range.end - range.begin + kTile - 1) / kTile;
    if (t >= first + tiles) {
      first += tiles;
      ++expert;
      continue;
    }
    const int64_t begin = range.begin + (t - first) * kTile, left = range.end - begin;
    for (int64_t col = int64_t{blockIdx.x} * kTile; col < of.cols;
         col += int64_t{gridDim.x} * kTile) {
      of.Tile(expert, begin, left < kTile ? left : kTile, col);
    }
    t += gridDim.y;
  }
}
CudaError ExpertMatmul(const CudaCall& call) {
  const CudaTensor &rows = call.inputs[0], &weight = call.inputs[2], &out = call.outputs[0];
  const bool transposed = BoolAttr(call, "transpose_b", false);
  const int64_t experts = weight.times[0], inner = rows.times[1], cols = out.times[1];
  const unsigned column_blocks = BlocksFor(cols, kTile);
  const unsigned row_blocks = BlocksFor(RowsOf(rows).extent + experts * kTile, kTile);
  return OnFloat(call, [&]<class T>(T) {
    const ExpertProduct<T> of{experts,
                              inner,
                              cols,
                              transposed ? 1 : cols,
                              transposed ? inner : 1,
                              IndexOf(call.inputs[1]),
                              DataOf<T>(rows),
                              DataOf<T>(weight),
                              call.input_count == 4 ? DataOf<T>(call.inputs[3]) : nullptr,
                              DataOf<T>(out)};
    LaunchKernel(call, {dim3(column_blocks, row_blocks)}, ExpertProductKernel<T>, of);
  });
}

// A tile of one expert's aᵀ b.
template <class T>
struct ExpertGrad {
  int64_t rows, cols;
  const uint32_t* ends;
  const T *a, *b;
  T* out;
};
template <class T>
__global__ void __launch_bounds__(kThreads) ExpertGradKernel(ExpertGrad<T> of) {
  const Range range = RangeOf(of.ends, blockIdx.z);
  const int64_t top = int64_t{blockIdx.y} * kTile, left = int64_t{blockIdx.x} * kTile;
  const T* const a = of.a + range.begin * of.rows + top;
  const T* const b = of.b + range.begin * of.cols + left;
  T* const out = of.out + (blockIdx.z * of.rows + top) * of.cols + left;
  TileProduct(
      range.end - range.begin,
      [&](int i, int64_t p) { return top + i < of.rows ? ToFloat(a[p * of.rows + i]) : 0.0f; },
      [&](int64_t p, int j) { return left + j < of.cols ? ToFloat(b[p * of.cols + j]) : 0.0f; },
      [&](int i, int j, float sum) {
        if (top + i < of.rows && left + j < of.cols) out[i * of.cols + j] = To<T>(sum);
      });
}
CudaError ExpertMatmulGrad(const CudaCall& call) {
  const CudaTensor &a = call.inputs[0], &b = call.inputs[2], &out = call.outputs[0];
  const auto tiles = [](int64_t n) { return static_cast<unsigned>((n + kTile - 1) / kTile); };
  const dim3 grid(tiles(out.times[2]), tiles(out.times[1]), static_cast<unsigned>(out.times[0]));
  return OnFloat(call, [&]<class T>(T) {
    const ExpertGrad<T> of{out.times[1], out.times[2], IndexOf(call.inputs[1]),
                           DataOf<T>(a), DataOf<T>(b), DataOf<T>(out)};
    LaunchKernel(call, {grid}, ExpertGradKernel<T>, of);
  });
}

// ------------------------------------------------------------------ sums

constexpr int kSumCols = 32, kSumLanes = 8;

template <class T>
__global__ void __launch_bounds__(kSumCols* kSumLanes)
    ExpertSumKernel(int64_t cols, const uint32_t* ends, const T* rows, T* out) {
  __shared__ float sums[kSumLanes][kSumCols + 1];
  const Range range = RangeOf(ends, blockIdx.y);
  const int lane = static_cast<int>(threadIdx.y), own = static_cast<int>(threadIdx.x);
  const int64_t c = int64_t{blockIdx.x} * kSumCols + own;
  double sum = 0;
  for (int64_t r = range.begin + lane; c < cols && r < range.end; r += kSumLanes) {
    sum += static_cast<double>(ToFloat(rows[r * cols + c]));
  }
  sums[lane][own] = static_cast<float>(sum);
  __syncthreads();
  if (lane != 0 || c >= cols) return;
  float total = 0;
  for (int k = 0; k < kSumLanes; ++k) total += sums[k][own];
  out[blockIdx.y * cols + c] = To<T>(total);
}
CudaError ExpertSum(const CudaCall& call) {
  const CudaTensor &rows = call.inputs[0], &out = call.outputs[0];
  const int64_t cols = out.times[1];
  const dim3 grid(static_cast<unsigned>((cols + kSumCols - 1) / kSumCols),
                  static_cast<unsigned>(out.times[0]));
  return OnFloat(call, [&]<class T>(T) {
    LaunchKernel(call, {grid, dim3(kSumCols, kSumLanes)}, ExpertSumKernel<T>, cols,
                 IndexOf(call.inputs[1]), DataOf<T>(rows), DataOf<T>(out));
  });
}

constexpr CudaKernel kKernels[] = {
    {"expert_matmul", ExpertMatmul},
    {"expert_matmul_grad", ExpertMatmulGrad},
    {"expert_sum", ExpertSum},
};

}  // namespace

CudaKernelList ExpertMatmulCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
