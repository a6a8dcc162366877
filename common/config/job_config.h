// The job file as values. Every field has been checked: types, ranges, names that must exist,
// combinations. Immutable after loading. The meaning of each key is written in docs/job-file.md.
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

namespace dt {

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
