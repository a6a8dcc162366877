#include <cmath>
#include <limits>

#include "ops/gemm/gemm_cpu.h"
#include "ops/kernel_families.h"
#include "ops/kernel_util.h"
#include "ops/loss/in_batch_softmax.h"
#include "ops/vector_math.h"

namespace dt {
namespace {

// Number of samples in one partial sum of losses.
constexpr size_t kPiece = 256;

// Σ exp(x_i - top); elements of minus infinity add 0.
template <class T>
T SumOfExp(const T* __restrict x, T top, size_t n) {
  constexpr T kNever = -std::numeric_limits<T>::infinity();
  T lanes[8] = {};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t k = 0; k < 8; ++k) {
      const T e = FastExp(x[i + k] - top);
      lanes[k] += x[i + k] == kNever ? T(0) : e;
    }
  }
  for (size_t k = 0; i < n; ++i, ++k) lanes[k] += x[i] == kNever ? T(0) : FastExp(x[i] - top);
  return SumOf(lanes, 8);
}

const TensorView* Optional(const KernelContext& context, size_t at) {
  return at < context.inputs.size() ? &context.in(at) : nullptr;
}
template <class T>
const T* DataOrNull(const TensorView* view) {
  return view == nullptr ? nullptr : DataOf<T>(*view);
}

// ------------------------------------------------------------------ softmax_cross_entropy

// Logits, labels, and weights (or nullptr), starting at input `first`.
template <class T>
struct Classes {
  size_t samples, classes;
  const T *logits, *label, *weight;

  Classes(const KernelContext& context, size_t first)
      : logits(DataOf<T>(context.in(first))),
        label(DataOf<T>(context.in(first + 1))),
        weight(DataOrNull<T>(Optional(context, first + 2))) {
    const MatrixShape shape = AsMatrix(context.in(first));
    samples = shape.rows, classes = shape.cols;
  }
  const T* row(size_t i) const { return logits + i * classes; }
  double weight_of(size_t i) const { return weight == nullptr ? 1.0 : double{weight[i]}; }
  // `classes` if the label is not the number of a class.
  size_t class_of(size_t i) const {
    const bool known = label[i] >= T(0) && label[i] < static_cast<T>(classes);
    return known ? static_cast<size_t>(label[i]) : classes;
  }
  double loss_of(size_t i) const {
    const T* const x = row(i);
    const size_t k = class_of(i);
    if (k == classes) return std::numeric_limits<double>::quiet_NaN();
    const T top = MaxOf(x, classes);
    return std::log(double{SumOfExp(x, top, classes)}) - (double{x[k]} - double{top});
  }
};

// Computed in float64, with partial sums of kPiece samples in order.
void CrossEntropy(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Classes<T> in(context, 0);
    const std::span<double> parts = Scratch<double>(context, (in.samples + kPiece - 1) / kPiece);
    context.pool.ParallelFor(in.samples, kPiece, [&](size_t begin, size_t end) {
      double sum = 0;
      for (size_t i = begin; i < end; ++i) sum += in.weight_of(i) * in.loss_of(i);
      parts[begin / kPiece] = sum;
    });
    double total = 0;
    for (const double part : parts) total += part;
    context.out(0).as<T>()[0] = static_cast<T>(total / context.run.step_samples);
  });
}

// weight · (softmax - 1 at the label)
void CrossEntropyGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Classes<T> in(context, 1);
    const double share = double{context.in(0).as<T>()[0]} / context.run.step_samples;
    T* const out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(in.samples, RowGrain(in.classes), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const T* __restrict x = in.row(i);
        T* __restrict dx = out + i * in.classes;
        const T top = MaxOf(x, in.classes);
        const double slope = share * in.weight_of(i);
        const T factor = static_cast<T>(slope / double{SumOfExp(x, top, in.classes)});
        for (size_t c = 0; c < in.classes; ++c) dx[c] = factor * FastExp(x[c] - top);
        const size_t k = in.class_of(i);
        if (k < in.classes) dx[k] -= static_cast<T>(slope);
      }
    });
  });
}

// ------------------------------------------------------------------ in_batch_softmax

template <class T>
struct InBatch {
  static constexpr T kNever = -std::numeric_limits<T>::infinity();

  size_t users, items, dim;
  size_t first_item;  // The item of the first user.
  const T *user, *item, *label, *weight, *log_q;
  const uint32_t* key;
  T scale;  // 1 / temperature

  InBatch(const KernelContext& context, size_t first) : first_item(context.run.first_in_slice) {
    const InBatchInputs at(context.node.attrs, first);
    const MatrixShape shape = AsMatrix(context.in(at.user));
    users = shape.rows, dim = shape.cols;
    items = AsMatrix(context.in(at.item)).rows;
    user = DataOf<T>(context.in(at.user));
    item = DataOf<T>(context.in(at.item));
    label = DataOrNull<T>(Optional(context, at.label));
    weight = DataOrNull<T>(Optional(context, at.weight));
    log_q = DataOrNull<T>(Optional(context, at.log_q));
    key = DataOrNull<uint32_t>(Optional(context, at.key));
    scale = static_cast<T>(1 / FloatAttr(context.node.attrs, "temperature", 1));
  }
  double weight_of(size_t i) const {
    return (label == nullptr ? 1.0 : double{label[i]}) *
           (weight == nullptr ? 1.0 : double{weight[i]});
  }
  size_t item_of(size_t i) const { return first_item + i; }

