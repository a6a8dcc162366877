// Messages between the scheduler and every other process. One FlatBuffers frame each (control.fbs),
// carried in order and exactly once by a Session (common/cluster/session.h), except Heartbeat,
// which is not resent.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/cluster/shard_map.h"
#include "common/config/job_config.h"
#include "common/device/devices.h"

namespace dt {

enum class Role : uint8_t { kScheduler, kServer, kWorker };
std::string_view NameOf(Role role);

// What one process has used so far; goes into the result file.
struct ProcessStats {
  double cpu_seconds = 0;
  uint64_t peak_rss_bytes = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;
};

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
  // Servers that keep a log: the name of their directory, random. Who joins with the claim of a
  // member takes its place. 0: none.
  uint64_t claim = 0;
  // Workers: the CPU, then the accelerator if it has one.
  std::vector<DeviceInfo> devices;
  // The number that it asks to have, as in its name; it is given another one if this is taken. 0:
  // any.
  ProcessId id{0};
  // Where the others reach it: a host's name or number. Empty in one process.
  std::string address = {};
};
// Worker: its data sets are open. All workers must report the same.
struct DataReadyMessage {
  uint64_t train_rows = 0, valid_rows = 0, test_rows = 0;
  uint64_t rows_skipped = 0;
  uint64_t fingerprint = 0;
  std::vector<ColumnSpec> columns;
};
// Start is carried out: shards are made, the mesh is connected, the plan is bound.
struct ReadyMessage {};
struct TableReport {
  std::string name;
  uint64_t rows = 0, rows_in_memory = 0, rows_on_disk = 0, bytes = 0;
  uint64_t checksum_low = 0, checksum_high = 0;  // Summed over servers mod 2^64.
  // Since the process began: pushes to keys that had no row and got none; rows that were gone.
  uint64_t pushes_refused = 0, rows_expired = 0;
  // Since the shards began: keys in answered pulls; rows that were read from disk, for pulls,
  // pushes and ahead of them; rows that were written to disk, each time.
  uint64_t rows_touched = 0, rows_fetched = 0, rows_written = 0;
};
// At least four in a lease.
struct HeartbeatMessage {
  Step step = 0;         // Workers: steps done. Servers: the least applied.
  uint64_t samples = 0;  // Workers: trained so far.
  ProcessStats stats;
  uint64_t log_bytes = 0;           // Servers: of their log on the disk.
  std::vector<TableReport> tables;  // Sizes; rows that are gone may still be counted.
};

struct TrainDone {
  Step end_step = 0;
  uint64_t samples = 0;  // Of all workers, in this order.
  // By loss of the job: the sum over steps of its mean × samples of the step, equal on all workers.
  std::vector<double> loss_sums;
  // By loss: its mean over the order's first step, before that step's update. Empty if this worker
  // had no samples in it.
  std::vector<double> first_losses;
  double seconds = 0;
};
// Of one evaluation batch. Batches are numbered over the split, whoever computes them.
struct EvaluatePart {
  uint64_t batch = 0;
  uint64_t samples = 0;
  double loss_sum = 0;  // Of logloss (or squared error), in sample order.
  double label_sum = 0;
  double prediction_sum = 0;  // Of probabilities.
  uint64_t hits = 0;          // Samples whose class, or item, scores highest.
};
// Of one loss.
struct LossScores {
  std::vector<EvaluatePart> parts;
  std::vector<float> scores;    // Of this worker's samples, ascending; logits.
  std::vector<uint8_t> labels;  // 0 or 1, beside the scores.
};
struct EvaluateDone {
  std::vector<LossScores> losses;  // In the order of the job's.
};
// One file of a checkpoint as its writer left it.
struct CheckpointFile {
  std::string name;  // Relative to the checkpoint's folder.
  uint64_t bytes = 0;
  uint64_t digest = 0;  // XXH3-64 of the content.
};
struct SaveDone {
  std::vector<CheckpointFile> files;
  // Servers: what is to be saved is fixed, and training may go on; the files follow in a
  // SavedMessage.
  bool writing = false;
};
struct LoadDone {};
struct FinishDone {
  std::vector<TableReport> tables;  // Of those with rows here.
  std::string dense_checksum;       // Workers.
  ProcessStats stats;
};
struct OrderDoneMessage {
  uint64_t order = 0;
  std::variant<TrainDone, EvaluateDone, SaveDone, LoadDone, FinishDone> result;
};
// This process cannot go on; it exits after sending.
struct FailedMessage {
  StatusCode code = StatusCode::kInternal;
  Problem problem;
};
// The files of a checkpoint that was being written are complete.
struct SavedMessage {
  Step step = 0;
  std::vector<CheckpointFile> files;
};
// Stopped on request (SIGINT, SIGTERM at the process itself).
struct LeavingMessage {};
// Rendezvous of collectives: small values by key, kept for the job's generation.
struct KvPutMessage {
  std::string key, value;
};
struct KvGetMessage {  // Answered by KvValue as soon as the key is there.
  std::string key;
};
// From `dovetail status`, without joining.
struct StatusRequestMessage {};
// Workers that run apart without a bound: what of a TrainOrder to do next.
struct SplitRequestMessage {
  uint64_t order = 0;
};

