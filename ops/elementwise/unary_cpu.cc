#include <cmath>
#include <limits>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"
#include "ops/vector_math.h"

namespace dt {
namespace {

template <class T>
T GeluSlope(T x) {
  const Normal<T> normal = FastNormal(x);
  return normal.cdf + x * normal.density;
}

// out = f(x)
template <class T, class F>
void Map(KernelContext& context, F f) {
  const std::span<T> out = context.out(0).as<T>();
  const T* const in = DataOf<T>(context.in(0));
  context.pool.ParallelFor(out.size(), kGrain, [&](size_t begin, size_t end) {
    const T* __restrict x = in;
    T* __restrict to = out.data();
    for (size_t i = begin; i < end; ++i) to[i] = f(x[i]);
  });
}

// out = f(x or y, dy)
template <class T, class F>
void MapGrad(KernelContext& context, F f) {
  const std::span<T> out = context.out(0).as<T>();
  const T* const in = DataOf<T>(context.in(0));
  const T* const grad = DataOf<T>(context.in(1));
  context.pool.ParallelFor(out.size(), kGrain, [&](size_t begin, size_t end) {
    const T* __restrict known = in;
    const T* __restrict dy = grad;
    T* __restrict to = out.data();
    for (size_t i = begin; i < end; ++i) to[i] = f(known[i], dy[i]);
  });
}

template <class F>
void Unary(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) { Map<T>(context, F()); });
}
template <class F>
void UnaryGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) { MapGrad<T>(context, F()); });
}

// Function objects of one element: y = f(x), dx = f(x or y, dy).
#define DT_FUNCTION_OF(Name, x, ...) \
  struct Name {                      \
    template <class T>               \
    T operator()(T x) const {        \
      return __VA_ARGS__;            \
    }                                \
  }
#define DT_GRADIENT_OF(Name, known, ...) \
  struct Name {                          \
    template <class T>                   \
    T operator()(T known, T dy) const {  \
      return __VA_ARGS__;                \
    }                                    \
  }
DT_FUNCTION_OF(Relu, x, x > T(0) ? x : T(0));
DT_FUNCTION_OF(Sigmoid, x, T(1) / (T(1) + std::exp(-x)));
DT_GRADIENT_OF(SigmoidGrad, y, dy* y*(T(1) - y));
DT_FUNCTION_OF(Tanh, x, std::tanh(x));
DT_GRADIENT_OF(TanhGrad, y, dy*(T(1) - y * y));
DT_FUNCTION_OF(Gelu, x, x* FastNormal(x).cdf);
DT_GRADIENT_OF(GeluGrad, x, dy* GeluSlope(x));
DT_FUNCTION_OF(Exp, x, std::exp(x));
DT_FUNCTION_OF(Log, x, std::log(x));
DT_GRADIENT_OF(LogGrad, x, dy / x);
DT_FUNCTION_OF(Sqrt, x, std::sqrt(x));
DT_GRADIENT_OF(SqrtGrad, y, dy* T(0.5) / y);
DT_FUNCTION_OF(Square, x, x* x);
DT_GRADIENT_OF(SquareGrad, x, T(2) * x * dy);
DT_FUNCTION_OF(Neg, x, -x);
#undef DT_FUNCTION_OF
#undef DT_GRADIENT_OF

void Scale(KernelContext& context) {
  const double factor = FloatAttr(context.node.attrs, "factor", 1);
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    Map<T>(context, [f = static_cast<T>(factor)](T x) { return x * f; });
  });
}

void AddConst(KernelContext& context) {
  const double value = FloatAttr(context.node.attrs, "value", 0);
  OnFloat(context.in(0).dtype,
          [&]<class T>(T) { Map<T>(context, [v = static_cast<T>(value)](T x) { return x + v; }); });
}

void ReluGrad(KernelContext& context) {
  const double kept = 1 - FloatAttr(context.node.attrs, "dropout", 0);
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    MapGrad<T>(context, [scale = static_cast<T>(1 / kept)](T y, T dy) {
      return y > T(0) ? dy * scale : T(0);
    });
  });
}

template <class T>
struct Range {
  T low, high;
  explicit Range(const Attrs& attrs)
      : low(static_cast<T>(FloatAttr(attrs, "min", -std::numeric_limits<double>::infinity()))),
        high(static_cast<T>(FloatAttr(attrs, "max", std::numeric_limits<double>::infinity()))) {}
};

void Clip(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    Map<T>(context, [r = Range<T>(context.node.attrs)](T x) {
      return x < r.low ? r.low : (x > r.high ? r.high : x);
    });
  });
}

void ClipGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    MapGrad<T>(context, [r = Range<T>(context.node.attrs)](T x, T dy) {
      return x >= r.low && x <= r.high ? dy : T(0);
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"relu", Unary<Relu>},
    {"sigmoid", Unary<Sigmoid>},
    {"tanh", Unary<Tanh>},
    {"gelu", Unary<Gelu>},
    {"exp", Unary<Exp>},
    {"log", Unary<Log>},
    {"sqrt", Unary<Sqrt>},
    {"square", Unary<Square>},
    {"neg", Unary<Neg>},
    {"scale", Scale},
    {"add_const", AddConst},
    {"stop_gradient", CopyBytes},
    {"redistribute", CopyBytes},
    {"clip", Clip},
    {"relu_grad", ReluGrad},
    {"sigmoid_grad", UnaryGrad<SigmoidGrad>},
    {"tanh_grad", UnaryGrad<TanhGrad>},
    {"gelu_grad", UnaryGrad<GeluGrad>},
    {"log_grad", UnaryGrad<LogGrad>},
    {"sqrt_grad", UnaryGrad<SqrtGrad>},
    {"square_grad", UnaryGrad<SquareGrad>},
    {"clip_grad", ClipGrad},
};

}  // namespace

std::span<const NamedKernel> UnaryKernels() { return kKernels; }

}  // namespace dt
