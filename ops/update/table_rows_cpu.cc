#include "ops/kernel_families.h"
#include "ops/kernel_util.h"
#include "ops/update/attrs.h"
#include "ops/update/update.h"

namespace dt {
namespace {

void TakeRows(KernelContext& context) {
  OnFloat(context.in(0).dtype, [&]<class T>(T) {
    const T* table = DataOf<T>(context.in(0));
    const auto width = static_cast<size_t>(context.in(0).shape[1]);
    const auto dim = static_cast<size_t>(context.out(0).shape[1]);
    const std::span<const uint32_t> numbers = context.in(1).as<uint32_t>();
    T* out = DataOf<T>(context.out(0));
    context.pool.ParallelFor(numbers.size(), RowGrain(dim), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        std::copy_n(table + numbers[i] * width, dim, out + i * dim);
      }
    });
  });
}

void UpdateRows(KernelContext& context) {
  const Attrs& attrs = context.node.attrs;
  const float scale = BoolAttr(attrs, "scheduled", true) ? context.run.lr_scale : 1.0f;
  const RowUpdate update(RowOptimizerFromAttrs(attrs),
                         {.step = context.run.update_step(), .lr_scale = scale});
  float* const table = DataOf<float>(context.in(0));
  const auto width = static_cast<size_t>(context.in(0).shape[1]);
  const auto dim = static_cast<size_t>(context.in(2).shape[1]);
  const std::span<const uint32_t> numbers = context.in(1).as<uint32_t>();
  const float* const grads = DataOf<float>(context.in(2));
  const std::span<const uint32_t> steps_since_update = context.in(3).as<uint32_t>();
  context.pool.ParallelFor(numbers.size(), RowGrain(width), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const std::span<float> row(table + numbers[i] * width, width);
      update.Apply(steps_since_update[i], row.first(dim), row.subspan(dim), {grads + i * dim, dim});
    }
  });
}

constexpr NamedKernel kKernels[] = {
    {"take_rows", TakeRows},
    {"update_rows", UpdateRows},
};

}  // namespace

std::span<const NamedKernel> TableRowKernels() { return kKernels; }

}  // namespace dt
