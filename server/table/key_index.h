// Maps keys to row numbers: open addressing over buckets of one cache line, with five keys and
// their row numbers each. Each bucket counts its keys, so no key and no row number has a special
// meaning.
//
//   bucket (64 bytes): key u64 [5] | row u32 [5] | used u8 | passed u8 | heat: 3 bits a key
//
// A key's home is bucket hash · count / 2^64. A key that finds its home full goes on to the next
// bucket, and from the last one to the first; each bucket counts the keys that passed it. A run is
// a series of buckets that ends at a bucket that no key passed: a key is always in the same run as
// its home. (At 255 the count is not exact, and never falls.)
//
// Heat says how lately and often a key was touched: the clock with counts of Nomad and GCLOCK (A.
// J. Smith, 1978). It is a hint for eviction, and in no checksum. The hand leaps over the buckets:
// if it went from one to the next, those ahead of it would hold the keys of a whole round and
// overflow into one another.
//
// Growth by a quarter moves the old buckets, in order and whole runs at a time, a few per
// insertion. Homes keep their order when the count changes, so both sides of the move are walked
// sequentially and the old pages are freed on the way: growing takes hardly more memory than the
// grown index. Moved keys are looked up in the new buckets only, all others in the old ones only.
//
// Owned by one thread.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "common/base/hash.h"
#include "common/base/ids.h"
#include "server/table/page_memory.h"

namespace dt::server {

struct KeyRow {
  Key key = 0;
  uint32_t row = 0;
  friend auto operator<=>(const KeyRow&, const KeyRow&) = default;
};

class KeyIndex {
 public:
  static constexpr uint32_t kAbsent = ~0u;  // Not a row number; see RowSlabs.

  // `salt` decides which keys collide. The bits of the hash that chose the shard have the least
  // weight.
  explicit KeyIndex(uint64_t salt) : salt_(salt) { Reset(0); }

  // kAbsent if the key is not there.
  uint32_t Find(Key key) const { return Find(HashOf(key), key); }

  // Find in steps, between which the caller can prefetch what the next one will read, and do other
  // things. (The caller prefetches, because g++ 12 takes a function that does nothing else for one
  // without effect, and drops the call.)
  uint64_t HashOf(Key key) const { return std::rotl(MixBits(key ^ salt_), 32); }
  const void* BucketOf(uint64_t hash) const;
  // Looks at the first bucket only: the row, kAbsent, or kFurther if only Find can tell.
  static constexpr uint32_t kFurther = ~0u - 1;
  uint32_t FindFirst(uint64_t hash, Key key) const;
  const void* SecondBucketOf(uint64_t hash) const;
  uint32_t Find(uint64_t hash, Key key) const;
  // Finds the key; if it is there, it also gets warmer.
  uint32_t Touch(uint64_t hash, Key key);

  // Adds a key that is not there. REQUIRES: Find(key) is kAbsent.
  void Insert(Key key, uint32_t row, uint32_t heat = 1);
  // REQUIRES: the key is there.
  void Erase(Key key);
  static constexpr uint32_t kHeatMax = 3;
  // Moves the hand of the clock over `buckets` buckets, at most once around: appends the cold keys,
  // and cools the others.
  void Sweep(uint64_t buckets, std::vector<KeyRow>& cold);
  // Appends all keys in several calls of about `buckets` buckets each: begin at 0; each returns
  // where to go on, or kEnd after the last. A key that is there all the time is returned at least
  // once, whatever is inserted or erased between the calls.
  static constexpr uint64_t kEnd = ~uint64_t{0};
  uint64_t Walk(uint64_t from, uint64_t buckets, std::vector<KeyRow>& keys) const;
  // Empties the index, with room for `keys` keys before it grows.
  void Reset(size_t keys);

  uint64_t size() const { return size_; }
  uint64_t bytes() const;
  uint64_t buckets() const { return buckets_.count + old_.count; }
  // Appends every key, in any order.
  void AppendTo(std::vector<KeyRow>& out) const;

 private:
  static constexpr uint32_t kKeysPerBucket = 5;
  struct alignas(64) Bucket {
    std::array<Key, kKeysPerBucket> keys;
    std::array<uint32_t, kKeysPerBucket> rows;
    uint8_t used;
    uint8_t passed;
    uint16_t heat;

    uint32_t HeatOf(uint32_t k) const { return heat >> (3 * k) & 7; }
    void SetHeat(uint32_t k, uint32_t value) {
      heat = static_cast<uint16_t>((heat & ~(7u << (3 * k))) | value << (3 * k));
    }
  };
  static_assert(sizeof(Bucket) == 64);

  struct Buckets {
    PageMemory memory;
    uint64_t count = 0;

