// The model section of the job file: tables, nodes and losses. See job_config.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/float_formats.h"
#include "common/base/ids.h"
#include "common/specs/attrs.h"
#include "common/specs/device_tag.h"
#include "common/specs/init.h"
#include "common/specs/optimizer.h"
#include "common/specs/row_life.h"
#include "common/specs/source_mark.h"
#include "common/specs/strategy.h"

namespace dt {

struct TableConfig {
  std::string name;
  TableId id;  // TableIdOf(name).
  uint32_t dim = 0;
  InitSpec init;          // Constant, zeros, normal, uniform.
  std::string init_file;  // Rows to begin with: a safetensors or npz file; "": none.
  OptimizerSpec optimizer;
  bool scheduled = true;  // The optimizer section's schedule applies to this table's rate.
  EvalDefault eval_default = EvalDefault::kInitial;
  FloatFormat dtype = FloatFormat::kFp32;  // Format of stored values: kFp32 or kBf16.
  // Format of values and gradients between worker and server.
  FloatFormat wire = FloatFormat::kFp32;
  bool all_in_memory = false;
  RowLifeConfig life;
  Device device = Device::kAuto;  // kAuto: the planner decides; see scheduler/passes.
  uint64_t keys_end = 0;          // All keys are below it; 0: keys may have any value.
  uint64_t expected_rows = 0;     // A hint from the user; 0: unknown.
  SourceMark mark;
  // The rule of parallel.place that set the device, and its position; "": no rule did.
  std::string place_match;
  SourceMark place_mark;

  bool on_worker() const { return device == Device::kCpu || device == Device::kGpu; }
};

// A node as the user wrote it: an operator or a composite.
struct NodeConfig {
  std::string name;
  std::string op;
  std::vector<std::string> inputs;  // Columns, nodes, or patterns of column names ("C*").
  Attrs attrs;                      // All other attributes: "table", "units", "axis", …
  Device device = Device::kAuto;
  std::optional<Strategy> strategy;
  uint32_t fusion = 0;  // Nodes with an equal number exchange their gradients together; 0: none.
  SourceMark mark;
};

struct LossConfig {
  std::string type;  // One of the values of the key `type` in keys_model.h; see specs/loss_type.h.
  // The node, of shape [B, 1]; for softmax_cross_entropy [B, classes]; for in_batch_softmax the
  // user vectors, [B, dim].
  std::string input;
  // The column; empty only for losses of pairs, where every sample then is a positive pair.
  std::string label;
  // Names its metrics and the column of predict; default: the label's name, or the loss's type.
  std::string name;
  float weight = 1.0f;
  // A column of one key, by which metrics group the samples; empty: no group.
  std::string group;
  uint32_t top_k = 10;                // See common/metrics/ranking.h.
  float pos_weight = 1.0f;            // For binary_cross_entropy only.
  float gamma = 2.0f, alpha = 0.25f;  // For focal only.
  std::string negatives;              // For bpr and sampled_softmax only: the node, [B, negatives].
  // The next four members are for in_batch_softmax only.
  std::string item;     // The node of the item vectors.
  std::string item_id;  // Column of keys; empty: all samples have different items.
  std::string log_q;    // Node or float column; empty: no correction.
  float temperature = 1.0f;
  SourceMark mark;
};

struct ModelConfig {
  std::vector<TableConfig> tables;
  std::vector<NodeConfig> nodes;
  std::vector<LossConfig> losses;
};

}  // namespace dt
