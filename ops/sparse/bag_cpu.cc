#include <cmath>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"
#include "ops/sparse/row_dim.h"

namespace dt {
namespace {

enum class Combiner { kSum, kMean, kSqrtn };

Combiner CombinerOf(const Attrs& attrs) {
  const std::string text = TextAttr(attrs, "combiner", "sum");
  if (text == "mean") return Combiner::kMean;
  return text == "sqrtn" ? Combiner::kSqrtn : Combiner::kSum;
}

// The ids of each sample, and their weights.
template <class T>
struct Bags {
  size_t samples = 0, length = 1;
  const uint32_t* ends = nullptr;  // Set if ragged.
  const T* weights = nullptr;      // Set if weighted.
  Combiner combiner = Combiner::kSum;

  // The optional inputs follow the first `fixed` inputs.
  Bags(const KernelContext& context, size_t fixed, size_t batch) : samples(batch) {
    const Attrs& attrs = context.node.attrs;
    if (BoolAttr(attrs, "ragged", false)) ends = context.in(fixed++).as<uint32_t>().data();
    if (BoolAttr(attrs, "weighted", false)) weights = DataOf<T>(context.in(fixed));
    length = static_cast<size_t>(IntAttr(attrs, "length", 1));
    combiner = CombinerOf(attrs);
  }

  size_t begin(size_t sample) const {
    if (ends == nullptr) return sample * length;
    return sample == 0 ? 0 : ends[sample - 1];
  }
  size_t end(size_t sample) const { return ends == nullptr ? (sample + 1) * length : ends[sample]; }
  T weight(size_t position) const { return weights == nullptr ? T(1) : weights[position]; }

  // The factor of the weighted sum of the sample's rows.
  T Factor(size_t sample) const {
    if (combiner == Combiner::kSum) return T(1);
    T divisor = 0;
    for (size_t i = begin(sample); i < end(sample); ++i) {
      divisor += combiner == Combiner::kMean ? weight(i) : weight(i) * weight(i);
    }
    if (combiner == Combiner::kSqrtn) divisor = std::sqrt(divisor);
    return divisor == T(0) ? T(0) : T(1) / divisor;
  }
};

void Bag(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.out(0));
    const Bags<T> bags(context, 4, shape.rows);
    const T* rows = DataOf<T>(context.in(0));
    const uint32_t* index = context.in(1).as<uint32_t>().data();
    T* out = DataOf<T>(context.out(0));
    WithRowDim(shape.cols, [&](auto dim) {
      context.pool.ParallelFor(bags.samples, kSumRows, [&](size_t begin, size_t end) {
        std::fill_n(out + begin * dim, (end - begin) * dim, T(0));
        for (size_t b = begin; b < end; ++b) {
          const T factor = bags.Factor(b);
          for (size_t i = bags.begin(b); i < bags.end(b); ++i) {
            AddScaled(factor * bags.weight(i), rows + size_t{index[i]} * dim, out + b * dim, dim);
          }
        }
      });
    });
  });
}

// The sample of each position, and the factor of each sample.
template <class T>
struct Plan {
  std::span<T> factors;
  std::span<uint32_t> sample_of;
};
template <class T>
Plan<T> MakePlan(KernelContext& context, const Bags<T>& bags, size_t positions) {
  const size_t tail = (positions * sizeof(uint32_t) + sizeof(T) - 1) / sizeof(T);
  const std::span<T> memory = Scratch<T>(context, bags.samples + tail);
  Plan<T> plan{memory.first(bags.samples),
               {reinterpret_cast<uint32_t*>(memory.data() + bags.samples), positions}};
  context.pool.ParallelFor(bags.samples, 4 * kSumRows, [&](size_t begin, size_t end) {
    for (size_t b = begin; b < end; ++b) {
      plan.factors[b] = bags.Factor(b);
      const size_t from = bags.begin(b);
      std::fill_n(plan.sample_of.data() + from, bags.end(b) - from, static_cast<uint32_t>(b));
    }
  });
  return plan;
}

void BagGrad(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const MatrixShape shape = AsMatrix(context.in(0));
    const Bags<T> bags(context, 3, shape.rows);
    const T* dy = DataOf<T>(context.in(0));
    const std::span<const uint32_t> ends = context.in(1).as<uint32_t>();
    const std::span<const uint32_t> order = context.in(2).as<uint32_t>();
    const Plan<T> plan = MakePlan(context, bags, order.size());
    T* out = DataOf<T>(context.out(0));
    WithRowDim(shape.cols, [&](auto dim) {
      context.pool.ParallelFor(ends.size(), kSumRows, [&](size_t begin, size_t end) {
        std::fill_n(out + begin * dim, (end - begin) * dim, T(0));
        size_t use = begin == 0 ? 0 : ends[begin - 1];
        for (size_t u = begin; u < end; ++u) {
          for (; use < ends[u]; ++use) {
            const size_t b = plan.sample_of[order[use]];
            const T factor = plan.factors[b] * bags.weight(order[use]);
            AddScaled(factor, dy + b * dim, out + u * dim, dim);
          }
        }
      });
    });
  });
}

constexpr NamedKernel kKernels[] = {
    {"bag", Bag},
    {"bag_grad", BagGrad},
};

}  // namespace

std::span<const NamedKernel> BagKernels() { return kKernels; }

}  // namespace dt
