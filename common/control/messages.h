// Messages between the scheduler and every other process. One FlatBuffers frame each (control.fbs),
// carried in order and exactly once by a Session (common/control/session.h), except Heartbeat,
// which is not resent.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/fields.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/cluster/process_stats.h"
#include "common/cluster/role.h"
#include "common/cluster/table_report.h"
#include "common/cluster/view.h"
#include "common/control/orders.h"
#include "common/device/devices.h"
#include "common/specs/column.h"

namespace dt {

// ------------------------------------------------------------ process → scheduler

struct JoinMessage {
  Role role = Role::kWorker;
  Incarnation incarnation;  // Random per start; a second Join of it is answered as the first.
  uint32_t wire_version = 0;
  std::string version;  // Of the program.
  int64_t pid = 0;
  std::string host;
  uint64_t job_fingerprint = 0;        // JobConfig::fingerprint; must equal the scheduler's.
  std::vector<std::string> endpoints;  // Servers: one per executor.
  // The random name of the directory of a server that keeps a log. A process that joins with the
  // token of a member takes that member's place once it is away. 0: none.
  uint64_t server_token = 0;
  // Workers: the CPU, then the accelerator if it has one.
  std::vector<DeviceInfo> devices;
  // The number that it asks to have, as in its name; it is given another one if this is taken. 0:
  // any.
  ProcessId id{0};
  // Where the others reach it: a host's name or number. Empty in one process.
  std::string address = {};
  DT_FIELDS(role, incarnation, wire_version, version, pid, host, job_fingerprint, endpoints,
            server_token, devices, id, address)
};
// Worker: its data sets are open. All workers must report the same.
struct DataReadyMessage {
  uint64_t train_rows = 0, valid_rows = 0, test_rows = 0;
  uint64_t rows_skipped = 0;
  uint64_t fingerprint = 0;
  std::vector<ColumnSpec> columns;
  DT_FIELDS(train_rows, valid_rows, test_rows, rows_skipped, fingerprint, columns)
};
// Start is carried out: shards are made, the mesh is connected, the plan is bound.
struct ReadyMessage {
  DT_FIELDS()
};
// At least four in a lease.
struct HeartbeatMessage {
  Step step = 0;         // Workers: steps done. Servers: the least applied.
  uint64_t samples = 0;  // Workers: trained so far.
  ProcessStats stats;
  uint64_t log_bytes = 0;           // Servers: of their log on the disk.
  std::vector<TableReport> tables;  // Sizes; rows that are gone may still be counted.
  DT_FIELDS(step, samples, stats, log_bytes, tables)
};
struct OrderDoneMessage {
  uint64_t order = 0;
  OrderResult result;
  DT_FIELDS(order, result)
};
// This process cannot go on; it exits after sending.
struct FailedMessage {
  StatusCode code = StatusCode::kInternal;
  Problem problem;
  DT_FIELDS(code, problem)
};
// A server has written its rows of a checkpoint; these are the files.
struct RowsWrittenMessage {
  Step step = 0;
  std::vector<CheckpointFile> files;
  DT_FIELDS(step, files)
};
// Stopped on request (SIGINT, SIGTERM at the process itself).
struct LeavingMessage {
  DT_FIELDS()
};
// Rendezvous of collectives: small values by key, kept for the job's generation.
struct KvPutMessage {
  std::string key, value;
  DT_FIELDS(key, value)
};
struct KvGetMessage {  // Answered by KvValue as soon as the key is there.
  std::string key;
  DT_FIELDS(key)
};
// From `dovetail status`, without joining.
struct StatusRequestMessage {
  DT_FIELDS()
};
// Asynchronous workers without a bound: what of a TrainOrder to do next.
struct SplitRequestMessage {
  uint64_t order = 0;
  DT_FIELDS(order)
};

// ------------------------------------------------------------ scheduler → process

struct WelcomeMessage {
  ProcessId id;
  Term term;
  Duration lease{};
  // A server: it takes the place of the member with its server token, and its directory is of this
  // job. What the job has given that member (CheckpointCommitted, Start, orders) comes again.
  bool returned = false;
  DT_FIELDS(id, term, lease, returned)
};
struct RefusedMessage {
  StatusCode code = StatusCode::kInvalidArgument;
  Problem problem;
  DT_FIELDS(code, problem)
};
struct StartMessage {
  View view;
  uint32_t slices = 1;
  std::string plan;                       // Workers: plan/plan_codec.h.
  std::vector<TableId> tables_on_worker;  // Servers have no rows of them.
  DT_FIELDS(view, slices, plan, tables_on_worker)
};
struct OrderMessage {
  uint64_t number = 0;  // Ascending.
  Order what;
  DT_FIELDS(number, what)
};
struct KvValueMessage {
  std::string key, value;
  DT_FIELDS(key, value)
};
// The end, for this process: exit code 0 if ok, else the job failed or was interrupted as
// described.
struct StopMessage {
  StatusCode code = StatusCode::kOk;
  Problem problem;
  DT_FIELDS(code, problem)
};
struct StatusReplyMessage {
  std::string json;
  DT_FIELDS(json)
};
// To servers that keep a log: this checkpoint is complete, so what it holds need not be logged.
struct CheckpointCommittedMessage {
  Generation generation;
  Step step = 0;
  std::string folder;  // Never written to.
  DT_FIELDS(generation, step, folder)
};

using ControlMessage =
    std::variant<JoinMessage, DataReadyMessage, ReadyMessage, HeartbeatMessage, OrderDoneMessage,
                 FailedMessage, LeavingMessage, KvPutMessage, KvGetMessage, StatusRequestMessage,
                 WelcomeMessage, RefusedMessage, StartMessage, OrderMessage, KvValueMessage,
                 StopMessage, StatusReplyMessage, SplitRequestMessage, SplitMessage,
                 RowsWrittenMessage, CheckpointCommittedMessage>;
std::string_view NameOf(const ControlMessage& message);

std::string EncodeControl(const ControlMessage& message);
// Malformed for anything that is not exactly one of the above, whatever the bytes.
Result<ControlMessage> DecodeControl(std::span<const std::byte> bytes);

}  // namespace dt