// ------------------------------------------------------------ scheduler → process

struct WelcomeMessage {
  ProcessId id;
  Term term;
  Duration lease{};
  // A server: it takes the place of a member with its claim, and what its directory holds is of
  // this job. What the job has given it before (Kept, Start, orders) comes again.
  bool returned = false;
};
struct RefusedMessage {
  StatusCode code = StatusCode::kInvalidArgument;
  Problem problem;
};
struct StartMessage {
  Generation generation;
  uint32_t slices = 1;
  ShardMap map;
  std::vector<ProcessId> workers;         // In rank order.
  std::string plan;                       // Workers: wire/plan_codec.h.
  std::vector<TableId> tables_on_worker;  // Servers have no rows of them.
};

struct TrainOrder {
  uint64_t epoch = 0;
  Step epoch_first_step = 0;
  Step first_step = 0, end_step = 0;
  float rate_scale = 1;
  std::vector<uint32_t> slice_owner;  // Rank by slice.
};
enum class SplitKind : uint8_t { kTrain, kValid, kTest };
// At the step boundary where every step before `step` is done. Batch b goes to rank b mod workers.
struct EvaluateOrder {
  Step step = 0;
  SplitKind split = SplitKind::kValid;
};
// To workers and servers alike, at a step boundary. Rank 0 writes "dense.bin"; server i its shards.
struct SaveOrder {
  Step step = 0;
  std::string name;  // A folder in checkpoint.dir, which exists already.
};
struct LoadOrder {
  Step step = 0;          // The clock after loading.
  std::string folder;     // Never written to.
  Generation generation;  // The new generation, in every message from now on.
};
struct FinishOrder {};
struct OrderMessage {
  uint64_t number = 0;  // Ascending. A process carries out its orders one after the other.
  std::variant<TrainOrder, EvaluateOrder, SaveOrder, LoadOrder, FinishOrder> what;
};
struct KvValueMessage {
  std::string key, value;
};
// The end, for this process: exit code 0 if ok, else the job failed or was interrupted as
// described.
struct StopMessage {
  StatusCode code = StatusCode::kOk;
  Problem problem;
};
struct StatusReplyMessage {
  std::string json;
};
// Parts [begin, end) of the order, for this worker alone; none: nothing is left. Part p is the
// slice of rank p mod workers of step first_step + p / workers.
struct SplitMessage {
  uint64_t order = 0;
  uint64_t begin = 0, end = 0;
};
// Servers that keep a log: this checkpoint is complete, and what it holds need not be logged.
struct KeptMessage {
  Generation generation;
  Step step = 0;
  std::string folder;  // Never written to.
};

using ControlMessage =
    std::variant<JoinMessage, DataReadyMessage, ReadyMessage, HeartbeatMessage, OrderDoneMessage,
                 FailedMessage, LeavingMessage, KvPutMessage, KvGetMessage, StatusRequestMessage,
                 WelcomeMessage, RefusedMessage, StartMessage, OrderMessage, KvValueMessage,
                 StopMessage, StatusReplyMessage, SplitRequestMessage, SplitMessage, SavedMessage,
                 KeptMessage>;
std::string_view NameOf(const ControlMessage& message);

std::string EncodeControl(const ControlMessage& message);
// Malformed for anything that is not exactly one of the above, whatever the bytes.
Result<ControlMessage> DecodeControl(std::span<const std::byte> bytes);

}  // namespace dt
