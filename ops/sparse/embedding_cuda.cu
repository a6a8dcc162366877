// Rows of a dense weight by their ids.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/util.cuh"

namespace dt {
namespace {

// Finds the row of the weight that an id names.
struct RowsNamed {
  const uint32_t* ids;
  Count rows;
  int64_t first = 0;
  // With `manual_split`: the number of fields, and where the rows of each begin and end. More
  // fields than fit here are refused.
  static constexpr int kFieldsMax = 256;
  int fields = 0;
  uint32_t ends[kFieldsMax + 1];

  // -1: the weight here does not have it.
  __device__ int64_t At(int64_t i, const CudaRun& run) const {
    if (fields == 0) {
      const int64_t row = int64_t{ids[i]} - first;
      return row >= 0 && row < rows.At(run) ? row : -1;
    }
    const auto field = static_cast<int>(i % fields);
    const int64_t row = int64_t{ends[field]} + ids[i];
    return row < ends[field + 1] ? row : -1;
  }
};

CudaError Read(const CudaCall& call, const CudaTensor& ids, const Count& rows, RowsNamed* named) {
  named->ids = IndexOf(ids);
  named->rows = rows;
  if (const CudaAttr* first = FindAttr(call, "first")) named->first = first->ints[0];
  const CudaAttr* const split = FindAttr(call, "manual_split");
  if (split == nullptr) return nullptr;
  if (split->count > RowsNamed::kFieldsMax) return "embedding takes at most 256 fields on a card";
  named->fields = static_cast<int>(split->count);
  named->ends[0] = 0;
  for (int f = 0; f < named->fields; ++f) {
    named->ends[f + 1] = named->ends[f] + static_cast<uint32_t>(split->ints[f]);
  }
  return nullptr;
}

template <class T>
struct TakeRow {
  RowsNamed named;
  Count dim;
  const T* rows;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t width = dim.At(run);
    const Division at = Divide(i, width);
    const int64_t row = named.At(at.quotient, run);
    out[i] = row < 0 ? To<T>(0.0f) : rows[row * width + at.rest];
  }
};
CudaError Embedding(const CudaCall& call) {
  const CudaTensor &weight = call.inputs[0], &out = call.outputs[0];
  RowsNamed named;
  if (CudaError e = Read(call, call.inputs[1], SamplesOf(weight), &named)) return e;
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(out),
            TakeRow<T>{named, ColsOf(weight), DataOf<T>(weight), DataOf<T>(out)});
  });
}

struct Clear {
  float* out;
  __device__ void operator()(int64_t i, const CudaRun&) const { out[i] = 0.0f; }
};
template <class T>
struct AddRow {
  RowsNamed named;
  Count dim;
  const T* dy;
  float* sums;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t width = dim.At(run);
    const Division at = Divide(i, width);
    const int64_t row = named.At(at.quotient, run);
    if (row >= 0) atomicAdd(sums + row * width + at.rest, ToFloat(dy[i]));
  }
};
template <class T>
struct Rounded {
  const float* sums;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun&) const { out[i] = To<T>(sums[i]); }
};
// Sums are in fp32, in any order.
size_t SumsBytes(const CudaCall& call) {
  const CudaTensor& out = call.outputs[0];
  return out.dtype == kCudaF32 ? 0 : static_cast<size_t>(SizeOf(out).extent) * sizeof(float);
}
CudaError EmbeddingGrad(const CudaCall& call) {
  const CudaTensor &dy = call.inputs[1], &out = call.outputs[0];
  RowsNamed named;
  if (CudaError e = Read(call, call.inputs[0], SamplesOf(out), &named)) return e;
  return OnFloat(call, [&]<class T>(T) {
    constexpr bool kInPlace = std::is_same_v<T, float>;
    auto* const sums = static_cast<float*>(kInPlace ? out.data : call.scratch);
    ForEach(call, SizeOf(out), Clear{sums});
    ForEach(call, SizeOf(dy), AddRow<T>{named, ColsOf(out), DataOf<T>(dy), sums});
    if constexpr (!kInPlace) ForEach(call, SizeOf(out), Rounded<T>{sums, DataOf<T>(out)});
  });
}

constexpr CudaKernel kKernels[] = {
    {"embedding", Embedding},
    {"embedding_grad", EmbeddingGrad, SumsBytes},
};

}  // namespace

CudaKernelList EmbeddingCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
