// Descriptions of what a graph's values are: data, tables, parameters and losses; and of the groups
// of a team that communicate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/fields.h"
#include "common/base/ids.h"
#include "common/device/tensor.h"
#include "common/specs/init.h"

namespace dt {

// Indices into Graph::values, nodes and groups.
using ValueIndex = uint32_t;
using NodeIndex = uint32_t;
using GroupIndex = uint32_t;
inline constexpr uint32_t kNone = ~uint32_t{0};

// The source of a kInput value.
enum class InputKind : uint8_t {
  kFloats,         // Float columns `columns`, side by side: [B, sum of their lengths].
  kLabel,          // Label column: [B, 1].
  kSampleWeight,   // [B, 1]
  kIds,            // u32 [B, L]: the ids of columns of fixed length, side by side.
  kIdWeights,      // f32, the shape of kIds: their values.
  kKeys,           // u32 [B, 2]: the key of a column, its lower half and its upper half.
  kLookupIndex,    // u32 [B × L] or [N.<lookup>]: position of each id's row in the table's pulled
                   // rows.
  kLookupWeights,  // f32, the shape of kLookupIndex: the ids' values.
  kLookupEnds,     // u32 [B], ragged only: the ids of sample b are [ends[b-1], ends[b]).
  kRowEnds,        // u32 [U.<table>]: row u occurs at order[ends[u-1]] … order[ends[u] - 1].
  // u32, the size of kLookupIndex: positions in the index, grouped by row and ascending for each
  // row.
  kRowOrder,
  kRows,  // f32 [U.<table>, dim]: pulled rows.
  // u32 [U.<table>]: the positions of the distinct keys' rows in a table on the worker.
  kRowNumbers,
  kStepsSinceUpdate,  // u32 [U.<table>]: steps since the last update of each of these rows.
};

struct InputSpec {
  ValueIndex value = kNone;
  InputKind kind = InputKind::kFloats;
  std::vector<uint32_t> columns;  // Indices into Plan::columns, for the column kinds.
  // In a team a device may have some positions of the ids or numbers: those from `first` on.
  uint32_t first = 0;
  // For kIds: an id at position p is below rows[p], or below rows[0] if there is one number.
  std::vector<int64_t> rows;
  uint32_t lookup = kNone;  // Index into Graph::lookups, for the lookup kinds.
  uint32_t table = kNone;   // Index into Graph::tables, for kRows, kRowNumbers, kStepsSinceUpdate.
  DT_FIELDS(value, kind, columns, first, rows, lookup, table)
  friend bool operator==(const InputSpec&, const InputSpec&) = default;
};

// One use of a table: the key columns that it reads, concatenated for each sample.
struct LookupSpec {
  std::string name;
  uint32_t table = kNone;
  std::vector<uint32_t> columns;  // A ragged lookup has exactly one.
  uint32_t length = 0;            // Ids per sample; 0 = ragged.
  bool weighted = false;
  DT_FIELDS(name, table, columns, length, weighted)
  friend bool operator==(const LookupSpec&, const LookupSpec&) = default;
};

// A table of the model, as the graph uses it.
struct TableUse {
  std::string name;
  TableId id;
  uint32_t dim = 0;
  uint64_t keys_end = 0;  // All keys are below it; 0: keys may have any value.
  // keys_end, or a hint for an open table; 0: unknown.
  uint64_t expected_rows = 0;
  // A kRows input; for a table on the worker, the output of a node that reads `store`.
  ValueIndex rows = kNone;
  // The gradient that is pushed. kNone before differentiation, if no gradient reaches the table, or
  // if the worker updates the table itself.
  ValueIndex row_grad = kNone;
  ValueIndex store = kNone;  // A kTable value; kNone: the rows are on servers.
  DT_FIELDS(name, id, dim, keys_end, expected_rows, rows, row_grad, store)
  friend bool operator==(const TableUse&, const TableUse&) = default;
};

struct ParameterSpec {
  ValueIndex value = kNone;
  InitSpec init;
  int64_t fan_in = 0, fan_out = 0;  // For the Xavier initialisers.
  bool trained = true;              // False for batch-norm running values and optimizer state.
  // The gradient of one slice; kNone before differentiation, or if no gradient reaches it.
  ValueIndex grad = kNone;
  // The gradient of the step, as it is pushed; kNone if workers update the parameter themselves.
  ValueIndex pushed = kNone;
  // In a team a device may hold a part of the parameter: `whole` is the parameter's shape, and
  // `first` the position of the part's first element. Empty: all of it.
  Shape whole, first;
  bool copy = false;            // A worker before this one in the team has the same elements.
  ValueIndex state_of = kNone;  // For the optimizer's state: its parameter.
  DT_FIELDS(value, init, fan_in, fan_out, trained, grad, pushed, whole, first, copy, state_of)
  friend bool operator==(const ParameterSpec&, const ParameterSpec&) = default;
};

struct ReplicaSpec {
  ValueIndex value = kNone;
  // A kParameter or kState value of the same shape on another device.
  ValueIndex of = kNone;
  DT_FIELDS(value, of)
  friend bool operator==(const ReplicaSpec&, const ReplicaSpec&) = default;
};

// Positions of a team that do something together. Entry g of Graph::groups means the same in the
// graphs of all positions, but members are those of the position's own group.
struct GroupSpec {
  std::vector<uint32_t> members;  // In the order in which parts are joined and terms are added.
  DT_FIELDS(members)
  friend bool operator==(const GroupSpec&, const GroupSpec&) = default;
};

// Positions of a team by how they hold a value of a slice. Indices into Graph::groups; kNone for
// values that nothing exchanges.
struct HeldGroups {
  GroupIndex group = kNone;  // The positions that hold the same part of it.
  GroupIndex terms = kNone;  // The members of `group` whose values are terms of its sum.
  GroupIndex parts = kNone;  // Positions that together hold all parts, each part once.
};

// Several workers have the same elements of a parameter, and each updates some rows of them: part
// m of the rows, divided evenly, where m is its number among these workers. It has the optimizer's
// state of its rows only.
struct PartSpec {
  ValueIndex value = kNone;  // kPart: [O.<parameter>, …].
  ValueIndex of = kNone;     // The parameter.
  GroupIndex group = kNone;  // The positions of a team that have it.
  DT_FIELDS(value, of, group)
  friend bool operator==(const PartSpec&, const PartSpec&) = default;
};

struct LossSpec {
  std::string name;  // Name of the column of predictions.
  std::string type;  // Like LossConfig::type.
  // [B, 1]: logits, or the predicted value. [B, classes]: logits. For bpr and sampled_softmax the
  // scores, [B, 1 + negatives]. For in_batch_softmax, the second output of the loss node.
  ValueIndex output = kNone;
  ValueIndex label = kNone;  // A kLabel input; kNone: a loss of pairs without labels.
  ValueIndex loss = kNone;   // [1]: this slice's share of the mean over the step's samples.
  uint32_t label_column = kNone;
  // A column of one key, by which metrics group the samples; kNone: they do not.
  uint32_t group_column = kNone;
  float weight = 1;  // Factor in the sum of losses.
  // Like those of LossConfig.
  float pos_weight = 1, gamma = 2, alpha = 0.25f;
  DT_FIELDS(name, type, output, label, loss, label_column, group_column, weight, pos_weight, gamma,
            alpha)
  friend bool operator==(const LossSpec&, const LossSpec&) = default;
};

}  // namespace dt
