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
  const uint32_t* index = nullptr;
  int64_t length = 1, position = 0;
  float scale;  // 1 / temperature

  InBatch(const CudaCall& call, size_t first)
      : user(DataOf<T>(call.inputs[first])),
        item(DataOf<T>(call.inputs[first + 1])),
        scale(static_cast<float>(1 / FloatAttr(call, "temperature", 1))) {
    size_t next = first + 2;
    if (BoolAttr(call, "label", false)) label = DataOf<T>(call.inputs[next++]);
    if (BoolAttr(call, "weight", false)) weight = DataOf<T>(call.inputs[next++]);
    if (BoolAttr(call, "log_q", false)) log_q = DataOf<T>(call.inputs[next++]);
    const int64_t has = IntAttr(call, "length", 0);
    if (has <= 0) return;
    index = IndexOf(call.inputs[next]);
    length = has;
    position = IntAttr(call, "position", 0);
  }
  __device__ double WeightOf(int64_t i) const {
    const double own = label == nullptr ? 1.0 : static_cast<double>(ToFloat(label[i]));
    return weight == nullptr ? own : own * static_cast<double>(ToFloat(weight[i]));
  }
  __device__ uint32_t ItemOf(int64_t i) const { return index[i * length + position]; }
  // x_ij from a dot product; minus infinity if another sample has the same item.
  __device__ float Corrected(float product, int64_t i, int64_t j) const {
    const float x = product * scale - (log_q == nullptr ? 0.0f : ToFloat(log_q[j]));
    return index != nullptr && i != j && ItemOf(i) == ItemOf(j) ? -INFINITY : x;
  }
};

// Number of samples whose scores against all items are in memory at a time: 64 MiB of scores.
int64_t BlockRows(int64_t rows) {
  const int64_t fit = (int64_t{16} << 20) / (rows < 1 ? 1 : rows);
  return fit < 128 ? (rows < 128 ? rows : 128) : (rows < fit ? rows : fit);
}
size_t ScoresBytes(int64_t rows) {
  return Aligned(static_cast<size_t>(BlockRows(rows) * rows) * sizeof(float));
}

// B is known exactly on the host, so shapes may depend on it.
CudaError CheckBatch(const CudaTensor& user) {
  if (user.symbol[0] == 1 && user.times[0] == 1 && user.symbol[1] == 0) return nullptr;
  return "in_batch_softmax: the vectors must be [B, dim]";
}

// scores [rows, B] = user[begin ..] itemᵀ
template <class T>
CudaError Scores(const CudaCall& call, const CudaTensor& user, int64_t begin, int64_t rows,
                 float* scores) {
  const InBatch<T> vectors(call, static_cast<size_t>(&user - call.inputs));
  GemmTask task{.m = rows, .n = user.extent[0], .k = user.extent[1], .transpose_b = true};
  task.in_type = user.dtype;
  task.a = vectors.user + begin * task.k;
  task.b = vectors.item;
  task.c = scores;
  return Gemm(*call.stream, task);
}

// log Σ_j exp x_ij, computed by a warp.
template <class T>
__device__ float LogSumExp(const InBatch<T>& in, const float* row, int64_t i, int64_t n) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  float top = -INFINITY, sum = 0;
  for (int64_t j = lane; j < n; j += kWarp) top = fmaxf(top, in.Corrected(row[j], i, j));
  top = WarpMax(top);
  for (int64_t j = lane; j < n; j += kWarp) sum += expf(in.Corrected(row[j], i, j) - top);
  return top + logf(WarpSum(sum));
}

template <class T>
struct ScoreOf {
  InBatch<T> in;
  int64_t first;
  Count batch;
  const float* scores;
  T* scored;
  double* losses;
  __device__ void operator()(int64_t r, int lane, const CudaRun& run) const {
    const int64_t n = batch.At(run), i = first + r;
    const float* const row = scores + r * n;
    const float own = in.Corrected(row[i], i, i), loss = LogSumExp(in, row, i, n) - own;
    float rival = -INFINITY;
    for (int64_t j = lane; j < n; j += kWarp) {
      if (j != i) rival = fmaxf(rival, in.Corrected(row[j], i, j));
    }
    rival = WarpMax(rival);
    if (lane != 0) return;
    scored[3 * i] = To<T>(row[i] * in.scale);
    scored[3 * i + 1] = To<T>(loss);
    scored[3 * i + 2] = To<T>(own > rival ? 1.0f : 0.0f);
    losses[i] = in.WeightOf(i) * static_cast<double>(loss);
  }
};

