// The rows of one table that fall into one shard. A row is one piece of memory:
//
//   values f32 [dim] | optimizer state f32 [state] | last push u64
//
// which is also the record of a row in checkpoints and checksums. Owned by the executor's thread:
// no method may be called from another, none waits.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/config/job_config.h"
#include "ops/update/update.h"
#include "server/table/initial_rows.h"
#include "server/table/key_index.h"
#include "server/table/row_slabs.h"

namespace dt::server {

// What the parts of a table in all shards have in common.
struct TableSpec {
  std::string name;
  TableId id;
  uint32_t dim = 0;
  InitSpec init;
  OptimizerSpec optimizer;
  bool scheduled = true;  // The rate scale of pushes applies.
  EvalDefault eval_default = EvalDefault::kInitial;
  uint64_t seed = 0;

  uint32_t state() const { return StateFloats(optimizer, dim); }
};
std::vector<TableSpec> TableSpecsOf(const JobConfig& job);

class EmbeddingTable {
 public:
  explicit EmbeddingTable(const TableSpec& spec);

  // Writes the values of keys[i] to out[i * dim, (i + 1) * dim); initial values where there is no
  // row. Creates nothing. REQUIRES: out holds keys.size() * dim floats.
  void Pull(std::span<const Key> keys, std::span<float> out) const;
  // As Pull, but rows that are not there read as the table's eval_default.
  void Evaluate(std::span<const Key> keys, std::span<float> out) const;
  // One update of each row with its summed gradient; makes the rows that are not there.
  // `gradients` is overwritten. REQUIRES: keys are distinct; info.step is above every earlier
  // one's.
  void Push(std::span<const Key> keys, std::span<float> gradients, const UpdateInfo& info);

  // For checkpoints and checksums.
  std::vector<KeyRow> SortedRows() const;    // By key.
  std::vector<KeyRow> UnsortedRows() const;  // In no useful order.
  std::span<const std::byte> record(uint32_t row) const { return {rows_.row(row), record_bytes_}; }
  // Adds a row as it was. Malformed: another size, or a key that is there.
  Status Restore(Key key, std::span<const std::byte> record);
  void Clear();

  const TableSpec& spec() const { return spec_; }
  uint32_t dim() const { return spec_.dim; }
  uint32_t rows() const { return rows_.count(); }
  uint32_t record_bytes() const { return record_bytes_; }
  // Index and rows, as far as they hold something.
  uint64_t bytes() const { return index_.bytes() + rows_.used_bytes(); }

 private:
  enum class Absent { kInitial, kZeros };
  void Gather(std::span<const Key> keys, Absent absent, std::span<float> out) const;
  void PushOne(const RowUpdate& update, uint32_t row, Step step, std::span<float> gradient);

  const TableSpec spec_;
  const uint32_t state_;
  const uint32_t record_bytes_;
  const InitialRows initial_;
  KeyIndex index_;
  RowSlabs rows_;
};

}  // namespace dt::server
