#include "worker/lookup/lookup_planner.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <ranges>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace dt::worker {
namespace {

constexpr size_t kJoinedAtOnce = 32;  // Samples that are joined at a time.

// Number of ids per sample in a column of fixed length.
size_t LengthOf(const BatchColumn& column, size_t samples) {
  return samples == 0 ? 0 : column.keys.size() / samples;
}

// The sample, among the own ones, that holds id number `at` of a column.
size_t SampleOf(const BatchColumn& column, size_t at, const Batch& batch) {
  if (column.offsets.empty()) return at / LengthOf(column, batch.own().size());
  const auto behind = std::ranges::upper_bound(column.offsets, at);
  return static_cast<size_t>(behind - column.offsets.begin()) - 1;
}

// Makes room for the most entries that a list may need, and an eighth more. Lists are kept from
// slice to slice, so that after a while none has to grow.
template <class T>
void MakeRoom(size_t most, std::vector<T>& list) {
  if (list.capacity() < most) list.reserve(most + most / 8);
}

// Copies the keys of a column, `length` per sample; samples are `stride` keys apart in `out`.
void JoinColumn(std::span<const Key> keys, size_t length, size_t stride, Key* out) {
  if (length == 1) {
    for (const Key key : keys) *out = key, out += stride;
    return;
  }
  for (size_t i = 0; i < keys.size(); i += length, out += stride) {
    std::ranges::copy(keys.subspan(i, length), out);
  }
}

// Finds the occurrences of each row, by counting: row_ends[u] and the positions in ascending order.
void Transpose(size_t rows, LookupLists& lists) {
  MakeRoom(lists.index.size(), lists.row_ends);
  MakeRoom(lists.index.size(), lists.row_order);
  lists.row_ends.assign(rows, 0);
  lists.row_order.resize(lists.index.size());
  for (const uint32_t row : lists.index) ++lists.row_ends[row];
  uint32_t first = 0;
  for (uint32_t& end : lists.row_ends) first += std::exchange(end, first);
  // Each row's entry is now where its next occurrence goes; after the last one it is the row's end.
  for (size_t i = 0; i < lists.index.size(); ++i) {
    lists.row_order[lists.row_ends[lists.index[i]]++] = static_cast<uint32_t>(i);
  }
}

}  // namespace

std::vector<uint32_t> WireTables(const Graph& graph, const std::vector<TableConfig>& tables) {
  std::vector<uint32_t> wire;
  for (const TableUse& use : graph.tables) {
    const auto at = std::find_if(tables.begin(), tables.end(),
                                 [&](const TableConfig& table) { return table.id == use.id; });
    DT_CHECK_MSG(at != tables.end(), "the plan uses table {}, which the job has not", use.name);
    wire.push_back(static_cast<uint32_t>(at - tables.begin()));
  }
  return wire;
}

LookupPlanner::LookupPlanner(const Plan& plan, uint32_t shards, std::vector<uint32_t> wire_tables,
                             std::vector<DenseBlockTable> fixed)
    : plan_(plan),
      shards_(shards),
      fixed_(std::move(fixed)),
      table_order_(plan.graph.tables.size() + fixed_.size()) {
  DT_CHECK(wire_tables.size() == table_order_.size());
  std::iota(table_order_.begin(), table_order_.end(), 0);
  std::sort(table_order_.begin(), table_order_.end(),
            [&](uint32_t a, uint32_t b) { return wire_tables[a] < wire_tables[b]; });
  shard_first_.assign(table_order_.size(), std::vector<uint32_t>(shards_ + 1));
  std::erase_if(table_order_, [&plan](uint32_t t) {
    return t < plan.graph.tables.size() && plan.graph.tables[t].store != kNone;
  });
  GroupTables();
}

void LookupPlanner::GroupTables() {
  const Graph& graph = plan_.graph;
  lookups_of_.resize(graph.tables.size());
  for (uint32_t l = 0; l < graph.lookups.size(); ++l) {
    lookups_of_[graph.lookups[l].table].push_back(l);
  }
  const auto alike = [&](uint32_t a, uint32_t b) {
    const auto columns = [&graph](uint32_t l) -> const auto& { return graph.lookups[l].columns; };
    return std::ranges::equal(lookups_of_[a], lookups_of_[b], {}, columns, columns);
  };
  for (uint32_t t = 0; t < graph.tables.size(); ++t) {
    const auto group = std::ranges::find_if(
        same_keys_, [&](const std::vector<uint32_t>& tables) { return alike(tables.front(), t); });
    if (group == same_keys_.end()) {
      same_keys_.push_back({t});
    } else {
      group->push_back(t);
    }
  }
}

