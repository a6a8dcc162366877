// Messages between the scheduler and every other process. Each is one FlatBuffers frame
// (control.fbs). A Session (common/control/session.h) delivers them in order and exactly once,
// except heartbeats, which are not resent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/fields.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/cluster/view.h"
#include "common/control/orders.h"
#include "common/control/reports.h"

namespace dt {

// ------------------------------------------------------------ process → scheduler
// Join, DataReady and Heartbeat are in reports.h.

// The process has done what Start asks for: shards are created, the mesh is connected, the plan is
// bound.
struct ReadyMessage {
  DT_FIELDS()
};
struct OrderDoneMessage {
  uint64_t order = 0;
  OrderResult result;
  DT_FIELDS(order, result)
};
// The process cannot go on; it exits after sending this.
struct FailedMessage {
  StatusCode code = StatusCode::kInternal;
  Problem problem;
  DT_FIELDS(code, problem)
};
// A server has written its rows of a checkpoint into these files, a worker the dense parameters.
struct RowsWrittenMessage {
  uint64_t order = 0;  // The order to save.
  std::vector<CheckpointFile> files;
  DT_FIELDS(order, files)
};
// The process was stopped on request (it got SIGINT or SIGTERM).
struct LeavingMessage {
  DT_FIELDS()
};
// Values with which collectives set up their connections: small values by key, kept for the job's
// generation.
struct KvPutMessage {
  std::string key, value;
  DT_FIELDS(key, value)
};
struct KvGetMessage {  // The reply is a KvValue, as soon as the key exists.
  std::string key;
  DT_FIELDS(key)
};
// From `dovetail status`, which does not join.
struct StatusRequestMessage {
  DT_FIELDS()
};
// The answer to a NewViewMessage. A server knows every step before `step` to be complete. A worker
// has completed them; if it has `entered` the barrier of `step`, it has all that it needs to
// complete this one, too, and waits to hear whether it is complete. A newcomer is a worker that has
// completed none: it gets the values of dense parameters from another.
struct ViewReportMessage {
  ViewNumber view;
  Step step = 0;
  bool entered = false;
  bool newcomer = false;
  DT_FIELDS(view, step, entered, newcomer)
};
// Asks for the next part of a TrainOrder. Only from asynchronous workers without a bound.
struct SplitRequestMessage {
  uint64_t order = 0;
  // Numbers the worker's requests, from 1. A repeated request has the same answer.
  uint64_t number = 0;
  DT_FIELDS(order, number)
};
// The answer to a RecallMessage. The process has begun every order before `first` that it was sent,
// or will; it gives back all others, and does none of them unless it is sent again.
struct RecalledMessage {
  uint64_t from = 0;   // As in the question.
  uint64_t first = 0;  // At least `from`.
  DT_FIELDS(from, first)
  bool IsSound() const { return from <= first; }
};

// ------------------------------------------------------------ scheduler → process

struct WelcomeMessage {
  ProcessId id;
  Term term;
  Duration lease{};
  // For servers: the process replaces the member with its server token, and its directory
  // belongs to this job. The messages that this member has got (CheckpointCommitted, Start, orders)
  // are sent again.
  bool returned = false;
  uint64_t run = 0;  // A random number, the same for all processes of a run.
  DT_FIELDS(id, term, lease, returned, run)
};
struct RefusedMessage {
  StatusCode code = StatusCode::kInvalidArgument;
  Problem problem;
  DT_FIELDS(code, problem)
};
struct PlanBytes {
  std::string bytes;  // See plan/plan_codec.h.
  DT_FIELDS(bytes)
  friend bool operator==(const PlanBytes&, const PlanBytes&) = default;
};
struct StartMessage {
  View view;
  uint32_t slices = 1;
  uint32_t team = 1;  // Workers in a team: those of consecutive ranks.
  // The scheduler's record: by position in a team. Sent to a worker: that of its position.
  std::vector<PlanBytes> plans;
  std::vector<TableId> tables_on_worker;  // Servers have no rows of these tables.
  // Done by the jobs that this one goes on from. Updates and rows count them, too: step 0 of this
  // job is their next one.
  Step steps_before = 0;
  // The training rows of each stripe of the data; empty if it is not cut into stripes.
  std::vector<uint64_t> stripe_rows;
  // For a stream, by partition: messages before it are trained on. Empty: none are.
  std::vector<uint64_t> stream_begins;
  DT_FIELDS(view, slices, team, plans, tables_on_worker, steps_before, stripe_rows, stream_begins)
};
struct OrderMessage {
  uint64_t number = 0;  // Ascending.
  Order what;
  uint64_t settled = 0;  // All orders before this number are done by all processes.
  DT_FIELDS(number, what, settled)
};
// To workers: orders from this number on that have not begun are to be given back, so that training
// ends before them.
struct RecallMessage {
  uint64_t from = 0;
  DT_FIELDS(from)
};
struct KvValueMessage {
  std::string key, value;
  DT_FIELDS(key, value)
};
// The process is to end: with exit code 0 if ok, otherwise because the job failed or was
// interrupted as described.
struct StopMessage {
  StatusCode code = StatusCode::kOk;
  Problem problem;
  DT_FIELDS(code, problem)
};
struct StatusReplyMessage {
  std::string json;
  DT_FIELDS(json)
};
// The workers of the job are to be others: those of this view, which is being formed. A server
// refuses requests of older views from now on; a worker gives up the order at hand and all others.
// Each answers with a ViewReportMessage, every time that it is asked.
struct NewViewMessage {
  View view;
  DT_FIELDS(view)
};
// To the workers of a view: all have answered. Every step before `step` is complete, and training
// goes on with it. The first worker of the view that is no newcomer gives its values to those. The
// orders that are out follow.
struct ViewBeginsMessage {
  ViewNumber view;
  Step step = 0;
  std::vector<ProcessId> newcomers;
  DT_FIELDS(view, step, newcomers)
};
// To servers that keep a log: this checkpoint is complete, so the log no longer needs what it
// holds.
struct CheckpointCommittedMessage {
  Generation generation;
  Step step = 0;
  std::string folder;  // The server only reads it.
  DT_FIELDS(generation, step, folder)
};

// The chains of some shards have changed. To every process that is started; it needs only the
// newest map.
struct MapChangedMessage {
  ShardMap map;
  DT_FIELDS(map)
};

// From the tail of a chain, again and again until a map makes the newcomer a member: it has all of
// the shard, and gets its records.
struct ShardCopiedMessage {
  ShardId shard;
  ProcessId to;
  MapVersion since;       // Chain::copied_since(), as the tail knows it.
  Generation generation;  // What was copied before a checkpoint was loaded counts no more.
  DT_FIELDS(shard, to, since, generation)
};
// From `dovetail drain`, which does not join: the job is to go on without this server.
struct DrainRequestMessage {
  ProcessId server;
  DT_FIELDS(server)
};
// From `dovetail scale`, which does not join: the job is to have so many servers or workers.
struct ScaleRequestMessage {
  Role role = Role::kWorker;
  uint32_t count = 0;
  DT_FIELDS(role, count)
};
// To a worker whose data is cut into stripes (data.shuffle.by: slices): it is to open these ones of
// so many. If it needs others later, it opens them then.
struct ReadDataMessage {
  uint32_t stripes = 1;
  std::vector<uint32_t> own;
  DT_FIELDS(stripes, own)
  bool IsSound() const {
    return std::ranges::all_of(own, [this](uint32_t each) { return each < stripes; });
  }
};
// From a worker: the messages that partitions of the stream have now.
struct StreamReportMessage {
  std::vector<uint32_t> numbers;
  std::vector<PartitionRange> ranges;  // By position in `numbers`.
  DT_FIELDS(numbers, ranges)
  bool IsSound() const { return numbers.size() == ranges.size(); }
};
struct CommandReplyMessage {  // OK: what was asked for has begun, or is done.
  StatusCode code = StatusCode::kOk;
  Problem problem;
  DT_FIELDS(code, problem)
};

using ControlMessage =
    std::variant<JoinMessage, DataReadyMessage, ReadyMessage, HeartbeatMessage, OrderDoneMessage,
                 FailedMessage, LeavingMessage, KvPutMessage, KvGetMessage, StatusRequestMessage,
                 WelcomeMessage, RefusedMessage, StartMessage, OrderMessage, KvValueMessage,
                 StopMessage, StatusReplyMessage, SplitRequestMessage, SplitMessage,
                 RowsWrittenMessage, CheckpointCommittedMessage, MapChangedMessage,
                 ShardCopiedMessage, DrainRequestMessage, CommandReplyMessage, RecallMessage,
                 RecalledMessage, NewViewMessage, ViewReportMessage, ViewBeginsMessage,
                 ScaleRequestMessage, ReadDataMessage, StreamReportMessage>;
std::string_view NameOf(const ControlMessage& message);

std::string EncodeControl(const ControlMessage& message);
// Malformed unless the bytes are exactly one of these messages.
Result<ControlMessage> DecodeControl(std::span<const std::byte> bytes);

}  // namespace dt
