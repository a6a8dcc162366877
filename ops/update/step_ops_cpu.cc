#include <array>
#include <cmath>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"
#include "ops/update/attrs.h"
#include "ops/update/update.h"

namespace dt {
namespace {

// The sum of squares in float64, in an order that depends on their number only.
template <class T>
double SquaresOf(const T* values, size_t count) {
  double lanes[8] = {};
  for (size_t i = 0; i < count; ++i) {
    lanes[i % 8] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return SumOf(lanes, 8);
}

void RowNorms(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const T* const x = DataOf<T>(context.in(0));
    const std::span<T> out = context.out(0).as<T>();
    const size_t width = out.empty() ? 0 : static_cast<size_t>(context.in(0).size()) / out.size();
    context.pool.ParallelFor(out.size(), RowGrain(width), [&](size_t begin, size_t end) {
      for (size_t r = begin; r < end; ++r) {
        out[r] = static_cast<T>(std::sqrt(SquaresOf(x + r * width, width)));
      }
    });
  });
}

void JointNorms(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    for (size_t i = 0; i < context.inputs.size(); ++i) {
      const std::span<const T> norms = context.in(i).as<T>();
      context.out(0).as<T>()[i] = static_cast<T>(std::sqrt(SquaresOf(norms.data(), norms.size())));
    }
  });
}

void ClipByGlobalNorm(KernelContext& context) {
  const double clip_norm = FloatAttr(context.node.attrs, "clip_norm", 0);
  const size_t grads = context.outputs.size();
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    double squares = 0;
    for (size_t i = grads; i < context.inputs.size(); ++i) {
      const std::span<const T> norms = context.in(i).as<T>();
      squares += SquaresOf(norms.data(), norms.size());
    }
    const double limit = clip_norm / (std::sqrt(squares) + 1e-6);  // As PyTorch's clip_grad_norm_.
    const T factor = clip_norm > 0 && limit < 1 ? static_cast<T>(limit) : T(1);
    for (size_t g = 0; g < grads; ++g) {
      const T* from = DataOf<T>(context.in(g));
      T* to = DataOf<T>(context.out(g));
      const auto size = static_cast<size_t>(context.in(g).size());
      context.pool.ParallelFor(size, kGrain, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) to[i] = from[i] * factor;
      });
    }
  });
}

void AddL2(KernelContext& context) {
  const double l2 = FloatAttr(context.node.attrs, "l2", 0);
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const T *grad = DataOf<T>(context.in(0)), *param = DataOf<T>(context.in(1));
    const std::span<T> out = context.out(0).as<T>();
    const T factor = static_cast<T>(l2);
    context.pool.ParallelFor(out.size(), kGrain, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) out[i] = grad[i] + factor * param[i];
    });
  });
}

void Update(KernelContext& context) {
  const OptimizerSpec spec = OptimizerFromAttrs(context.node.attrs);
  const UpdateInfo info{.step = context.run.update_step(), .lr_scale = context.run.lr_scale};
  const std::span<float> value = context.in(0).as<float>();
  const std::span<const float> grad = context.in(1).as<float>();
  const size_t states = context.inputs.size() - 2;
  context.pool.ParallelFor(value.size(), kGrain, [&](size_t begin, size_t end) {
    std::array<float*, 2> at{};
    for (size_t s = 0; s < states; ++s) at[s] = DataOf<float>(context.in(2 + s)) + begin;
    UpdateDense(spec, info, value.subspan(begin, end - begin), std::span(at).first(states),
                grad.subspan(begin, end - begin));
  });
}

constexpr NamedKernel kKernels[] = {
    {"row_norms", RowNorms}, {"joint_norms", JointNorms}, {"clip_by_global_norm", ClipByGlobalNorm},
    {"add_l2", AddL2},       {"update", Update},
};

}  // namespace

std::span<const NamedKernel> StepKernels() { return kKernels; }

}  // namespace dt
