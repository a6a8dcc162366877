// Joining, slicing, reshaping, transposing, broadcasting and gathering.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/strided.cuh"

namespace dt {
namespace {

// A tensor as `outer` rows of `width` elements: `outer` counts the dimensions before `axis`.
struct Rows {
  Count outer, width;
  Rows(const CudaTensor& t, int axis)
      : outer(Product(t, 0, axis)), width(Product(t, axis, t.rank)) {}
};

// ------------------------------------------------------------------ concat, stack

// Number of inputs in one launch, limited by the size of a kernel's arguments.
constexpr int kJoined = 32;
template <class T>
struct Joined {
  const T* data[kJoined];
  Count width[kJoined];
  Count before[kJoined];  // Elements of the output's row before this input's.
};

// One row of blocks for each input.
template <class T>
__global__ void __launch_bounds__(kThreads)
    JoinKernel(Joined<T> in, Rows out, const CudaRun* run, T* to) {
  const int k = static_cast<int>(blockIdx.y);
  const int64_t width = in.width[k].At(*run), before = in.before[k].At(*run);
  const int64_t row = out.width.At(*run), count = out.outer.At(*run) * width;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const Division at = Divide(i, width);
    to[at.quotient * row + before + at.rest] = in.data[k][i];
  }
}

CudaError Join(const CudaCall& call, int axis) {
  const CudaTensor& out = call.outputs[0];
  const Rows shape(out, axis);
  const Count step = Product(out, axis + 1, out.rank);
  return OnFloat(call, [&]<class T>(T) {
    Joined<T> in{};
    int used = 0;
    int64_t positions = 0, largest = 0;
    for (size_t i = 0; i < call.input_count; ++i) {
      const CudaTensor& t = call.inputs[i];
      // An input of stack without a fields dimension is one field.
      const int64_t has = t.rank == out.rank ? t.times[axis] : 1;
      in.data[used] = DataOf<T>(t);
      in.width[used] = Fixed(has) * step;
      in.before[used] = Fixed(positions) * step;
      largest = in.width[used].extent > largest ? in.width[used].extent : largest;
      positions += has;
      if (++used < kJoined && i + 1 < call.input_count) continue;
      const dim3 grid(BlocksFor(shape.outer.extent * largest), static_cast<unsigned>(used));
      LaunchKernel(call, {grid}, JoinKernel<T>, in, shape, call.run, DataOf<T>(out));
      used = 0;
    }
  });
}

CudaError Concat(const CudaCall& call) { return Join(call, AxisAttr(call, call.outputs[0])); }
CudaError Stack(const CudaCall& call) { return Join(call, 1); }

// ------------------------------------------------------------------ slice, pad

template <class T>
struct Cut {
  Count from_width, to_width, begin;
  const T* from;
  T* to;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const Division at = Divide(i, to_width.At(run));
    to[i] = from[at.quotient * from_width.At(run) + begin.At(run) + at.rest];
  }
};
CudaError Slice(const CudaCall& call) {
  const CudaTensor &in = call.inputs[0], &out = call.outputs[0];
  const int axis = AxisAttr(call, out);
  const Rows from(in, axis), to(out, axis);
  const Count begin = Fixed(IntAttr(call, "begin", 0)) * Product(in, axis + 1, in.rank);
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(out), Cut<T>{from.width, to.width, begin, DataOf<T>(in), DataOf<T>(out)});
  });
}

template <class T>
struct PadWith {
  Count from_width, to_width, before;
  const T* from;
  T* to;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const Division at = Divide(i, to_width.At(run));
    const int64_t width = from_width.At(run), place = at.rest - before.At(run);
    to[i] = place >= 0 && place < width ? from[at.quotient * width + place] : To<T>(0.0f);
  }
};
CudaError Pad(const CudaCall& call) {
  const CudaTensor &in = call.inputs[0], &out = call.outputs[0];
  const int axis = AxisAttr(call, out);
  const Rows from(in, axis), to(out, axis);
  const Count before = Fixed(IntAttr(call, "before", 0)) * Product(out, axis + 1, out.rank);
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(out),
            PadWith<T>{from.width, to.width, before, DataOf<T>(in), DataOf<T>(out)});
  });
}

// ------------------------------------------------------------------ the same elements

template <class T>
struct CopyAt {
  const T* from;
  T* to;
  __device__ void operator()(int64_t i, const CudaRun&) const { to[i] = from[i]; }
  __device__ void operator()(int64_t i, const int64_t (&at)[1]) const { to[i] = from[at[0]]; }
};
CudaError Copy(const CudaCall& call) {
  const CudaTensor &in = call.inputs[0], &out = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(out), CopyAt<T>{DataOf<T>(in), DataOf<T>(out)});
  });
}

