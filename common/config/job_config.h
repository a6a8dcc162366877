// The job file as values. Every field has been checked: types, ranges, names that must exist,
// combinations. Immutable after loading. The meaning of each key is written in docs/job-file.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/clock.h"
#include "common/base/float_formats.h"
#include "common/base/ids.h"
#include "common/config/rate_schedule.h"
#include "common/config/run_config.h"

namespace dt {

// Where a value was written, for errors that appear later than loading. Lines count from 1; 0 =
// unknown.
struct SourceMark {
  std::string file;
  int line = 0;
  friend bool operator==(const SourceMark&, const SourceMark&) = default;
};

// ---------------------------------------------------------------- data

enum class DataFormat { kCriteo, kLibsvm, kLibffm, kCsv, kBinary, kPipe };
enum class ColumnType { kFloat, kId, kString, kIds, kStrings };
enum class ColumnRole { kFeature, kLabel, kWeight };
enum class OnError { kStop, kSkip };

// One named column of a data set. Floats have width 1. Ids and strings become 64-bit keys; a column
// of them holds `length` keys per sample, or a varying number (length 0, at most max_len) if it is
// ragged.
struct ColumnSpec {
  std::string name;
  ColumnType type = ColumnType::kFloat;
  ColumnRole role = ColumnRole::kFeature;
  std::string separator = "|";  // Between the ids of one cell (ids, strings).
  uint32_t length = 1;          // Keys per sample; 0 = ragged.
  uint32_t max_len = 0;   // Ragged: longer lists are cut to their last max_len ids; 0 = no bound.
  float fill = 0;         // Value of an empty float cell.
  bool weighted = false;  // libsvm: the ids carry values that are not all 1.
  // An integer cell is bucketed before hashing: key = HashString("<name>=" + bucket), see
  // docs/job-file.md.
  std::string transform;  // "", "log", "bucket", …: the reader transforms.
  // Transform "crossed": the columns whose keys its key is made of; the file has no such column.
  std::vector<std::string> of;

  bool is_crossed() const { return transform == "crossed"; }
  bool is_keys() const { return type != ColumnType::kFloat; }
  bool is_ragged() const { return is_keys() && length == 0; }
  friend bool operator==(const ColumnSpec&, const ColumnSpec&) = default;
};

struct DataConfig {
  DataFormat format = DataFormat::kLibsvm;
  std::vector<std::string> train, valid,
      test;                         // Files, globs expanded and sorted; absolute or relative
                                    // to the working directory. May name files that are absent.
  std::string command;              // pipe: prints CSV.
  std::vector<ColumnSpec> columns;  // As written; empty where the format gives them.
  char delimiter = ',';
  uint64_t shuffle_window = 65536;  // 0: no shuffling.
  OnError on_error = OnError::kStop;
  std::string cache_dir;  // Default: <run dir>/cache.
  // `predict` only: samples of the test split need neither label nor weight, and these columns of
  // its files go into the predictions.
  bool labels_optional = false;
  std::vector<std::string> kept_columns;
};

// ---------------------------------------------------------------- model

enum class OptimizerKind {
  kSgd,
  kMomentum,
  kAdagrad,
  kRowwiseAdagrad,
  kAdam,
  kLazyAdam,
  kAdamW,
  kFtrl
};
enum class L2Scope { kGap, kTouched };
enum class InitKind { kZeros, kConstant, kNormal, kUniform, kXavierNormal, kXavierUniform };

struct InitSpec {
  InitKind kind = InitKind::kNormal;
  float value = 1.0e-4f;  // Constant; standard deviation; half width. Unused by Xavier.
  friend bool operator==(const InitSpec&, const InitSpec&) = default;
};

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kAdam;
  float lr = 0.001f;
  float momentum = 0.9f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1.0e-8f;
  float initial_accumulator = 0.0f;  // adagrad
  float ftrl_l1 = 0.0f, ftrl_l2 = 0.0f, ftrl_beta = 1.0f;
  float weight_decay = 0.0f;         // adamw only; decoupled.
  float l2 = 0.0f;                   // Added to the gradient as l2 · value.
  L2Scope l2_scope = L2Scope::kGap;  // Tables only.
  float clip_row_norm = 0.0f;        // Tables only; 0: off.
  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

enum class Device { kAuto, kCpu, kGpu, kPs };
enum class EvalDefault { kInitial, kZeros };

struct RowLifeConfig {
  uint32_t admission_pushes = 1;     // The push that makes a row.
  uint64_t sketch_bytes = 16 << 20;  // Of the whole table.
  uint64_t expiry_steps = 0;         // 0: never. At most one of steps and time.
  Duration expiry_time{};            // Zero: never.
  bool freeze = false;
};

struct TableConfig {
  std::string name;
  TableId id;  // TableIdOf(name).
  uint32_t dim = 0;
  InitSpec init;  // Constant, zeros, normal, uniform.
  OptimizerSpec optimizer;
  bool scheduled = true;  // The optimizer section's schedule scales this table's rate.
  EvalDefault eval_default = EvalDefault::kInitial;
  FloatFormat dtype = FloatFormat::kFp32;  // Of stored values: kFp32 or kBf16.
  FloatFormat wire = FloatFormat::kFp32;   // Of values and gradients between worker and server.
  bool all_in_memory = false;
  RowLifeConfig life;
  Device device = Device::kAuto;  // kAuto: the planner decides; see scheduler/plan/plan.h.
  uint64_t keys_end = 0;          // Keys are below it; 0: any are.
  uint64_t expected_rows = 0;     // As far as is known; 0: nobody said.
  SourceMark mark;
  // The rule of parallel.place that said the device, and where; "": the table itself, or nobody.
  std::string place_match;
  SourceMark place_mark;

