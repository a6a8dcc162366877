#include "worker/client/row_cache.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace dt::worker {

RowCache::RowCache(const Options& options) : staleness_(options.staleness) {
  const uint64_t share = options.rows / std::max<size_t>(1, options.dims.size());
  for (const uint32_t dim : options.dims) {
    const uint64_t sets = std::bit_floor(std::max<uint64_t>(1, share / kWays));
    Table& table = tables_.emplace_back();
    table.dim = dim;
    table.sets_mask = sets - 1;
    table.entries.resize(sets * kWays);
    table.values.resize(sets * kWays * dim);
  }
}

size_t RowCache::SetOf(const Table& table, Key key) {
  return static_cast<size_t>(MixBits(key) & table.sets_mask) * kWays;
}

void RowCache::Split(const LookupPlan& plan, Step step, CachedPull& out) {
  out.misses.tables.resize(plan.tables.size());
  out.misses.groups.clear();
  out.missing.resize(plan.tables.size());
  out.rows.resize(plan.tables.size());
  for (size_t t = 0; t < plan.tables.size(); ++t) {
    out.misses.tables[t].clear();
    out.missing[t].clear();
    if (t < tables_.size()) out.rows[t].resize(plan.tables[t].size() * tables_[t].dim);
  }
  for (const RowGroup& group : plan.groups) {
    const size_t first = out.misses.tables[group.table].size();
    TakeGroup(plan, group, step, out);
    const size_t rows = out.misses.tables[group.table].size() - first;
    if (rows == 0) continue;
    out.misses.groups.push_back(
        {group.shard, group.table, static_cast<uint32_t>(first), static_cast<uint32_t>(rows)});
  }
}

// Copies rows that serve `step` into out.rows, and adds the others to out.misses.
void RowCache::TakeGroup(const LookupPlan& plan, const RowGroup& group, Step step,
                         CachedPull& out) {
  const std::vector<Key>& keys = plan.tables[group.table];
  for (uint32_t row = group.first; row < group.first + group.rows; ++row) {
    const float* const found = Find(group.table, keys[row], step);
    if (found != nullptr) {
      const size_t dim = tables_[group.table].dim;
      std::copy_n(found, dim, out.rows[group.table].data() + row * dim);
      continue;
    }
    out.misses.tables[group.table].push_back(keys[row]);
    out.missing[group.table].push_back(row);
  }
}

const float* RowCache::Find(size_t t, Key key, Step step) {
  if (t >= tables_.size()) return nullptr;
  ++lookups_;
  const Table& table = tables_[t];
  const size_t set = SetOf(table, key);
  for (size_t at = set; at < set + kWays; ++at) {
    const Entry& entry = table.entries[at];
    if (entry.key != key || step >= entry.served_until) continue;
    ++hits_;
    return table.values.data() + at * table.dim;
  }
  return nullptr;
}

void RowCache::Join(const PulledRows& pulled, CachedPull& pull) {
  for (size_t t = 0; t < pull.missing.size(); ++t) {
    if (t >= tables_.size()) {  // Not cached: all rows were pulled.
      pull.rows[t].assign(pulled.table(t).begin(), pulled.table(t).end());
      continue;
    }
    Table& table = tables_[t];
    const float* from = pulled.table(t).data();
    for (size_t i = 0; i < pull.missing[t].size(); ++i, from += table.dim) {
      std::copy_n(from, table.dim, pull.rows[t].data() + size_t{pull.missing[t][i]} * table.dim);
      const size_t at = SlotFor(table, pull.misses.tables[t][i]);
      table.entries[at] = {pull.misses.tables[t][i], pulled.clock() + staleness_ + 1};
      std::copy_n(from, table.dim, table.values.data() + at * table.dim);
    }
  }
}

// The index of the key's own entry if it has one, else of its set's entry that becomes useless
// first.
size_t RowCache::SlotFor(const Table& table, Key key) {
  const size_t set = SetOf(table, key);
  size_t slot = set;
  for (size_t at = set; at < set + kWays; ++at) {
    if (table.entries[at].key == key && table.entries[at].served_until > 0) return at;
    if (table.entries[at].served_until < table.entries[slot].served_until) slot = at;
  }
  return slot;
}

void RowCache::Clear() {
  for (Table& table : tables_) std::ranges::fill(table.entries, Entry());
}

}  // namespace dt::worker
