#include "server/table/key_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/base/check.h"

namespace dt::server {
namespace {

constexpr uint64_t kBucketsMin = 4;
// 70 % of the places. Higher saves memory and lengthens searches.
constexpr uint64_t kKeysPer2BucketsMax = 7;
constexpr int kMovedPerInsert = 2;  // The old buckets are empty long before the next growth.

uint64_t BucketsFor(uint64_t keys) {
  return std::bit_ceil(std::max(kBucketsMin, keys * 2 / kKeysPer2BucketsMax + 1));
}

}  // namespace

uint32_t KeyIndex::FindIn(const Buckets& buckets, uint64_t hash, Key key) {
  for (uint64_t i = hash;; ++i) {
    const Bucket& bucket = buckets.at(i);
    for (uint32_t k = 0; k < bucket.used; ++k) {
      if (bucket.keys[k] == key) return bucket.rows[k];
    }
    if (!bucket.overflowed) return kAbsent;
  }
}

void KeyIndex::InsertNew(Buckets& buckets, uint64_t hash, KeyRow entry) {
  for (uint64_t i = hash;; ++i) {
    Bucket& bucket = buckets.at(i);
    if (bucket.used < kKeysPerBucket) {
      bucket.keys[bucket.used] = entry.key;
      bucket.rows[bucket.used] = entry.row;
      ++bucket.used;
      return;
    }
    bucket.overflowed = 1;
  }
}

uint32_t KeyIndex::Find(Key key) const {
  if (size_ == 0) return kAbsent;
  const uint64_t hash = HashOf(key);
  const uint32_t row = FindIn(buckets_, hash, key);
  if (row != kAbsent || old_.count == 0) return row;
  return FindIn(old_, hash, key);
}

uint32_t KeyIndex::FindOrInsert(Key key, uint32_t fresh) {
  const uint32_t found = Find(key);
  if (found != kAbsent) return found;
  DT_DCHECK(fresh == size_);
  DT_CHECK_MSG(size_ + 1 < kAbsent, "{} rows of one table in one shard", size_);
  if ((uint64_t{size_} + 1) * 2 > buckets_.count * kKeysPer2BucketsMax) Grow();
  if (old_.count != 0) MoveSome();
  InsertNew(buckets_, HashOf(key), {key, fresh});
  ++size_;
  return fresh;
}

void KeyIndex::Prefetch(Key key) const {
  if (buckets_.count == 0) return;
  const uint64_t hash = HashOf(key);
  __builtin_prefetch(&buckets_.at(hash));
  if (old_.count != 0) __builtin_prefetch(&old_.at(hash));
}

void KeyIndex::Grow() {
  while (old_.count != 0) MoveSome();
  const uint64_t count = std::max(kBucketsMin, buckets_.count * 2);
  old_ = std::move(buckets_);
  moved_ = 0;
  buckets_ = {PageMemory::Zeroed(count * sizeof(Bucket)), count};
  if (size_ == 0) old_ = {};
}

void KeyIndex::MoveSome() {
  for (int n = 0; n < kMovedPerInsert && moved_ < old_.count; ++n, ++moved_) {
    Bucket& bucket = old_.at(moved_);
    for (uint32_t k = 0; k < bucket.used; ++k) {
      InsertNew(buckets_, HashOf(bucket.keys[k]), {bucket.keys[k], bucket.rows[k]});
    }
    bucket.used = 0;  // `overflowed` stays: searches go past it to keys that are still here.
  }
  if (moved_ == old_.count) old_ = {};
}

void KeyIndex::Reset(size_t keys) {
  old_ = {};
  size_ = 0;
  const uint64_t count = BucketsFor(keys);
  const uint64_t bytes = count * sizeof(Bucket);
  if (buckets_.memory.size() < bytes) {
    buckets_ = {PageMemory::Zeroed(bytes), count};
    return;
  }
  buckets_.count = count;
  std::memset(buckets_.memory.data(), 0, bytes);
}

void KeyIndex::AppendTo(std::vector<KeyRow>& out) const {
  out.reserve(out.size() + size_);
  for (const Buckets* buckets : {&buckets_, &old_}) {
    for (uint64_t i = 0; i < buckets->count; ++i) {
      const Bucket& bucket = buckets->at(i);
      for (uint32_t k = 0; k < bucket.used; ++k) out.push_back({bucket.keys[k], bucket.rows[k]});
    }
  }
}

}  // namespace dt::server
