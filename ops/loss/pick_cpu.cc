#include <limits>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

constexpr size_t kPiece = 1024;

// Where elements of rows are picked.
template <class T>
struct Picking {
  size_t rows, width;
  std::span<const T> positions;
  double first = 0, whole;

  Picking(const KernelContext& context, const TensorView& values, const TensorView& at)
      : rows(at.size()),
        width(static_cast<size_t>(values.shape.back())),
        positions(at.as<T>()),
        whole(static_cast<double>(width)) {
    if (!context.node.attrs.contains("first")) return;
    first = static_cast<double>(IntsAttr(context.node.attrs, "first")[0]);
    whole = static_cast<double>(IntsAttr(context.node.attrs, "whole")[0]);
  }
  // False also for NaN.
  bool IsPosition(size_t row) const {
    const auto at = static_cast<double>(positions[row]);
    return at >= 0 && at < whole;
  }
  // The position within this part, or `width` if it is in another part. REQUIRES: IsPosition.
  size_t Here(size_t row) const {
    const double at = std::floor(static_cast<double>(positions[row])) - first;
    return at >= 0 && at < static_cast<double>(width) ? static_cast<size_t>(at) : width;
  }
  size_t grain() const { return RowGrain(width); }
};

void Pick(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const Picking<T> by(context, context.in(0), context.in(1));
    const T* const x = DataOf<T>(context.in(0));
    T* const out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(by.rows, kPiece, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        out[i] = std::numeric_limits<T>::quiet_NaN();
        if (!by.IsPosition(i)) continue;
        const size_t at = by.Here(i);
        out[i] = at == by.width ? T(0) : x[i * by.width + at];
      }
    });
  });
}

void PickGrad(KernelContext& context) {
  OnFloat(context.in(1).dtype, [&]<class T>(T) {
    const Picking<T> by(context, context.out(0), context.in(0));
    const T* const dy = DataOf<T>(context.in(1));
    T* const out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(by.rows, by.grain(), [&](size_t begin, size_t end) {
      std::fill_n(out + begin * by.width, (end - begin) * by.width, T(0));
      for (size_t i = begin; i < end; ++i) {
        if (!by.IsPosition(i)) continue;
        if (const size_t at = by.Here(i); at < by.width) out[i * by.width + at] = dy[i];
      }
    });
  });
}

// Computed in float64, with partial sums of kPiece samples in order.
void SampleMean(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const std::span<const T> x = context.in(0).as<T>();
    const std::span<double> parts = Scratch<double>(context, (x.size() + kPiece - 1) / kPiece);
    context.pool.ParallelFor(x.size(), kPiece, [&](size_t begin, size_t end) {
      double sum = 0;
      for (size_t i = begin; i < end; ++i) sum += double{x[i]};
      parts[begin / kPiece] = sum;
    });
    double total = 0;
    for (const double part : parts) total += part;
    context.out(0).as<T>()[0] = static_cast<T>(total / context.run.step_samples);
  });
}

void SampleMeanGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const double share = double{context.in(0).as<T>()[0]} / context.run.step_samples;
    std::ranges::fill(context.out(0).as<T>(), static_cast<T>(share));
  });
}

constexpr NamedKernel kKernels[] = {
    {"pick", Pick},
    {"pick_grad", PickGrad},
    {"sample_mean", SampleMean},
    {"sample_mean_grad", SampleMeanGrad},
};

}  // namespace

std::span<const NamedKernel> PickKernels() { return kKernels; }

}  // namespace dt
