// Functions of one element, functions of two with broadcasting, selection, and type conversion.
// bf16 is computed in float.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/strided.cuh"

namespace dt {
namespace {

// ------------------------------------------------------------------ one element

template <class T, class F>
struct Map {
  F f;
  const T* x;
  T* y;
  __device__ void operator()(int64_t i, const CudaRun&) const { y[i] = To<T>(f(ToFloat(x[i]))); }
};
template <class T, class F>
struct MapGrad {
  F f;
  const T *known, *dy;
  T* dx;
  __device__ void operator()(int64_t i, const CudaRun&) const {
    dx[i] = To<T>(f(ToFloat(known[i]), ToFloat(dy[i])));
  }
};

template <class F>
CudaError RunMap(const CudaCall& call, const F& f) {
  const CudaTensor &x = call.inputs[0], &y = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(y), Map<T, F>{f, DataOf<T>(x), DataOf<T>(y)});
  });
}
template <class F>
CudaError RunMapGrad(const CudaCall& call, const F& f) {
  const CudaTensor &known = call.inputs[0], &dy = call.inputs[1], &dx = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(dx), MapGrad<T, F>{f, DataOf<T>(known), DataOf<T>(dy), DataOf<T>(dx)});
  });
}
template <class F>
CudaError Unary(const CudaCall& call) {
  return RunMap(call, F());
}
template <class F>
CudaError UnaryGrad(const CudaCall& call) {
  return RunMapGrad(call, F());
}

// Function objects of one element: y = f(x), dx = f(x or y, dy).
#define DT_FUNCTION_OF(Name, x, ...)                                   \
  struct Name {                                                        \
    __device__ float operator()(float x) const { return __VA_ARGS__; } \
  }
#define DT_GRADIENT_OF(Name, known, ...)                                             \
  struct Name {                                                                      \
    __device__ float operator()(float known, float dy) const { return __VA_ARGS__; } \
  }
DT_FUNCTION_OF(Relu, x, x > 0.0f ? x : 0.0f);
DT_FUNCTION_OF(Sigmoid, x, 1.0f / (1.0f + expf(-x)));
DT_GRADIENT_OF(SigmoidGrad, y, dy* y * (1.0f - y));
DT_FUNCTION_OF(Tanh, x, tanhf(x));
DT_GRADIENT_OF(TanhGrad, y, dy * (1.0f - y * y));
DT_FUNCTION_OF(Gelu, x, x* normcdff(x));
DT_GRADIENT_OF(GeluGrad, x, dy*(normcdff(x) + x * 0.398942280f * expf(-0.5f * x * x)));
DT_FUNCTION_OF(Exp, x, expf(x));
DT_FUNCTION_OF(Log, x, logf(x));
DT_GRADIENT_OF(LogGrad, x, dy / x);
DT_FUNCTION_OF(Sqrt, x, sqrtf(x));
DT_GRADIENT_OF(SqrtGrad, y, dy * 0.5f / y);
DT_FUNCTION_OF(Square, x, x* x);
DT_GRADIENT_OF(SquareGrad, x, 2.0f * x * dy);
DT_FUNCTION_OF(Neg, x, -x);
DT_FUNCTION_OF(Same, x, x);
#undef DT_FUNCTION_OF
#undef DT_GRADIENT_OF

struct TimesFactor {
  float factor;
  __device__ float operator()(float x) const { return x * factor; }
};
CudaError Scale(const CudaCall& call) {
  return RunMap(call, TimesFactor{static_cast<float>(FloatAttr(call, "factor", 1))});
}

struct PlusValue {
  float value;
  __device__ float operator()(float x) const { return x + value; }
};
CudaError AddConst(const CudaCall& call) {
  return RunMap(call, PlusValue{static_cast<float>(FloatAttr(call, "value", 0))});
}

// `dropout`: see ops/elementwise/unary.cc.
struct KeepAbove0 {
  float scale;
  __device__ float operator()(float y, float dy) const { return y > 0.0f ? dy * scale : 0.0f; }
};
CudaError ReluGrad(const CudaCall& call) {
  return RunMapGrad(call, KeepAbove0{static_cast<float>(1 / (1 - FloatAttr(call, "dropout", 0)))});
}

struct Within {
  float low, high;
  explicit Within(const CudaCall& call)
      : low(static_cast<float>(FloatAttr(call, "min", -INFINITY))),
        high(static_cast<float>(FloatAttr(call, "max", INFINITY))) {}
  __device__ float operator()(float x) const { return x < low ? low : (x > high ? high : x); }
  __device__ float operator()(float x, float dy) const { return x >= low && x <= high ? dy : 0.0f; }
};
CudaError Clip(const CudaCall& call) { return RunMap(call, Within(call)); }
CudaError ClipGrad(const CudaCall& call) { return RunMapGrad(call, Within(call)); }

