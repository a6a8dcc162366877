// Collectives over a mesh, with sums in slice order: the same bits for any number of ranks. All
// ranks make the same calls in the same order. One thread; keeps its buffers between calls.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "worker/collective/mesh.h"

namespace dt::worker {

// What the slices of one step leave behind, and where all ranks want it.
struct SliceExchange {
  std::span<const uint32_t> owner;                 // Rank by slice.
  std::span<const std::span<const float>> sum;     // By slice: filled for own slices, equally long.
  std::span<const std::span<const float>> gather;  // The same.
  std::span<float> summed;    // As long as one `sum`: sum[0] + sum[1] + …, in this order.
  std::span<float> gathered;  // Every slice's `gather`, one after the other.
};

// What the slices of one step leave behind that differs in length.
struct SliceGather {
  std::span<const uint32_t> owner;                  // Rank by slice.
  std::span<const std::span<const std::byte>> own;  // By slice: filled for own slices.
  // By slice, on all ranks: those of its owner. Of other ranks the bytes begin at a multiple of 16,
  // and are valid until the next gather.
  std::span<std::span<const std::byte>> all;
};

// Of one slice that is gathered.
inline constexpr uint64_t kSliceBytesMax = uint64_t{1} << 32;

class Collective {
 public:
  explicit Collective(std::unique_ptr<Mesh> mesh) : mesh_(std::move(mesh)) {}

  uint32_t rank() const { return mesh_->rank(); }
  uint32_t size() const { return mesh_->size(); }

  // Each rank sums one range of the elements over all slices, then everybody gets every range.
  Status ExchangeSlices(const SliceExchange& exchange);
  // First their sizes, then the slices themselves. Error, too: Internal on all ranks, a slice of
  // more than kSliceBytesMax.
  Status GatherSlices(const SliceGather& gather);
  // Returns when every rank has called it.
  Status Barrier();
  // An exchange has failed: some rank may be lost.
  bool broken() const { return broken_; }

 private:
  struct Range {
    size_t begin = 0, end = 0;
  };
  Range RangeOf(uint32_t rank, size_t elements) const;
  Status SendSlices(const SliceExchange& exchange);
  Status GatherSizes(const SliceGather& gather);
  Status GatherBytes(const SliceGather& gather);
  void SendToAll(std::span<const std::byte> bytes);
  Status Exchange(std::string_view operation);
  void SumOwnRange(const SliceExchange& exchange) const;
  Status ShareRanges(std::span<float> summed);

  const std::unique_ptr<Mesh> mesh_;
  std::vector<float> received_;      // Own range of the slices of others: [slices, range].
  std::vector<uint64_t> sizes_;      // Of the slices gathered last.
  std::vector<std::byte> gathered_;  // Those of others; grows and never shrinks.
  std::vector<Outgoing> send_;
  std::vector<Incoming> receive_;
  bool broken_ = false;
};

}  // namespace dt::worker
