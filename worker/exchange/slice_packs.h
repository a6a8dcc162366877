// The values that slices of a step leave for a bucket of joins: for each own slice the inputs of
// its sum_slices nodes, packed one after the other, and those of its gather_slices nodes. The same
// positions of a team hold all of them together. Kernels write straight into the packs.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "common/plan/plan.h"
#include "worker/memory/aligned_buffer.h"

namespace dt::worker {

class SlicePacks {
 public:
  // The positions of a team that get the results, and those of them that hold a term.
  struct Holders {
    std::vector<uint32_t> group, terms;
    bool rows = false;  // Each of them gets the sums of its own rows only.
    friend bool operator==(const Holders&, const Holders&) = default;
  };
  static Holders HoldersOf(const Graph& graph, const Node& node);
  // With an accelerator the packs are pinned for copies from it.
  SlicePacks(const Plan& plan, const Subgraph& bucket, Accelerator* accelerator);

  const Holders& holders() const { return holders_; }
  size_t terms() const { return terms_; }
  // The number of this worker's term of slice k among those of all slices; nothing if it has none.
  std::optional<size_t> OwnTerm(SliceIndex k) const;

  struct Piece {
    NodeIndex node = kNone;
    ValueIndex in = kNone, out = kNone;
    bool summed = false;  // Otherwise gathered.
    size_t offset = 0, floats = 0;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }
  size_t sum_floats() const { return sum_floats_; }
  size_t gather_floats() const { return gather_floats_; }

  // The memory of a piece for a term.
  float* PieceOf(size_t term, const Piece& piece);
  // Fills the pack with zeros, for a slice without samples.
  void Clear(size_t term);

  // By term of all slices; the spans of those not touched since Begin are empty.
  void Begin();
  std::span<const std::span<const float>> sums() const { return sums_; }
  std::span<const std::span<const float>> gathers() const { return gathers_; }

 private:
  struct Pack {
    AlignedBuffer memory;
    std::span<float> sum, gather;
  };
  Pack& Touch(size_t term);

  const Holders holders_;
  const size_t terms_;  // The number of terms of a slice.
  std::optional<size_t> own_term_;
  std::vector<Piece> pieces_;
  size_t sum_floats_ = 0, gather_floats_ = 0;
  std::vector<Pack> packs_;  // By term of all slices.
  std::vector<std::span<const float>> sums_, gathers_;
};

}  // namespace dt::worker
