#include "worker/engine/part_copies.h"

#include <cstring>

namespace dt::worker {

RowsAlong::RowsAlong(const TensorView& view, size_t dim) : bytes(SizeOf(view.dtype)) {
  for (size_t d = 0; d < view.shape.size(); ++d) {
    const auto size = static_cast<size_t>(view.shape[d]);
    if (d < dim) outer *= size;
    if (d == dim) length = size;
    if (d > dim) bytes *= size;
  }
}

Status CopyRowsOnHost(const CudaRows& copy) {
  auto* to = static_cast<std::byte*>(copy.to);
  const auto* from = static_cast<const std::byte*>(copy.from);
  for (size_t r = 0; r < copy.rows && copy.bytes > 0; ++r) {
    std::memcpy(to, from, copy.bytes);
    to += copy.to_pitch;
    from += copy.from_pitch;
  }
  return OkStatus();
}

Status TakePart(const RowsAlong& rows, const Range& range, const std::byte* whole, std::byte* part,
                const CopyRows& copy) {
  const size_t bytes = static_cast<size_t>(range.size()) * rows.bytes;
  return copy({.to = part,
               .to_pitch = bytes,
               .from = whole + static_cast<size_t>(range.begin) * rows.bytes,
               .from_pitch = rows.length * rows.bytes,
               .bytes = bytes,
               .rows = rows.outer});
}

Status PutPart(const RowsAlong& rows, const Range& range, const std::byte* part, std::byte* whole,
               const CopyRows& copy) {
  const size_t bytes = static_cast<size_t>(range.size()) * rows.bytes;
  return copy({.to = whole + static_cast<size_t>(range.begin) * rows.bytes,
               .to_pitch = rows.length * rows.bytes,
               .from = part,
               .from_pitch = bytes,
               .bytes = bytes,
               .rows = rows.outer});
}

Status Pack(const RowsAlong& rows, std::span<const Range> parts, const std::byte* whole,
            std::byte* packed, const CopyRows& copy) {
  for (const Range& part : parts) {
    DT_TRY_STATUS(TakePart(rows, part, whole, packed, copy));
    packed += rows.BytesOf(part);
  }
  return OkStatus();
}

Status Unpack(const RowsAlong& rows, std::span<const Range> parts, const std::byte* packed,
              std::byte* whole, const CopyRows& copy) {
  for (const Range& part : parts) {
    DT_TRY_STATUS(PutPart(rows, part, packed, whole, copy));
    packed += rows.BytesOf(part);
  }
  return OkStatus();
}

}  // namespace dt::worker
