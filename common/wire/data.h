// Messages between workers and the executor threads of servers, and between servers that have
// copies of the same shards. A message is a FlatBuffers header
// (data.fbs, verified before any field is read) and raw little-endian arrays in frames of their
// own, which are never copied on the way. Decoding trusts nothing: it checks sizes, counts and sums
// first, and a bad message is Malformed as a whole. A sender in shared memory may change what it
// has sent; therefore keys are copied before they are checked, while values and gradients are only
// numbers and need no check.
//
// Keys are grouped by (shard, table); the header lists the groups, ascending and without repeats,
// and the number of rows of each. Values and gradients are in the order of the keys. Each group
// uses the format in which rows of its table travel and is padded to a multiple of 4 bytes
// (RowsBytes). Both ends know the formats from the job, whose fingerprint they compared.
#pragma once

#include <span>
#include <string>

#include "common/base/float_formats.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/cluster/shard_map.h"
#include "common/net/frame.h"
#include "common/wire/sender_turn.h"

namespace dt {

inline constexpr uint32_t kWireVersion = 13;           // Both ends must have the same.
inline constexpr uint64_t kMessageBytesMax = 1 << 30;  // Larger messages are refused.

// Part of every request: the versions that its sender knows, and the server that it is for. A
// request with an older generation or view is refused as a whole (Stale). With an older version of
// the map, only the shards whose chains have changed since are refused.
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

  // Bytes of a group of `rows` rows.
  uint64_t BytesOf(uint64_t rows) const { return RowsBytes(format, dim, rows); }
};

enum class PullMode : uint8_t {
  kTrain,     // Absent rows read as initial values.
  kEvaluate,  // Absent rows read as eval_default says.
  // A prefetch: the rows will soon be pulled and may be moved from disk to memory. No reply.
  kPrefetch,
};
// kSetAbsent: the gradients are values; absent rows are created with them, existing rows stay.
enum class PushMode : uint8_t { kGradients, kSetAbsent };

struct PullRequest {
  uint64_t request = 0;  // Chosen by the sender; the reply repeats it.
  Stamp stamp;
  // The reply is sent once all earlier steps are applied; until then the request is parked.
  Step step = 0;
  PullMode mode = PullMode::kTrain;
  KeyGroups groups;
  Frame keys;  // u64 [sum of rows]
};

// A shard allocates slots for all pieces of a push at once.
inline constexpr uint32_t kPiecesMax = 1 << 12;

// A push to one shard is cut into pieces by that shard's bytes alone, so that the pieces are the
// same for every sender and every version of the map. All pieces are applied together.
struct ShardPiece {
  ShardId shard;
  uint32_t piece = 0, pieces = 1;
  friend bool operator==(const ShardPiece&, const ShardPiece&) = default;
};
using ShardPieces = PooledVector<ShardPiece>;

// Contributions of one slice to shards of one executor. The messages of a push together name every
// shard of the job, even without rows, so that each shard's clock advances.
struct PushRequest {
  uint64_t request = 0;
  Stamp stamp;
  Step step = 0;
  SliceIndex slice = 0;
  uint32_t slices = 1;  // Number of slices of the step.
  float lr_scale = 1;
  PushMode mode = PushMode::kGradients;
  SenderTurn turn;     // Asynchronous training only.
  ShardPieces pieces;  // Ascending by shard.
  KeyGroups groups;    // Only of shards in `pieces`.
  Frame keys;          // u64 [sum of rows]
  Frame gradients;     // In the order of the groups.
};

// All workers have passed the barrier of `step`, so the server applies it. No reply.
struct CompleteRequest {
  Stamp stamp;
  Step step = 0;
};

// Where the bytes of one record are, and the version of the map at which the chain of its shard
// last changed. Each part is padded to a multiple of 8 bytes.
struct RecordPart {
  MapVersion since;
  uint32_t head_bytes = 0, key_bytes = 0, gradient_bytes = 0;
  friend bool operator==(const RecordPart&, const RecordPart&) = default;
};

// From one member of a chain to the next. No reply: what the receiver takes it acknowledges with
// Acks, and what is not acknowledged is sent again.
struct RecordsRequest {
  Stamp stamp;
  ProcessId from;  // The server that sends it.
  std::vector<RecordPart> parts;
  Frame heads, keys, gradients;  // Of all records, one behind the other.
};

