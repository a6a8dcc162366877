// Helpers of the shape rules. Every error is a sentence that begins with the operator.
#pragma once

#include <string>
#include <string_view>

#include "ops/op_spec.h"

namespace dt {

// Strided kernels store their loops in arrays of this length.
inline constexpr size_t kMaxRank = 6;

// An output without a name.
Value Output(DType dtype, SymShape shape);

// Error: "relu: takes 1 input, has 2".
Status ExpectInputs(const InferContext& context, size_t count);
Status ExpectInputs(const InferContext& context, size_t least, size_t most);
// Input `i` holds f32 (f64 in tests), or u32 for ExpectIndex.
Status ExpectFloat(const InferContext& context, size_t i);
Status ExpectIndex(const InferContext& context, size_t i);
// ExpectInputs, and ExpectFloat for each input.
Status ExpectFloats(const InferContext& context, size_t count);
// Error: "fm: input 1 (x) must be [B, fields, dim], is [B, 8]".
Status ExpectRank(const InferContext& context, size_t i, size_t rank, std::string_view form);
// Input `i` has exactly this shape. `what` names the input in the error.
Status ExpectShape(const InferContext& context, size_t i, const SymShape& shape,
                   std::string_view what);
// The attribute `dropout`, where there is one, is a rate in [0, 1).
Status ExpectDropout(const InferContext& context);

// Position of `axis`, which counts from the end if negative. Error: it is outside the rank.
Result<size_t> AxisOf(const InferContext& context, int64_t axis, size_t rank);
// The product of dimensions [begin, end). Error: two of them are symbols.
Result<Dim> Product(const InferContext& context, const SymShape& shape, size_t begin, size_t end);
// Whether `dim` is a multiple of `factor`; Quotient is the other factor.
bool Divides(const Dim& dim, const Dim& factor);
Dim Quotient(const Dim& dim, const Dim& factor);
// Shapes are right-aligned; two dimensions must be equal, or one of them 1.
Result<SymShape> Broadcast(const InferContext& context, const SymShape& a, const SymShape& b);
bool BroadcastsTo(const SymShape& from, const SymShape& to);

// The only input gives one output of the same type and shape.
Status InferSame(InferContext& context);
// One output like input 0; all inputs have its shape.
Status InferAllSame(InferContext& context);
// Input 0 is a gradient or a tensor; the output has the shape of input 1.
Status InferLike(InferContext& context);

// The gradient `grad` of the output, summed over the dimensions along which input `i` was repeated.
ValueIndex ReducedTo(GradientContext& context, size_t i, ValueIndex grad);

// Number of elements in a slice of `batch` samples; symbols other than B count as B.
double ElementsAt(const SymShape& shape, int64_t batch);
double BytesAt(const Value& value, int64_t batch);

}  // namespace dt
