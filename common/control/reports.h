// What servers and workers tell the scheduler of themselves; see messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/fields.h"
#include "common/base/ids.h"
#include "common/cluster/process_stats.h"
#include "common/cluster/role.h"
#include "common/cluster/stream_cut.h"
#include "common/cluster/table_report.h"
#include "common/device/devices.h"
#include "common/specs/column.h"

namespace dt {

struct JoinMessage {
  Role role = Role::kWorker;
  // Random for each start; a repeated Join of it gets the same reply.
  Incarnation incarnation;
  uint32_t wire_version = 0;
  std::string version;  // The program's version.
  int64_t pid = 0;
  std::string host;
  // JobConfig::fingerprint, which must equal the scheduler's.
  uint64_t job_fingerprint = 0;
  std::vector<std::string> endpoints;  // Servers: one for each executor.
  // The random name of the directory of a server that keeps a log. If the member with this token is
  // gone, the process replaces it. 0: none.
  uint64_t server_token = 0;
  // Workers: the CPU, then the accelerator if it has one.
  std::vector<DeviceInfo> devices;
  // The process id that the process asks for, the one in its name; if it is taken, the scheduler
  // assigns another. 0: any.
  ProcessId id{0};
  // A host name or numeric address at which the other processes reach it. Empty if all are in one
  // process.
  std::string address = {};
  // The run that the process has joined before, from its Welcome; 0 at its first Join.
  uint64_t run = 0;
  uint64_t memory_bytes = 0;  // Servers: what they may use.
  DT_FIELDS(role, incarnation, wire_version, version, pid, host, job_fingerprint, endpoints,
            server_token, devices, id, address, run, memory_bytes)
};
// A part of the data that has been read; see ReadDataMessage.
struct StripeReport {
  uint32_t number = 0;
  uint64_t train_rows = 0, valid_rows = 0, test_rows = 0;
  uint64_t rows_skipped = 0;
  uint64_t fingerprint = 0;
  DT_FIELDS(number, train_rows, valid_rows, test_rows, rows_skipped, fingerprint)
  friend bool operator==(const StripeReport&, const StripeReport&) = default;
};
// From workers: the data sets are open. All workers must report the same. If the data is cut into
// stripes, each reports those that it has read, and no other rows.
struct DataReadyMessage {
  uint64_t train_rows = 0, valid_rows = 0, test_rows = 0;
  uint64_t rows_skipped = 0;
  uint64_t fingerprint = 0;
  std::vector<ColumnSpec> columns;
  std::vector<StripeReport> stripes = {};
  std::vector<PartitionRange> partitions = {};  // Of the stream, if the job trains on one.
  DT_FIELDS(train_rows, valid_rows, test_rows, rows_skipped, fingerprint, columns, stripes,
            partitions)
};
// A shard that is being copied from a server to another one.
struct CopyReport {
  ShardId shard;
  ProcessId to;
  uint64_t bytes = 0;  // The other server has taken so many.
  // Rows sent; rows that change meanwhile are sent again, and count again. The shard's rows.
  uint64_t rows = 0, rows_of_shard = 0;
  DT_FIELDS(shard, to, bytes, rows, rows_of_shard)
};
// What a server does for the other members of its shards' chains, and for those that come.
struct ChainReport {
  uint64_t kept_bytes = 0;    // Records in memory that others have not acknowledged.
  uint64_t copied_bytes = 0;  // Of shards, taken by other servers since this process began.
  std::vector<CopyReport> copies;
  DT_FIELDS(kept_bytes, copied_bytes, copies)
};
// A thread of a server that owns shards.
struct ExecutorReport {
  double turn_age = 0;  // Seconds since its last turn began.
  std::string doing;    // What it does that may take long; empty: nothing.
  DT_FIELDS(turn_age, doing)
};
// Any other thread of a server or worker.
struct ThreadReport {
  std::string name;                     // "train", "reader", "exchange"; "main" of a server.
  std::string doing;                    // For people; empty: it waits for work.
  double seconds = 0;                   // Since it began that; of "main": since its last turn.
  bool in_step = false, waits = false;  // It is part of a step; a wait for somebody else.
  DT_FIELDS(name, doing, seconds, in_step, waits)
};
// The connections of a worker to the others of its view.
struct PeerReport {
  ViewNumber view;
  ProcessId awaited;    // The worker that it waits for, or has lost; 0: none, or not known.
  double seconds = 0;   // For how long it has waited, or the connections have been broken.
  bool broken = false;  // They are of no use any more: it waits for the next view.
  DT_FIELDS(view, awaited, seconds, broken)
};
// Sent at least four times in a lease.
struct HeartbeatMessage {
  Step step = 0;         // Workers: steps done. Servers: the lowest applied step.
  uint64_t samples = 0;  // Workers: samples trained so far.
  ProcessStats stats;
  uint64_t log_bytes = 0;                 // Servers: bytes of the log on disk.
  std::vector<TableReport> tables;        // Sizes; expired rows may still be counted.
  ChainReport chains;                     // Servers.
  std::vector<ExecutorReport> executors;  // Servers.
  bool waiting = false;                   // Workers: for answers of servers.
  std::vector<ProcessId> unreachable;     // Servers that have not answered for a lease.
  std::vector<ThreadReport> threads;
  PeerReport peers;      // Workers.
  bool reading = false;  // Workers: data that they need for the view that forms.
  DT_FIELDS(step, samples, stats, log_bytes, tables, chains, executors, waiting, unreachable,
            threads, peers, reading)
};

}  // namespace dt
