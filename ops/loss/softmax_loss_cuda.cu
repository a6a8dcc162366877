// Softmax cross entropy over classes, and over the items of the slice.
#include "ops/cuda/kernels.cuh"
#include "ops/cuda/sums.cuh"
#include "ops/gemm/gemm_cuda.cuh"

namespace dt {
namespace {

template <class T>
struct StoreMean {
  T* out;
  __device__ void operator()(double sum, const CudaRun& run) const {
    out[0] = To<T>(static_cast<float>(sum / run.step_samples));
  }
};
struct PartOf {
  const double* parts;
  __device__ double operator()(int64_t i, const CudaRun&) const { return parts[i]; }
};

size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

// ------------------------------------------------------------------ softmax_cross_entropy

// Logits, labels, and weights (or nullptr), starting at input `first`.
template <class T>
struct Classes {
  Count cols;
  const T *logits, *label, *weight;
  Classes(const CudaCall& call, size_t first)
      : cols(ColsOf(call.inputs[first])),
        logits(DataOf<T>(call.inputs[first])),
        label(DataOf<T>(call.inputs[first + 1])),
        weight(call.input_count > first + 2 ? DataOf<T>(call.inputs[first + 2]) : nullptr) {}
  __device__ double WeightOf(int64_t i) const {
    return weight == nullptr ? 1.0 : static_cast<double>(ToFloat(weight[i]));
  }
  // The number of classes if the label is not the number of a class.
  __device__ int64_t ClassOf(int64_t i, int64_t classes) const {
    const float own = ToFloat(label[i]);
    return own >= 0.0f && own < static_cast<float>(classes) ? static_cast<int64_t>(own) : classes;
  }
};

// The maximum of a row, and the sum of exp(x - maximum), computed by a warp.
struct Exponentials {
  float top, sum;
};
template <class T>
__device__ Exponentials ExponentialsOf(const T* x, int64_t n, int lane) {
  float top = -INFINITY, sum = 0;
  for (int64_t c = lane; c < n; c += kWarp) top = fmaxf(top, ToFloat(x[c]));
  top = WarpMax(top);
  for (int64_t c = lane; c < n; c += kWarp) sum += expf(ToFloat(x[c]) - top);
  return {top, WarpSum(sum)};
}

template <class T>
struct RowLoss {
  Classes<T> classes;
  double* losses;
  __device__ void operator()(int64_t i, int lane, const CudaRun& run) const {
    const int64_t n = classes.cols.At(run);
    const T* const x = classes.logits + i * n;
    const Exponentials e = ExponentialsOf(x, n, lane);
    if (lane != 0) return;
    const int64_t k = classes.ClassOf(i, n);
    const double own = k == n ? static_cast<double>(NAN)
                              : static_cast<double>(ToFloat(x[k])) - static_cast<double>(e.top);
    losses[i] = classes.WeightOf(i) * (log(static_cast<double>(e.sum)) - own);
  }
};

// One loss for each sample, then partial sums.
size_t LossesBytes(const Count& rows) {
  return Aligned(static_cast<size_t>(rows.extent) * sizeof(double));
}
size_t CrossEntropyScratch(const CudaCall& call) {
  const Count rows = DimOf(call.inputs[0], 0);
  return LossesBytes(rows) + SumElementsBytes(rows);
}
template <class T>
void SumLosses(const CudaCall& call, const Count& rows, double* losses) {
  double* const parts = losses + LossesBytes(rows) / sizeof(double);
  SumElements(call, rows, parts, PartOf{losses}, StoreMean<T>{DataOf<T>(call.outputs[0])});
}

CudaError CrossEntropy(const CudaCall& call) {
  const Count rows = DimOf(call.inputs[0], 0);
  auto* const losses = static_cast<double*>(call.scratch);
  return OnFloat(call, [&]<class T>(T) {
    ForRows(call, rows, RowLoss<T>{Classes<T>(call, 0), losses});
    SumLosses<T>(call, rows, losses);
  });
}

// weight · (softmax - 1 at the label)
template <class T>
struct RowSlope {
  Classes<T> classes;
  const T* dloss;
  T* out;
  __device__ void operator()(int64_t i, int lane, const CudaRun& run) const {
    const int64_t n = classes.cols.At(run), k = classes.ClassOf(i, n);
    const T* const x = classes.logits + i * n;
    const Exponentials e = ExponentialsOf(x, n, lane);
    const double share = static_cast<double>(ToFloat(dloss[0])) / run.step_samples;
    const double slope = share * classes.WeightOf(i);
    const auto factor = static_cast<float>(slope / static_cast<double>(e.sum));
    for (int64_t c = lane; c < n; c += kWarp) {
      const float own = c == k ? static_cast<float>(slope) : 0.0f;
      out[i * n + c] = To<T>(factor * expf(ToFloat(x[c]) - e.top) - own);
    }
  }
};
CudaError CrossEntropyGrad(const CudaCall& call) {
  return OnFloat(call, [&]<class T>(T) {
    ForRows(
        call, DimOf(call.inputs[1], 0),
        RowSlope<T>{Classes<T>(call, 1), DataOf<T>(call.inputs[0]), DataOf<T>(call.outputs[0])});
  });
}

// ------------------------------------------------------------------ in_batch_softmax

// The inputs, as in ops/loss/in_batch_softmax.h; user vectors are input `first`.
template <class T>
struct InBatch {
  const T *user, *item, *label = nullptr, *weight = nullptr, *log_q = nullptr;
  const uint32_t* key = nullptr;
  float scale;         // 1 / temperature
  int64_t first_item;  // The item of the first user.