// ------------------------------------------------------------------ two elements

template <class T, class F>
struct Combine {
  const T *a, *b;
  T* out;
  __device__ void operator()(int64_t i, const int64_t (&at)[2]) const {
    out[i] = To<T>(F()(ToFloat(a[at[0]]), ToFloat(b[at[1]])));
  }
};
template <class F>
CudaError Binary(const CudaCall& call) {
  const CudaTensor in[] = {call.inputs[0], call.inputs[1]};
  const CudaTensor& out = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForStrided(call, SizeOf(out), Broadcast(out, in),
               Combine<T, F>{DataOf<T>(in[0]), DataOf<T>(in[1]), DataOf<T>(out)});
  });
}

#define DT_FUNCTION_OF(Name, ...)                                               \
  struct Name {                                                                 \
    __device__ float operator()(float a, float b) const { return __VA_ARGS__; } \
  }
DT_FUNCTION_OF(Add, a + b);
DT_FUNCTION_OF(Sub, a - b);
DT_FUNCTION_OF(Mul, a* b);
DT_FUNCTION_OF(Div, a / b);
DT_FUNCTION_OF(Maximum, a >= b ? a : b);
DT_FUNCTION_OF(Minimum, a <= b ? a : b);
DT_FUNCTION_OF(Equal, a == b ? 1.0f : 0.0f);
DT_FUNCTION_OF(Less, a < b ? 1.0f : 0.0f);
DT_FUNCTION_OF(LessEqual, a <= b ? 1.0f : 0.0f);
DT_FUNCTION_OF(Greater, a > b ? 1.0f : 0.0f);
DT_FUNCTION_OF(GreaterEqual, a >= b ? 1.0f : 0.0f);
#undef DT_FUNCTION_OF

// ------------------------------------------------------------------ selection

template <class T>
struct Choose {
  const T *condition, *a, *b;
  T* out;
  __device__ void operator()(int64_t i, const int64_t (&at)[3]) const {
    out[i] = ToFloat(condition[at[0]]) != 0.0f ? a[at[1]] : b[at[2]];
  }
};
CudaError Where(const CudaCall& call) {
  const CudaTensor in[] = {call.inputs[0], call.inputs[1], call.inputs[2]};
  const CudaTensor& out = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForStrided(call, SizeOf(out), Broadcast(out, in),
               Choose<T>{DataOf<T>(in[0]), DataOf<T>(in[1]), DataOf<T>(in[2]), DataOf<T>(out)});
  });
}

// ------------------------------------------------------------------ types

template <class From, class T>
struct CastTo {
  const From* x;
  T* y;
  __device__ void operator()(int64_t i, const CudaRun&) const { y[i] = To<T>(ToFloat(x[i])); }
};
template <class From>
CudaError CastFrom(const CudaCall& call) {
  const CudaTensor &x = call.inputs[0], &y = call.outputs[0];
  if (y.dtype == kCudaF32) {
    ForEach(call, SizeOf(y), CastTo<From, float>{DataOf<From>(x), DataOf<float>(y)});
  } else {
    ForEach(call, SizeOf(y),
            CastTo<From, __nv_bfloat16>{DataOf<From>(x), DataOf<__nv_bfloat16>(y)});
  }
  return Launched();
}
CudaError Cast(const CudaCall& call) {
  for (const uint8_t type : {call.inputs[0].dtype, call.outputs[0].dtype}) {
    if (type != kCudaF32 && type != kCudaBf16) return "a CUDA kernel takes f32 or bf16";
  }
  return call.inputs[0].dtype == kCudaF32 ? CastFrom<float>(call) : CastFrom<__nv_bfloat16>(call);
}

constexpr CudaKernel kKernels[] = {
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
    {"stop_gradient", Unary<Same>},
    {"redistribute", Unary<Same>},
    {"cast", Cast},
    {"clip", Clip},
    {"relu_grad", ReluGrad},
    {"sigmoid_grad", UnaryGrad<SigmoidGrad>},
    {"tanh_grad", UnaryGrad<TanhGrad>},
    {"gelu_grad", UnaryGrad<GeluGrad>},
    {"log_grad", UnaryGrad<LogGrad>},
    {"sqrt_grad", UnaryGrad<SqrtGrad>},
    {"square_grad", UnaryGrad<SquareGrad>},
    {"clip_grad", ClipGrad},
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
    {"where", Where},
};

}  // namespace

CudaKernelList ElementwiseCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