// All records of the shard up to `position` are on the sender and on every member after it.
struct ChainAck {
  ShardId shard;
  MapVersion since;  // As in RecordPart.
  uint64_t position = 0;
  friend bool operator==(const ChainAck&, const ChainAck&) = default;
};

// From one member of a chain to the one before it. No reply.
struct AcksRequest {
  Stamp stamp;
  ProcessId from;
  Step complete = 0;  // The sender knows that every step before it is complete on all workers.
  std::vector<ChainAck> acks;
};

// A part of a shard on its way to a server that is to become the next member of its chain. The
// parts of a session are taken in the order of their numbers. The last one says what the shard is
// besides its rows; records follow from `position` + 1 on.
struct CopyRequest {
  // Asynchronous workers: the order and view of a worker's last push, the number of its next push,
  // its clock.
  struct Turn {
    ProcessId worker;
    ViewNumber view;
    Step order = 0;
    uint64_t next = 0;
    Step clock = 0;
    friend bool operator==(const Turn&, const Turn&) = default;
  };
  // Asynchronous workers: slices of a step that are applied, 64 at a time.
  struct Applied {
    Step step = 0;
    uint32_t word = 0;  // It tells of slices from 64 × word on.
    uint64_t slices = 0;
    friend bool operator==(const Applied&, const Applied&) = default;
  };
  Stamp stamp;
  ProcessId from;
  ShardId shard;
  MapVersion since;      // Chain::copied_since().
  uint64_t session = 0;  // Another number whenever the copying begins anew.
  uint64_t number = 0;   // From 0.
  Frame rows;            // See server/chain/copy_rows.h.
  bool end = false;      // This is the last part; only then the fields below count.
  uint64_t position = 0;
  Step now = 0;
  ViewNumber view;  // The one whose workers have the turns.
  std::vector<Turn> turns;
  Step settled = 0;  // As in SenderTurn; the steps from there on are in `applied`.
  std::vector<Applied> applied;
  std::vector<uint32_t> life_bytes;  // Of the state of life of each table, in `lives`.
  Frame lives;
  std::vector<RecordPart> held;  // Contributions that are held, as records without positions.
  Frame heads, keys, gradients;
};

// Every part before `next` is taken.
struct CopyAckRequest {
  Stamp stamp;
  ProcessId from;
  ShardId shard;
  MapVersion since;
  uint64_t session = 0, next = 0;
};

struct DataRequest {
  enum class Kind : uint8_t {
    kPull,
    kPush,
    kComplete,
    kRecords,
    kAcks,
    kCopy,
    kCopyAck
  } kind = Kind::kPull;
  PullRequest pull;  // Only the member that `kind` names is filled.
  PushRequest push;
  CompleteRequest complete;
  RecordsRequest records;
  AcksRequest acks;
  CopyRequest copy;
  CopyAckRequest copy_ack;
};

// The reply to a pull (with values) or a push. A failure carries its code and sentence. The server
// refuses shards whose chains have changed since the sender's version of the map, and does nothing
// for them; `change` holds the newer chains.
struct DataReply {
  uint64_t request = 0;
  Status status;
  // In the order of the groups, without refused shards; pulls only.
  Frame values = {};
  bool disk = false;  // Some rows of the executor are on disk: prefetch helps.
  // Pulls of asynchronous workers: the values contain the pushes of all workers for steps before
  // it.
  Step clock = 0;
  std::vector<ShardId> refused = {};  // Ascending.
  MapChange change = {};              // Set if any shard is refused.
};

// The frames of the message share the memory of the arguments' frames.
Frames Encode(const PullRequest& request);
Frames Encode(const PushRequest& request);
Frames Encode(const CompleteRequest& request);
Frames Encode(const RecordsRequest& request);
Frames Encode(const AcksRequest& request);
Frames Encode(const CopyRequest& request);
Frames Encode(const CopyAckRequest& request);
Frames Encode(const DataReply& reply);

// `tables` are the job's tables; keys and gradients are checked against them.
Result<DataRequest> DecodeDataRequest(Frames frames, std::span<const WireTable> tables);
Result<DataReply> DecodeDataReply(Frames frames);

}  // namespace dt
