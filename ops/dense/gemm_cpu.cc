#include "ops/dense/gemm_cpu.h"

#include <algorithm>

#include <dnnl.h>
#include <omp.h>

#include "common/base/check.h"

namespace dt {
namespace {

// oneDNN is built on OpenMP: without this each thread of the pool would start a team of its own.
void UseOneThreadHere() {
  thread_local bool done = false;
  if (done) return;
  omp_set_num_threads(1);
  done = true;
}

size_t DivideUp(size_t n, size_t by) { return (n + by - 1) / by; }

// Tall results are cut into blocks of 256 rows, whose operands stay in the second-level cache;
// others into about four blocks, in multiples of the 16 floats of a vector.
struct Tile {
  size_t rows, cols;
};
Tile TileFor(const GemmShape& shape) {
  const auto quarter = [](size_t n) { return DivideUp(DivideUp(n, 4), 16) * 16; };
  if (shape.m < 64) return {shape.m, std::max<size_t>(64, quarter(shape.n))};
  const size_t cols = shape.n <= 768 ? shape.n : 512;
  return {shape.m >= 1024 ? 256 : quarter(shape.m), cols};
}

// One block of C: where it and its operands begin.
struct Block {
  size_t rows, cols;
  const float* a;
  const float* b;
  float* c;
};
void OneTile(const GemmShape& shape, const Block& block) {
  const auto dim = [](size_t n) { return static_cast<dnnl_dim_t>(n); };
  const dnnl_status_t status = dnnl_sgemm(
      shape.transpose_a ? 'T' : 'N', shape.transpose_b ? 'T' : 'N', dim(block.rows),
      dim(block.cols), dim(shape.k), 1.0f, block.a, dim(shape.transpose_a ? shape.m : shape.k),
      block.b, dim(shape.transpose_b ? shape.k : shape.n), 0.0f, block.c, dim(shape.n));
  DT_CHECK_MSG(status == dnnl_success, "dnnl_sgemm: {}", static_cast<int>(status));
}

}  // namespace

void Gemm(TaskPool& pool, const GemmShape& shape, const float* a, const float* b, float* c) {
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.k == 0) {
    std::fill_n(c, shape.m * shape.n, 0.0f);
    return;
  }
  const Tile tile = TileFor(shape);
  const size_t across = DivideUp(shape.n, tile.cols);
  pool.ParallelFor(DivideUp(shape.m, tile.rows) * across, 1, [&](size_t begin, size_t end) {
    UseOneThreadHere();
    for (size_t t = begin; t < end; ++t) {
      const size_t i = t / across * tile.rows, j = t % across * tile.cols;
      OneTile(shape, {.rows = std::min(tile.rows, shape.m - i),
                      .cols = std::min(tile.cols, shape.n - j),
                      .a = a + (shape.transpose_a ? i : i * shape.k),
                      .b = b + (shape.transpose_b ? j * shape.k : j),
                      .c = c + i * shape.n + j});
    }
  });
}

void Gemm(TaskPool& pool, const GemmShape& shape, const double* a, const double* b, double* c) {
  const size_t a_row = shape.transpose_a ? 1 : shape.k, a_col = shape.transpose_a ? shape.m : 1;
  const size_t b_row = shape.transpose_b ? 1 : shape.n, b_col = shape.transpose_b ? shape.k : 1;
  pool.ParallelFor(shape.m * shape.n, 256, [&](size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) {
      const double* row = a + at / shape.n * a_row;
      const double* col = b + at % shape.n * b_col;
      double sum = 0;
      for (size_t k = 0; k < shape.k; ++k) sum += row[k * a_col] * col[k * b_row];
      c[at] = sum;
    }
  });
}

}  // namespace dt
