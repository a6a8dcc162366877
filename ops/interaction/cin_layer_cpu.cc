#include "ops/gemm/gemm_cpu.h"
#include "ops/interaction/outer_rows.h"
#include "ops/kernel_families.h"

namespace dt {
namespace {

// Number of products held at a time: few enough for a cache, and enough to divide the matrix
// product among threads. Chunks depend on the shape alone.
constexpr size_t kHeld = size_t{1} << 20;

template <class T>
struct CinShape {
  size_t rows;
  OuterRows outer;
  size_t units;
  const T *x, *y, *w;

  explicit CinShape(const KernelContext& context)
      : rows(AsMatrix(context.in(0)).rows),
        outer{AsMatrix(context.in(0)).cols, AsMatrix(context.in(1)).cols},
        units(static_cast<size_t>(context.in(2).shape[1])),
        x(DataOf<T>(context.in(0))),
        y(DataOf<T>(context.in(1))),
        w(DataOf<T>(context.in(2))) {}

  size_t pairs() const { return outer.p * outer.q; }
  size_t chunk() const {
    const size_t held = kHeld / std::max<size_t>(1, pairs());
    return std::min(std::max<size_t>(1, rows), std::max<size_t>(64, held / 64 * 64));
  }
  // Calls body(first, count) for one chunk of rows after the other.
  template <class Body>
  void EachChunk(const Body& body) const {
    for (size_t first = 0; first < rows; first += chunk()) {
      body(first, std::min(chunk(), rows - first));
    }
  }
  // Computes the products of rows [first, first + count).
  void Multiply(TaskPool& pool, size_t first, size_t count, T* z) const {
    pool.ParallelFor(count, RowGrain(pairs()), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        const size_t row = first + r;
        outer.Multiply(x + row * outer.p, y + row * outer.q, z + r * pairs());
      }
    });
  }
};

void CinLayer(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const CinShape<T> shape(context);
    T* out = DataOf<T>(context.out(0));
    const std::span<T> products = Scratch<T>(context, shape.chunk() * shape.pairs());
    shape.EachChunk([&](size_t first, size_t count) {
      shape.Multiply(context.pool, first, count, products.data());
      const GemmShape gemm{.m = count, .n = shape.units, .k = shape.pairs()};
      Gemm(context.pool,
           GemmTask<T>{
               .shape = gemm, .a = products.data(), .b = shape.w, .c = out + first * shape.units});
    });
  });
}

// dw is summed over the rows of a chunk, then over the chunks in order.
void CinLayerGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const CinShape<T> shape(context);
    const size_t pairs = shape.pairs(), units = shape.units, held = shape.chunk() * pairs;
    const OuterRows outer = shape.outer;
    const T* dz = DataOf<T>(context.in(3));
    T *dx = DataOf<T>(context.out(0)), *dy = DataOf<T>(context.out(1));
    const std::span<T> dw = context.out(2).as<T>();
    const std::span<T> scratch = Scratch<T>(context, held + pairs * units);
    T *products = scratch.data(), *part = scratch.data() + held;
    std::ranges::fill(dw, T(0));
    shape.EachChunk([&](size_t first, size_t count) {
      const T* grad = dz + first * units;
      shape.Multiply(context.pool, first, count, products);
      const GemmShape of_w{.m = pairs, .n = units, .k = count, .transpose_a = true};
      Gemm(context.pool, GemmTask<T>{.shape = of_w, .a = products, .b = grad, .c = part});
      AddTo(part, dw.data(), dw.size());
      const GemmShape of_z{.m = count, .n = pairs, .k = units, .transpose_b = true};
      Gemm(context.pool, GemmTask<T>{.shape = of_z, .a = grad, .b = shape.w, .c = products});
      context.pool.ParallelFor(count, RowGrain(pairs), [&](size_t begin, size_t end) {
        for (size_t r = begin; r < end; ++r) {
          const size_t at_x = (first + r) * outer.p, at_y = (first + r) * outer.q;
          outer.Gradient(shape.x + at_x, shape.y + at_y, products + r * pairs, dx + at_x,
                         dy + at_y);
        }
      });
    });
  });
}

constexpr NamedKernel kKernels[] = {{"cin_layer", CinLayer}, {"cin_layer_grad", CinLayerGrad}};

}  // namespace

std::span<const NamedKernel> CinLayerKernels() { return kKernels; }

}  // namespace dt
