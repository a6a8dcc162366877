#include <algorithm>
#include <atomic>
#include <numeric>

#include "common/base/check.h"
#include "worker/collective/communicator.h"
#include "worker/collective/mesh_sums.h"
#include "worker/collective/stream_copy.h"

namespace dt::worker {
namespace {

class MeshCommunicator : public Communicator {
 public:
  explicit MeshCommunicator(Mesh& mesh) : mesh_(mesh), sums_(mesh) {}

  uint32_t rank() const override { return mesh_.rank(); }

  bool broken() const override { return broken_; }

  Status AllReduce(const CollectiveCall& call, const Reduce& reduce, std::span<const std::byte> in,
                   std::span<std::byte> out) override {
    DT_CHECK(in.size() == out.size());
    return About(call, "all-reduce", sums_.ToAll(call, reduce, OneEach(call, in), out));
  }

  Status ReduceScatter(const CollectiveCall& call, const Reduce& reduce,
                       std::span<const std::byte> in, std::span<const size_t> sizes,
                       std::span<std::byte> out) override {
    DT_CHECK(sizes.size() == call.group.size());
    ranges_.clear();
    size_t end = 0;
    for (uint32_t m = 0; m < sizes.size(); ++m) {
      ranges_.push_back({m, end, end + sizes[m]});
      end += sizes[m];
    }
    DT_CHECK(end == in.size());
    const size_t first = ranges_[call.group.PositionOf(rank())].begin;
    Terms terms = OneEach(call, in);
    terms.ranges = ranges_;
    return About(call, "reduce-scatter", sums_.ToOwners(call, reduce, terms, {out, first}));
  }

  Status ReduceTerms(const CollectiveCall& call, const Reduce& reduce, const Terms& terms,
                     std::span<std::byte> out) override {
    DT_CHECK(terms.owner.size() == terms.bytes.size() && !terms.owner.empty());
    if (terms.ranges.empty()) {
      return About(call, "sum of slices", sums_.ToAll(call, reduce, terms, out));
    }
    return About(call, "sum of slices", sums_.ToOwners(call, reduce, terms, {out, 0}));
  }

  Status AllGather(const CollectiveCall& call, std::span<const std::byte> in,
                   std::span<const size_t> sizes, std::span<std::byte> out) override {
    const uint32_t me = call.group.PositionOf(rank());
    DT_CHECK(sizes.size() == call.group.size() && sizes[me] == in.size());
    Clear();
    size_t begin = 0;
    for (uint32_t m = 0; m < sizes.size(); ++m) {
      const std::span<std::byte> part = out.subspan(begin, sizes[m]);
      begin += sizes[m];
      if (m == me) {
        own_ = {in, part};
        continue;
      }
      receive_.push_back({call.group.ranks[m], part});
      send_.push_back({call.group.ranks[m], in});
    }
    DT_CHECK(begin == out.size());
    return About(call, "all-gather", Exchange(call));
  }

  Status Broadcast(const CollectiveCall& call, uint32_t root, std::span<std::byte> bytes) override {
    const uint32_t me = call.group.PositionOf(rank());
    Clear();
    for (uint32_t m = 0; m < call.group.size(); ++m) {
      if (me == root && m != me) send_.push_back({call.group.ranks[m], bytes});
    }
    if (me != root) receive_.push_back({call.group.ranks[root], bytes});
    return About(call, "broadcast", Exchange(call));
  }

  Status AllToAll(const CollectiveCall& call, std::span<const std::byte> in, const Parts& parts,
                  std::span<std::byte> out) override {
    const uint32_t me = call.group.PositionOf(rank());
    DT_CHECK(parts.send.size() == call.group.size() && parts.receive.size() == call.group.size());
    Clear();
    size_t from = 0, to = 0;
    for (uint32_t m = 0; m < call.group.size(); ++m) {
      const std::span<const std::byte> sent = in.subspan(from, parts.send[m]);
      const std::span<std::byte> received = out.subspan(to, parts.receive[m]);
      from += parts.send[m];
      to += parts.receive[m];
      if (m == me) {
        DT_CHECK(sent.size() == received.size());
        own_ = {sent, received};
        continue;
      }
      send_.push_back({call.group.ranks[m], sent});
      receive_.push_back({call.group.ranks[m], received});
    }
    return About(call, "all-to-all", Exchange(call));
  }

