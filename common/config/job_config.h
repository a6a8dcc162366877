// The job file as values. Every field has been checked: types, ranges, names that must exist,
// combinations. Immutable after loading. docs/job-file.md explains each key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/config/data_config.h"
#include "common/config/model_config.h"
#include "common/config/rate_schedule.h"
#include "common/config/run_config.h"
#include "common/specs/device_tag.h"
#include "common/specs/optimizer.h"
#include "common/specs/source_mark.h"
#include "common/specs/strategy.h"

namespace dt {

struct PlateauConfig {
  std::string metric = "valid.auc";  // "valid.auc", or with several losses "valid.<loss>.auc".
  float factor = 0.1f;
  uint32_t patience = 0;  // Evaluations without gain before the rate falls.
  float min_scale = 0.0f;
};

struct DenseOptimizerConfig {
  OptimizerSpec spec;
  // Where updates run and weights are stored; kAuto: where the weights are read.
  Device device = Device::kAuto;
  float clip_norm = 0.0f;  // Largest norm of the whole dense gradient; 0: off.
  std::optional<PlateauConfig> plateau;
  RateSchedule schedule;
};

// A device tag for all operators, tables, or weights (with their optimizer's state and updates)
// whose name matches and that have no tag of their own.
enum class Placed : uint8_t { kOperators, kTables, kWeights };
struct PlaceRule {
  std::string match;             // '*' and '?' as in file names.
  Device device = Device::kCpu;  // kPs: for tables, and for weights with staleness > 0.
  Placed of = Placed::kOperators;
  SourceMark mark = {};
  std::string path = "parallel.place";  // The path of the rule's key in the job file.
};

// How operators are cut over the workers of a team.
struct CutRule {
  std::string match;  // '*' and '?' as in file names.
  Strategy strategy;
  std::optional<Strategy> out;
  SourceMark mark = {};
  std::string path = "parallel.cut";  // The path of the rule's key in the job file.
};

// Whether workers that have the same parameters share their updates.
struct ShardConfig {
  bool on = false;
  uint64_t threshold_bytes = 64 << 10;  // Smaller parameters are updated by every worker.
  uint32_t group = 0;                   // They share them in groups of so many; 0: all of them.
};

// How gradients are joined into buckets that travel together.
struct FusionConfig {
  uint64_t bytes = 0;  // A bucket with at least so many is full; 0: the planner chooses.
  // Not empty: a new bucket begins at these gradients, counted from 0 in the order in which the
  // backward pass makes them.
  std::vector<uint32_t> begins;
  bool automatic() const { return bytes == 0 && begins.empty(); }
};

struct ParallelConfig {
  bool fall_back_to_cpu = false;  // If a device tag cannot be met; otherwise that is an error.
  std::vector<PlaceRule> place;   // The first rule that matches applies.
  std::string profile;            // File with the devices' rates; "": shipped defaults.
  // False: a worker runs the stages of a step one after the other. With staleness 0 the results
  // have the same bits.
  bool overlap = true;
  uint32_t data = 0;         // Teams of workers; 0: every worker is a team.
  std::vector<CutRule> cut;  // The first rule that matches applies.
  bool all_to_all = true;
  ShardConfig optimizer;
  FusionConfig fusion;
  std::string wire = "fp32";  // Or bf16: how gradients travel.
};

struct JobConfig {
  std::string job;
  uint64_t seed = 1;
  DataConfig data;
  ModelConfig model;
  DenseOptimizerConfig optimizer;
  InitConfig init;
  TrainConfig train;
  ParallelConfig parallel;
  ClusterConfig cluster;
  CheckpointConfig checkpoint;
  ObserveConfig observe;
  SecurityConfig security;

  // Whether the job can go on with fewer workers, or more: all of them have the same values.
  bool workers_may_change() const {
    return !train.asynchronous() && team_size() == 1 && !parallel.optimizer.on;
  }
  // Whether asynchronous workers get the parts of a step as they ask for them, so that a faster one
  // does more; else each has its own.
  bool deals_on_request() const {
    return train.staleness == kUnboundedStaleness && !data.read_part;
  }
  // Workers that compute a slice together.
  uint32_t team_size() const { return parallel.data == 0 ? 1 : cluster.workers / parallel.data; }

  std::string run_dir;  // runs/<job>: state, cache, run.json.
  std::string file;     // As given on the command line.
  // XXH3 of everything that must be equal in all processes of a job, in a canonical form. A process
  // with another fingerprint may not join.
  uint64_t fingerprint = 0;
  // The part that a checkpoint must match to be resumed: the keys whose scope is kModel or
  // kTraining.
  uint64_t resume_fingerprint = 0;
  // The canonical text that resume_fingerprint hashes, used to name differences: lines of "key:
  // value", with the keys of the job file.
  std::string resume_text;
};

}  // namespace dt