    uint64_t HomeOf(uint64_t hash) const {
      return static_cast<uint64_t>(static_cast<unsigned __int128>(hash) * count >> 64);
    }
    uint64_t FirstHashOf(uint64_t i) const;
    uint64_t After(uint64_t i) const { return i + 1 == count ? 0 : i + 1; }
    Bucket& at(uint64_t i) { return reinterpret_cast<Bucket*>(memory.data())[i]; }
    const Bucket& at(uint64_t i) const { return reinterpret_cast<const Bucket*>(memory.data())[i]; }
  };

  // The side where the key is, if it is there. No branch: during a move its direction could not be
  // predicted.
  const Buckets& SideOf(uint64_t hash) const {
    if (old_.count == 0) [[likely]]
      return buckets_;
    const Buckets* const sides[] = {&old_, &buckets_};
    uint64_t behind = old_.HomeOf(hash) - first_moved_;
    behind += old_.count & (uint64_t{0} - (behind >> 63));
    return *sides[behind < moved_];
  }
  static uint32_t Matches(const Bucket& bucket, Key key);
  static void InsertNew(Buckets& buckets, uint64_t hash, KeyRow entry, uint32_t heat);
  Bucket& BucketAt(uint64_t i);
  void Grow();
  void MoveSome(uint64_t at_least);
  void MoveOne(uint64_t i);
  uint64_t FirstOfARun() const;

  const uint64_t salt_;
  Buckets buckets_;
  uint64_t size_ = 0;
  uint64_t grow_at_ = 0;
  // The hand visits each of `round_` buckets once per round, in leaps of `stride_`.
  uint64_t hand_ = 0, stride_ = 0, round_ = 0;
  // While growing: the `moved_` old buckets from `first_moved_` on are empty. They are whole runs.
  Buckets old_;
  uint64_t first_moved_ = 0;
  uint64_t moved_ = 0;
};

inline const void* KeyIndex::BucketOf(uint64_t hash) const {
  const Buckets& side = SideOf(hash);
  return &side.at(side.HomeOf(hash));
}

inline const void* KeyIndex::SecondBucketOf(uint64_t hash) const {
  const Buckets& side = SideOf(hash);
  return &side.at(side.After(side.HomeOf(hash)));
}

// Bit k says whether key k matches. There is no branch per key, because none could be predicted.
inline uint32_t KeyIndex::Matches(const Bucket& bucket, Key key) {
  uint32_t found = uint32_t{bucket.keys[4] == key} << 4;
#ifdef __AVX2__
  const __m256i four = _mm256_load_si256(reinterpret_cast<const __m256i*>(bucket.keys.data()));
  const __m256i equal = _mm256_cmpeq_epi64(four, _mm256_set1_epi64x(static_cast<int64_t>(key)));
  found |= static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(equal)));
#else
  for (uint32_t k = 0; k < 4; ++k) found |= uint32_t{bucket.keys[k] == key} << k;
#endif
  return found & ((1u << bucket.used) - 1);
}

inline uint32_t KeyIndex::FindFirst(uint64_t hash, Key key) const {
  const Buckets& side = SideOf(hash);
  const Bucket& bucket = side.at(side.HomeOf(hash));
  const uint32_t found = Matches(bucket, key);
  if (found != 0) return bucket.rows[static_cast<size_t>(std::countr_zero(found))];
  return bucket.passed != 0 ? kFurther : kAbsent;
}

inline uint32_t KeyIndex::Touch(uint64_t hash, Key key) {
  Buckets& side = const_cast<Buckets&>(SideOf(hash));
  for (uint64_t i = side.HomeOf(hash);; i = side.After(i)) {
    Bucket& bucket = side.at(i);
    const uint32_t found = Matches(bucket, key);
    if (found == 0) {
      if (bucket.passed == 0) return kAbsent;
      continue;
    }
    const auto k = static_cast<uint32_t>(std::countr_zero(found));
    // The hottest keys are not written to, so that their cache lines stay clean.
    if (const uint32_t heat = bucket.HeatOf(k); heat < kHeatMax) bucket.SetHeat(k, heat + 1);
    return bucket.rows[k];
  }
}

inline uint32_t KeyIndex::Find(uint64_t hash, Key key) const {
  const Buckets& side = SideOf(hash);
  for (uint64_t i = side.HomeOf(hash);; i = side.After(i)) {
    const Bucket& bucket = side.at(i);
    const uint32_t found = Matches(bucket, key);
    if (found != 0) return bucket.rows[static_cast<size_t>(std::countr_zero(found))];
    if (bucket.passed == 0) return kAbsent;
  }
}

}  // namespace dt::server