Status LookupPlanner::Fill(LookupFor purpose, LookupPlan& plan) {
  const Graph& graph = plan_.graph;
  plan.tables.resize(shard_first_.size());
  plan.lookups.resize(graph.lookups.size());
  for (const std::vector<uint32_t>& tables : same_keys_) {
    DT_TRY_STATUS(NumberKeys(tables.front(), plan));
    for (const uint32_t t : tables) DT_TRY_STATUS(CheckKeys(t, plan));
    // The first table's lists hold the numbers until those of all other tables are made from them.
    for (const uint32_t t : std::views::reverse(tables)) FillTable(t, tables.front(), plan);
  }
  for (size_t l = 0; l < graph.lookups.size(); ++l) {
    const LookupSpec& spec = graph.lookups[l];
    LookupLists& lists = plan.lookups[l];
    if (spec.weighted) FillWeights(spec, plan.batch, lists);
    if (purpose == LookupFor::kTrain) {
      Transpose(plan.tables[spec.table].size(), lists);
    } else {
      lists.row_ends.clear();  // The plan may have been used for training.
      lists.row_order.clear();
    }
  }
  NumberFixed(purpose == LookupFor::kTrain, plan);
  FillGroups(plan);
  return OkStatus();
}

void LookupPlanner::FillFixed(LookupPlan& plan) {
  plan.tables.resize(shard_first_.size());
  distinct_.clear();
  for (uint32_t t = 0; t < plan_.graph.tables.size(); ++t) NumberRows(t, plan);
  NumberFixed(true, plan);
  FillGroups(plan);
}

void LookupPlanner::NumberFixed(bool with_keys, LookupPlan& plan) {
  const auto first = static_cast<uint32_t>(plan_.graph.tables.size());
  for (uint32_t f = 0; f < fixed_.size(); ++f) {
    distinct_.clear();
    if (with_keys) distinct_ = fixed_[f].keys;
    NumberRows(first + f, plan);
  }
}

// Writes the numbers of the keys, by first occurrence, into the index of the table's lookups.
Status LookupPlanner::NumberKeys(uint32_t table, LookupPlan& plan) {
  const Graph& graph = plan_.graph;
  size_t ids = 0;
  for (const uint32_t l : lookups_of_[table]) {
    for (const uint32_t c : graph.lookups[l].columns) ids += plan.batch.columns[c].keys.size();
  }
  if (ids > std::numeric_limits<uint32_t>::max()) {
    return WithHint(
        Invalid("one slice of step {} reads {} ids of table {}; at most 2^32 are possible",
                plan.batch.step, ids, graph.tables[table].name),
        "lower train.batch_size or raise train.slices");
  }
  numbering_.Begin(ids);
  distinct_.clear();
  MakeRoom(ids, distinct_);
  MakeRoom(ids, shard_of_);
  MakeRoom(ids, row_of_);
  for (const uint32_t l : lookups_of_[table]) {
    LookupLists& lists = plan.lookups[l];
    const std::span<const Key> keys = KeysOf(graph.lookups[l], plan.batch, lists);
    MakeRoom(keys.size(), lists.index);
    lists.index.resize(keys.size());
    numbering_.Number(keys, lists.index, distinct_);
  }
  return OkStatus();
}

// Makes the lists from those of `numbered`: the table itself, or one that sees the same keys.
void LookupPlanner::FillTable(uint32_t table, uint32_t numbered, LookupPlan& plan) {
  size_t ids = 0;
  for (const uint32_t l : lookups_of_[numbered]) ids += plan.lookups[l].index.size();
  MakeRoom(ids, plan.tables[table]);
  NumberRows(table, plan);
  for (size_t k = 0; k < lookups_of_[table].size(); ++k) {
    const LookupLists& from = plan.lookups[lookups_of_[numbered][k]];
    LookupLists& lists = plan.lookups[lookups_of_[table][k]];
    MakeRoom(from.index.size(), lists.index);
    lists.index.resize(from.index.size());
    std::ranges::transform(from.index, lists.index.begin(),
                           [this](uint32_t number) { return row_of_[number]; });
    if (table != numbered) lists.ends = from.ends;
  }
}

