// Rows kept by an asynchronous worker, so that hot ones are not pulled at every step
// (train.cached_rows). A row that was pulled when every worker's pushes of steps before c were in
// it serves steps up to c + staleness: no staler than what a server may answer with. What this
// worker has pushed meanwhile is seen when everybody else's is: with the next pull of the row.
//
// Sets of four rows by hash; the one with the lowest c makes room, so rows that are asked for again
// and again stay. Owned by the train thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "worker/client/ps_client.h"
#include "worker/lookup/lookup_plan.h"

namespace dt::worker {

// The rows of one slice on their way: what the cache has, and the plan of what is pulled.
struct CachedPull {
  LookupPlan misses;                           // tables and groups alone.
  std::vector<std::vector<uint32_t>> missing;  // By table: rows of the slice's plan.
  std::vector<std::vector<float>> rows;        // By table: [distinct keys, dim].
};

class RowCache {
 public:
  struct Options {
    std::vector<uint32_t> dims;  // By table; of those of the graph alone: others are not kept.
    uint64_t rows = 0;           // Of all tables together, about.
    Step staleness = 1;
  };
  explicit RowCache(const Options& options);

  // Takes from the cache what serves `step`; the rest becomes out.misses. Keeps out's memory.
  void Split(const LookupPlan& plan, Step step, CachedPull& out);
  // Puts the rows pulled for `pull.misses` in their places, and keeps them.
  void Join(const PulledRows& pulled, CachedPull& pull);
  // All rows may have changed.
  void Clear();

  uint64_t hits() const { return hits_; }
  uint64_t lookups() const { return lookups_; }

 private:
  static constexpr size_t kWays = 4;
  struct Entry {
    Key key = 0;
    Step served_until = 0;  // First step that it does not serve; 0: empty.
  };
  struct Table {
    uint32_t dim = 0;
    uint64_t sets_mask = 0;
    std::vector<Entry> entries;  // [sets, kWays]
    std::vector<float> values;   // [sets, kWays, dim]
  };
  static size_t SetOf(const Table& table, Key key);
  static size_t PlaceOf(const Table& table, Key key);
  void TakeGroup(const LookupPlan& plan, const RowGroup& group, Step step, CachedPull& out);
  const float* Find(size_t table, Key key, Step step);

  const Step staleness_;
  std::vector<Table> tables_;
  uint64_t hits_ = 0, lookups_ = 0;
};

}  // namespace dt::worker
