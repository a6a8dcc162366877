// The bytes of a push log. Little-endian; nothing is aligned.
//
//   <dir>/log-<executor>-<segment>
//   segment:  SegmentHead | record | record | …
//   record:   RecordHead | FrameHead [frames] | the frames' bytes | u64 end mark
//
// Every byte is covered by a checksum, record numbers go on from segment to segment, and the last
// eight bytes of a record are never zero. So a reader can tell apart what a crash cut off, what
// never reached the disk, and what was damaged later (push_log_reader.h).
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "common/base/hash.h"

namespace dt::server::push_log {

inline constexpr uint64_t kMagic = 0x31474f4c48535544;  // "DUSHLOG1"
inline constexpr uint64_t kEndMark = 0x9e3779b97f4a7c15;
inline constexpr uint32_t kVersion = 1;
inline constexpr uint32_t kFramesMax = 16;

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
  uint64_t step = 0;
  uint64_t frames_digest = 0;  // Digest of the frame heads.
  uint32_t frames = 0;
  uint32_t zero = 0;
};
static_assert(sizeof(RecordHead) == 40);

struct FrameHead {
  uint64_t bytes = 0;
  uint64_t digest = 0;  // Digest of the frame.
};
static_assert(sizeof(FrameHead) == 16);

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

}  // namespace dt::server::push_log
