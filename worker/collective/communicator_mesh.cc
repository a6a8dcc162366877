// A reduction is a ReduceScatter and, for AllReduce, an AllGather: each member adds one range of
// the elements. Ranges travel in chunks, so that one chunk is added, and its sum sent, while the
// next ones arrive. Few bytes are sent to all members, and each member adds all of them: that takes
// one message's time, and a member that waits can name the one that is silent.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "common/base/check.h"
#include "worker/collective/communicator.h"

namespace dt::worker {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr size_t kChunksAwaited = 8;
constexpr uint32_t kSums = 1;  // The channel of sums; terms have channel 0.
constexpr size_t kLineBytes = 64;
constexpr size_t kFewBytes = 4096;

struct ByteRange {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

size_t ChunksOf(const ByteRange& range) { return (range.size() + kChunkBytes - 1) / kChunkBytes; }
ByteRange ChunkOf(const ByteRange& range, size_t c) {
  return {range.begin + c * kChunkBytes, std::min(range.end, range.begin + (c + 1) * kChunkBytes)};
}

// out = a joined with b; out may be a or b.
template <class T>
void JoinOf(Reduction how, const std::byte* a, const std::byte* b, std::span<std::byte> out) {
  const T* const x = reinterpret_cast<const T*>(a);
  const T* const y = reinterpret_cast<const T*>(b);
  T* const z = reinterpret_cast<T*>(out.data());
  const size_t count = out.size() / sizeof(T);
  if (how == Reduction::kSum) {
    for (size_t i = 0; i < count; ++i) z[i] = x[i] + y[i];
  } else {
    for (size_t i = 0; i < count; ++i) z[i] = y[i] > x[i] ? y[i] : x[i];
  }
}

void JoinTerms(const Reduce& reduce, const std::byte* a, const std::byte* b,
               std::span<std::byte> out) {
  if (reduce.dtype == DType::kF64) return JoinOf<double>(reduce.how, a, b, out);
  DT_CHECK(reduce.dtype == DType::kF32);
  JoinOf<float>(reduce.how, a, b, out);
}

class MeshCommunicator : public Communicator {
 public:
  explicit MeshCommunicator(Mesh& mesh) : mesh_(mesh) {}

  uint32_t rank() const override { return mesh_.rank(); }

  Status AllReduce(const CollectiveCall& call, const Reduce& reduce, std::span<const std::byte> in,
                   std::span<std::byte> out) override {
    DT_CHECK(in.size() == out.size());
    const size_t lines = (in.size() + kLineBytes - 1) / kLineBytes;
    const uint32_t n = call.group.size();
    if (in.size() <= kFewBytes || lines < n) {
      return About(call, "all-reduce", ReduceFew(call, reduce, in, out));
    }
    ranges_.clear();
    for (uint32_t m = 0; m < n; ++m) {
      ranges_.push_back({std::min(in.size(), lines * m / n * kLineBytes),
                         std::min(in.size(), lines * (m + 1) / n * kLineBytes)});
    }
    return About(call, "all-reduce", ReduceRanges(call, reduce, {in, out, true}));
  }