  // Turns the products of user i with all items into x_ij; minus infinity if another sample has the
  // same item.
  void Correct(size_t i, T* __restrict row) const {
    for (size_t j = 0; j < items; ++j) row[j] *= scale;
    for (size_t j = 0; log_q != nullptr && j < items; ++j) row[j] -= log_q[j];
    if (key == nullptr) return;
    const size_t own = item_of(i);
    for (size_t j = 0; j < items; ++j) {
      const bool same = key[2 * j] == key[2 * own] && key[2 * j + 1] == key[2 * own + 1];
      if (j != own && same) row[j] = kNever;
    }
  }
  // Number of users whose products with all items are in memory at a time: 2^20 products, or 64
  // users.
  size_t block() const {
    return std::min(users, std::max<size_t>(64, (size_t{1} << 20) / std::max<size_t>(1, items)));
  }
  // Calls body(i, products of user i) for users [begin, begin + rows), in parallel.
  template <class Body>
  void ForScores(TaskPool& pool, size_t begin, T* scores, const Body& body) const {
    const size_t rows = std::min(block(), users - begin);
    const GemmShape product{.m = rows, .n = items, .k = dim, .transpose_b = true};
    Gemm(pool, GemmTask<T>{product, user + begin * dim, item, scores});
    pool.ParallelFor(rows, RowGrain(items), [&](size_t first, size_t last) {
      for (size_t r = first; r < last; ++r) body(begin + r, scores + r * items);
    });
  }
};

void InBatchSoftmax(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const InBatch<T> in(context, 0);
    T* const scored = DataOf<T>(context.out(1));
    T* const scores = Scratch<T>(context, in.block() * in.items).data();
    const auto score = [&](size_t i, T* row) {
      T& own_score = row[in.item_of(i)];
      const T product = own_score * in.scale;
      in.Correct(i, row);
      const T own = std::exchange(own_score, InBatch<T>::kNever);
      const T rival = MaxOf(row, in.items);
      own_score = own;
      const T top = own > rival ? own : rival;
      scored[3 * i] = product;
      scored[3 * i + 1] = std::log(SumOfExp(row, top, in.items)) + (top - own);
      scored[3 * i + 2] = own > rival ? T(1) : T(0);
    };
    for (size_t begin = 0; begin < in.users; begin += in.block()) {
      in.ForScores(context.pool, begin, scores, score);
    }
    double total = 0;
    for (size_t i = 0; i < in.users; ++i) total += in.weight_of(i) * double{scored[3 * i + 1]};
    context.out(0).as<T>()[0] = static_cast<T>(total / context.run.step_samples);
  });
}

// With g_ij = weight_i (p_ij - [i = j]) / temperature: du = g v, dv = gᵀ u, block by block.
void InBatchSoftmaxGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const InBatch<T> in(context, 1);
    const size_t n = in.items, block = in.block(), size = n * in.dim;
    const double share =
        double{context.in(0).as<T>()[0]} / context.run.step_samples * double{in.scale};
    T *const du = DataOf<T>(context.out(0)), *const dv = DataOf<T>(context.out(1));
    T* const scores = Scratch<T>(context, block * n + size).data();
    T* const part = scores + block * n;
    const auto slopes = [&](size_t i, T* row) {
      in.Correct(i, row);
      const T top = MaxOf(row, n);
      const double slope = share * in.weight_of(i);
      const T factor = static_cast<T>(slope / double{SumOfExp(row, top, n)});
      for (size_t j = 0; j < n; ++j) {
        const T e = FastExp(row[j] - top);
        row[j] = row[j] == InBatch<T>::kNever ? T(0) : factor * e;
      }
      row[in.item_of(i)] -= static_cast<T>(slope);
    };
    if (in.users == 0) std::fill_n(dv, size, T(0));
    for (size_t begin = 0; begin < in.users; begin += block) {
      in.ForScores(context.pool, begin, scores, slopes);
      const size_t rows = std::min(block, in.users - begin);
      const GemmShape left{.m = rows, .n = in.dim, .k = n};
      Gemm(context.pool, GemmTask<T>{left, scores, in.item, du + begin * in.dim});
      const GemmShape right{.m = n, .n = in.dim, .k = rows, .transpose_a = true};
      Gemm(context.pool,
           GemmTask<T>{right, scores, in.user + begin * in.dim, begin == 0 ? dv : part});
      if (begin == 0) continue;
      context.pool.ParallelFor(size, kGrain, [&](size_t first, size_t last) {
        AddTo(part + first, dv + first, last - first);
      });
    }
  });
}

constexpr NamedKernel kKernels[] = {
    {"softmax_cross_entropy", CrossEntropy},
    {"softmax_cross_entropy_grad", CrossEntropyGrad},
    {"in_batch_softmax", InBatchSoftmax},
    {"in_batch_softmax_grad", InBatchSoftmaxGrad},
};

}  // namespace

std::span<const NamedKernel> SoftmaxLossKernels() { return kKernels; }

}  // namespace dt
