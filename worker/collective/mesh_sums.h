// Sums over a mesh. Each member adds some ranges of the elements, and may send their sums to the
// others. Ranges travel in chunks, so that one chunk is added, and its sum sent, while the next
// ones arrive. Few bytes are sent to all members, and each member adds all of them: that takes one
// message's time, and a member that waits can name the one that is silent.
#pragma once

#include <vector>

#include "worker/collective/communicator.h"

namespace dt::worker {

// Keeps its buffers between calls. Owned by the thread of its communicator.
class MeshSums {
 public:
  explicit MeshSums(Mesh& mesh) : mesh_(mesh) {}

  // Every member gets all sums; see Communicator::ReduceTerms.
  Status ToAll(const CollectiveCall& call, const Reduce& reduce, const Terms& terms,
               std::span<std::byte> out);
  // Every member gets the sums of its ranges. `first`: the position in a term where `out` begins.
  struct Place {
    std::span<std::byte> out;
    size_t first = 0;
  };
  Status ToOwners(const CollectiveCall& call, const Reduce& reduce, const Terms& terms,
                  const Place& place);

 private:
  // Part of a range that a member adds.
  struct Chunk {
    uint32_t member = 0;
    size_t begin = 0, end = 0;
    size_t size() const { return end - begin; }
  };
  // Where sums go.
  struct Reduced {
    std::span<std::byte> out;
    size_t first = 0;
    bool shares = false;  // Every member gets every range.
    std::span<std::byte> Of(const Chunk& chunk) const {
      return out.subspan(chunk.begin - first, chunk.size());
    }
  };
  struct ChunkSum {
    const Reduced& memory;
    size_t chunk = 0;  // Among the own ones.
  };
  Status AddFew(const CollectiveCall& call, const Reduce& reduce, const Terms& terms,
                std::span<std::byte> out);
  Status AddRanges(const CollectiveCall& call, const Reduce& reduce, const Terms& terms,
                   const Reduced& memory);
  void FindChunks(const Terms& terms, uint32_t me);
  std::byte* PlaceOf(size_t chunk, size_t foreign);
  Status AwaitChunk(const CollectiveCall& call, const Terms& terms, size_t c);
  Status AwaitSums(const CollectiveCall& call, uint32_t me, const Reduced& memory);
  Status SendTerms(const CollectiveCall& call, const Terms& terms, uint32_t me);
  Status AddChunk(const CollectiveCall& call, const Reduce& reduce, const Terms& terms,
                  const ChunkSum& sum);
  void Clear() {
    send_.clear();
    receive_.clear();
  }

  Mesh& mesh_;
  std::vector<Terms::Range> ranges_;        // The ranges that members add.
  std::vector<Chunk> chunks_, own_chunks_;  // All, and those that this member adds.
  size_t chunk_bytes_ = 0;
  std::vector<size_t> foreign_;           // The terms that others have.
  std::vector<const std::byte*> places_;  // By term: a chunk of it.
  std::vector<std::byte> terms_;          // Chunks of other members' terms.
  size_t awaited_ = 0;                    // Messages awaited so far.
  std::vector<size_t> first_of_chunk_;    // By own chunk: the number of its first message.
  std::vector<std::byte> kept_;           // A chunk of an own term.
  std::vector<Outgoing> send_;
  std::vector<Incoming> receive_;
};

}  // namespace dt::worker