  Status ReduceScatter(const CollectiveCall& call, const Reduce& reduce,
                       std::span<const std::byte> in, std::span<const size_t> sizes,
                       std::span<std::byte> out) override {
    DT_CHECK(sizes.size() == call.group.size());
    ranges_.clear();
    for (const size_t size : sizes) {
      const size_t begin = ranges_.empty() ? 0 : ranges_.back().end;
      ranges_.push_back({begin, begin + size});
    }
    DT_CHECK(ranges_.back().end == in.size());
    return About(call, "reduce-scatter", ReduceRanges(call, reduce, {in, out, false}));
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
  // The memory of a reduction. `shares`: every member gets every range.
  struct Reduced {
    std::span<const std::byte> in;
    std::span<std::byte> out;
    bool shares = false;
    // Where this member's sums go.
    std::byte* OwnSums(const ByteRange& own) const { return out.data() + (shares ? own.begin : 0); }
  };

  void Clear() {
    send_.clear();
    receive_.clear();
    own_ = {};
  }

  static MessageTag TagOf(const CollectiveCall& call) {
    return {.group = call.group.id, .node = call.node, .slice = call.slice, .step = call.step};
  }

  // Copies this member's own part while messages are under way.
  Status Exchange(const CollectiveCall& call) {
    DT_TRY_STATUS(mesh_.Begin(TagOf(call), call.name));
    DT_TRY_STATUS(mesh_.Post(send_, receive_));
    if (own_.from.data() != own_.to.data()) std::ranges::copy(own_.from, own_.to.begin());
    return mesh_.End();
  }

  static Status About(const CollectiveCall& call, std::string_view kind, Status status) {
    if (status.ok()) return status;
    return Prefixed(std::move(status), fmt::format("step {}, {}", call.step, kind));
  }

  // Every member adds all terms.
  Status ReduceFew(const CollectiveCall& call, const Reduce& reduce, std::span<const std::byte> in,
                   std::span<std::byte> out) {
    const uint32_t me = call.group.PositionOf(rank()), n = call.group.size();
    terms_.resize(in.size() * n);
    Clear();
    for (uint32_t m = 0; m < n; ++m) {
      const std::span<std::byte> term = std::span(terms_).subspan(m * in.size(), in.size());
      if (m == me) {
        std::ranges::copy(in, term.begin());
        continue;
      }
      send_.push_back({call.group.ranks[m], in});
      receive_.push_back({call.group.ranks[m], term});
    }
    DT_TRY_STATUS(Exchange(call));
    const std::byte* sum = terms_.data();
    for (uint32_t m = 1; m < n; ++m) {
      JoinTerms(reduce, sum, terms_.data() + m * in.size(), out);
      sum = out.data();
    }
    if (n == 1) std::ranges::copy(terms_, out.begin());
    return OkStatus();
  }

  // Posts all that can be sent, and the sums of the others. Terms of the own range are awaited a
  // few chunks at a time, so that their memory stays in the cache.
  Status ReduceRanges(const CollectiveCall& call, const Reduce& reduce, const Reduced& memory) {
    const uint32_t me = call.group.PositionOf(rank()), n = call.group.size();
    const ByteRange own = ranges_[me];
    const size_t chunks = ChunksOf(own);
    terms_.resize(std::min(chunks, kChunksAwaited) * (n - 1) * kChunkBytes);
    DT_TRY_STATUS(mesh_.Begin(TagOf(call), call.name));
    awaited_ = 0;
    first_of_chunk_.clear();
    for (size_t c = 0; c < std::min(chunks, kChunksAwaited); ++c) {
      DT_TRY_STATUS(AwaitChunk(call, c));
    }
    if (memory.shares) DT_TRY_STATUS(AwaitSums(call, memory));
    Clear();
    for (uint32_t m = 0; m < n; ++m) {
      for (size_t c = 0; m != me && c < ChunksOf(ranges_[m]); ++c) {
        const ByteRange chunk = ChunkOf(ranges_[m], c);
        send_.push_back({call.group.ranks[m], memory.in.subspan(chunk.begin, chunk.size())});
      }
    }
    DT_TRY_STATUS(mesh_.Post(send_, {}));
    for (size_t c = 0; c < chunks; ++c) {
      DT_TRY_STATUS(AddChunk(call, reduce, memory, c));
      if (c + kChunksAwaited < chunks) DT_TRY_STATUS(AwaitChunk(call, c + kChunksAwaited));
    }
    return mesh_.End();
  }

  // Where the term of a chunk by another member arrives.
  std::byte* TermOf(const CollectiveCall& call, uint32_t member, size_t c) {
    const uint32_t me = call.group.PositionOf(rank()), n = call.group.size();
    const size_t other = member - (member > me ? 1 : 0);
    return terms_.data() + (c % kChunksAwaited * (n - 1) + other) * kChunkBytes;
  }

  Status AwaitChunk(const CollectiveCall& call, size_t c) {
    const uint32_t me = call.group.PositionOf(rank());
    const size_t bytes = ChunkOf(ranges_[me], c).size();
    receive_.clear();
    for (uint32_t m = 0; m < call.group.size(); ++m) {
      if (m != me) receive_.push_back({call.group.ranks[m], {TermOf(call, m, c), bytes}});
    }
    first_of_chunk_.push_back(awaited_);
    awaited_ += receive_.size();
    return mesh_.Post({}, receive_);
  }

  Status AwaitSums(const CollectiveCall& call, const Reduced& memory) {
    const uint32_t me = call.group.PositionOf(rank());
    receive_.clear();
    for (uint32_t m = 0; m < call.group.size(); ++m) {
      for (size_t c = 0; m != me && c < ChunksOf(ranges_[m]); ++c) {
        const ByteRange chunk = ChunkOf(ranges_[m], c);
        const std::span<std::byte> place = memory.out.subspan(chunk.begin, chunk.size());
        receive_.push_back({call.group.ranks[m], place, kSums});
      }
    }
    awaited_ += receive_.size();
    return mesh_.Post({}, receive_);
  }

  Status AddChunk(const CollectiveCall& call, const Reduce& reduce, const Reduced& memory,
                  size_t c) {
    const uint32_t me = call.group.PositionOf(rank()), n = call.group.size();
    const ByteRange own = ranges_[me], chunk = ChunkOf(own, c);
    for (uint32_t m = 0; m + 1 < n; ++m) DT_TRY_STATUS(mesh_.WaitFor(first_of_chunk_[c] + m));
    // The own term is among the others in the order of the group, and its memory may be that of
    // the sums.
    std::byte* const sums = memory.OwnSums(own) + (chunk.begin - own.begin);
    const std::byte* mine = memory.in.data() + chunk.begin;
    if (me > 0 && mine == sums) {
      kept_.assign(mine, mine + chunk.size());
      mine = kept_.data();
    }
    const auto term_of = [&](uint32_t m) { return m == me ? mine : TermOf(call, m, c); };
    const std::byte* sum = term_of(0);
    for (uint32_t m = 1; m < n; ++m) {
      JoinTerms(reduce, sum, term_of(m), {sums, chunk.size()});
      sum = sums;
    }
    if (n == 1 && mine != sums) std::memcpy(sums, mine, chunk.size());
    if (!memory.shares) return OkStatus();
    send_.clear();
    for (uint32_t m = 0; m < n; ++m) {
      if (m != me) send_.push_back({call.group.ranks[m], {sums, chunk.size()}, kSums});
    }
    return mesh_.Post(send_, {});
  }

  Mesh& mesh_;
  std::vector<ByteRange> ranges_;       // By member: what it adds.
  std::vector<std::byte> terms_;        // Chunks of the own range by the other members.
  size_t awaited_ = 0;                  // Messages awaited so far.
  std::vector<size_t> first_of_chunk_;  // By chunk: the number of its first message.
  std::vector<std::byte> kept_;         // A chunk of the own term.
  std::vector<std::byte> heard_;
  std::vector<Outgoing> send_;
  std::vector<Incoming> receive_;
  struct {
    std::span<const std::byte> from;
    std::span<std::byte> to;
  } own_;  // What this member sends to itself.
};

}  // namespace

uint32_t RankGroup::PositionOf(uint32_t rank) const {
  const auto at = std::ranges::find(ranks, rank);
  DT_CHECK(at != ranks.end());
  return static_cast<uint32_t>(at - ranks.begin());
}

std::unique_ptr<Communicator> MakeMeshCommunicator(Mesh& mesh) {
  return std::make_unique<MeshCommunicator>(mesh);
}

}  // namespace dt::worker