CudaError Transpose(const CudaCall& call) {
  const CudaTensor &in = call.inputs[0], &out = call.outputs[0];
  const CudaAttr* perm = FindAttr(call, "perm");
  if (perm == nullptr || perm->count != out.rank) return "transpose: perm does not fit the shape";
  Strided<1> loop;
  for (int i = out.rank - 1; i >= 0; --i) {
    loop.Add(DimOf(out, i), {StepOf(in, static_cast<int>(perm->ints[i]))});
  }
  return OnFloat(call, [&]<class T>(T) {
    ForStrided(call, SizeOf(out), loop, CopyAt<T>{DataOf<T>(in), DataOf<T>(out)});
  });
}

CudaError BroadcastTo(const CudaCall& call) {
  const CudaTensor in[] = {call.inputs[0]};
  const CudaTensor& out = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForStrided(call, SizeOf(out), Broadcast(out, in), CopyAt<T>{DataOf<T>(in[0]), DataOf<T>(out)});
  });
}

template <class T>
struct FillWith {
  float value;
  T* to;
  __device__ void operator()(int64_t i, const CudaRun&) const { to[i] = To<T>(value); }
};
CudaError Fill(const CudaCall& call) {
  const auto value = static_cast<float>(FloatAttr(call, "value", 0));
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(call.outputs[0]), FillWith<T>{value, DataOf<T>(call.outputs[0])});
  });
}

// ------------------------------------------------------------------ gather

// A list of positions of any length is passed in pieces, as kernel arguments.
constexpr int kPositions = 256;
struct Positions {
  int64_t begin = 0;  // Index of this piece's first position in the list.
  int count = 0;
  int32_t at[kPositions];
};

// From [outer, size, inner] to [outer, indices, inner], or the reverse.
template <class T>
struct Gathering {
  Count size, indices, inner;
  Positions part;
  const T* from;
  T* to;
};

template <class T>
struct GatherPart : Gathering<T> {
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const Division in = Divide(i, this->inner.At(run));
    const Division at = Divide(in.quotient, this->part.count);
    const int64_t whole = at.quotient * this->size.At(run) + this->part.at[at.rest];
    const int64_t chosen = at.quotient * this->indices.At(run) + this->part.begin + at.rest;
    const int64_t width = this->inner.At(run);
    this->to[chosen * width + in.rest] = this->from[whole * width + in.rest];
  }
};
// Adds up the uses of a position in order; with `first` the sum starts at zero.
template <class T>
struct GatherGradPart : Gathering<T> {
  bool first;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t width = this->inner.At(run);
    const Division in = Divide(i, width);
    const Division at = Divide(in.quotient, this->size.At(run));
    float sum = first ? 0.0f : ToFloat(this->to[i]);
    const int64_t row = at.quotient * this->indices.At(run) + this->part.begin;
    for (int k = 0; k < this->part.count; ++k) {
      if (this->part.at[k] == at.rest) sum += ToFloat(this->from[(row + k) * width + in.rest]);
    }
    this->to[i] = To<T>(sum);
  }
};

template <class Launch>
CudaError ForPositions(const CudaCall& call, const Launch& launch) {
  const CudaAttr* list = FindAttr(call, "indices");
  if (list == nullptr) return "gather: no indices";
  Positions part;
  for (size_t i = 0; i < list->count; ++i) {
    part.at[part.count++] = static_cast<int32_t>(list->ints[i]);
    if (part.count < kPositions && i + 1 < list->count) continue;
    launch(part);
    part.begin += part.count;
    part.count = 0;
  }
  return nullptr;
}

CudaError RunGather(const CudaCall& call, const CudaTensor& whole, const CudaTensor& chosen) {
  const int axis = AxisAttr(call, whole);
  const Count outer = Product(whole, 0, axis), inner = Product(whole, axis + 1, whole.rank);
  const bool is_grad = &whole == &call.outputs[0];
  CudaError error = nullptr;
  const CudaError launched = OnFloat(call, [&]<class T>(T) {
    error = ForPositions(call, [&](const Positions& part) {
      const Gathering<T> by{DimOf(whole, axis),        DimOf(chosen, axis),       inner, part,
                            DataOf<T>(call.inputs[0]), DataOf<T>(call.outputs[0])};
      if (is_grad) {
        ForEach(call, SizeOf(whole), GatherGradPart<T>{by, part.begin == 0});
      } else {
        ForEach(call, outer * Fixed(part.count) * inner, GatherPart<T>{by});
      }
    });
  });
  return error != nullptr ? error : launched;
}
CudaError Gather(const CudaCall& call) { return RunGather(call, call.inputs[0], call.outputs[0]); }
CudaError GatherGrad(const CudaCall& call) {
  return RunGather(call, call.outputs[0], call.inputs[0]);
}

constexpr CudaKernel kKernels[] = {
    {"concat", Concat},
    {"stack", Stack},
    {"slice", Slice},
    {"pad", Pad},
    {"reshape", Copy},
    {"flatten", Copy},
    {"transpose", Transpose},
    {"broadcast_to", BroadcastTo},
    {"fill", Fill},
    {"gather", Gather},
    {"gather_grad", GatherGrad},
};

}  // namespace

CudaKernelList ShapeCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
