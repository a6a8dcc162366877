// The keys that describe how a job is trained and run. See key_table.h.
#pragma once

#include "common/config/reader/key_table.h"
#include "common/specs/device_tag.h"
#include "common/specs/optimizer.h"

namespace dt::keys {

using enum KeyType;
using enum KeyScope;

// section, name, type, scope, values, min, max, default, available, meaning
inline constexpr KeySpec kRunKeys[] = {
    {"optimizer", "name", kChoice, kTraining, kOptimizerNames, 0, 0, "adam", "",
     "The rule; lazy_adam and rowwise_adagrad differ from adam and adagrad on tables only."},
    {"optimizer", kEachOptimizerNumber, kFloat, kRun, "", 0, 0, "its own", "", ""},
    {"optimizer", "scope", kChoice, kNobody, kUpdateScopeNames, 0, 0, "touched", "",
     "For tables: whether a step updates the rows that it pushes, or all of them (dense)."},
    {"optimizer", "l2", kFloat, kRun, "", 0, kAnyNumber, "0", "",
     "Adds l2 * value to the gradient of dense parameters; not inherited by tables."},
    {"optimizer", "clip_norm", kFloat, kRun, "", 0, kAnyNumber, "0", "",
     "Largest norm of the whole dense gradient; 0: off."},
    {"optimizer", "schedule", kMap, kInside, "optimizer.schedule", 0, 0, "", "",
     "How the learning rate changes; without it, not at all."},
    {"optimizer", "device", kChoice, kRun, kDeviceNames, 0, 0, "auto", "",
     "Where dense parameters are updated; ps, on servers: where they are with train.staleness "
     "above "
     "0."},
    {"optimizer.schedule", "type", kChoice, kRun, "none|plateau|step|cosine|warmup", 0, 0,
     "plateau", "",
     "What changes the rate: evaluations without gain (plateau), every so many steps (step), half "
     "a "
     "cosine (cosine), or a warm-up only (warmup)."},
    {"optimizer.schedule", "metric", kText, kRun, "", 0, 0, "of the first loss", "",
     "plateau: what must improve: valid.auc or another metric of the table of losses; with several "
     "losses valid.<loss>.auc and so on."},
    {"optimizer.schedule", "factor", kFloat, kRun, "", 1e-9, 1, "0.1", "",
     "plateau, step: the rate is multiplied by this."},
    {"optimizer.schedule", "patience", kUint, kRun, "", 0, 1000000, "0", "",
     "plateau: evaluations without gain that are accepted first."},
    {"optimizer.schedule", "every", kUint, kRun, "", 1, kAnyWhole, "", "",
     "step, which needs it: steps after which the rate falls, again and again."},
    {"optimizer.schedule", "steps", kUint, kRun, "", 1, kAnyWhole, "", "",
     "warmup, which needs it: steps of the warm-up. cosine: the step, warm-up included, from which "
     "on the rate is lr * min_scale; by default the end of the job."},
    {"optimizer.schedule", "warmup", kUint, kRun, "", 0, kAnyWhole, "0", "",
     "plateau, step, cosine: so many first steps, in which the rate grows evenly to lr."},
    {"optimizer.schedule", "min_scale", kFloat, kRun, "", 0, 1, "0", "",
     "plateau, step, cosine: the rate never falls below this share of lr, the warm-up apart."},
    {"init", "from", kText, kNobody, "", 0, 0, "", "",
     "The checkpoint whose rows and dense parameters the job begins with: its folder, with a slash "
     "in it, or the name of a job, of which the newest is taken. --init sets it."},
    {"init", "optimizer", kChoice, kNobody, "keep|fresh", 0, 0, "keep", "",
     "Whether optimizer state is taken, too, with the steps that it counts, or begins anew."},
    {"init", "only", kTexts, kNobody, "", 0, 0, "", "",
     "Patterns of the names of tables and dense parameters that are taken. Default: all."},
    {"init", "arrays", kPath, kNobody, "", 0, 0, "", "",
     "A safetensors or npz file with dense parameters, by name, which replace those of init.from."},
    {"train", "batch_size", kUint, kTraining, "", 1, 16777216, "4096", "",
     "Samples of one step, over all workers."},
    {"train", "slices", kUint, kTraining, "auto", 1, 65536, "auto", "",
     "Fixed pieces of a batch; results depend on it, not on the number of workers. auto: 1 under "
     "train, else the number of teams."},
    {"train", "epochs", kUint, kRun, "", 1, 1000000, "1", "", "Passes over the training data."},
    {"train", "until", kChoice, kNobody, "drained|forever", 0, 0, "drained", "",
     "Kafka: drained: the job ends when it has trained every message; forever: it waits for more. "
     "forever makes a pipe a stream, too (docs/streams.md)."},
    {"train", "max_steps", kUint, kRun, "", 1, kAnyWhole, "", "",
     "The job ends after so many steps, in the middle of an epoch if need be; without it, after "
     "its "
     "epochs."},
    {"train", "staleness", kUint, kRun, "unbounded", 0, 1000000, "0", "",
     "Steps by which a worker may run ahead of the slowest; 0 is synchronous."},
    {"train", "cached_rows", kUint, kRun, "", 0, kAnyCount, "0", "",
     "With staleness: rows that a worker keeps and uses again within the bound; its own updates of "
     "them show when they are pulled again."},
    {"train", "early_stop", kMap, kInside, "train.early_stop", 0, 0, "", "",
     "Stop when validation no longer improves; without it, all epochs run."},
    {"train", "evaluate_every", kUint, kRun, "epoch", 1, kAnyWhole, "epoch", "",
     "Steps between evaluations, or epoch."},
    {"train", "math", kChoice, kRun, "fp32|tf32|bf16", 0, 0, "fp32", "",
     "Arithmetic of matrix products. bf16: their operands are rounded to it (less than 2^-126 may "
     "become 0), sums, weights and everything else stay fp32. tf32: likewise on a card; processors "
     "compute fp32."},
    {"train.early_stop", "metric", kText, kRun, "", 0, 0, "of the first loss", "",
     "What must improve: valid.auc or another metric of the table of losses; with several losses "
     "valid.<loss>.auc and so on."},
    {"train.early_stop", "patience", kUint, kRun, "", 1, 1000000, "2", "",
     "Evaluations without gain before training stops."},
    {"parallel", "data", kUint, kRun, "auto", 1, 65536, "auto", "",
     "Teams of workers. A team computes a slice together, by the strategies of its nodes; there "
     "are "
     "cluster.workers / data workers in each. auto: every worker is a team."},
    {"parallel", "cut", kListOf, kInside, "parallel.cut", 0, 0, "", "",
     "Strategies by name pattern, for nodes that have none; the first that matches counts."},
    {"parallel", "all_to_all", kBool, kRun, "", 0, 0, "true", "",
     "false: changes of layouts use other communications instead."},
    {"parallel", "fusion", kFree, kNobody, "", 0, 0, "auto", "",
     "How gradients are joined into buckets that are exchanged while the backward pass goes on: "
     "auto, the size of a full bucket (4MiB), or the numbers of the gradients, in the order of the "
     "backward pass, at which a new one begins ([4, 9])."},
    {"parallel", "wire", kChoice, kRun, "fp32|bf16", 0, 0, "fp32", "",
     "How gradients of weights travel between workers. bf16: half of the bytes; each slice's "
     "gradient and their sum are rounded, and the sum is computed in fp32."},
    {"parallel", "strategy", kChoice, kRun, "auto|propagate|dynamic|recursive|manual", 0, 0, "auto",
     "auto", "How strategies of operators are searched."},
    {"parallel", "optimizer", kMap, kInside, "parallel.optimizer", 0, 0, "", "",
     "How workers that have the same weights share their updates."},
    {"parallel", "stages", kUint, kRun, "", 1, 1024, "1", "1", "Pipeline stages."},
    {"parallel", "micro_batches", kUint, kRun, "", 1, 65536, "1", "1",
     "Pieces of a slice that flow through the stages."},
    {"parallel", "schedule", kChoice, kRun, "1f1b|gpipe", 0, 0, "1f1b", "1f1b",
     "Order of the micro-batches."},
    {"parallel", "fallback", kChoice, kRun, "none|cpu", 0, 0, "none", "",
     "What a device tag means that cannot be met: an error, or the processor."},
    {"parallel", "place", kListOf, kInside, "parallel.place", 0, 0, "", "",
     "Device tags by name pattern, for what has none; the first that matches counts."},
    {"parallel", "profile", kPath, kNobody, "", 0, 0, "", "",
     "Rates of the devices, as dovetail bench devices --out FILE measured them, for placing nodes; "
     "without it, shipped defaults."},
    {"parallel", "data_stats", kPath, kNobody, "", 0, 0, "", "", "The older name of data.stats."},
    {"parallel", "overlap", kBool, kNobody, "", 0, 0, "true", "",
     "false: a worker does everything of a step one after another, for measuring and debugging."},
    {"parallel.place", "match", kText, kRun, "", 0, 0, "", "",
     "Pattern of names: of nodes (deep), or of operators as `dovetail plan` shows them "
     "(deep.1.*)."},
    {"parallel.place", "table", kText, kRun, "", 0, 0, "", "", "Pattern of names of tables."},
    {"parallel.place", "weights", kText, kRun, "", 0, 0, "", "",
     "Pattern of names of nodes (deep), or of weights as `dovetail plan` shows them "
     "(deep.1.weight): where they and their optimizer's state lie and are updated."},
    {"parallel.place", "device", kChoice, kRun, "cpu|gpu|ps", 0, 0, "required", "",
     "Where they go; ps is for tables, and for weights with train.staleness above 0."},
    {"parallel.optimizer", "shard", kBool, kRun, "", 0, 0, "false", "",
     "true: each of them updates some rows of a weight, has the optimizer's state of these alone, "
     "and sends them to the others. The bits stay the same."},
    {"parallel.optimizer", "group", kUint, kRun, "", 1, 65536, "", "",
     "Workers that have the same weights share them in groups of so many. Default: all of them."},
    {"parallel.optimizer", "threshold", kSize, kRun, "", 0, 0, "64KiB", "",
     "Smaller weights are updated by every worker."},
    {"parallel.cut", "match", kText, kRun, "", 0, 0, "required", "",
     "Pattern of names of operators, as `dovetail plan` shows them (deep.0.matmul)."},
    {"parallel.cut", "strategy", kFree, kRun, "", 0, 0, "required", "",
     "How they are cut: for each input the parts of each dimension, [[2, 4], [4, 1]]."},
    {"parallel.cut", "out", kFree, kRun, "", 0, 0, "as the strategy leaves it", "",
     "How their outputs are cut."},
    {"cluster", "servers", kUint, kNobody, "", 1, 4096, "1", "",
     "Server processes that the job begins with."},
    {"cluster", "workers", kUint, kNobody, "", 1, 4096, "1", "",
     "Worker processes that the job begins with."},
    {"cluster", "replicas", kUint, kRun, "", 1, 16, "1", "",
     "Servers that hold each shard. With 2 or more, training goes on when a server is lost."},
    {"cluster", "move_rate", kSize, kNobody, "", 0, 0, "16MiB", "",
     "How fast a server sends shards that move to another one, per second, unless their rows "
     "change faster than that; 0: no limit."},
    {"cluster", "shards", kUint, kRun, "", 1, 65536, "64", "",
     "Pieces of the key space; a power of two; a resumed job may have another number."},
    {"cluster", "scheduler", kText, kNobody, "", 0, 0, "tcp://127.0.0.1:0", "",
     "Where the scheduler listens; port 0 takes a free one."},
    {"cluster", "devices", kChoice, kNobody, "auto|cpu|cuda|emulated", 0, 0, "auto", "",
     "What device: gpu means. auto: a CUDA card where one works, else the emulated accelerator."},
    {"cluster", "emulated", kMap, kInside, "cluster.emulated", 0, 0, "", "",
     "The accelerator that stands in for a card."},
    {"cluster", "lease", kDuration, kRun, "", 0.1, 3600, "3s", "",
     "A process silent for so long is taken as lost."},
    {"cluster", "restarts", kUint, kNobody, "", 0, 1000000, "3", "",
     "How often launch starts a process again that was killed, and how often in a row the job "
     "returns to its last checkpoint."},
    {"cluster", "scheduler_outage", kDuration, kRun, "", 0.1, 86400, "60s", "",
     "How long processes go on without a scheduler."},
    {"cluster", "wait_for_server", kDuration, kRun, "", 0.1, 86400, "60s", "",
     "How long the job waits for lost processes to come back: a server with its log, or all when "
     "it returns to a checkpoint."},
    {"cluster", "start_timeout", kDuration, kNobody, "", 0.1, 86400, "5m", "",
     "For all processes to join and read their data."},
    {"cluster", "store", kChoice, kRun, "rocksdb|memory", 0, 0, "rocksdb", "rocksdb",
     "What lies below a server's memory."},
    {"cluster", "worker", kMap, kInside, "cluster.worker", 0, 0, "", "", "Limits of one worker."},
    {"cluster", "server", kMap, kInside, "cluster.server", 0, 0, "", "", "Limits of one server."},
    {"cluster.emulated", "memory", kSize, kNobody, "", 0, 0, "4GiB", "",
     "Its memory; the machine gives what of it is used."},
    {"cluster.emulated", "flops", kFloat, kNobody, "", 0, kAnyNumber, "0", "",
     "Floating-point operations a second; 0: as fast as the CPU is."},
    {"cluster.emulated", "memory_bandwidth", kSize, kNobody, "", 0, 0, "0", "",
     "Bytes a second of its kernels; 0: as fast as the CPU is."},
    {"cluster.emulated", "link_bandwidth", kSize, kNobody, "", 0, 0, "0", "",
     "Bytes a second of copies, each way; 0: as fast as the CPU is."},
    {"cluster.worker", "memory", kSize, kNobody, "", 0, 0, "4GiB", "",
     "Host memory that tables with `device: auto` may take on each worker."},
    {"cluster.server", "memory", kSize, kNobody, "", 0, 0, "8GiB", "",
     "Memory a server may use for rows."},
    {"cluster.server", "dir", kPath, kNobody, "", 0, 0, "runs/<job>", "",
     "Where servers keep rows on disk (rows-XXXXXX) and logs (server-<id>)."},
    {"cluster.server", "executors", kUint, kNobody, "auto", 1, 64, "auto", "",
     "Threads that own shards; auto: half of the processors, with `train` all, at most 4."},
    {"checkpoint", "dir", kPath, kNobody, "", 0, 0, "runs/<job>/checkpoints", "",
     "Where checkpoints are written."},
    {"checkpoint", "every", kUint, kRun, "end", 1, kAnyWhole, "end", "",
     "Steps between checkpoints, or end: only the last state."},
    {"checkpoint", "interval", kDuration, kNobody, "", 0.1, 1e7, "", "",
     "Time between checkpoints, beside those of every."},
    {"checkpoint", "keep", kUint, kNobody, "", 1, 1000000, "3", "",
     "Newest checkpoints kept; the best one is kept besides."},
    {"checkpoint", "durability", kChoice, kRun, "checkpoint|log", 0, 0, "checkpoint", "",
     "What survives the loss of a server."},
    {"checkpoint", "log", kMap, kInside, "checkpoint.log", 0, 0, "", "",
     "The log of updates (durability: log)."},
    {"checkpoint.log", "max_bytes", kSize, kNobody, "", 0, 0, "4GiB", "",
     "A server's log that is longer asks for a checkpoint, which cuts it."},
    {"checkpoint.log", "sync", kBool, kNobody, "", 0, 0, "false", "",
     "Whether every write reaches the disk before it is acknowledged."},
    {"observe", "http", kText, kNobody, "off", 0, 0, "127.0.0.1:0", "",
     "HOST:PORT of the scheduler's web page, or off."},
    {"observe", "trace", kText, kNobody, "off", 0, 0, "off", "",
     "FIRST-LAST: steps, counted from 0, whose timeline each worker writes to runs/<job>/trace; or "
     "off."},
    {"observe", "log", kChoice, kNobody, "text|json", 0, 0, "text", "",
     "Form of all lines on standard error."},
    {"observe", "tensorboard", kPath, kNobody, "off", 0, 0, "off", "off",
     "Directory for TensorBoard event files."},
    {"security", "curve", kMap, kInside, "security.curve", 0, 0, "", "",
     "The keys of the job's connections, all of which are encrypted."},
    {"security", "insecure", kBool, kNobody, "", 0, 0, "false", "",
     "true: no encryption, and whoever reaches a port may do everything."},
    {"security.curve", "key", kPath, kNobody, "", 0, 0, "runs/<job>/keys/job.key", "",
     "The job's pair (.key); processes that only connect may have its public half (.pub). The "
     "default is made by the scheduler."},
    {"security.curve", "own", kPath, kNobody, "", 0, 0, "the job's", "",
     "The pair that this process connects with."},
    {"security.curve", "allow", kPaths, kNobody, "", 0, 0, "", "",
     "Files or globs of further public keys that may connect."},
};

}  // namespace dt::keys
