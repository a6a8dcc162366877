#include "server/shard/shard.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::server {

// Changes the tables of a shard, and lets their rows expire.
class Shard::Updater : public ShardUpdater {
 public:
  Updater(Shard& shard, ShardScratch& scratch, Residency* residency)
      : shard_(shard), scratch_(scratch), residency_(residency) {}

  bool Update(const UpdateInfo& info, std::span<const Contributions> pushes) override {
    Gather(pushes);
    if (residency_ != nullptr && !EnsureWritable()) return false;
    Apply(info);
    return true;
  }

  void MoveTime(Step now) override {
    for (EmbeddingTable& table : shard_.tables_) {
      table.expiry().MoveClock(now);
      table.RemoveExpired();
    }
  }

 private:
  void Gather(std::span<const Contributions> pushes) {
    scratch_.groups.clear();
    for (const Contributions& push : pushes) {
      for (const auto& piece : push) {
        for (const GroupView& group : piece->groups) {
          if (!group.keys.empty()) scratch_.groups.push_back(&group);
        }
      }
    }
  }

  bool EnsureWritable() const {
    scratch_.keys.clear();
    for (const GroupView* group : scratch_.groups) {
      scratch_.keys.push_back({&shard_.tables_[group->table], group->keys});
    }
    return residency_->EnsureWritable(scratch_.keys);
  }

  void Apply(const UpdateInfo& info) const;
  void ApplyToTable(const UpdateInfo& info, std::span<const GroupView* const> groups) const;

  Shard& shard_;
  ShardScratch& scratch_;
  Residency* const residency_;
};

void Shard::Updater::Apply(const UpdateInfo& info) const {
  std::vector<const GroupView*>& groups = scratch_.groups;
  // Groups of one slice are sorted already, and sorting takes memory.
  if (!std::ranges::is_sorted(groups, {}, &GroupView::table)) {
    std::ranges::stable_sort(groups, {}, &GroupView::table);
  }
  size_t keys = 0, values = 0;
  for (const GroupView* group : groups) {
    keys += group->keys.size();
    values += group->keys.size() * shard_.tables_[group->table].dim();
  }
  scratch_.sum.Begin(keys, values);
  scratch_.pushes.clear();
  for (size_t begin = 0, end = 0; begin < groups.size(); begin = end) {
    while (end < groups.size() && groups[end]->table == groups[begin]->table) ++end;
    ApplyToTable(info, std::span(groups).subspan(begin, end - begin));
  }
  EmbeddingTable::Push(scratch_.pushes, info.step);
}

void Shard::Updater::ApplyToTable(const UpdateInfo& info,
                                  std::span<const GroupView* const> groups) const {
  const uint32_t t = groups[0]->table;
  TableRows& rows = *shard_.rows_[t];
  if (rows.spec().life.freeze) return;
  EmbeddingTable& table = shard_.tables_[t];
  const FloatFormat wire = table.spec().wire;
  const RowUpdate* const update = &rows.UpdateFor(info);
  if (groups.size() == 1) {  // The keys of one sender are distinct.
    scratch_.pushes.push_back({&table, groups[0]->keys, groups[0]->gradients.data(), update, wire});
    return;
  }
  size_t keys = 0;
  for (const GroupView* group : groups) keys += group->keys.size();
  scratch_.sum.BeginTable(keys, table.dim());
  for (const GroupView* group : groups) {
    scratch_.sum.Add(group->keys, wire, group->gradients.data());
  }
  scratch_.pushes.push_back({&table, scratch_.sum.keys(), scratch_.sum.sums().data(), update});
}

Shard::Shard(ShardId id, std::span<const std::unique_ptr<TableRows>> rows,
             std::unique_ptr<ShardClock> clock)
    : id_(id), rows_(rows), clock_(std::move(clock)) {
  for (const auto& table : rows) tables_.emplace_back(*table, id);
}

Status Shard::Take(Contribution contribution, ShardScratch& scratch, Residency* residency) {
  Updater updater(*this, scratch, residency);
  return clock_->Take(std::move(contribution), updater);
}

void Shard::Advance(Step step, ShardScratch& scratch, Residency* residency) {
  Updater updater(*this, scratch, residency);
  clock_->Advance(step, updater);
}

void Shard::Reset(Step step) {
  for (EmbeddingTable& table : tables_) table.Clear(step);
  clock_->Reset(step);
}

uint64_t Shard::bytes() const {
  uint64_t bytes = index_bytes();
  for (const EmbeddingTable& table : tables_) bytes += table.rows() * table.record_bytes();
  return bytes;
}

uint64_t Shard::index_bytes() const {
  uint64_t bytes = 0;
  for (const EmbeddingTable& table : tables_)
    bytes += table.index_bytes() + table.admission().sketch().size();
  return bytes;
}

void Shard::PassTime(Duration elapsed) {
  for (EmbeddingTable& table : tables_) table.expiry().PassTime(elapsed);
}

}  // namespace dt::server
