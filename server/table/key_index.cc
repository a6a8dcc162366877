#include "server/table/key_index.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "common/base/check.h"

namespace dt::server {
namespace {

constexpr uint64_t kBucketsMin = 2;
// The index grows when it is 68 % full, to 54 %: 19 to 24 bytes per key. Of 100 keys three to six
// are not in their first bucket; a fuller index would have more of them, each a cache miss.
constexpr uint64_t kKeysPer10BucketsMax = 34;
constexpr uint64_t kMovedPerInsert = 4;  // Enough to empty the old buckets before the next growth.
constexpr uint64_t kReleasedAtOnce = (2 << 20) / 64;
constexpr uint8_t kPassedMax = 255;
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / 1.618…

uint64_t BucketsFor(uint64_t keys) {
  return std::max(kBucketsMin, keys * 10 / kKeysPer10BucketsMax + 1);
}

}  // namespace

void KeyIndex::InsertNew(Buckets& buckets, uint64_t hash, KeyRow entry, uint32_t heat) {
  for (uint64_t i = buckets.HomeOf(hash);; i = buckets.After(i)) {
    Bucket& bucket = buckets.at(i);
    if (bucket.used < kKeysPerBucket) {
      bucket.keys[bucket.used] = entry.key;
      bucket.rows[bucket.used] = entry.row;
      bucket.SetHeat(bucket.used, heat);
      ++bucket.used;
      return;
    }
    if (bucket.passed < kPassedMax) ++bucket.passed;
  }
}

void KeyIndex::Erase(Key key) {
  const uint64_t hash = HashOf(key);
  Buckets& side = const_cast<Buckets&>(SideOf(hash));
  uint64_t i = side.HomeOf(hash);
  uint32_t found = Matches(side.at(i), key);
  for (; found == 0; found = Matches(side.at(i), key)) {
    Bucket& passed = side.at(i);
    DT_CHECK(passed.passed != 0);
    if (passed.passed < kPassedMax) --passed.passed;
    i = side.After(i);
  }
  Bucket& bucket = side.at(i);
  const auto k = static_cast<uint32_t>(std::countr_zero(found));
  const uint32_t last = --bucket.used;
  bucket.keys[k] = bucket.keys[last];
  bucket.rows[k] = bucket.rows[last];
  bucket.SetHeat(k, bucket.HeatOf(last));
  --size_;
}

// Bucket i of both sides: those of the new side come first, then the old ones.
KeyIndex::Bucket& KeyIndex::BucketAt(uint64_t i) {
  return i < buckets_.count ? buckets_.at(i) : old_.at(i - buckets_.count);
}

void KeyIndex::Sweep(uint64_t buckets, std::vector<KeyRow>& cold) {
  constexpr uint64_t kAhead = 16;
  const uint64_t all = buckets_.count + old_.count;
  if (all != round_) {
    round_ = all;
    hand_ %= all;
    // A golden section spreads the hand's last positions evenly over all buckets, whatever their
    // number.
    stride_ = static_cast<uint64_t>(static_cast<unsigned __int128>(all) * kGolden >> 64);
    while (std::gcd(stride_, all) != 1) ++stride_;
  }
  uint64_t ahead = (hand_ + kAhead * stride_) % all;
  for (buckets = std::min(buckets, all); buckets > 0; --buckets) {
    __builtin_prefetch(&BucketAt(ahead), 1);
    ahead = (ahead + stride_) % all;
    hand_ = (hand_ + stride_) % all;
    Bucket& bucket = BucketAt(hand_);
    for (uint32_t k = 0; k < bucket.used; ++k) {
      const uint32_t heat = bucket.HeatOf(k);
      if (heat != 0) {
        bucket.SetHeat(k, heat - 1);
      } else {
        cold.push_back({bucket.keys[k], bucket.rows[k]});
      }
    }
  }
}

// The first hash whose home is bucket i; kEnd after the last bucket.
uint64_t KeyIndex::Buckets::FirstHashOf(uint64_t i) const {
  if (i >= count) return kEnd;
  const auto scaled = static_cast<unsigned __int128>(i) << 64;
  return static_cast<uint64_t>((scaled + count - 1) / count);
}

// Stops after whole runs only: keys with a home before the stop are before it, and all others
// behind it, whatever is moved until the walk goes on.
uint64_t KeyIndex::Walk(uint64_t from, uint64_t buckets, std::vector<KeyRow>& keys) const {
  for (uint64_t walked = 0; walked < buckets && from != kEnd;) {
    const Buckets& side = SideOf(from);
    const uint64_t first = side.HomeOf(from);
    uint64_t i = first;
    for (bool in_run = true; in_run; ++walked, i = side.After(i)) {
      const Bucket& bucket = side.at(i);
      for (uint32_t k = 0; k < bucket.used; ++k) keys.push_back({bucket.keys[k], bucket.rows[k]});
      in_run = bucket.passed != 0 && side.After(i) != first;
    }
    uint64_t next = i > first ? side.FirstHashOf(i) : kEnd;
    if (old_.count != 0) {
      // Where the sides meet, a run of one may overlap the beginning of the other.
      for (const uint64_t old : {first_moved_, (first_moved_ + moved_) % old_.count}) {
        const uint64_t border = old_.FirstHashOf(old);
        if (border > from) next = std::min(next, border);
      }
    }
    from = next;
  }
  return from;
}

void KeyIndex::Insert(Key key, uint32_t row, uint32_t heat) {
  DT_DCHECK(Find(key) == kAbsent);
  if (size_ == grow_at_) Grow();
  if (old_.count != 0) MoveSome(kMovedPerInsert);
  const uint64_t hash = HashOf(key);
  if (&SideOf(hash) == &buckets_) {
    InsertNew(buckets_, hash, {key, row}, heat);
  } else {
    // A key of the part that is not moved yet must not spill into the moved part.
    if (old_.at((first_moved_ + old_.count - 1) % old_.count).used == kKeysPerBucket) {
      MoveSome(old_.count);
      InsertNew(buckets_, hash, {key, row}, heat);
    } else {
      InsertNew(old_, hash, {key, row}, heat);
    }
  }
  ++size_;
}

// The first bucket of a run, preferably after a bucket that will not fill up during the move;
// old_.count if there is one run all around.
uint64_t KeyIndex::FirstOfARun() const {
  uint64_t first = old_.count;
  for (uint64_t i = old_.count; i-- > 0;) {
    if (old_.at(i).passed != 0) continue;
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
  // One run all around is moved at once.
  for (uint64_t i = 0; i < old_.count; ++i) MoveOne(i);
  old_ = {};
}

void KeyIndex::MoveSome(uint64_t at_least) {
  bool in_run = false;
  for (uint64_t n = 0; moved_ < old_.count && (n < at_least || in_run); ++n, ++moved_) {
    const uint64_t i = (first_moved_ + moved_) % old_.count;
    in_run = old_.at(i).passed != 0;
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
    InsertNew(buckets_, HashOf(bucket.keys[k]), {bucket.keys[k], bucket.rows[k]}, bucket.HeatOf(k));
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
