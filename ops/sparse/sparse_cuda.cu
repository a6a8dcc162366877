// Embedding rows, gathered or combined in bags; lists of varying length.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/util.cuh"

namespace dt {
namespace {

size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

// ------------------------------------------------------------------ sums over a row's uses

// The uses of row u are order[ends[u - 1] .. ends[u]), and are summed in that order. Some rows have
// most of the uses, so work is divided by uses, kChunk at a time, and not by rows. A chunk's sum
// for a row that extends beyond the chunk is kept, and these sums are added chunk by chunk.
constexpr int64_t kChunk = 32;

struct Uses {
  Count rows, positions, dim;
  const uint32_t *ends, *order;
  // [chunks][2][dim]: the sum for the row that began before the chunk, and for the row that began
  // in the chunk and goes on after it.
  float* kept;

  __device__ int64_t Begin(int64_t row) const { return row == 0 ? 0 : ends[row - 1]; }
  // The row of a use: the first row that ends after it.
  __device__ int64_t RowOf(int64_t use, const CudaRun& run) const {
    int64_t low = 0, high = rows.At(run) - 1;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (ends[middle] > use) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
};

size_t UsesBytes(const Count& positions, const Count& dim) {
  const int64_t chunks = (positions.extent + kChunk - 1) / kChunk;
  return static_cast<size_t>(chunks * 2 * dim.extent) * sizeof(float);
}

// f(position, column, run): the value of a use.
template <class T, class F>
struct AddChunk {
  Uses uses;
  F f;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t dim = uses.dim.At(run), positions = uses.positions.At(run);
    const Division at = Divide(i, dim);
    const int64_t begin = at.quotient * kChunk, column = at.rest;
    const int64_t end = begin + kChunk < positions ? begin + kChunk : positions;
    if (begin >= end) return;
    float* const kept = uses.kept + at.quotient * 2 * dim + column;
    int64_t row = uses.RowOf(begin, run);
    for (int64_t use = begin; use < end; ++row) {
      const int64_t row_begin = uses.Begin(row), row_end = uses.ends[row];
      const int64_t stop = row_end < end ? row_end : end;
      float sum = 0;
      for (; use < stop; ++use) sum += f(uses.order[use], column, run);
      if (row_begin < begin) {
        kept[0] = sum;
      } else if (row_end > end) {
        kept[dim] = sum;
      } else if (row_end > row_begin) {
        out[row * dim + column] = To<T>(sum);
      }
    }
  }
};
// Finishes rows without uses, and rows that span several chunks.
template <class T>
struct FinishRow {
  Uses uses;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t dim = uses.dim.At(run);
    const Division at = Divide(i, dim);
    const int64_t begin = uses.Begin(at.quotient), end = uses.ends[at.quotient];
    if (begin == end) {
      out[i] = To<T>(0.0f);
      return;
    }
    const int64_t first = begin / kChunk, last = (end - 1) / kChunk;
    if (first == last) return;
    const float* const kept = uses.kept + at.rest;
    float sum = kept[(first * 2 + 1) * dim];
    for (int64_t chunk = first + 1; chunk <= last; ++chunk) sum += kept[chunk * 2 * dim];
    out[i] = To<T>(sum);
  }
};

template <class T, class F>
void SumUses(const CudaCall& call, const Uses& uses, const F& f) {
  T* const out = DataOf<T>(call.outputs[0]);
  const int64_t chunks = (uses.positions.extent + kChunk - 1) / kChunk;
  // The true number of chunks is not available as a size; surplus threads find nothing to do.
  ForEach(call, Fixed(chunks) * uses.dim, AddChunk<T, F>{uses, f, out});
  ForEach(call, uses.rows * uses.dim, FinishRow<T>{uses, out});
}

// ------------------------------------------------------------------ gather_rows

template <class T>
struct GatherRow {
  Count dim;
  const T *rows, *weights;  // weights is nullptr if there are none.
  const uint32_t* index;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t width = dim.At(run);
    const Division at = Divide(i, width);
    const T value = rows[index[at.quotient] * width + at.rest];
    out[i] = weights == nullptr ? value : To<T>(ToFloat(weights[at.quotient]) * ToFloat(value));
  }
};
CudaError GatherRows(const CudaCall& call) {
  const CudaTensor &rows = call.inputs[0], &index = call.inputs[1];
  const bool weighted = BoolAttr(call, "weighted", false);
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(index) * DimOf(rows, 1),
            GatherRow<T>{DimOf(rows, 1), DataOf<T>(rows),
                         weighted ? DataOf<T>(call.inputs[4]) : nullptr, IndexOf(index),
                         DataOf<T>(call.outputs[0])});
  });
}

