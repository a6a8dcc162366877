// Collectives over a mesh, with sums in slice order: the results have the same bits for any number
// of ranks. All ranks make the same calls in the same order, but for exchanges of some ranks. Owned
// by one thread; keeps its buffers between calls.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "worker/collective/mesh.h"

namespace dt::worker {

// A matrix within an exchange's `sum`.
struct RowsPiece {
  size_t offset = 0, rows = 0, width = 0;  // In floats.
};

// Values of one length that the slices of a step leave behind, and their results on all members. In
// a team several ranks have a term of a slice's value: each then counts as a slice.
struct SliceExchange {
  std::span<const uint32_t> owner;                 // Rank by slice.
  std::span<const std::span<const float>> sum;     // By slice: set for own slices, equally long.
  std::span<const std::span<const float>> gather;  // By slice: set for own slices, equally long.
  std::span<float> summed;    // As long as one `sum`; becomes sum[0] + sum[1] + …, in this order.
  std::span<float> gathered;  // Becomes every slice's `gather`, one after the other.
  // Not empty: of each matrix every member gets the sums of its own rows only, and `summed` holds
  // nothing else.
  std::span<const RowsPiece> rows = {};
  // The members, ascending: only they call. Empty: all ranks.
  std::span<const uint32_t> ranks = {};
  // With `ranks`: by these numbers the members know the call.
  uint32_t number = 0;
  Step step = 0;
};

// Values of different lengths that the slices of a step leave behind.
struct SliceGather {
  std::span<const uint32_t> owner;                  // Rank by slice.
  std::span<const std::span<const std::byte>> own;  // By slice: set for own slices.
  // By slice, on all ranks: the bytes of its owner. Those of other ranks begin at a multiple of 16,
  // and are valid until the next gather.
  std::span<std::span<const std::byte>> all;
};

// Limit for one slice of GatherSlices.
inline constexpr uint64_t kSliceBytesMax = uint64_t{1} << 32;

class Collective {
 public:
  explicit Collective(std::unique_ptr<Mesh> mesh) : mesh_(std::move(mesh)) {}

  uint32_t rank() const { return mesh_->rank(); }
  uint32_t size() const { return mesh_->size(); }
  Mesh& mesh() { return *mesh_; }

  // Each rank sums one range of the elements over all slices; then every rank gets every range.
  Status ExchangeSlices(const SliceExchange& exchange);
  // Exchanges first the sizes, then the slices. Errors: those of the mesh; Internal on all ranks,
  // if a slice has more than kSliceBytesMax.
  Status GatherSlices(const SliceGather& gather);
  // Returns when every rank has called it.
  Status Barrier();
  // True after an exchange has failed: some rank may be lost.
  bool broken() const { return broken_; }

 private:
  struct Range {
    size_t begin = 0, end = 0;
  };
  void FindMembers(const SliceExchange& exchange);
  std::span<const Range> RangesOf(const SliceExchange& exchange, size_t member);
  Status SendSlices(const SliceExchange& exchange);
  void SendOwnSlices(const SliceExchange& exchange, size_t member);
  Status GatherSizes(const SliceGather& gather);
  Status GatherBytes(const SliceGather& gather);
  void SendToAll(std::span<const std::byte> bytes);
  Status Exchange(std::string_view operation);
  Status Exchange(const MessageTag& tag, std::string_view operation);
  Status ExchangeOf(const SliceExchange& exchange, uint32_t part, std::string_view operation);
  void SumOwnRanges(const SliceExchange& exchange);
  Status ShareRanges(const SliceExchange& exchange);

  const std::unique_ptr<Mesh> mesh_;
  // The members of the current exchange, ascending, and this rank's number among them.
  std::vector<uint32_t> members_;
  size_t own_member_ = 0;
  std::vector<Range> ranges_;        // The ranges that a member sums.
  std::vector<float> received_;      // The own range of other ranks' slices: [slices, range].
  std::vector<uint64_t> sizes_;      // Sizes of the slices gathered last.
  std::vector<std::byte> gathered_;  // Bytes of other ranks; grows and never shrinks.
  std::vector<Outgoing> send_;
  std::vector<Incoming> receive_;
  uint64_t calls_ = 0;
  bool broken_ = false;
};

}  // namespace dt::worker
