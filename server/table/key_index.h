// From key to row number: open addressing over buckets of one cache line, five keys with their row
// numbers each. Presence is the bucket's count of keys: no key and no row number is special.
//
//   bucket (64 bytes): key u64 [5] | row u32 [5] | used u8 | overflowed u8 | 2 unused
//
// A full bucket sets `overflowed` and the search goes on to the next one. Growth doubles the
// buckets and moves the old ones a few per insertion, so that no insertion waits for a whole
// rehash; a search looks in the old buckets too until they are empty. Keys are never removed
// singly.
//
// Owned by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

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
  static constexpr uint32_t kAbsent = ~0u;  // No row number: rows are counted from 0 and fewer.

  // `salt` decides which keys collide.
  explicit KeyIndex(uint64_t salt) : salt_(salt) {}

  // kAbsent where the key is not.
  uint32_t Find(Key key) const;
  // The row number of the key. Absent keys get `fresh`, which must be size().
  uint32_t FindOrInsert(Key key, uint32_t fresh);
  // Fetches the key's bucket into the cache.
  void Prefetch(Key key) const;

  // Empties it, with room for `keys` keys before it grows.
  void Reset(size_t keys);

  uint32_t size() const { return size_; }
  uint64_t bytes() const { return buckets_.memory.size() + old_.memory.size(); }
  // Every key, in no useful order.
  void AppendTo(std::vector<KeyRow>& out) const;

 private:
  static constexpr uint32_t kKeysPerBucket = 5;
  struct alignas(64) Bucket {
    std::array<Key, kKeysPerBucket> keys;
    std::array<uint32_t, kKeysPerBucket> rows;
    uint8_t used;
    uint8_t overflowed;
  };
  static_assert(sizeof(Bucket) == 64);

  struct Buckets {
    PageMemory memory;
    uint64_t count = 0;  // A power of two, or 0.

    Bucket& at(uint64_t i) { return reinterpret_cast<Bucket*>(memory.data())[i & (count - 1)]; }
    const Bucket& at(uint64_t i) const {
      return reinterpret_cast<const Bucket*>(memory.data())[i & (count - 1)];
    }
  };

  uint64_t HashOf(Key key) const { return MixBits(key ^ salt_); }
  static uint32_t FindIn(const Buckets& buckets, uint64_t hash, Key key);
  static void InsertNew(Buckets& buckets, uint64_t hash, KeyRow entry);
  void Grow();
  void MoveSome();

  const uint64_t salt_;
  Buckets buckets_;
  uint32_t size_ = 0;
  // While growing: the buckets before `moved_` are empty.
  Buckets old_;
  uint64_t moved_ = 0;
};

}  // namespace dt::server
