#include "server/shard/shard.h"

#include <algorithm>

#include "common/base/check.h"
#include "server/shard/async_clock.h"

namespace dt::server {

uint64_t BytesOf(const Contribution& contribution) {
  uint64_t bytes = 0;
  for (const GroupView& group : contribution.groups) {
    bytes += group.keys.size_bytes() + group.gradients.size_bytes();
  }
  return bytes;
}

bool Shard::Slice::whole() const {
  return !parts.empty() && std::ranges::all_of(parts, [](const auto& p) { return p != nullptr; });
}

Shard::Shard(ShardId id, std::span<const std::unique_ptr<TableRows>> rows, uint32_t slices,
             const AsyncOptions* async)
    : id_(id), rows_(rows), slices_(slices) {
  DT_CHECK(slices > 0);
  for (const auto& table : rows) tables_.emplace_back(*table, id);
  if (async != nullptr) async_ = std::make_unique<AsyncClock>(*async, clock_);
}

Shard::Shard(Shard&&) noexcept = default;
Shard::~Shard() = default;

Step Shard::clock() const { return async_ != nullptr ? async_->least() : clock_; }

uint64_t Shard::held_bytes() const {
  return held_bytes_ + (async_ != nullptr ? async_->held_bytes() : 0);
}

Status Shard::Hold(Contribution contribution) {
  if (contribution.step < clock_) return OkStatus();
  if (contribution.step > clock_ && (contribution.step > clock_ + 1 || !Gathered(clock_))) {
    return Busy("push of step {}: shard {} still waits for {} of step {}", contribution.step,
                id_.value(), Missing(), clock_);
  }
  DT_CHECK(contribution.slice < slices_ && contribution.part < contribution.parts);
  Slices& slices = held_.try_emplace(contribution.step, slices_).first->second;
  Slice& slice = slices[contribution.slice];
  if (slice.parts.empty()) slice.parts.resize(contribution.parts);
  if (slice.parts.size() != contribution.parts) {
    return Malformed("push of step {} slice {}: {} parts now, {} before", contribution.step,
                     contribution.slice, contribution.parts, slice.parts.size());
  }
  std::unique_ptr<Contribution>& place = slice.parts[contribution.part];
  if (place != nullptr) return OkStatus();
  held_bytes_ += BytesOf(contribution);
  place = std::make_unique<Contribution>(std::move(contribution));
  return OkStatus();
}

bool Shard::Gathered(Step step) const {
  const auto it = held_.find(step);
  return it != held_.end() &&
         std::ranges::all_of(it->second, [](const Slice& slice) { return slice.whole(); });
}

bool Shard::CanReach(Step step) const {
  Step reached = clock_;
  while (reached < step && Gathered(reached)) ++reached;
  return reached >= step;
}

bool Shard::Writable(const Groups& groups, Residency& residency) {
  std::vector<EmbeddingTable::KeyRun> runs;
  for (const GroupView* group : groups) {
    if (!group->keys.empty()) runs.push_back({&tables_[group->table], group->keys});
  }
  return residency.Writable(runs);
}

void Shard::Advance(Step step, GradientSum& scratch, Residency* residency) {
  if (async_ != nullptr) return async_->Resume(Applying(scratch, residency));
  while (clock_ < step && Gathered(clock_)) {
    const auto it = held_.find(clock_);
    const Groups groups = GroupsOf(it->second);
    if (residency != nullptr && !Writable(groups, *residency)) return;
    const float rate_scale = it->second[0].parts[0]->rate_scale;
    Apply(groups, {.step = clock_, .rate_scale = rate_scale}, scratch);
    for (const Slice& slice : it->second) {
      for (const auto& part : slice.parts) held_bytes_ -= BytesOf(*part);
    }
    held_.erase(it);
    ++clock_;
    ExpireRows();
  }
}

Status Shard::Take(Contribution contribution, GradientSum& scratch, Residency* residency) {
  return async_->Take(std::move(contribution), Applying(scratch, residency));
}

AsyncClock::Apply Shard::Applying(GradientSum& scratch, Residency* residency) {
  return [this, &scratch, residency](const AsyncClock::Parts& push) {
    Groups groups;
    for (const auto& part : push) {
      for (const GroupView& group : part->groups) groups.push_back(&group);
    }
    if (residency != nullptr && !Writable(groups, *residency)) return false;
    Apply(std::move(groups), {.step = push[0]->step, .rate_scale = push[0]->rate_scale}, scratch);
    ExpireRows();
    return true;
  };
}

bool Shard::MayPull(Step step) const { return async_->MayPull(step); }

void Shard::Apply(Groups groups, const UpdateInfo& info, GradientSum& scratch) {
  std::erase_if(groups, [](const GroupView* group) { return group->keys.empty(); });
  std::ranges::stable_sort(groups, {}, &GroupView::table);
  size_t keys = 0, values = 0;
  for (const GroupView* group : groups) {
    keys += group->keys.size();
    values += group->keys.size() * tables_[group->table].dim();
  }
  scratch.Begin(keys, values);
  std::vector<EmbeddingTable::PushRun> runs;
  for (size_t begin = 0, end = 0; begin < groups.size(); begin = end) {
    const uint32_t t = groups[begin]->table;
    while (end < groups.size() && groups[end]->table == t) ++end;
    if (rows_[t]->spec().life.freeze) continue;
    const auto same = std::span(groups).subspan(begin, end - begin);
    EmbeddingTable& table = tables_[t];
    const FloatFormat wire = table.spec().wire;
    const RowUpdate* const update = &rows_[t]->UpdateFor(info);
    if (same.size() == 1) {  // A sender's keys are distinct.
      runs.push_back({&table, same[0]->keys, same[0]->gradients.data(), update, wire});
      continue;
    }
    size_t keys_of_table = 0;
    for (const GroupView* group : same) keys_of_table += group->keys.size();
    scratch.BeginTable(keys_of_table, table.dim());
    for (const GroupView* group : same) {
      scratch.Add(group->keys, wire, group->gradients.data());
    }
    runs.push_back({&table, scratch.keys(), scratch.sums().data(), update});
  }
  EmbeddingTable::Push(runs, info.step);
}

// In the order of slices, within a slice of its parts.
Shard::Groups Shard::GroupsOf(const Slices& slices) {
  Groups groups;
  for (const Slice& slice : slices) {
    for (const auto& part : slice.parts) {
      for (const GroupView& group : part->groups) groups.push_back(&group);
    }
  }
  return groups;
}

std::string Shard::Missing() const {
  if (async_ != nullptr) return async_->SlowestText();
  const auto it = held_.find(clock_);
  if (it == held_.end()) return "every slice";
  for (size_t s = 0; s < it->second.size(); ++s) {
    const Slice& slice = it->second[s];
    if (slice.parts.empty()) return fmt::format("slice {}", s);
    for (size_t p = 0; p < slice.parts.size(); ++p) {
      if (slice.parts[p] != nullptr) continue;
      return fmt::format("slice {} part {} of {}", s, p, slice.parts.size());
    }
  }
  return "nothing";
}

void Shard::Reset(Step clock) {
  for (EmbeddingTable& table : tables_) table.Clear(clock);
  held_.clear();
  held_bytes_ = 0;
  clock_ = clock;
  if (async_ != nullptr) async_->Reset(clock);
}

uint64_t Shard::bytes() const {
  uint64_t bytes = index_bytes();
  for (const EmbeddingTable& table : tables_) bytes += table.rows() * table.record_bytes();
  return bytes;
}

uint64_t Shard::index_bytes() const {
  uint64_t bytes = 0;
  for (const EmbeddingTable& table : tables_) bytes += table.index_bytes() + table.life().bytes();
  return bytes;
}

void Shard::ExpireRows() {
  for (EmbeddingTable& table : tables_) {
    table.life().MoveClock(clock());
    table.RemoveGone();
  }
}

void Shard::PassTime(Duration elapsed) {
  for (EmbeddingTable& table : tables_) table.life().PassTime(elapsed);
}

}  // namespace dt::server