  Status NeighborExchange(const CollectiveCall& call, std::span<const Outgoing> send,
                          std::span<const Incoming> receive) override {
    Clear();
    for (const Outgoing& out : send) send_.push_back({call.group.ranks[out.rank], out.bytes});
    for (const Incoming& in : receive) receive_.push_back({call.group.ranks[in.rank], in.bytes});
    return About(call, "exchange with neighbours", Exchange(call));
  }

  Status Barrier(const CollectiveCall& call) override {
    const std::byte here{1};
    Clear();
    heard_.resize(call.group.size());
    for (uint32_t m = 0; m < call.group.size(); ++m) {
      if (call.group.ranks[m] == rank()) continue;
      send_.push_back({call.group.ranks[m], {&here, 1}});
      receive_.push_back({call.group.ranks[m], std::span(heard_).subspan(m, 1)});
    }
    return About(call, "barrier", Exchange(call));
  }

 private:
  // One term of each member, in the order of the group.
  Terms OneEach(const CollectiveCall& call, std::span<const std::byte> own) {
    one_each_.assign(call.group.size(), {});
    one_each_[call.group.PositionOf(rank())] = own;
    members_.resize(call.group.size());
    std::iota(members_.begin(), members_.end(), 0u);
    return {members_, one_each_};
  }

  void Clear() {
    send_.clear();
    receive_.clear();
    own_ = {};
  }

  // Copies this member's own part while messages are under way.
  Status Exchange(const CollectiveCall& call) {
    DT_TRY_STATUS(mesh_.Begin(call.tag(), call.name));
    DT_TRY_STATUS(mesh_.Post(send_, receive_));
    if (own_.from.data() != own_.to.data()) CopyOwn();
    return mesh_.End();
  }

  void CopyOwn() const {
    if (own_.from.size() >= kStreamBytes) {
      StreamCopy(own_.to.data(), own_.from.data(), own_.from.size());
    } else {
      std::ranges::copy(own_.from, own_.to.begin());
    }
  }

  Status About(const CollectiveCall& call, std::string_view kind, Status status) {
    // Cancelled by the end of the job or by this rank itself: nobody is lost.
    if (status.ok() || status.code() == StatusCode::kCancelled) return status;
    broken_ = true;
    return Prefixed(std::move(status), fmt::format("step {}, {}", call.step, kind));
  }

  Mesh& mesh_;
  MeshSums sums_;
  std::atomic<bool> broken_ = false;
  // For sums of one term of each member.
  std::vector<uint32_t> members_;
  std::vector<std::span<const std::byte>> one_each_;
  std::vector<Terms::Range> ranges_;
  std::vector<std::byte> heard_;
  std::vector<Outgoing> send_;
  std::vector<Incoming> receive_;
  struct {
    std::span<const std::byte> from;
    std::span<std::byte> to;
  } own_;  // What this member sends to itself.
};

}  // namespace

RankGroup RankGroup::All(uint32_t n) {
  RankGroup all;
  for (uint32_t r = 0; r < n; ++r) all.ranks.push_back(r);
  return all;
}

uint32_t RankGroup::PositionOf(uint32_t rank) const {
  const auto at = std::ranges::find(ranks, rank);
  DT_CHECK(at != ranks.end());
  return static_cast<uint32_t>(at - ranks.begin());
}

std::unique_ptr<Communicator> MakeMeshCommunicator(Mesh& mesh) {
  return std::make_unique<MeshCommunicator>(mesh);
}

}  // namespace dt::worker
