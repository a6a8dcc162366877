// The tables of a job, stored in the obvious way: a std::map of rows that are updated one by one,
// with admission and expiry by definition. Tests compare the real store with it bit for bit.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "server/life/count_min_sketch.h"
#include "test/support/push_maker.h"

namespace dt::test {

class ReferenceStore {
 public:
  struct Row {
    std::vector<float> values, state;
    Step last_push = 0;
  };

  ReferenceStore(const std::vector<server::TableSpec>& tables, uint32_t shards);

  void Freeze(uint32_t table, bool freeze) { tables_[table].freeze = freeze; }
  // In tables with expiry by time, rows last pushed before `step` are expired from now on.
  void ExpireBefore(uint32_t table, Step step) { tables_[table].expire_before = step; }

  std::vector<float> Read(uint32_t table, Key key, PullMode mode) const;
  // Applies all gradients of the current step, then advances the clock.
  void Push(const RowMap& gradients);
  // Does what loading a checkpoint of this moment does.
  void Loaded();

  Step clock() const { return clock_; }
  // All rows that are not expired.
  std::map<Key, Row> Rows(uint32_t table) const;
  // The bytes that EmbeddingTable::CopyRecord gives.
  std::vector<std::byte> Record(uint32_t table, const Row& row) const;

 private:
  struct Table {
    server::TableSpec spec;
    InitialRows initial;
    std::map<Key, Row> rows;
    std::vector<server::CountMinSketch> sketches;  // One sketch per shard.
    std::optional<MissedUpdates> missed;
    bool freeze = false;
    Step expire_before = 0;
  };
  // The values after rounding to the format in which they are stored.
  static std::vector<float> Stored(const Table& table, Key key, Step step,
                                   std::vector<float> values);
  static std::vector<float> Initial(const Table& table, Key key);
  bool IsThere(const Table& table, Key key) const;
  bool Admits(const Table& table, Key key, uint32_t& pushes) const;
  static Row RowOf(const Table& table, Key key, bool there);
  // False: the table's rows miss no updates.
  bool MakeUpFor(const Table& table, Row& row) const;

  const uint32_t shards_;
  Step clock_ = 0;
  std::vector<Table> tables_;
};

}  // namespace dt::test
