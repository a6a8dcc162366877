// The bytes of a log of records. Little-endian; nothing is aligned.
//
//   <dir>/log-<executor>-<segment>
//   segment:  SegmentHead | record | record | …
//   record:   RecordHead | the parts of a RecordBytes: head, keys, gradients | u64 end mark
//
// Every byte is covered by a checksum, record numbers go on from segment to segment, and the last
// eight bytes of a record are never zero. So a reader can tell apart what a crash cut off, what
// never reached the disk, and what was damaged later (record_log_reader.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "common/base/hash.h"

namespace dt::server::record_log {

inline constexpr uint64_t kMagic = 0x31474f4c48535544;  // "DUSHLOG1"
inline constexpr uint64_t kEndMark = 0x9e3779b97f4a7c15;
inline constexpr uint32_t kVersion = 3;
inline constexpr uint32_t kParts = 3;

struct SegmentHead {
  uint64_t digest = 0;  // Digest of the rest of this head.
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t executor = 0;
  uint64_t generation = 0;
  uint64_t segment = 0;
  uint64_t first_record = 0;  // The number of the segment's first record.
};
static_assert(sizeof(SegmentHead) == 48);

struct RecordHead {
  uint64_t digest = 0;  // Digest of the rest of this head.
  uint64_t number = 0;
  std::array<uint64_t, kParts> bytes{};    // Size of each part.
  std::array<uint64_t, kParts> digests{};  // Digest of each part.
};
static_assert(sizeof(RecordHead) == 64);

// Digest of everything in `head` behind the digest itself.
template <class Head>
uint64_t DigestOfHead(const Head& head) {
  return HashBytes(std::as_bytes(std::span(&head, 1)).subspan(sizeof(head.digest)));
}

// The low bit is set so that the mark is never zero.
constexpr uint64_t EndMarkOf(uint64_t number) { return MixBits(number ^ kEndMark) | 1; }

inline std::string SegmentPath(const std::string& dir, uint32_t executor, uint64_t segment) {
  return fmt::format("{}/log-{}-{}", dir, executor, segment);
}

}  // namespace dt::server::record_log