  InBatch(const CudaCall& call, size_t first)
      : user(DataOf<T>(call.inputs[first])),
        item(DataOf<T>(call.inputs[first + 1])),
        scale(static_cast<float>(1 / FloatAttr(call, "temperature", 1))),
        first_item(static_cast<int64_t>(call.first_sample)) {
    size_t next = first + 2;
    if (BoolAttr(call, "label", false)) label = DataOf<T>(call.inputs[next++]);
    if (BoolAttr(call, "weight", false)) weight = DataOf<T>(call.inputs[next++]);
    if (BoolAttr(call, "log_q", false)) log_q = DataOf<T>(call.inputs[next++]);
    if (BoolAttr(call, "key", false)) key = IndexOf(call.inputs[next]);
  }
  __device__ double WeightOf(int64_t i) const {
    const double own = label == nullptr ? 1.0 : static_cast<double>(ToFloat(label[i]));
    return weight == nullptr ? own : own * static_cast<double>(ToFloat(weight[i]));
  }
  __device__ bool HaveOneItem(int64_t i, int64_t j) const {
    return key[2 * i] == key[2 * j] && key[2 * i + 1] == key[2 * j + 1];
  }
  // x_ij from a dot product, for the user whose item is `own`; minus infinity if j is another
  // sample with that item.
  __device__ float Corrected(float product, int64_t own, int64_t j) const {
    const float x = product * scale - (log_q == nullptr ? 0.0f : ToFloat(log_q[j]));
    return key != nullptr && own != j && HaveOneItem(own, j) ? -INFINITY : x;
  }
};

// The sizes of a node whose user vectors are input `first`. They are exact: B, and the parts of it
// that the devices of a team have, are known on the host.
struct Pairs {
  int64_t users, items, dim;
  Pairs(const CudaCall& call, size_t first)
      : users(call.inputs[first].extent[0]),
        items(call.inputs[first + 1].extent[0]),
        dim(call.inputs[first].extent[1]) {}

