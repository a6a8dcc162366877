#include "ops/kernel_families.h"
#include "ops/strided.h"

namespace dt {
namespace {

// Function objects of two elements.
#define DT_FUNCTION_OF(Name, ...)  \
  struct Name {                    \
    template <class T>             \
    T operator()(T a, T b) const { \
      return __VA_ARGS__;          \
    }                              \
  }
DT_FUNCTION_OF(Add, a + b);
DT_FUNCTION_OF(Sub, a - b);
DT_FUNCTION_OF(Mul, a* b);
DT_FUNCTION_OF(Div, a / b);
DT_FUNCTION_OF(Maximum, a >= b ? a : b);
DT_FUNCTION_OF(Minimum, a <= b ? a : b);
DT_FUNCTION_OF(Equal, a == b ? T(1) : T(0));
DT_FUNCTION_OF(Less, a < b ? T(1) : T(0));
DT_FUNCTION_OF(LessEqual, a <= b ? T(1) : T(0));
DT_FUNCTION_OF(Greater, a > b ? T(1) : T(0));
DT_FUNCTION_OF(GreaterEqual, a >= b ? T(1) : T(0));
#undef DT_FUNCTION_OF

// One row; an operand advances with it (step 1) or stays (step 0).
template <class F, class T>
void Row(const T* __restrict a, int64_t a_step, const T* __restrict b, int64_t b_step,
         std::span<T> row) {
  T* __restrict out = row.data();
  const size_t n = row.size();
  const F f;
  if (a_step != 0 && b_step != 0) {
    for (size_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  } else if (a_step != 0) {
    for (size_t i = 0; i < n; ++i) out[i] = f(a[i], *b);
  } else if (b_step != 0) {
    for (size_t i = 0; i < n; ++i) out[i] = f(*a, b[i]);
  } else {
    std::fill_n(out, n, f(*a, *b));
  }
}

template <class F, class T>
void Broadcasting(KernelContext& context, const T* a, const T* b, T* out) {
  Loop loop{.dims = RightAligned(context.out(0).shape),
            .a = StridesOf(RightAligned(context.in(0).shape)),
            .b = StridesOf(RightAligned(context.in(1).shape))};
  loop.Prepare(context.out(0).shape.size());
  const size_t inner = loop.inner_size(), length = static_cast<size_t>(loop.length());
  context.pool.ParallelFor(loop.outer_size(), RowGrain(inner), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      loop.EachRow(static_cast<int64_t>(i), [&](int64_t at_a, int64_t at_b, int64_t at) {
        Row<F, T>(a + at_a, loop.a_step(), b + at_b, loop.b_step(), {out + i * inner + at, length});
      });
    }
  });
}

template <class F>
void Binary(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const T* a = DataOf<T>(context.in(0));
    const T* b = DataOf<T>(context.in(1));
    const std::span<T> out = context.out(0).as<T>();
    if (out.empty()) return;
    if (context.in(0).shape != context.in(1).shape) {
      return Broadcasting<F>(context, a, b, out.data());
    }
    context.pool.ParallelFor(out.size(), kGrain, [&](size_t begin, size_t end) {
      Row<F, T>(a + begin, 1, b + begin, 1, out.subspan(begin, end - begin));
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"add", Binary<Add>},
    {"sub", Binary<Sub>},
    {"mul", Binary<Mul>},
    {"div", Binary<Div>},
    {"maximum", Binary<Maximum>},
    {"minimum", Binary<Minimum>},
    {"equal", Binary<Equal>},
    {"less", Binary<Less>},
    {"less_equal", Binary<LessEqual>},
    {"greater", Binary<Greater>},
    {"greater_equal", Binary<GreaterEqual>},
};

}  // namespace

std::span<const NamedKernel> BinaryKernels() { return kKernels; }

}  // namespace dt
