#include "ops/gemm/gemm_cpu.h"
#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

void Matmul(KernelContext& context) {
  const Attrs& attrs = context.node.attrs;
  GemmShape shape;
  shape.transpose_a = BoolAttr(attrs, "transpose_a", false);
  shape.transpose_b = BoolAttr(attrs, "transpose_b", false);
  const MatrixShape a = AsMatrix(context.in(0)), b = AsMatrix(context.in(1));
  shape.m = shape.transpose_a ? a.cols : a.rows;
  shape.k = shape.transpose_a ? a.rows : a.cols;
  shape.n = shape.transpose_b ? b.rows : b.cols;
  DT_CHECK(shape.k == (shape.transpose_b ? b.cols : b.rows));
  OnFloat(context.out(0).dtype, [&]<class T>(T) {
    const Either<T> left(context.in(0)), right(context.in(1));
    GemmTask<T> task{.shape = shape,
                     .a = left.wide,
                     .b = right.wide,
                     .c = DataOf<T>(context.out(0)),
                     .bf16_a = left.bf16,
                     .bf16_b = right.bf16};
    UseMath(attrs, task, context.scratch, 0);
    Gemm(context.pool, task);
  });
}

constexpr NamedKernel kKernels[] = {{"matmul", Matmul}, {"mixed_matmul", Matmul}};

}  // namespace

std::span<const NamedKernel> MatmulKernels() { return kKernels; }

}  // namespace dt