// Checks that the keys of a table with `rows: N` are below N.
Status LookupPlanner::CheckKeys(uint32_t table, const LookupPlan& plan) const {
  const TableUse& use = plan_.graph.tables[table];
  if (use.keys_end == 0) return OkStatus();
  const auto wrong =
      std::ranges::find_if(distinct_, [&use](Key key) { return key >= use.keys_end; });
  if (wrong == distinct_.end()) return OkStatus();
  for (const uint32_t l : lookups_of_[table]) {
    for (const uint32_t c : plan_.graph.lookups[l].columns) {
      const BatchColumn& column = plan.batch.columns[c];
      const auto at = std::ranges::find(column.keys, *wrong);
      if (at == column.keys.end()) continue;
      const size_t of_own = SampleOf(column, at - column.keys.begin(), plan.batch);
      const uint64_t sample = plan.rows[plan.batch.own().begin + of_own];
      return WithHint(
          Malformed("column {} of sample {} holds key {}; table {} has rows 0 to {}",
                    plan_.columns[c].name, sample + 1, *wrong, use.name, use.keys_end - 1),
          fmt::format("raise model.tables.{0}.rows, or leave it out: any key is a row "
                      "then, also what texts are hashed to",
                      use.name));
    }
  }
  DT_UNREACHABLE();
}

// Returns the ids of a lookup in the order of its index, and fills the ends of a ragged one.
std::span<const Key> LookupPlanner::KeysOf(const LookupSpec& spec, const Batch& batch,
                                           LookupLists& lists) {
  const BatchColumn& front = batch.columns[spec.columns.front()];
  if (spec.length == 0) {
    lists.ends.clear();
    if (batch.own().size() > 0) lists.ends.assign(front.offsets.begin() + 1, front.offsets.end());
  }
  if (spec.columns.size() == 1) return front.keys;
  joined_.resize(static_cast<size_t>(batch.own().size()) * spec.length);
  // A few samples at a time, so that their joined keys stay in the nearest cache.
  for (size_t first = 0; first < batch.own().size(); first += kJoinedAtOnce) {
    const size_t end = std::min<size_t>(first + kJoinedAtOnce, batch.own().size());
    size_t at = 0;
    for (const uint32_t c : spec.columns) {
      const BatchColumn& column = batch.columns[c];
      const size_t length = LengthOf(column, batch.own().size());
      JoinColumn(std::span(column.keys).subspan(first * length, (end - first) * length), length,
                 spec.length, joined_.data() + first * spec.length + at);
      at += length;
    }
    DT_CHECK(at == spec.length);
  }
  return joined_;
}

void LookupPlanner::FillWeights(const LookupSpec& spec, const Batch& batch,
                                LookupLists& lists) const {
  MakeRoom(lists.index.size(), lists.weights);
  lists.weights.assign(lists.index.size(), 1.0f);
  if (spec.columns.size() == 1) {
    const std::vector<float>& weights = batch.columns[spec.columns.front()].weights;
    std::copy(weights.begin(), weights.end(), lists.weights.begin());
    return;
  }
  size_t at = 0;
  for (const uint32_t c : spec.columns) {
    const BatchColumn& column = batch.columns[c];
    const size_t length = LengthOf(column, batch.own().size());
    for (size_t b = 0; b < batch.own().size() && !column.weights.empty(); ++b) {
      std::copy_n(column.weights.begin() + b * length, length,
                  lists.weights.begin() + b * spec.length + at);
    }
    at += length;
  }
}

// Sorts the distinct keys by their shard; stable, so the order does not depend on the hash table.
void LookupPlanner::NumberRows(uint32_t table, LookupPlan& plan) {
  const std::vector<TableUse>& tables = plan_.graph.tables;
  const TableId id = table < tables.size() ? tables[table].id : fixed_[table - tables.size()].id;
  std::vector<uint32_t>& first = shard_first_[table];
  std::fill(first.begin(), first.end(), 0);
  shard_of_.resize(distinct_.size());
  row_of_.resize(distinct_.size());
  for (size_t i = 0; i < distinct_.size(); ++i) {
    shard_of_[i] = ShardOf(id, distinct_[i], shards_).value();
    ++first[shard_of_[i] + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<Key>& keys = plan.tables[table];
  keys.resize(distinct_.size());
  for (size_t i = 0; i < distinct_.size(); ++i) {
    row_of_[i] = first[shard_of_[i]]++;
    keys[row_of_[i]] = distinct_[i];
  }
  // Every entry has moved to its end, which is the beginning of the next entry.
  std::copy_backward(first.begin(), first.end() - 1, first.end());
  first.front() = 0;
}

void LookupPlanner::FillGroups(LookupPlan& plan) const {
  plan.groups.clear();
  for (uint32_t shard = 0; shard < shards_; ++shard) {
    for (const uint32_t t : table_order_) {
      const uint32_t first = shard_first_[t][shard], end = shard_first_[t][shard + 1];
      if (first != end) plan.groups.push_back({ShardId(shard), t, first, end - first});
    }
  }
}

}  // namespace dt::worker
