// Elements of rows at given positions, and means over samples.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/sums.cuh"

namespace dt {
namespace {

// ------------------------------------------------------------------ pick

template <class T>
struct Picking {
  Count cols;
  const T* positions;
  float first = 0, whole = -1;  // whole < 0: the rows are not divided.

  Picking(const CudaCall& call, const CudaTensor& values, const CudaTensor& at)
      : cols(ColsOf(values)), positions(DataOf<T>(at)) {
    if (FindAttr(call, "first") == nullptr) return;
    first = static_cast<float>(FindAttr(call, "first")->ints[0]);
    whole = static_cast<float>(FindAttr(call, "whole")->ints[0]);
  }
  __device__ bool IsPosition(int64_t row, int64_t width) const {
    const float at = ToFloat(positions[row]);
    return at >= 0.0f && at < (whole < 0.0f ? static_cast<float>(width) : whole);
  }
  // Not within the row if the position is in another part.
  __device__ int64_t Here(int64_t row) const {
    return static_cast<int64_t>(floorf(ToFloat(positions[row])) - first);
  }
};

template <class T>
struct PickFrom : Picking<T> {
  const T* x;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t width = this->cols.At(run), at = this->Here(i);
    if (!this->IsPosition(i, width)) {
      out[i] = To<T>(NAN);
    } else {
      out[i] = at >= 0 && at < width ? x[i * width + at] : To<T>(0.0f);
    }
  }
};
CudaError Pick(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    const CudaTensor &x = call.inputs[0], &at = call.inputs[1];
    ForEach(call, SizeOf(at),
            PickFrom<T>{Picking<T>(call, x, at), DataOf<T>(x), DataOf<T>(call.outputs[0])});
  });
}

template <class T>
struct PickGradTo : Picking<T> {
  const T* dy;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t width = this->cols.At(run);
    const Division at = Divide(i, width);
    const bool picked = this->IsPosition(at.quotient, width) && this->Here(at.quotient) == at.rest;
    out[i] = picked ? dy[at.quotient] : To<T>(0.0f);
  }
};
CudaError PickGrad(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    const CudaTensor& out = call.outputs[0];
    ForEach(call, SizeOf(out),
            PickGradTo<T>{Picking<T>(call, out, call.inputs[0]), DataOf<T>(call.inputs[1]),
                          DataOf<T>(out)});
  });
}

// ------------------------------------------------------------------ sample_mean

template <class T>
struct ElementOf {
  const T* x;
  __device__ double operator()(int64_t i, const CudaRun&) const {
    return static_cast<double>(ToFloat(x[i]));
  }
};
template <class T>
struct StoreMean {
  T* out;
  __device__ void operator()(double sum, const CudaRun& run) const {
    out[0] = To<T>(static_cast<float>(sum / run.step_samples));
  }
};
size_t MeanScratch(const CudaCall& call) { return SumElementsBytes(SizeOf(call.inputs[0])); }

CudaError SampleMean(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    SumElements(call, SizeOf(call.inputs[0]), static_cast<double*>(call.scratch),
                ElementOf<T>{DataOf<T>(call.inputs[0])}, StoreMean<T>{DataOf<T>(call.outputs[0])});
  });
}

template <class T>
struct FillShare {
  const T* dy;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const double share = static_cast<double>(ToFloat(dy[0])) / run.step_samples;
    out[i] = To<T>(static_cast<float>(share));
  }
};
CudaError SampleMeanGrad(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(call.outputs[0]),
            FillShare<T>{DataOf<T>(call.inputs[0]), DataOf<T>(call.outputs[0])});
  });
}

constexpr CudaKernel kKernels[] = {
    {"pick", Pick},
    {"pick_grad", PickGrad},
    {"sample_mean", SampleMean, MeanScratch},
    {"sample_mean_grad", SampleMeanGrad},
};

}  // namespace

CudaKernelList PickCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
