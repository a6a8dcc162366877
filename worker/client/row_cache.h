// Rows kept by an asynchronous worker, so that hot ones are not pulled at every step
// (train.cached_rows). A row pulled at clock c (it then contained every worker's pushes of steps
// before c) serves steps up to c + staleness: it is no staler than what a server may answer with.
// This worker's own later pushes are seen, like those of others, with the next pull of the row.
//
// The cache has sets of four rows, by hash. The row with the lowest c is replaced, so rows that are
// asked for again and again stay. Owned by the train thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "worker/client/ps_client.h"
#include "worker/lookup/lookup_plan.h"

namespace dt::worker {

// The rows of one slice during a pull: those in the cache, and the plan for the others.
struct CachedPull {
  LookupPlan misses;  // Only `tables` and `groups` are set.
  // By table: rows of the slice's plan that are pulled.
  std::vector<std::vector<uint32_t>> missing;
  std::vector<std::vector<float>> rows;  // By table: [distinct keys, dim].
};

class RowCache {
 public:
  struct Options {
    std::vector<uint32_t> dims;  // By table of the graph; other tables are not cached.
    uint64_t rows = 0;           // Capacity for all tables together, roughly.
    Step staleness = 1;
  };
  explicit RowCache(const Options& options);

  // Takes the rows that serve `step` from the cache; out.misses becomes the plan for the others.
  // Reuses the memory of `out`.
  void Split(const LookupPlan& plan, Step step, CachedPull& out);
  // Puts the rows pulled for `pull.misses` in their places, and caches them.
  void Join(const PulledRows& pulled, CachedPull& pull);
  // Called when all rows may have changed.
  void Clear();

  uint64_t hits() const { return hits_; }
  uint64_t lookups() const { return lookups_; }

 private:
  static constexpr size_t kWays = 4;
  struct Entry {
    Key key = 0;
    Step served_until = 0;  // The first step that the row does not serve; 0: empty.
  };
  struct Table {
    uint32_t dim = 0;
    uint64_t sets_mask = 0;
    std::vector<Entry> entries;  // [sets, kWays]
    std::vector<float> values;   // [sets, kWays, dim]
  };
  static size_t SetOf(const Table& table, Key key);
  static size_t SlotFor(const Table& table, Key key);
  void TakeGroup(const LookupPlan& plan, const RowGroup& group, Step step, CachedPull& out);
  const float* Find(size_t table, Key key, Step step);

  const Step staleness_;
  std::vector<Table> tables_;
  uint64_t hits_ = 0, lookups_ = 0;
};

}  // namespace dt::worker
