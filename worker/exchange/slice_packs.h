// What the slices of a step leave for its exchange: for each own slice the inputs of the plan's
// sum_slices nodes, packed one after the other, and those of its gather_slices nodes. Kernels write
// straight into the packs. Owned by the train thread.
#pragma once

#include <span>
#include <vector>

#include "common/plan/plan.h"
#include "worker/memory/aligned_buffer.h"

namespace dt::worker {

class SlicePacks {
 public:
  // With an accelerator the packs are pinned for copies from it.
  SlicePacks(const Plan& plan, Accelerator* accelerator);

  struct Piece {
    NodeIndex node = kNone;
    ValueIndex in = kNone, out = kNone;
    bool summed = false;  // Otherwise gathered.
    // The kernel that makes `in` writes into the pack; otherwise `in` is copied there.
    bool direct = false;
    size_t offset = 0, floats = 0;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }
  size_t sum_floats() const { return sum_floats_; }
  size_t gather_floats() const { return gather_floats_; }

  // The memory of a piece for slice k.
  float* PieceOf(SliceIndex k, const Piece& piece);
  // Fills the pack with zeros, for a slice without samples.
  void Clear(SliceIndex k);

  // For Collective::ExchangeSlices: by slice; the spans of slices not touched since Begin are
  // empty.
  void Begin();
  std::span<const std::span<const float>> sums() const { return sums_; }
  std::span<const std::span<const float>> gathers() const { return gathers_; }

 private:
  struct Pack {
    AlignedBuffer memory;
    std::span<float> sum, gather;
  };
  Pack& Touch(SliceIndex k);

  std::vector<Piece> pieces_;
  size_t sum_floats_ = 0, gather_floats_ = 0;
  std::vector<Pack> packs_;  // By slice.
  std::vector<std::span<const float>> sums_, gathers_;
};

}  // namespace dt::worker
