#include <cstring>

#include "ops/kernel_families.h"
#include "ops/kernel_util.h"

namespace dt {
namespace {

// A tensor as `outer` rows of `bytes`: `outer` counts the dimensions before `axis`.
struct Rows {
  size_t outer = 1, bytes = 0;
};
Rows RowsBefore(const TensorView& view, size_t axis) {
  Rows rows;
  rows.bytes = SizeOf(view.dtype);
  for (size_t i = 0; i < view.shape.size(); ++i) {
    (i < axis ? rows.outer : rows.bytes) *= static_cast<size_t>(view.shape[i]);
  }
  return rows;
}

size_t AxisAttr(const KernelContext& context) {
  const int64_t axis = IntAttr(context.node.attrs, "axis", -1);
  return static_cast<size_t>(axis < 0 ? axis + std::ssize(context.out(0).shape) : axis);
}

std::byte* BytesOf(const TensorView& view) { return static_cast<std::byte*>(view.data); }

size_t GrainOf(const Rows& rows) { return std::max<size_t>(1, 4 * kGrain / (rows.bytes + 1)); }

// Row r of the output is row r of every input, one behind the other.
void JoinRows(KernelContext& context, size_t axis) {
  const Rows out = RowsBefore(context.out(0), axis);
  context.pool.ParallelFor(out.outer, GrainOf(out), [&](size_t begin, size_t end) {
    size_t offset = 0;
    for (const TensorView& input : context.inputs) {
      const size_t bytes = input.bytes() / out.outer;
      const std::byte* from = BytesOf(input);
      std::byte* to = BytesOf(context.out(0)) + offset;
      for (size_t r = begin; r < end; ++r) {
        std::memcpy(to + r * out.bytes, from + r * bytes, bytes);
      }
      offset += bytes;
    }
  });
}

void Concat(KernelContext& context) { JoinRows(context, AxisAttr(context)); }
void Stack(KernelContext& context) { JoinRows(context, 1); }

// Bytes of one position of `axis`.
size_t StepBytes(const TensorView& view, size_t axis) {
  size_t bytes = SizeOf(view.dtype);
  for (size_t i = axis + 1; i < view.shape.size(); ++i) bytes *= static_cast<size_t>(view.shape[i]);
  return bytes;
}

void Slice(KernelContext& context) {
  const size_t axis = AxisAttr(context);
  const Rows in = RowsBefore(context.in(0), axis), out = RowsBefore(context.out(0), axis);
  const auto begin_at = static_cast<size_t>(IntAttr(context.node.attrs, "begin", 0));
  const std::byte* from = BytesOf(context.in(0)) + begin_at * StepBytes(context.in(0), axis);
  std::byte* to = BytesOf(context.out(0));
  context.pool.ParallelFor(out.outer, GrainOf(out), [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      std::memcpy(to + r * out.bytes, from + r * in.bytes, out.bytes);
    }
  });
}

void Pad(KernelContext& context) {
  const size_t axis = AxisAttr(context);
  const Rows in = RowsBefore(context.in(0), axis), out = RowsBefore(context.out(0), axis);
  const auto before_at = static_cast<size_t>(IntAttr(context.node.attrs, "before", 0));
  const size_t before = before_at * StepBytes(context.out(0), axis);
  const std::byte* from = BytesOf(context.in(0));
  std::byte* to = BytesOf(context.out(0));
  context.pool.ParallelFor(out.outer, GrainOf(out), [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      std::byte* row = to + r * out.bytes;
      std::memset(row, 0, before);
      std::memcpy(row + before, from + r * in.bytes, in.bytes);
      std::memset(row + before + in.bytes, 0, out.bytes - before - in.bytes);
    }
  });
}

constexpr NamedKernel kKernels[] = {
    {"concat", Concat},
    {"stack", Stack},
    {"slice", Slice},
    {"pad", Pad},
};

}  // namespace

std::span<const NamedKernel> JoinKernels() { return kKernels; }

}  // namespace dt