  // Number of users whose scores against all items are in memory at a time: 64 MiB of scores.
  int64_t block() const {
    const int64_t fit = (int64_t{16} << 20) / (items < 1 ? 1 : items);
    const int64_t rows = fit < 128 ? 128 : fit;
    return users < rows ? users : rows;
  }
  size_t scores_bytes() const {
    return Aligned(static_cast<size_t>(block() * items) * sizeof(float));
  }
};

// scores [rows, N] = user[begin ..] itemᵀ
template <class T>
CudaError Scores(const CudaCall& call, const CudaTensor& user, int64_t begin, int64_t rows,
                 float* scores) {
  const InBatch<T> vectors(call, static_cast<size_t>(&user - call.inputs));
  GemmTask task{.m = rows, .n = (&user)[1].extent[0], .k = user.extent[1], .transpose_b = true};
  task.in_type = user.dtype;
  task.a = vectors.user + begin * task.k;
  task.b = vectors.item;
  task.c = scores;
  return Gemm(*call.stream, task);
}

// log Σ_j exp x_ij, computed by a warp.
template <class T>
__device__ float LogSumExp(const InBatch<T>& in, const float* row, int64_t own, int64_t n) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  float top = -INFINITY, sum = 0;
  for (int64_t j = lane; j < n; j += kWarp) top = fmaxf(top, in.Corrected(row[j], own, j));
  top = WarpMax(top);
  for (int64_t j = lane; j < n; j += kWarp) sum += expf(in.Corrected(row[j], own, j) - top);
  return top + logf(WarpSum(sum));
}

template <class T>
struct ScoreOf {
  InBatch<T> in;
  int64_t first, items;
  const float* scores;
  T* scored;
  double* losses;
  __device__ void operator()(int64_t r, int lane, const CudaRun&) const {
    const int64_t n = items, i = first + r, k = in.first_item + i;
    const float* const row = scores + r * n;
    const float own = in.Corrected(row[k], k, k), loss = LogSumExp(in, row, k, n) - own;
    float rival = -INFINITY;
    for (int64_t j = lane; j < n; j += kWarp) {
      if (j != k) rival = fmaxf(rival, in.Corrected(row[j], k, j));
    }
    rival = WarpMax(rival);
    if (lane != 0) return;
    scored[3 * i] = To<T>(row[k] * in.scale);
    scored[3 * i + 1] = To<T>(loss);
    scored[3 * i + 2] = To<T>(own > rival ? 1.0f : 0.0f);
    losses[i] = in.WeightOf(i) * static_cast<double>(loss);
  }
};

size_t InBatchScratch(const CudaCall& call) {
  const Count users = DimOf(call.inputs[0], 0);
  return Pairs(call, 0).scores_bytes() + LossesBytes(users) + SumElementsBytes(users);
}
CudaError InBatchLoss(const CudaCall& call) {
  const CudaTensor& user = call.inputs[0];
  const Pairs pairs(call, 0);
  const int64_t n = pairs.users, block = pairs.block();
  auto* const scores = static_cast<float*>(call.scratch);
  auto* const losses =
      reinterpret_cast<double*>(static_cast<char*>(call.scratch) + pairs.scores_bytes());
  CudaError error = nullptr;
  const CudaError launched = OnFloat(call, [&]<class T>(T) {
    for (int64_t begin = 0; begin < n && error == nullptr; begin += block) {
      const int64_t rows = n - begin < block ? n - begin : block;
      error = Scores<T>(call, user, begin, rows, scores);
      ForRows(call, Fixed(rows),
              ScoreOf<T>{InBatch<T>(call, 0), begin, pairs.items, scores,
                         DataOf<T>(call.outputs[1]), losses});
    }
    SumLosses<T>(call, DimOf(user, 0), losses);
  });
  return error != nullptr ? error : launched;
}

// Replaces the scores by g_ij = weight_i (p_ij - [i = j]) / temperature.
template <class T>
struct SlopesOf {
  InBatch<T> in;
  int64_t first, items;
  const T* dloss;
  float* scores;
  __device__ void operator()(int64_t r, int lane, const CudaRun& run) const {
    const int64_t n = items, i = first + r, k = in.first_item + i;
    float* const row = scores + r * n;
    const float total = LogSumExp(in, row, k, n);
    const double share =
        static_cast<double>(ToFloat(dloss[0])) / run.step_samples * static_cast<double>(in.scale);
    const auto factor = static_cast<float>(share * in.WeightOf(i));
    for (int64_t j = lane; j < n; j += kWarp) {
      const float slope = factor * expf(in.Corrected(row[j], k, j) - total);
      row[j] = j == k ? slope - factor : slope;
    }
  }
};

// du = g v and dv = gᵀ u in float; dv is summed block by block.
size_t FloatBytes(const CudaTensor& vectors) {
  return Aligned(static_cast<size_t>(SizeOf(vectors).extent) * sizeof(float));
}
size_t InBatchGradScratch(const CudaCall& call) {
  return Pairs(call, 1).scores_bytes() + 2 * FloatBytes(call.inputs[1]) +
         2 * FloatBytes(call.inputs[2]);
}
template <class T>
struct SetToZero {
  T* to;
  __device__ void operator()(int64_t i, const CudaRun&) const { to[i] = To<T>(0.0f); }
};
template <class T>
struct CopyToFloats {
  const T* from;
  float* to;
  __device__ void operator()(int64_t i, const CudaRun&) const { to[i] = ToFloat(from[i]); }
};
template <class T>
struct CopyFromFloats {
  const float* from;
  T* to;
  __device__ void operator()(int64_t i, const CudaRun&) const { to[i] = To<T>(from[i]); }
};

// Float vectors: the inputs and outputs themselves, or copies of them.
struct Vectors {
  const float *user, *item;
  float *du, *dv;
};
// The products of one block of samples.
CudaError BlockGrads(const CudaCall& call, const Vectors& v, const float* slopes, int64_t begin,
                     int64_t rows) {
  const Pairs pairs(call, 1);
  const int64_t n = pairs.items, dim = pairs.dim;
  GemmTask left{.m = rows, .n = dim, .k = n};
  left.a = slopes;
  left.b = v.item;
  left.c = v.du + begin * dim;
  if (CudaError e = Gemm(*call.stream, left)) return e;
  GemmTask right{.m = n, .n = dim, .k = rows, .transpose_a = true};
  right.adds = begin > 0;
  right.a = slopes;
  right.b = v.user + begin * dim;
  right.c = v.dv;
  return Gemm(*call.stream, right);
}

template <class T>
Vectors VectorsOf(const CudaCall& call, float* copies) {
  const CudaTensor &user = call.inputs[1], &item = call.inputs[2];
  if constexpr (std::is_same_v<T, float>) {
    return {DataOf<float>(user), DataOf<float>(item), DataOf<float>(call.outputs[0]),
            DataOf<float>(call.outputs[1])};
  } else {
    const size_t users = FloatBytes(user) / sizeof(float), items = FloatBytes(item) / sizeof(float);
    const Vectors v{copies, copies + users, copies + users + items, copies + 2 * users + items};
    ForEach(call, SizeOf(user), CopyToFloats<T>{DataOf<T>(user), copies});
    ForEach(call, SizeOf(item), CopyToFloats<T>{DataOf<T>(item), copies + users});
    return v;
  }
}

CudaError InBatchGrad(const CudaCall& call) {
  const CudaTensor &user = call.inputs[1], &item = call.inputs[2];
  const Pairs pairs(call, 1);
  const int64_t n = pairs.users, block = pairs.block();
  auto* const scores = static_cast<float*>(call.scratch);
  float* const copies = scores + pairs.scores_bytes() / sizeof(float);
  CudaError error = nullptr;
  const CudaError launched = OnFloat(call, [&]<class T>(T) {
    if (n == 0) ForEach(call, SizeOf(item), SetToZero<T>{DataOf<T>(call.outputs[1])});
    if (n == 0) return;
    const Vectors v = VectorsOf<T>(call, copies);
    for (int64_t begin = 0; begin < n && error == nullptr; begin += block) {
      const int64_t rows = n - begin < block ? n - begin : block;
      error = Scores<T>(call, user, begin, rows, scores);
      if (error != nullptr) return;
      ForRows(
          call, Fixed(rows),
          SlopesOf<T>{InBatch<T>(call, 1), begin, pairs.items, DataOf<T>(call.inputs[0]), scores});
      error = BlockGrads(call, v, scores, begin, rows);
    }
    if constexpr (!std::is_same_v<T, float>) {
      ForEach(call, SizeOf(user), CopyFromFloats<T>{v.du, DataOf<T>(call.outputs[0])});
      ForEach(call, SizeOf(item), CopyFromFloats<T>{v.dv, DataOf<T>(call.outputs[1])});
    }
  });
  return error != nullptr ? error : launched;
}

constexpr CudaKernel kKernels[] = {
    {"softmax_cross_entropy", CrossEntropy, CrossEntropyScratch},
    {"softmax_cross_entropy_grad", CrossEntropyGrad},
    {"in_batch_softmax", InBatchLoss, InBatchScratch},
    {"in_batch_softmax_grad", InBatchGrad, InBatchGradScratch},
};

}  // namespace

CudaKernelList SoftmaxLossCudaKernels() { return ListOf(kKernels); }

}  // namespace dt