size_t InBatchScratch(const CudaCall& call) {
  const Count batch = DimOf(call.inputs[0], 0);
  return ScoresBytes(batch.extent) + LossesBytes(batch) + SumElementsBytes(batch);
}
CudaError InBatchLoss(const CudaCall& call) {
  const CudaTensor& user = call.inputs[0];
  if (CudaError e = CheckBatch(user)) return e;
  const Count batch = DimOf(user, 0);
  const int64_t n = batch.extent, block = BlockRows(n);
  auto* const scores = static_cast<float*>(call.scratch);
  auto* const losses = reinterpret_cast<double*>(static_cast<char*>(call.scratch) + ScoresBytes(n));
  CudaError error = nullptr;
  const CudaError launched = OnFloat(call, [&]<class T>(T) {
    for (int64_t begin = 0; begin < n && error == nullptr; begin += block) {
      const int64_t rows = n - begin < block ? n - begin : block;
      error = Scores<T>(call, user, begin, rows, scores);
      ForRows(call, Fixed(rows),
              ScoreOf<T>{InBatch<T>(call, 0), begin, batch, scores, DataOf<T>(call.outputs[1]),
                         losses});
    }
    SumLosses<T>(call, batch, losses);
  });
  return error != nullptr ? error : launched;
}

// Replaces the scores by g_ij = weight_i (p_ij - [i = j]) / temperature.
template <class T>
struct SlopesOf {
  InBatch<T> in;
  int64_t first;
  Count batch;
  const T* dloss;
  float* scores;
  __device__ void operator()(int64_t r, int lane, const CudaRun& run) const {
    const int64_t n = batch.At(run), i = first + r;
    float* const row = scores + r * n;
    const float total = LogSumExp(in, row, i, n);
    const double share =
        static_cast<double>(ToFloat(dloss[0])) / run.step_samples * static_cast<double>(in.scale);
    const auto factor = static_cast<float>(share * in.WeightOf(i));
    for (int64_t j = lane; j < n; j += kWarp) {
      const float slope = factor * expf(in.Corrected(row[j], i, j) - total);
      row[j] = i == j ? slope - factor : slope;
    }
  }
};

// du = g v and dv = gᵀ u in float; dv is summed block by block.
size_t InBatchGradScratch(const CudaCall& call) {
  const CudaTensor& user = call.inputs[1];
  const auto vectors = static_cast<size_t>(SizeOf(user).extent) * sizeof(float);
  return ScoresBytes(user.extent[0]) + 4 * Aligned(vectors);
}
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
  const CudaTensor& user = call.inputs[1];
  const int64_t n = user.extent[0], dim = user.extent[1];
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
Vectors VectorsOf(const CudaCall& call, float* copies, size_t each) {
  const CudaTensor &user = call.inputs[1], &item = call.inputs[2];
  if constexpr (std::is_same_v<T, float>) {
    return {DataOf<float>(user), DataOf<float>(item), DataOf<float>(call.outputs[0]),
            DataOf<float>(call.outputs[1])};
  } else {
    ForEach(call, SizeOf(user), CopyToFloats<T>{DataOf<T>(user), copies});
    ForEach(call, SizeOf(user), CopyToFloats<T>{DataOf<T>(item), copies + each});
    return {copies, copies + each, copies + 2 * each, copies + 3 * each};
  }
}

CudaError InBatchGrad(const CudaCall& call) {
  const CudaTensor& user = call.inputs[1];
  if (CudaError e = CheckBatch(user)) return e;
  const Count batch = DimOf(user, 0), size = SizeOf(user);
  const int64_t n = batch.extent, block = BlockRows(n);
  auto* const scores = static_cast<float*>(call.scratch);
  float* const copies = scores + ScoresBytes(n) / sizeof(float);
  const size_t each = Aligned(static_cast<size_t>(size.extent) * sizeof(float)) / sizeof(float);
  CudaError error = nullptr;
  const CudaError launched = OnFloat(call, [&]<class T>(T) {
    const Vectors v = VectorsOf<T>(call, copies, each);
    for (int64_t begin = 0; begin < n && error == nullptr; begin += block) {
      const int64_t rows = n - begin < block ? n - begin : block;
      error = Scores<T>(call, user, begin, rows, scores);
      if (error != nullptr) return;
      ForRows(call, Fixed(rows),
              SlopesOf<T>{InBatch<T>(call, 1), begin, batch, DataOf<T>(call.inputs[0]), scores});
      error = BlockGrads(call, v, scores, begin, rows);
    }
    if constexpr (!std::is_same_v<T, float>) {
      ForEach(call, size, CopyFromFloats<T>{v.du, DataOf<T>(call.outputs[0])});
      ForEach(call, size, CopyFromFloats<T>{v.dv, DataOf<T>(call.outputs[1])});
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