template <class T>
struct GatheredGrad {
  Count dim;
  const T *dy, *weights;
  __device__ float operator()(int64_t position, int64_t column, const CudaRun& run) const {
    const float grad = ToFloat(dy[position * dim.At(run) + column]);
    return weights == nullptr ? grad : ToFloat(weights[position]) * grad;
  }
};
size_t GatherRowsGradScratch(const CudaCall& call) {
  return UsesBytes(SizeOf(call.inputs[2]), DimOf(call.outputs[0], 1));
}
CudaError GatherRowsGrad(const CudaCall& call) {
  const CudaTensor &ends = call.inputs[1], &order = call.inputs[2];
  const Count dim = DimOf(call.outputs[0], 1);
  const bool weighted = BoolAttr(call, "weighted", false);
  const Uses uses{SizeOf(ends),  SizeOf(order),  dim,
                  IndexOf(ends), IndexOf(order), static_cast<float*>(call.scratch)};
  return OnFloat(call, [&]<class T>(T) {
    const GatheredGrad<T> f{dim, DataOf<T>(call.inputs[0]),
                            weighted ? DataOf<T>(call.inputs[3]) : nullptr};
    SumUses<T>(call, uses, f);
  });
}

// ------------------------------------------------------------------ bag

enum class Combiner { kSum, kMean, kSqrtn };

Combiner CombinerOf(const CudaCall& call) {
  const char* text = TextAttr(call, "combiner", "sum");
  if (std::strcmp(text, "mean") == 0) return Combiner::kMean;
  return std::strcmp(text, "sqrtn") == 0 ? Combiner::kSqrtn : Combiner::kSum;
}

// The ids of each sample, and their weights.
template <class T>
struct Bags {
  int64_t length = 1;
  const uint32_t* ends = nullptr;  // Set if ragged.
  const T* weights = nullptr;      // Set if weighted.
  Combiner combiner = Combiner::kSum;

  // The optional inputs follow the first `fixed` inputs.
  Bags(const CudaCall& call, size_t fixed) : combiner(CombinerOf(call)) {
    if (BoolAttr(call, "ragged", false)) ends = IndexOf(call.inputs[fixed++]);
    if (BoolAttr(call, "weighted", false)) weights = DataOf<T>(call.inputs[fixed]);
    length = IntAttr(call, "length", 1);
  }
  __device__ int64_t Begin(int64_t sample) const {
    if (ends == nullptr) return sample * length;
    return sample == 0 ? 0 : ends[sample - 1];
  }
  __device__ int64_t End(int64_t sample) const {
    return ends == nullptr ? (sample + 1) * length : ends[sample];
  }
  __device__ float Weight(int64_t position) const {
    return weights == nullptr ? 1.0f : ToFloat(weights[position]);
  }
  // The factor of the weighted sum of the sample's rows.
  __device__ float Factor(int64_t sample) const {
    if (combiner == Combiner::kSum) return 1.0f;
    float divisor = 0;
    for (int64_t i = Begin(sample); i < End(sample); ++i) {
      divisor += combiner == Combiner::kMean ? Weight(i) : Weight(i) * Weight(i);
    }
    if (combiner == Combiner::kSqrtn) divisor = sqrtf(divisor);
    return divisor == 0.0f ? 0.0f : 1.0f / divisor;
  }
};

template <class T>
struct BagOf {
  Bags<T> bags;
  Count dim;
  const T* rows;
  const uint32_t* index;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t width = dim.At(run);
    const Division at = Divide(i, width);
    const float factor = bags.Factor(at.quotient);
    const int64_t end = bags.End(at.quotient);
    float sum = 0;
    for (int64_t k = bags.Begin(at.quotient); k < end; ++k) {
      sum += factor * bags.Weight(k) * ToFloat(rows[index[k] * width + at.rest]);
    }
    out[i] = To<T>(sum);
  }
};
CudaError Bag(const CudaCall& call) {
  const CudaTensor &rows = call.inputs[0], &out = call.outputs[0];
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(out),
            BagOf<T>{Bags<T>(call, 4), DimOf(rows, 1), DataOf<T>(rows), IndexOf(call.inputs[1]),
                     DataOf<T>(out)});
  });
}

// The sample of each position, and the factor of each sample.
template <class T>
struct PlanSample {
  Bags<T> bags;
  float* factors;
  uint32_t* sample_of;
  __device__ void operator()(int64_t b, const CudaRun&) const {
    factors[b] = bags.Factor(b);
    const int64_t end = bags.End(b);
    for (int64_t i = bags.Begin(b); i < end; ++i) sample_of[i] = static_cast<uint32_t>(b);
  }
};
template <class T>
struct BagUse {
  Bags<T> bags;
  Count dim;
  const T* dy;
  const float* factors;
  const uint32_t* sample_of;
  __device__ float operator()(int64_t position, int64_t column, const CudaRun& run) const {
    const int64_t b = sample_of[position];
    const float factor = factors[b] * bags.Weight(position);
    return factor * ToFloat(dy[b * dim.At(run) + column]);
  }
};

