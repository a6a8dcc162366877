// Sorting of rows by expert, and sums by sample. No atomics: equal inputs give equal bits on a
// card.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/util.cuh"

namespace dt {
namespace {

// ------------------------------------------------------------------ dispatch

// Number of choices that one thread counts, for one expert.
constexpr int64_t kChunk = 256;

// A counting sort by expert. counts[chunk][expert] is first the number of the chunk's choices that
// take the expert, then the position of the first of them among the expert's rows.
struct Choices {
  Count size;
  int64_t chunks;  // Computed from the extent.
  int64_t experts;
  const uint32_t* chosen;
  uint32_t *counts, *ends, *positions;

  explicit Choices(const CudaCall& call)
      : size(SizeOf(call.inputs[1])),
        chunks((size.extent + kChunk - 1) / kChunk),
        experts(call.outputs[1].times[0]),
        chosen(IndexOf(call.inputs[1])),
        counts(static_cast<uint32_t*>(call.scratch)),
        ends(DataOf<uint32_t>(call.outputs[1])),
        positions(DataOf<uint32_t>(call.outputs[2])) {}

  // Calls f(choice) for the chunk's choices that take the expert.
  template <class F>
  __device__ void ForOwn(int64_t chunk, int64_t expert, const CudaRun& run, const F& f) const {
    const int64_t n = size.At(run), after = (chunk + 1) * kChunk;
    for (int64_t p = chunk * kChunk; p < (after < n ? after : n); ++p) {
      const int64_t own = chosen[p];
      if ((own < experts ? own : experts - 1) == expert) f(p);
    }
  }
};
struct CountOwn {
  Choices of;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const Division at = Divide(i, of.experts);
    uint32_t count = 0;
    of.ForOwn(at.quotient, at.rest, run, [&](int64_t) { ++count; });
    of.counts[i] = count;
  }
};
// For each expert; sets `ends` to the expert's number of rows.
struct AddChunks {
  Choices of;
  __device__ void operator()(int64_t expert, const CudaRun&) const {
    uint32_t sum = 0;
    for (int64_t chunk = 0; chunk < of.chunks; ++chunk) {
      uint32_t& count = of.counts[chunk * of.experts + expert];
      const uint32_t own = count;
      count = sum;
      sum += own;
    }
    of.ends[expert] = sum;
  }
};
// Runs on one thread.
struct AddExperts {
  Choices of;
  __device__ void operator()(int64_t, const CudaRun&) const {
    for (int64_t e = 1; e < of.experts; ++e) of.ends[e] += of.ends[e - 1];
  }
};
struct PlaceOwn {
  Choices of;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const Division at = Divide(i, of.experts);
    uint32_t position = of.counts[i] + (at.rest == 0 ? 0 : of.ends[at.rest - 1]);
    of.ForOwn(at.quotient, at.rest, run, [&](int64_t p) { of.positions[p] = position++; });
  }
};

// For each element of each choice's row: rows[position] = gate · x. Without gates all gates are 1.
template <class T>
struct ToPositions {
  Count cols;
  int64_t k;
  const T *x, *gates;
  const uint32_t* positions;
  T* rows;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t width = cols.At(run);
    const Division at = Divide(i, width);
    const T own = x[Divide(at.quotient, k).quotient * width + at.rest];
    T& out = rows[positions[at.quotient] * width + at.rest];
    out = gates == nullptr ? own : To<T>(ToFloat(gates[at.quotient]) * ToFloat(own));
  }
};

size_t DispatchScratch(const CudaCall& call) {
  const Choices of(call);
  return static_cast<size_t>(of.chunks * of.experts) * sizeof(uint32_t);
}
CudaError Dispatch(const CudaCall& call) {
  const CudaTensor &x = call.inputs[0], &chosen = call.inputs[1], &rows = call.outputs[0];
  const Choices of(call);
  ForEach(call, Fixed(of.chunks * of.experts), CountOwn{of});
  ForEach(call, Fixed(of.experts), AddChunks{of});
  ForEach(call, Fixed(1), AddExperts{of});
  ForEach(call, Fixed(of.chunks * of.experts), PlaceOwn{of});
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(rows),
            ToPositions<T>{ColsOf(x), chosen.times[1], DataOf<T>(x), nullptr, of.positions,
                           DataOf<T>(rows)});
  });
}

// ------------------------------------------------------------------ combine

template <class T>
const T* GatesOf(const CudaCall& call) {
  return call.input_count == 3 ? DataOf<T>(call.inputs[2]) : nullptr;
}

template <class T>
struct SumChoices {
  Count cols;
  int64_t k;
  const T *rows, *gates;
  const uint32_t* positions;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t width = cols.At(run);
    const Division at = Divide(i, width);
    float sum = 0;
    for (int64_t p = at.quotient * k; p < (at.quotient + 1) * k; ++p) {
      const float own = ToFloat(rows[positions[p] * width + at.rest]);
      sum += gates == nullptr ? own : ToFloat(gates[p]) * own;
    }
    out[i] = To<T>(sum);
  }
};
CudaError Combine(const CudaCall& call) {
  const CudaTensor &rows = call.inputs[0], &positions = call.inputs[1], &out = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(out),
            SumChoices<T>{ColsOf(rows), positions.times[1], DataOf<T>(rows), GatesOf<T>(call),
                          IndexOf(positions), DataOf<T>(out)});
  });
}
CudaError CombineGrad(const CudaCall& call) {
  const CudaTensor &dy = call.inputs[0], &positions = call.inputs[1], &rows = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(rows),
            ToPositions<T>{ColsOf(dy), positions.times[1], DataOf<T>(dy), GatesOf<T>(call),
                           IndexOf(positions), DataOf<T>(rows)});
  });
}

// One warp for each choice.
template <class T>
struct RowTimesRow {
  Count cols;
  int64_t k;
  const T *dy, *rows;
  const uint32_t* positions;
  T* out;
  __device__ void operator()(int64_t p, int lane, const CudaRun& run) const {
    const int64_t width = cols.At(run);
    const T* const left = dy + Divide(p, k).quotient * width;
    const T* const right = rows + positions[p] * width;
    float sum = 0;
    for (int64_t c = lane; c < width; c += kWarp) sum += ToFloat(left[c]) * ToFloat(right[c]);
    sum = WarpSum(sum);
    if (lane == 0) out[p] = To<T>(sum);
  }
};
CudaError CombineGatesGrad(const CudaCall& call) {
  const CudaTensor &dy = call.inputs[0], &positions = call.inputs[1];
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, SizeOf(positions),
            RowTimesRow<T>{ColsOf(dy), positions.times[1], DataOf<T>(dy), DataOf<T>(call.inputs[2]),
                           IndexOf(positions), DataOf<T>(call.outputs[0])});
  });
}

constexpr CudaKernel kKernels[] = {
    {"dispatch", Dispatch, DispatchScratch},
    {"combine", Combine},
    {"combine_grad", CombineGrad},
    {"combine_gates_grad", CombineGatesGrad},
};

}  // namespace

CudaKernelList DispatchCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
