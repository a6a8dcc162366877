// Collective operations among the ranks of a group. Two back ends do the same: messages between
// processes (the CPU and the emulated accelerator), and NCCL (CUDA cards).
//
// All members of a group make the same calls in the same order; other ranks make none. A call
// returns when this rank has its result and its memory may change. Errors, which name the rank, the
// peer, the operator and the step: Unavailable, if a peer is lost; Timeout, if it is silent until
// the deadline; the status that interrupted a wait. After an error the communicator can only be
// destroyed. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/device/tensor.h"
#include "worker/collective/mesh.h"

namespace dt::worker {

// An ordered set of ranks.
struct RankGroup {
  uint32_t id = 0;  // Its number in the plan.
  // Distinct, in the order in which parts are joined and terms are added. A member is called by its
  // position in this list.
  std::vector<uint32_t> ranks;

  uint32_t size() const { return static_cast<uint32_t>(ranks.size()); }
  // REQUIRES: the rank is a member.
  uint32_t PositionOf(uint32_t rank) const;
  // Group 0: ranks 0 to n - 1.
  static RankGroup All(uint32_t n);
};

struct CollectiveCall {
  const RankGroup& group;
  std::string_view name;  // The operator's name.
  uint32_t node = 0;      // Its number, the same on all members.
  SliceIndex slice = 0;
  Step step = 0;

  MessageTag tag() const { return {.group = group.id, .node = node, .slice = slice, .step = step}; }
};

enum class Reduction : uint8_t { kSum, kMax };
struct Reduce {
  Reduction how = Reduction::kSum;
  DType dtype = DType::kF32;  // kF32 or kF64; kBf16 for sums, added in fp32 and then rounded.
};

// Terms of a sum, all of one size, of which a member may have several or none.
struct Terms {
  std::span<const uint32_t> owner;                    // By term: the member that has it.
  std::span<const std::span<const std::byte>> bytes;  // By term: set for own ones.
  // Not empty: in what a member adds, ordered by members; the others do not get it.
  struct Range {
    uint32_t member = 0;
    size_t begin = 0, end = 0;
  };
  std::span<const Range> ranges = {};
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual uint32_t rank() const = 0;
  // True after an error other than Cancelled: some rank may be lost. Any thread.
  virtual bool broken() const = 0;

  // out = terms[0] + terms[1] + …, in this order and as long as a term: on every member, or, with
  // ranges, of each range on its member.
  virtual Status ReduceTerms(const CollectiveCall& call, const Reduce& reduce, const Terms& terms,
                             std::span<std::byte> out) = 0;
  // out = in of member 0 + in of member 1 + …, on every member. `in` may be `out`.
  virtual Status AllReduce(const CollectiveCall& call, const Reduce& reduce,
                           std::span<const std::byte> in, std::span<std::byte> out) = 0;
  // The same, of which member m gets the m-th part. `sizes`: the bytes of each part.
  virtual Status ReduceScatter(const CollectiveCall& call, const Reduce& reduce,
                               std::span<const std::byte> in, std::span<const size_t> sizes,
                               std::span<std::byte> out) = 0;
  // out = in of member 0, in of member 1, …; `sizes`: the bytes of each member.
  virtual Status AllGather(const CollectiveCall& call, std::span<const std::byte> in,
                           std::span<const size_t> sizes, std::span<std::byte> out) = 0;
  // Every member gets what member `root` has in `bytes`.
  virtual Status Broadcast(const CollectiveCall& call, uint32_t root,
                           std::span<std::byte> bytes) = 0;
  // Member m gets the m-th part of `in`; `out` becomes the parts that the members send, in order.
  struct Parts {
    std::span<const size_t> send, receive;  // By member: bytes.
  };
  virtual Status AllToAll(const CollectiveCall& call, std::span<const std::byte> in,
                          const Parts& parts, std::span<std::byte> out) = 0;
  // Messages to and from some members, named by their positions. Those from one member to another
  // arrive in the order in which they are listed; empty ones are left out on both sides.
  virtual Status NeighborExchange(const CollectiveCall& call, std::span<const Outgoing> send,
                                  std::span<const Incoming> receive) = 0;
  // Returns when every member has made the call.
  virtual Status Barrier(const CollectiveCall& call) = 0;

  Status Send(const CollectiveCall& call, uint32_t to, std::span<const std::byte> bytes) {
    const Outgoing out{to, bytes};
    return NeighborExchange(call, {&out, 1}, {});
  }
  Status Receive(const CollectiveCall& call, uint32_t from, std::span<std::byte> bytes) {
    const Incoming in{from, bytes};
    return NeighborExchange(call, {}, {&in, 1});
  }
};

// Over a mesh, which outlives it. Terms are added in the order of the group, each element by one
// member, so all members have the same bits. In a steady state it allocates nothing.
std::unique_ptr<Communicator> MakeMeshCommunicator(Mesh& mesh);

}  // namespace dt::worker