// Sizes in bytes: factors, then samples of positions, then the memory of SumUses.
struct BagGradMemory {
  size_t factors, samples, kept;
  explicit BagGradMemory(const CudaCall& call)
      : factors(Aligned(static_cast<size_t>(DimOf(call.inputs[0], 0).extent) * sizeof(float))),
        samples(Aligned(static_cast<size_t>(SizeOf(call.inputs[2]).extent) * sizeof(uint32_t))),
        kept(UsesBytes(SizeOf(call.inputs[2]), DimOf(call.inputs[0], 1))) {}
};
size_t BagGradScratch(const CudaCall& call) {
  const BagGradMemory memory(call);
  return memory.factors + memory.samples + memory.kept;
}
CudaError BagGrad(const CudaCall& call) {
  const CudaTensor &dy = call.inputs[0], &ends = call.inputs[1], &order = call.inputs[2];
  const BagGradMemory memory(call);
  auto* const base = static_cast<char*>(call.scratch);
  auto* const factors = reinterpret_cast<float*>(base);
  auto* const sample_of = reinterpret_cast<uint32_t*>(base + memory.factors);
  auto* const kept = reinterpret_cast<float*>(base + memory.factors + memory.samples);
  const Uses uses{SizeOf(ends), SizeOf(order), DimOf(dy, 1), IndexOf(ends), IndexOf(order), kept};
  return OnFloat(call, [&]<class T>(T) {
    const Bags<T> bags(call, 3);
    ForEach(call, DimOf(dy, 0), PlanSample<T>{bags, factors, sample_of});
    SumUses<T>(call, uses, BagUse<T>{bags, DimOf(dy, 1), DataOf<T>(dy), factors, sample_of});
  });
}

// ------------------------------------------------------------------ lists of varying length

// The padded form holds the last `length` of a sample's values [begin, end).
struct Lists {
  const uint32_t* ends;
  int64_t length;
  __device__ int64_t Begin(int64_t sample) const { return sample == 0 ? 0 : ends[sample - 1]; }
  __device__ int64_t KeptBegin(int64_t sample) const {
    const int64_t begin = Begin(sample), end = ends[sample];
    return end - begin < length ? begin : end - length;
  }
  __device__ int64_t Kept(int64_t sample) const {
    return static_cast<int64_t>(ends[sample]) - KeptBegin(sample);
  }
};

template <class T>
struct MaskOf {
  Lists lists;
  T* out;
  __device__ void operator()(int64_t i, const CudaRun&) const {
    const Division at = Divide(i, lists.length);
    out[i] = To<T>(at.rest < lists.Kept(at.quotient) ? 1.0f : 0.0f);
  }
};
CudaError LengthsMask(const CudaCall& call) {
  const CudaTensor& out = call.outputs[0];
  const Lists lists{IndexOf(call.inputs[0]), out.times[1]};
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(out), MaskOf<T>{lists, DataOf<T>(out)});
  });
}

template <class T>
struct ToPadded {
  Lists lists;
  Count dim;
  const T* from;
  T* to;
  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const int64_t width = dim.At(run);
    const Division in = Divide(i, width), at = Divide(in.quotient, lists.length);
    const bool has = at.rest < lists.Kept(at.quotient);
    to[i] = has ? from[(lists.KeptBegin(at.quotient) + at.rest) * width + in.rest] : To<T>(0.0f);
  }
};
CudaError RaggedToPadded(const CudaCall& call) {
  const CudaTensor& out = call.outputs[0];
  const Lists lists{IndexOf(call.inputs[1]), out.times[1]};
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SizeOf(out),
            ToPadded<T>{lists, DimOf(out, 2), DataOf<T>(call.inputs[0]), DataOf<T>(out)});
  });
}

// One warp for each sample.
template <class T>
struct ToRagged {
  Lists lists;
  Count dim;
  const T* from;
  T* to;
  __device__ void operator()(int64_t b, int lane, const CudaRun& run) const {
    const int64_t width = dim.At(run), begin = lists.Begin(b) * width;
    const int64_t cut = lists.KeptBegin(b) * width - begin, kept = lists.Kept(b) * width;
    const T* const source = from + b * lists.length * width;
    for (int64_t k = lane; k < cut + kept; k += kWarp) {
      to[begin + k] = k < cut ? To<T>(0.0f) : source[k - cut];
    }
  }
};
CudaError PaddedToRagged(const CudaCall& call) {
  const CudaTensor& in = call.inputs[0];
  const Lists lists{IndexOf(call.inputs[1]), in.times[1]};
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, DimOf(in, 0),
            ToRagged<T>{lists, DimOf(in, 2), DataOf<T>(in), DataOf<T>(call.outputs[0])});
  });
}

constexpr CudaKernel kKernels[] = {
    {"gather_rows", GatherRows},
    {"gather_rows_grad", GatherRowsGrad, GatherRowsGradScratch},
    {"bag", Bag},
    {"bag_grad", BagGrad, BagGradScratch},
    {"lengths_mask", LengthsMask},
    {"ragged_to_padded", RaggedToPadded},
    {"padded_to_ragged", PaddedToRagged},
};

}  // namespace

CudaKernelList SparseCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
