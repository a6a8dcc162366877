// From key to row number: open addressing over buckets of one cache line, five keys with their row
// numbers each. Presence is the bucket's count of keys: no key and no row number is special.
//
//   bucket (64 bytes): key u64 [5] | row u32 [5] | used u8 | passed u8 | heat: 3 bits a place
//
// A key's home is bucket hash · count / 2^64. A key that finds it full goes on to the next one,
// from the last to the first; each bucket counts the keys that passed it. Buckets from behind one
// that nobody passed up to the next such one are a run, and no key lies in another run than its
// home. (From 255 on the count is not exact, and never falls.)
//
// Heat says how lately and often a key was touched: the clock with counts of Nomad and GCLOCK (A.
// J. Smith, 1978). A hint for eviction, in no checksum. The hand leaps over the buckets: were it to
// go along, those ahead of it would hold the keys of a whole round and overflow, one into the next.
//
// Growth by a quarter moves the old buckets, in order and whole runs at a time, a few per
// insertion. Homes keep their order from one count to the next, so both sides of the move are
// walked as streams and the old pages go back on the way: growing takes hardly more memory than
// having grown. What is moved is looked up in the new buckets only, all else in the old ones only.
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
  static constexpr uint32_t kAbsent = ~0u;  // No row number; see RowSlabs.

  // `salt` decides which keys collide. The bits of the hash that chose the shard count least.
  explicit KeyIndex(uint64_t salt) : salt_(salt) { Reset(0); }

  // kAbsent where the key is not.
  uint32_t Find(Key key) const { return Find(HashOf(key), key); }

  // The same in steps, between which the caller can fetch what the next one will look at, and do
  // other things. (The fetching is the caller's: g++ 12 takes a function that does nothing else for
  // one without effect, and drops the call.)
  uint64_t HashOf(Key key) const { return std::rotl(MixBits(key ^ salt_), 32); }
  const void* BucketOf(uint64_t hash) const;
  // In the first bucket: the row, kAbsent, or kFurther if only Find can tell.
  static constexpr uint32_t kFurther = ~0u - 1;
  uint32_t FindFirst(uint64_t hash, Key key) const;
  const void* SecondBucketOf(uint64_t hash) const;
  uint32_t Find(uint64_t hash, Key key) const;
  // The same, and the key gets warmer if it is there.
  uint32_t Touch(uint64_t hash, Key key);

  // Of a key that is not there. REQUIRES: Find(key) is kAbsent.
  void Insert(Key key, uint32_t row, uint32_t heat = 1);
  // REQUIRES: the key is there.
  void Erase(Key key);
  static constexpr uint32_t kHeatMax = 3;
  // The hand of the clock moves over `buckets` buckets, at most once around: appends the keys that
  // are cold, and cools the others.
  void Sweep(uint64_t buckets, std::vector<KeyRow>& cold);
  // Appends all keys, in calls of some `buckets` each: begins at 0, returns where to go on, kEnd
  // behind the last. A key that is there all the time is met, some more than once, whatever is
  // inserted or erased between the calls.
  static constexpr uint64_t kEnd = ~uint64_t{0};
  uint64_t Walk(uint64_t from, uint64_t buckets, std::vector<KeyRow>& keys) const;
  // Empties it, with room for `keys` keys before it grows.
  void Reset(size_t keys);

  uint64_t size() const { return size_; }
  uint64_t bytes() const;
  uint64_t buckets() const { return buckets_.count + old_.count; }
  // Every key, in no useful order.
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

  // Where the key is, if it is anywhere. In the midst of a move no branch could predict the side.
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
  // The hand leaps: each of `round_` buckets once a round.
  uint64_t hand_ = 0, stride_ = 0, round_ = 0;
  // While growing: `moved_` old buckets from `first_moved_` on are empty, whole runs.
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

// Bit k: key k is this one. Without a branch per key: which one it is cannot be predicted.
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
    // The hottest keys are not written to: their lines stay clean.
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
