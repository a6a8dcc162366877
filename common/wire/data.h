// Messages between workers and the executor threads of servers. A message is a FlatBuffers header
// (data.fbs, verified before any field is read) and raw little-endian arrays, in frames of their
// own, that are never copied on the way. Decoding believes nothing: sizes, counts and sums are
// checked first; a bad message is Malformed as a whole. A sender that shares its memory may change
// what it has sent: keys are taken before they are checked, values and gradients are only numbers.
//
// Keys travel grouped: for each group (shard, table) `rows` keys, groups in the order of the
// header, which ascends by (shard, table) without repeats. Values and gradients stand in key order,
// each group's in the format in which rows of its table travel, filled up to a multiple of 4 bytes
// (RowsBytes). Both ends know the formats from the job, whose fingerprint they compared.
#pragma once

#include <span>
#include <string>

#include "common/base/float_formats.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/cluster/shard_map.h"
#include "common/net/frame.h"

namespace dt {

inline constexpr uint32_t kWireVersion = 6;            // Both ends must have the same.
inline constexpr uint64_t kMessageBytesMax = 1 << 30;  // A larger message is refused.

// On every request: what its sender knows, and which server it means. A lower generation or view is
// refused as a whole (Stale); a lower version of the map only for those shards whose chains have
// changed since.
struct Stamp {
  Generation generation;
  ViewNumber view;
  MapVersion map;
  ProcessId server;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

struct KeyGroup {
  ShardId shard;
  uint32_t table = 0;  // Index into the job's tables.
  uint32_t rows = 0;
  friend bool operator==(const KeyGroup&, const KeyGroup&) = default;
};
using KeyGroups = PooledVector<KeyGroup>;

// How rows of a table travel.
struct WireTable {
  uint32_t dim = 0;
  FloatFormat format = FloatFormat::kFp32;

  // Of a group of so many rows.
  uint64_t BytesOf(uint64_t rows) const { return RowsBytes(format, dim, rows); }
};

enum class PullMode : uint8_t {
  kTrain,      // Absent rows: initial values.
  kEvaluate,   // Absent rows: eval_default.
  kLookahead,  // Soon to be pulled: rows on disk may come to memory. Not answered.
};
// kSetAbsent: the gradients are values; rows that are not there are made with them, others stay.
enum class PushMode : uint8_t { kGradients, kSetAbsent };

struct PullRequest {
  uint64_t request = 0;  // Chosen by the sender; comes back in the answer.
  Stamp stamp;
  Step step = 0;  // Answered once every step before it is applied (parked until then).
  PullMode mode = PullMode::kTrain;
  KeyGroups groups;
  Frame keys;  // u64 [sum of rows]
};

// A push to one shard is cut by that shard's own bytes, so that its pieces are the same whoever
// sends them under whatever map; they are applied together.
struct ShardPiece {
  ShardId shard;
  uint32_t piece = 0, pieces = 1;
  friend bool operator==(const ShardPiece&, const ShardPiece&) = default;
};
using ShardPieces = PooledVector<ShardPiece>;

// Contributions of one slice to shards of one executor. The messages of a push together name every
// shard of the job, also those without rows, so that the clock of each moves.
struct PushRequest {
  uint64_t request = 0;
  Stamp stamp;
  Step step = 0;
  SliceIndex slice = 0;
  uint32_t slices = 1;  // Of the step.
  float lr_scale = 1;
  PushMode mode = PushMode::kGradients;
  // Asynchronous training only: the sender, and the first step of its order. All its pushes before
  // that one are acknowledged.
  ProcessId worker;
  Step first_step = 0;
  ShardPieces pieces;  // Shards ascending.
  KeyGroups groups;    // Of these shards.
  Frame keys;          // u64 [sum of rows]
  Frame gradients;     // Group by group.
};

// Every worker is past the barrier of `step`: apply it. Not answered.
struct CompleteRequest {
  Stamp stamp;
  Step step = 0;
};

struct DataRequest {
  enum class Kind : uint8_t { kPull, kPush, kComplete } kind = Kind::kPull;
  PullRequest pull;  // The one named by kind is filled.
  PushRequest push;
  CompleteRequest complete;
};

// The answer to a pull (values filled) or push. A failure carries its code and sentence.
//
// Nothing of the request was done for shards that are refused: their chains have changed since the
// sender's version of the map. `change` says how.
struct DataReply {
  uint64_t request = 0;
  Status status;
  Frame values = {};  // Group by group, without those of refused shards; pulls only.
  bool disk = false;  // Some rows of the executor are on disk: prefetch helps.
  // Pulls of asynchronous workers: every worker's pushes of steps before it are in the values.
  Step clock = 0;
  std::vector<ShardId> refused = {};  // Ascending.
  MapChange change = {};              // If any are.
};

// The frames of the message share the memory of those given.
Frames Encode(const PullRequest& request);
Frames Encode(const PushRequest& request);
Frames Encode(const CompleteRequest& request);
Frames Encode(const DataReply& reply);

// `tables`: of the job; keys and gradients are checked against them.
Result<DataRequest> DecodeDataRequest(Frames frames, std::span<const WireTable> tables);
Result<DataReply> DecodeDataReply(Frames frames);

}  // namespace dt