  bool on_worker() const { return device == Device::kCpu || device == Device::kGpu; }
};

using AttrValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>>;
using Attrs = std::map<std::string, AttrValue>;

// A node as the user wrote it: an operator or a composite.
struct NodeConfig {
  std::string name;
  std::string op;
  std::vector<std::string> inputs;  // Columns, nodes, or patterns of column names ("C*").
  Attrs attrs;                      // Everything else, "table", "units", "axis", …
  Device device = Device::kAuto;
  SourceMark mark;
};

struct LossConfig {
  std::string type;   // binary_cross_entropy, mse, softmax_cross_entropy, in_batch_softmax
  std::string input;  // Node of shape [B, 1]; [B, classes]; user vectors [B, dim].
  std::string label;  // Column; empty: in_batch_softmax, every sample is a pair.
  std::string name;   // Of its metrics and of predict's column; default: the label's, the type's.
  float weight = 1.0f;
  // in_batch_softmax only.
  std::string item;     // Node of the item vectors.
  std::string item_id;  // Column of keys; empty: all samples have different items.
  std::string log_q;    // Node or float column; empty: no correction.
  float temperature = 1.0f;

  // It chooses among classes or items: evaluations give its accuracy.
  bool ranks() const { return type == "softmax_cross_entropy" || type == "in_batch_softmax"; }
  SourceMark mark;
};

struct ModelConfig {
  std::vector<TableConfig> tables;
  std::vector<NodeConfig> nodes;
  std::vector<LossConfig> losses;
};

struct PlateauConfig {
  std::string metric = "valid.auc";  // "valid.auc"; of several losses "valid.<loss>.auc".
  float factor = 0.1f;
  uint32_t patience = 0;  // Evaluations without gain before the rate falls.
  float min_scale = 0.0f;
};

struct DenseOptimizerConfig {
  OptimizerSpec spec;
  Device device = Device::kAuto;  // Where updates run and weights lie; kAuto: with their readers.
  float clip_norm = 0.0f;         // Of the whole dense gradient; 0: off.
  std::optional<PlateauConfig> plateau;
  RateSchedule schedule;
};

// A device tag for all that have none of their own and whose name matches: operators, tables, or
// weights with their optimizer's state and updates.
enum class Placed : uint8_t { kOperators, kTables, kWeights };
struct PlaceRule {
  std::string match;             // '*' and '?' as in file names.
  Device device = Device::kCpu;  // kPs of tables only.
  Placed of = Placed::kOperators;
  SourceMark mark = {};
  std::string path = "parallel.place";  // Of its key in the job file.
};

struct ParallelConfig {
  bool fall_back_to_cpu = false;  // Where a tag cannot be met.
  std::vector<PlaceRule> place;   // The first that matches counts.
  std::string profile;            // File of the devices' rates; "": shipped defaults.
  std::string data_stats;         // File of the columns' distinct keys; "": nobody counted.
  // False: a worker does one thing after the other. Results are the same bits with staleness 0.
  bool overlap = true;
};

struct JobConfig {
  std::string job;
  uint64_t seed = 1;
  DataConfig data;
  ModelConfig model;
  DenseOptimizerConfig optimizer;
  TrainConfig train;
  ParallelConfig parallel;
  ClusterConfig cluster;
  CheckpointConfig checkpoint;
  ObserveConfig observe;
  SecurityConfig security;

  std::string run_dir;  // runs/<job>: state, cache, run.json.
  std::string file;     // As given on the command line.
  // XXH3 of everything that must be equal in all processes of a job, in a canonical form. A process
  // that joins with another one is refused.
  uint64_t fingerprint = 0;
  // The part of it that a checkpoint must match to be resumed: job, seed, tables, graph,
  // batch_size, slices.
  uint64_t resume_fingerprint = 0;
  // The canonical text of what resume_fingerprint hashes, for naming differences: lines of
  // "key: value", with the keys of the job file.
  std::string resume_text;
};

}  // namespace dt
