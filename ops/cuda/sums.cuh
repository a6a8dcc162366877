// Sums in an order that depends on sizes alone: no atomics, no dependence on the card.
#pragma once

#include "ops/cuda/util.cuh"

namespace dt {

// Rows of one partial sum.
inline constexpr int64_t kPieceRows = 256;
inline constexpr int64_t kFewRows = 32;  // Up to this many rows are added by one thread.
inline constexpr int kTileCols = 32, kTileRows = 8, kPieceLanes = 32;

inline int64_t PiecesOf(int64_t rows) { return (rows + kPieceRows - 1) / kPieceRows; }

// Sums over few rows. f.On(column, run) returns a function of the row; store(column, sum, run)
// receives the sum of its values.
template <class F, class Store>
struct FewRows {
  F f;
  Store store;
  Count rows;
  __device__ void operator()(int64_t c, const CudaRun& run) const {
    const auto value = f.On(c, run);
    const int64_t count = rows.At(run);
    double sum = 0;
    for (int64_t r = 0; r < count; ++r) sum += static_cast<double>(value(r));
    store(c, sum, run);
  }
};

template <class F>
__global__ void __launch_bounds__(kTileCols* kTileRows)
    PieceSumsKernel(F f, Count rows, Count cols, const CudaRun* run, float* parts) {
  __shared__ float sums[kTileRows][kTileCols + 1];
  const int64_t count = rows.At(*run), width = cols.At(*run);
  const int64_t pieces = (count + kPieceRows - 1) / kPieceRows;
  const int tx = threadIdx.x, ty = threadIdx.y;
  for (int64_t piece = blockIdx.y; piece < pieces; piece += gridDim.y) {
    const int64_t begin = piece * kPieceRows;
    const int64_t end = begin + kPieceRows < count ? begin + kPieceRows : count;
    for (int64_t left = int64_t{blockIdx.x} * kTileCols; left < width;
         left += int64_t{gridDim.x} * kTileCols) {
      const int64_t c = left + tx;
      float sum = 0;
      if (c < width) {
        const auto value = f.On(c, *run);
        for (int64_t r = begin + ty; r < end; r += kTileRows) sum += value(r);
      }
      sums[ty][tx] = sum;
      __syncthreads();
      if (ty == 0 && c < width) {
        float total = 0;
        for (int k = 0; k < kTileRows; ++k) total += sums[k][tx];
        parts[piece * width + c] = total;
      }
      __syncthreads();
    }
  }
}

template <class Store>
__global__ void __launch_bounds__(kTileCols* kPieceLanes)
    AddPiecesKernel(Store store, Count rows, Count cols, const CudaRun* run, const float* parts) {
  __shared__ double sums[kPieceLanes][kTileCols + 1];
  const int64_t width = cols.At(*run);
  const int64_t pieces = (rows.At(*run) + kPieceRows - 1) / kPieceRows;
  const int tx = threadIdx.x, ty = threadIdx.y;
  for (int64_t left = int64_t{blockIdx.x} * kTileCols; left < width;
       left += int64_t{gridDim.x} * kTileCols) {
    const int64_t c = left + tx;
    double sum = 0;
    for (int64_t p = ty; c < width && p < pieces; p += kPieceLanes) sum += parts[p * width + c];
    sums[ty][tx] = sum;
    __syncthreads();
    if (ty == 0 && c < width) {
      double total = 0;
      for (int k = 0; k < kPieceLanes; ++k) total += sums[k][tx];
      store(c, total, *run);
    }
    __syncthreads();
  }
}

// Scratch memory that SumRows needs.
inline size_t SumRowsBytes(const Count& rows, const Count& cols) {
  return static_cast<size_t>(PiecesOf(rows.extent) * cols.extent) * sizeof(float);
}

struct RowSums {
  Count rows, cols;
  float* parts;  // SumRowsBytes bytes.
};
// Sums `rows` rows of each of `cols` columns: in float within a piece, in double across pieces.
template <class F, class Store>
void SumRows(const CudaCall& call, const RowSums& of, const F& f, const Store& store) {
  const auto& [rows, cols, parts] = of;
  if (rows.extent <= kFewRows) {
    return ForEach(call, cols, FewRows<F, Store>{f, store, rows});
  }
  const unsigned column_blocks = BlocksFor(cols.extent, kTileCols);
  const int64_t pieces_max = kBlocksMax / column_blocks + 1, pieces = PiecesOf(rows.extent);
  const dim3 grid(column_blocks, static_cast<unsigned>(pieces < pieces_max ? pieces : pieces_max));
  LaunchKernel(call, {grid, dim3(kTileCols, kTileRows)}, PieceSumsKernel<F>, f, rows, cols,
               call.run, parts);
  LaunchKernel(call, {column_blocks, dim3(kTileCols, kPieceLanes)}, AddPiecesKernel<Store>, store,
               rows, cols, call.run, parts);
}

// ------------------------------------------------------------------ one number

inline constexpr int64_t kPieceElements = 4096;

// The sum over a block of kThreads threads; every thread gets it.
__device__ inline double BlockSum(double x) {
  __shared__ double sums[kThreads / kWarp];
  x = WarpSum(x);
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = x;
  __syncthreads();
  double total = 0;
  for (unsigned w = 0; w < kThreads / kWarp; ++w) total += sums[w];
  __syncthreads();
  return total;
}

// parts[p] = Σ f(i, run) over piece p.
template <class F>
__global__ void __launch_bounds__(kThreads)
    ElementSumsKernel(F f, Count n, const CudaRun* run, double* parts) {
  const int64_t count = n.At(*run);
  const int64_t pieces = (count + kPieceElements - 1) / kPieceElements;
  for (int64_t piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const int64_t begin = piece * kPieceElements;
    const int64_t end = begin + kPieceElements < count ? begin + kPieceElements : count;
    double sum = 0;
    for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) sum += f(i, *run);
    sum = BlockSum(sum);
    if (threadIdx.x == 0) parts[piece] = sum;
  }
}

// One block adds all parts and calls store(total, run).
template <class Store>
__global__ void __launch_bounds__(kThreads)
    AddPartsKernel(Store store, Count n, const CudaRun* run, const double* parts) {
  const int64_t pieces = (n.At(*run) + kPieceElements - 1) / kPieceElements;
  double sum = 0;
  for (int64_t p = threadIdx.x; p < pieces; p += kThreads) sum += parts[p];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) store(sum, *run);
}

inline size_t SumElementsBytes(const Count& n) {
  return static_cast<size_t>((n.extent + kPieceElements - 1) / kPieceElements) * sizeof(double);
}
template <class F, class Store>
void SumElements(const CudaCall& call, const Count& n, double* parts, const F& f,
                 const Store& store) {
  LaunchKernel(call, {BlocksFor(n.extent, kPieceElements)}, ElementSumsKernel<F>, f, n, call.run,
               parts);
  LaunchKernel(call, {1}, AddPartsKernel<Store>, store, n, call.run, parts);
}

// For sums of the rows of a matrix x: its columns, and where their sums go.
template <class T>
struct ColumnOf {
  Count cols;
  const T* x;
  __device__ auto On(int64_t c, const CudaRun& run) const {
    return [x = x + c, width = cols.At(run)](int64_t r) { return ToFloat(x[r * width]); };
  }
};
template <class T>
struct StoreColumn {
  T* out;
  __device__ void operator()(int64_t c, double sum, const CudaRun&) const {
    out[c] = To<T>(static_cast<float>(sum));
  }
};

}  // namespace dt
