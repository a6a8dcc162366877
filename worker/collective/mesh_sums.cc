#include "worker/collective/mesh_sums.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/base/float_formats.h"

namespace dt::worker {
namespace {

constexpr size_t kChunkBytesMax = size_t{1} << 20, kChunkBytesMin = size_t{16} << 10;
constexpr size_t kChunksAwaited = 8;
// About the memory for terms that are awaited.
constexpr size_t kTermBytes = size_t{64} << 20;
constexpr uint32_t kSums = 1;  // The channel of sums; terms have channel 0.
constexpr size_t kLineBytes = 64;
constexpr size_t kFewBytes = 4096;

// The same on all members.
size_t ChunkBytesFor(size_t terms) {
  size_t bytes = kChunkBytesMax;
  while (bytes > kChunkBytesMin && bytes * kChunksAwaited * terms > kTermBytes) bytes /= 2;
  return bytes;
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

// Adds bf16 terms in fp32, in their order, and rounds the sum.
template <class TermOf>
void AddBf16(size_t count, const TermOf& term_of, std::span<std::byte> out) {
  constexpr size_t kBlock = 256;
  const size_t elements = out.size() / sizeof(uint16_t);
  for (size_t begin = 0; begin < elements; begin += kBlock) {
    float sums[kBlock] = {};
    const size_t n = std::min(kBlock, elements - begin);
    for (size_t t = 0; t < count; ++t) {
      const auto* const term = reinterpret_cast<const uint16_t*>(term_of(t)) + begin;
      for (size_t i = 0; i < n; ++i)
        sums[i] = t == 0 ? FromBf16(term[i]) : sums[i] + FromBf16(term[i]);
    }
    EncodeRow(FloatFormat::kBf16, std::span(sums, n), out.data() + begin * sizeof(uint16_t));
  }
}

// out = term_of(0) + term_of(1) + …
template <class TermOf>
void AddTerms(const Reduce& reduce, size_t count, const TermOf& term_of, std::span<std::byte> out) {
  if (reduce.dtype == DType::kBf16) {
    DT_CHECK(reduce.how == Reduction::kSum);
    return AddBf16(count, term_of, out);
  }
  const std::byte* sum = term_of(0);
  for (size_t t = 1; t < count; ++t) {
    JoinTerms(reduce, sum, term_of(t), out);
    sum = out.data();
  }
  if (sum != out.data() && !out.empty()) std::memcpy(out.data(), sum, out.size());
}

}  // namespace

// Every member gets all sums, and adds an equal part of them; of few bytes each adds all.
Status MeshSums::ToAll(const CollectiveCall& call, const Reduce& reduce, const Terms& terms,
                       std::span<std::byte> out) {
  const size_t lines = (out.size() + kLineBytes - 1) / kLineBytes;
  const uint32_t n = call.group.size();
  if (out.size() <= kFewBytes || lines < n) return AddFew(call, reduce, terms, out);
  ranges_.clear();
  for (uint32_t m = 0; m < n; ++m) {
    ranges_.push_back({m, std::min(out.size(), lines * m / n * kLineBytes),
                       std::min(out.size(), lines * (m + 1) / n * kLineBytes)});
  }
  return AddRanges(call, reduce, terms, {.out = out, .shares = true});
}

Status MeshSums::AddFew(const CollectiveCall& call, const Reduce& reduce, const Terms& terms,
                        std::span<std::byte> out) {
  const uint32_t me = call.group.PositionOf(mesh_.rank());
  const size_t size = out.size();
  terms_.resize(size * terms.owner.size());
  Clear();
  for (size_t t = 0; t < terms.owner.size(); ++t) {
    const std::span<std::byte> place = std::span(terms_).subspan(t * size, size);
    if (terms.owner[t] != me) {
      receive_.push_back({call.group.ranks[terms.owner[t]], place});
      continue;
    }
    DT_CHECK(terms.bytes[t].size() == size);
    std::ranges::copy(terms.bytes[t], place.begin());
    for (uint32_t m = 0; m < call.group.size(); ++m) {
      if (m != me) send_.push_back({call.group.ranks[m], terms.bytes[t]});
    }
  }
  DT_TRY_STATUS(mesh_.Exchange(call.tag(), call.name, send_, receive_));
  AddTerms(
      reduce, terms.owner.size(), [&](size_t t) { return terms_.data() + t * size; }, out);
  return OkStatus();
}

Status MeshSums::ToOwners(const CollectiveCall& call, const Reduce& reduce, const Terms& terms,
                          const Place& place) {
  ranges_.assign(terms.ranges.begin(), terms.ranges.end());
  return AddRanges(call, reduce, terms, {.out = place.out, .first = place.first});
}

// Posts all that can be sent, and the sums of the others. Terms of the own ranges are awaited a
// few chunks at a time, so that their memory stays in the cache.
Status MeshSums::AddRanges(const CollectiveCall& call, const Reduce& reduce, const Terms& terms,
                           const Reduced& memory) {
  const uint32_t me = call.group.PositionOf(mesh_.rank());
  FindChunks(terms, me);
  terms_.resize(std::min(own_chunks_.size(), kChunksAwaited) * foreign_.size() * chunk_bytes_);
  DT_TRY_STATUS(mesh_.Begin(call.tag(), call.name));
  awaited_ = 0;
  first_of_chunk_.clear();
  for (size_t c = 0; c < std::min(own_chunks_.size(), kChunksAwaited); ++c) {
    DT_TRY_STATUS(AwaitChunk(call, terms, c));
  }
  if (memory.shares) DT_TRY_STATUS(AwaitSums(call, me, memory));
  DT_TRY_STATUS(SendTerms(call, terms, me));
  for (size_t c = 0; c < own_chunks_.size(); ++c) {
    DT_TRY_STATUS(AddChunk(call, reduce, terms, {memory, c}));
    if (c + kChunksAwaited < own_chunks_.size()) {
      DT_TRY_STATUS(AwaitChunk(call, terms, c + kChunksAwaited));
    }
  }
  return mesh_.End();
}

void MeshSums::FindChunks(const Terms& terms, uint32_t me) {
  chunk_bytes_ = ChunkBytesFor(terms.owner.size());
  chunks_.clear();
  own_chunks_.clear();
  for (const Terms::Range& range : ranges_) {
    for (size_t begin = range.begin; begin < range.end; begin += chunk_bytes_) {
      chunks_.push_back({range.member, begin, std::min(range.end, begin + chunk_bytes_)});
      if (range.member == me) own_chunks_.push_back(chunks_.back());
    }
  }
  foreign_.clear();
  for (size_t t = 0; t < terms.owner.size(); ++t) {
    if (terms.owner[t] != me) foreign_.push_back(t);
  }
}

// Where the i-th term of others for a chunk arrives.
std::byte* MeshSums::PlaceOf(size_t c, size_t i) {
  return terms_.data() + (c % kChunksAwaited * foreign_.size() + i) * chunk_bytes_;
}

Status MeshSums::AwaitChunk(const CollectiveCall& call, const Terms& terms, size_t c) {
  receive_.clear();
  for (size_t i = 0; i < foreign_.size(); ++i) {
    const uint32_t from = call.group.ranks[terms.owner[foreign_[i]]];
    receive_.push_back({from, {PlaceOf(c, i), own_chunks_[c].size()}});
  }
  first_of_chunk_.push_back(awaited_);
  awaited_ += receive_.size();
  return mesh_.Post({}, receive_);
}

Status MeshSums::AwaitSums(const CollectiveCall& call, uint32_t me, const Reduced& memory) {
  receive_.clear();
  for (const Chunk& chunk : chunks_) {
    if (chunk.member == me) continue;
    receive_.push_back({call.group.ranks[chunk.member], memory.Of(chunk), kSums});
  }
  awaited_ += receive_.size();
  return mesh_.Post({}, receive_);
}

Status MeshSums::SendTerms(const CollectiveCall& call, const Terms& terms, uint32_t me) {
  Clear();
  for (const Chunk& chunk : chunks_) {
    for (size_t t = 0; chunk.member != me && t < terms.owner.size(); ++t) {
      if (terms.owner[t] != me) continue;
      const std::span<const std::byte> sent = terms.bytes[t].subspan(chunk.begin, chunk.size());
      send_.push_back({call.group.ranks[chunk.member], sent});
    }
  }
  return mesh_.Post(send_, {});
}

Status MeshSums::AddChunk(const CollectiveCall& call, const Reduce& reduce, const Terms& terms,
                          const ChunkSum& sum) {
  const Chunk& chunk = own_chunks_[sum.chunk];
  for (size_t i = 0; i < foreign_.size(); ++i) {
    DT_TRY_STATUS(mesh_.WaitFor(first_of_chunk_[sum.chunk] + i));
  }
  const std::span<std::byte> out = sum.memory.Of(chunk);
  places_.clear();
  size_t foreign = 0;
  for (size_t t = 0; t < terms.owner.size(); ++t) {
    if (foreign < foreign_.size() && foreign_[foreign] == t) {
      places_.push_back(PlaceOf(sum.chunk, foreign++));
      continue;
    }
    // The memory of an own term may be that of the sums.
    const std::byte* own = terms.bytes[t].data() + chunk.begin;
    if (t > 0 && own == out.data()) {
      kept_.assign(own, own + chunk.size());
      own = kept_.data();
    }
    places_.push_back(own);
  }
  AddTerms(
      reduce, places_.size(), [this](size_t t) { return places_[t]; }, out);
  if (!sum.memory.shares) return OkStatus();
  Clear();
  for (const uint32_t peer : call.group.ranks) {
    if (peer != mesh_.rank()) send_.push_back({peer, out, kSums});
  }
  return mesh_.Post(send_, {});
}

}  // namespace dt::worker
