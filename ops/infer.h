// What the shape rules share. Every error is a sentence that begins with the operator.
#pragma once

#include <string>
#include <string_view>

#include "ops/op_spec.h"

namespace dt {

// Strided kernels keep their loops in arrays of this length.
inline constexpr size_t kMaxRank = 6;

// An output without a name.
Value Output(DType dtype, SymShape shape);

// "relu: takes 1 input, has 2".
Status ExpectInputs(const InferContext& context, size_t count);
Status ExpectInputs(const InferContext& context, size_t least, size_t most);
// Input `i` holds f32 (f64 under test), respectively u32.
Status ExpectFloat(const InferContext& context, size_t i);
Status ExpectIndex(const InferContext& context, size_t i);
// ExpectInputs and ExpectFloat of each.
Status ExpectFloats(const InferContext& context, size_t count);
// "fm: input 1 (x) must be [B, fields, dim], is [B, 8]".
Status ExpectRank(const InferContext& context, size_t i, size_t rank, std::string_view form);
// Input `i` has exactly this shape. `what` names the input in the error.
Status ExpectShape(const InferContext& context, size_t i, const SymShape& shape,
                   std::string_view what);

// Position of `axis`, which counts from the end if negative. Error: outside the rank.
Result<size_t> AxisOf(const InferContext& context, int64_t axis, size_t rank);
// The product of dimensions [begin, end). Error: two symbols would be multiplied.
Result<Dim> Product(const InferContext& context, const SymShape& shape, size_t begin, size_t end);
// Whether `factor` times a dimension is `dim`, and which.
bool Divides(const Dim& dim, const Dim& factor);
Dim Quotient(const Dim& dim, const Dim& factor);
// Right-aligned; dimensions are equal or one of them is 1.
Result<SymShape> Broadcast(const InferContext& context, const SymShape& a, const SymShape& b);
bool BroadcastsTo(const SymShape& from, const SymShape& to);

// One output like input 0, the only input.
Status InferSame(InferContext& context);
// One output like input 0; all inputs have its shape.
Status InferAllSame(InferContext& context);
// Input 0 is a gradient or a tensor, input 1 has the shape of the output.
Status InferLike(InferContext& context);

// The gradient `grad` of the output, summed over the dimensions along which input `i` was repeated.
ValueIndex ReducedTo(GradientContext& context, size_t i, ValueIndex grad);

// Total elements for a slice of `batch` samples; other symbols than B are taken as B.
double ElementsAt(const SymShape& shape, int64_t batch);
double BytesAt(const Value& value, int64_t batch);

}  // namespace dt
