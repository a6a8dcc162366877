#include "common/net/shm/shm_segment.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace dt {
namespace {

constexpr size_t kRecordBytesMax =
    sizeof(ShmRecordHead) + kShmPartsMax * (sizeof(ShmPartHead) + kShmInlineBytesMax);
static_assert(kRecordBytesMax <= kShmRingBytes / 2 && kRecordBytesMax % 8 == 0);

}  // namespace

ShmRingWriter::Outcome ShmRingWriter::Write(std::span<const std::byte> record) {
  DT_CHECK(record.size() % 8 == 0 && record.size() <= kShmRingBytes / 2);
  const uint64_t used = tail_ - ring_.head.load(std::memory_order_acquire);
  if (used > kShmRingBytes) return Outcome::kBroken;
  if (record.size() > kShmRingBytes - used) return Outcome::kFull;
  const size_t at = tail_ % kShmRingBytes;
  const size_t first = std::min(record.size(), kShmRingBytes - at);
  std::memcpy(ring_.bytes + at, record.data(), first);
  if (first < record.size()) {
    std::memcpy(ring_.bytes, record.data() + first, record.size() - first);
  }
  tail_ += record.size();
  // Sequentially consistent with the reader's `waiting`, so no wake-up is missed.
  ring_.tail.store(tail_);
  return Outcome::kWritten;
}

void ShmRingReader::CopyOut(std::span<std::byte> to) const {
  const size_t at = head_ % kShmRingBytes;
  const size_t first = std::min(to.size(), kShmRingBytes - at);
  std::memcpy(to.data(), ring_.bytes + at, first);
  if (first < to.size()) std::memcpy(to.data() + first, ring_.bytes, to.size() - first);
}

ShmRingReader::Outcome ShmRingReader::Read(std::vector<std::byte>& record) {
  const uint64_t there = ring_.tail.load(std::memory_order_acquire) - head_;
  if (there == 0) return Outcome::kEmpty;
  if (there > kShmRingBytes || there < sizeof(ShmRecordHead)) return Outcome::kBroken;
  ShmRecordHead head;
  CopyOut(std::as_writable_bytes(std::span(&head, 1)));
  if (head.bytes < sizeof(head) || head.bytes % 8 != 0 || head.bytes > there ||
      head.bytes > kRecordBytesMax) {
    return Outcome::kBroken;
  }
  record.resize(head.bytes);
  CopyOut(record);
  // The head that was checked; the peer may have changed it.
  std::memcpy(record.data(), &head, sizeof(head));
  head_ += head.bytes;
  ring_.head.store(head_, std::memory_order_release);
  return Outcome::kRead;
}

}  // namespace dt
