#include "ops/cuda/kernels.cuh"
#include "ops/cuda/util.cuh"
#include "ops/norm/dropout_cuda.cuh"

namespace dt {
namespace {

// A part of the elements of each sample: one element after the other.
template <class T>
struct DropPart {
  uint64_t first_sample;  // Position in the slice.
  int64_t width;          // Elements of a sample here.
  int rank;
  int64_t length[kCudaRankMax], first[kCudaRankMax], whole[kCudaRankMax];
  uint64_t node;
  uint32_t below;
  float scale;
  const T* x;
  T* y;

  __device__ void operator()(int64_t i, const CudaRun& run) const {
    const Division at = Divide(i, width);
    int64_t rest = at.rest, place = 0, stride = 1;
    for (int d = rank - 1; d > 0; --d) {
      place += (first[d] + rest % length[d]) * stride;
      rest /= length[d];
      stride *= whole[d];
    }
    const int64_t in_group = place % 16;
    const uint64_t key = StreamKey(run.seed, kDropoutPurpose, run.step, node);
    const uint64_t sample = run.first_sample + first_sample + static_cast<uint64_t>(at.quotient);
    const PhiloxWords bits =
        Philox(key, sample, static_cast<uint64_t>(place / 16 * 4 + in_group % 8 / 2));
    const float factor = bits.words[in_group / 8 * 2 + in_group % 2] < below ? 0.0f : scale;
    y[i] = run.training != 0 ? To<T>(ToFloat(x[i]) * factor) : x[i];
  }
};

// The gradient multiplies by the same mask.
CudaError Dropout(const CudaCall& call) {
  const CudaTensor& x = call.inputs[0];
  const CudaAttr* node = FindAttr(call, "mask_of");
  if (node == nullptr) node = FindAttr(call, "node");
  if (node == nullptr) return "dropout: the call does not name its node";
  const double rate = FloatAttr(call, "rate", 0.5);
  const Count cols = PerSample(x);
  if (cols.symbols[0] != 0) return "dropout: a sample's size varies";
  const int64_t blocks = DropBlocks(cols.times);
  const CudaAttr *first = FindAttr(call, "first"), *whole = FindAttr(call, "whole");
  if (first != nullptr && whole != nullptr) {
    return OnFloat(call, [&]<class T>(T) {
      DropPart<T> part{.first_sample = call.first_sample,
                       .width = cols.times,
                       .rank = x.rank,
                       .length = {},
                       .first = {},
                       .whole = {},
                       .node = static_cast<uint64_t>(node->number),
                       .below = static_cast<uint32_t>(rate * 0x1.0p32),
                       .scale = static_cast<float>(1 / (1 - rate)),
                       .x = DataOf<T>(x),
                       .y = DataOf<T>(call.outputs[0])};
      for (int d = 1; d < x.rank; ++d) {
        part.length[d] = x.times[d];
        part.first[d] = first->ints[d];
        part.whole[d] = whole->ints[d];
      }
      ForEach(call, SamplesOf(x) * Fixed(cols.times), part);
    });
  }
  return OnFloat(call, [&]<class T>(T) {
    ForEach(call, SamplesOf(x) * Fixed(blocks),
            Drop<T>{call.first_sample, cols.times, blocks, static_cast<uint64_t>(node->number),
                    static_cast<uint32_t>(rate * 0x1.0p32), static_cast<float>(1 / (1 - rate)),
                    DataOf<T>(x), DataOf<T>(call.outputs[0])});
  });
}

constexpr CudaKernel kKernels[] = {
    {"dropout", Dropout},
    {"dropout_grad", Dropout},
};

}  // namespace

CudaKernelList DropoutCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
