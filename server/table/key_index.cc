#include "server/table/key_index.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace dt::server {
namespace {

constexpr uint64_t kBucketsMin = 2;
// 68 % of the places, 54 % after growth: 19 to 24 bytes a key. Of 100 keys three to six are not in
// their first bucket; higher costs more of them, each a cache miss.
constexpr uint64_t kKeysPer10BucketsMax = 34;
constexpr uint64_t kMovedPerInsert = 4;  // The old buckets are empty before the next growth.
constexpr uint64_t kReleasedAtOnce = (2 << 20) / 64;

uint64_t BucketsFor(uint64_t keys) {
  return std::max(kBucketsMin, keys * 10 / kKeysPer10BucketsMax + 1);
}

}  // namespace

void KeyIndex::InsertNew(Buckets& buckets, uint64_t hash, KeyRow entry) {
  for (uint64_t i = buckets.HomeOf(hash);; i = buckets.After(i)) {
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

void KeyIndex::Insert(Key key, uint32_t row) {
  DT_DCHECK(Find(key) == kAbsent);
  if (size_ == grow_at_) Grow();
  if (old_.count != 0) MoveSome(kMovedPerInsert);
  const uint64_t hash = HashOf(key);
  if (&SideOf(hash) == &buckets_) {
    InsertNew(buckets_, hash, {key, row});
  } else {
    // What is not moved yet must not spill into what is.
    if (old_.at((first_moved_ + old_.count - 1) % old_.count).used == kKeysPerBucket) {
      MoveSome(old_.count);
      InsertNew(buckets_, hash, {key, row});
    } else {
      InsertNew(old_, hash, {key, row});
    }
  }
  ++size_;
}

// Preferably behind a bucket that will not fill up while the others are moved.
uint64_t KeyIndex::FirstOfARun() const {
  uint64_t first = old_.count;
  for (uint64_t i = old_.count; i-- > 0;) {
    if (old_.at(i).overflowed) continue;
    first = old_.After(i);
    if (old_.at(i).used <= 1) break;
  }
  return first;
}

void KeyIndex::Grow() {
  if (old_.count != 0) MoveSome(old_.count);
  const uint64_t count = buckets_.count + std::max(kBucketsMin, buckets_.count / 4);
  old_ = std::move(buckets_);
  buckets_ = {PageMemory::Zeroed(count * sizeof(Bucket)), count};
  grow_at_ = count * kKeysPer10BucketsMax / 10;
  moved_ = 0;
  first_moved_ = FirstOfARun();
  if (first_moved_ != old_.count) return;
  // One run all around, or nothing.
  for (uint64_t i = 0; i < old_.count; ++i) MoveOne(i);
  old_ = {};
}

void KeyIndex::MoveSome(uint64_t at_least) {
  bool in_run = false;
  for (uint64_t n = 0; moved_ < old_.count && (n < at_least || in_run); ++n, ++moved_) {
    const uint64_t i = (first_moved_ + moved_) % old_.count;
    in_run = old_.at(i).overflowed != 0;
    MoveOne(i);
    if (i % kReleasedAtOnce == 0 && i != 0 && (first_moved_ == 0 || i < first_moved_)) {
      old_.memory.Release((i - kReleasedAtOnce) * sizeof(Bucket), i * sizeof(Bucket));
    }
  }
  if (moved_ == old_.count) old_ = {};
}

void KeyIndex::MoveOne(uint64_t i) {
  Bucket& bucket = old_.at(i);
  for (uint32_t k = 0; k < bucket.used; ++k) {
    InsertNew(buckets_, HashOf(bucket.keys[k]), {bucket.keys[k], bucket.rows[k]});
  }
  bucket.used = 0;
}

void KeyIndex::Reset(size_t keys) {
  old_ = {};
  size_ = 0;
  const uint64_t count = BucketsFor(keys);
  const uint64_t bytes = count * sizeof(Bucket);
  grow_at_ = count * kKeysPer10BucketsMax / 10;
  if (buckets_.memory.size() < bytes) {
    buckets_ = {PageMemory::Zeroed(bytes), count};
    return;
  }
  buckets_.count = count;
  std::memset(buckets_.memory.data(), 0, bytes);
}

uint64_t KeyIndex::bytes() const { return std::max(buckets_.count, old_.count) * sizeof(Bucket); }

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
