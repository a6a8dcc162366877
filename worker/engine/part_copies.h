// Parts of a dimension of a tensor, taken out of it and put back: what collectives send and get is
// one piece of memory for each part.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "common/device/cuda_table.h"
#include "common/device/tensor.h"
#include "common/layout/layout.h"

namespace dt::worker {

// A tensor as [outer, length, inner], where the middle is one of its dimensions.
struct RowsAlong {
  size_t outer = 1, length = 1, bytes = 1;  // The bytes of [inner].
  RowsAlong(const TensorView& view, size_t dim);
  size_t BytesOf(const Range& part) const {
    return outer * static_cast<size_t>(part.size()) * bytes;
  }
};

// Copies rows in host memory, or on a card.
using CopyRows = std::function<Status(const CudaRows&)>;
Status CopyRowsOnHost(const CudaRows& copy);

// Copies positions of the middle dimension of `whole` to `part`, or back.
Status TakePart(const RowsAlong& rows, const Range& range, const std::byte* whole, std::byte* part,
                const CopyRows& copy);
Status PutPart(const RowsAlong& rows, const Range& range, const std::byte* part, std::byte* whole,
               const CopyRows& copy);
// All parts, one after the other in `packed`.
Status Pack(const RowsAlong& rows, std::span<const Range> parts, const std::byte* whole,
            std::byte* packed, const CopyRows& copy);
Status Unpack(const RowsAlong& rows, std::span<const Range> parts, const std::byte* packed,
              std::byte* whole, const CopyRows& copy);

}  // namespace dt::worker
