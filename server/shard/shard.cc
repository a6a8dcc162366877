#include "server/shard/shard.h"

#include <algorithm>

#include "common/base/check.h"
#include "server/shard/async_clock.h"

namespace dt::server {

namespace {

// Those of contributions that follow each other in the order of summing.
void AddGroups(const Contributions& parts, ShardScratch& scratch) {
  for (const auto& part : parts) {
    for (const GroupView& group : part->groups) {
      if (!group.keys.empty()) scratch.groups.push_back(&group);
    }
  }
}

}  // namespace

uint64_t BytesOf(const Contribution& contribution) {
  uint64_t bytes = 0;
  for (const GroupView& group : contribution.groups) {
    bytes += group.keys.size_bytes() + group.gradients.size_bytes();
  }
  return bytes;
}

bool Shard::Slice::whole() const {
  return !parts.empty() && std::ranges::all_of(parts, [](const auto& p) { return p.has_value(); });
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
  Slice& slice = HeldOf(contribution.step)[contribution.slice];
  if (slice.parts.empty()) slice.parts.resize(contribution.parts);
  if (slice.parts.size() != contribution.parts) {
    return Malformed("push of step {} slice {}: {} parts now, {} before", contribution.step,
                     contribution.slice, contribution.parts, slice.parts.size());
  }
  std::optional<Contribution>& place = slice.parts[contribution.part];
  if (place.has_value()) return OkStatus();
  held_bytes_ += BytesOf(contribution);
  place = std::move(contribution);
  return OkStatus();
}

Shard::Slices& Shard::HeldOf(Step step) {
  const auto it = held_.find(step);
  if (it != held_.end()) return it->second;
  if (spare_.empty()) return held_.try_emplace(step, slices_).first->second;
  spare_.key() = step;
  return held_.insert(std::move(spare_)).position->second;
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

bool Shard::EnsureWritable(ShardScratch& scratch, Residency& residency) {
  scratch.keys.clear();
  for (const GroupView* group : scratch.groups) {
    scratch.keys.push_back({&tables_[group->table], group->keys});
  }
  return residency.EnsureWritable(scratch.keys);
}

void Shard::Advance(Step step, ShardScratch& scratch, Residency* residency) {
  if (async_ != nullptr) return async_->Resume(Applying(scratch, residency));
  while (clock_ < step && Gathered(clock_)) {
    const auto it = held_.find(clock_);
    scratch.groups.clear();
    for (const Slice& slice : it->second) AddGroups(slice.parts, scratch);
    if (residency != nullptr && !EnsureWritable(scratch, *residency)) return;
    const float rate_scale = it->second[0].parts[0]->rate_scale;
    Apply({.step = clock_, .rate_scale = rate_scale}, scratch);
    for (Slice& slice : it->second) {
      for (const auto& part : slice.parts) held_bytes_ -= BytesOf(*part);
      slice.parts.clear();
    }
    spare_ = held_.extract(it);
    ++clock_;
    ExpireRows();
  }
}

Status Shard::Take(Contribution contribution, ShardScratch& scratch, Residency* residency) {
  return async_->Take(std::move(contribution), Applying(scratch, residency));
}

AsyncClock::Apply Shard::Applying(ShardScratch& scratch, Residency* residency) {
  return [this, &scratch, residency](const Contributions& push) {
    scratch.groups.clear();
    AddGroups(push, scratch);
    if (residency != nullptr && !EnsureWritable(scratch, *residency)) return false;
    Apply({.step = push[0]->step, .rate_scale = push[0]->rate_scale}, scratch);
    ExpireRows();
    return true;
  };
}

bool Shard::MayPull(Step step) const { return async_->MayPull(step); }

void Shard::Apply(const UpdateInfo& info, ShardScratch& scratch) {
  std::vector<const GroupView*>& groups = scratch.groups;
  // Sorting takes memory, and groups of one slice are in order.
  if (!std::ranges::is_sorted(groups, {}, &GroupView::table)) {
    std::ranges::stable_sort(groups, {}, &GroupView::table);
  }
  size_t keys = 0, values = 0;
  for (const GroupView* group : groups) {
    keys += group->keys.size();
    values += group->keys.size() * tables_[group->table].dim();
  }
  scratch.sum.Begin(keys, values);
  scratch.pushes.clear();
  for (size_t begin = 0, end = 0; begin < groups.size(); begin = end) {
    const uint32_t t = groups[begin]->table;
    while (end < groups.size() && groups[end]->table == t) ++end;
    if (rows_[t]->spec().life.freeze) continue;
    const auto same = std::span(groups).subspan(begin, end - begin);
    EmbeddingTable& table = tables_[t];
    const FloatFormat wire = table.spec().wire;
    const RowUpdate* const update = &rows_[t]->UpdateFor(info);
    if (same.size() == 1) {  // A sender's keys are distinct.
      scratch.pushes.push_back({&table, same[0]->keys, same[0]->gradients.data(), update, wire});
      continue;
    }
    size_t keys_of_table = 0;
    for (const GroupView* group : same) keys_of_table += group->keys.size();
    scratch.sum.BeginTable(keys_of_table, table.dim());
    for (const GroupView* group : same) {
      scratch.sum.Add(group->keys, wire, group->gradients.data());
    }
    scratch.pushes.push_back({&table, scratch.sum.keys(), scratch.sum.sums().data(), update});
  }
  EmbeddingTable::Push(scratch.pushes, info.step);
}

std::string Shard::Missing() const {
  if (async_ != nullptr) return async_->SlowestText();
  const auto it = held_.find(clock_);
  if (it == held_.end()) return "every slice";
  for (size_t s = 0; s < it->second.size(); ++s) {
    const Slice& slice = it->second[s];
    if (slice.parts.empty()) return fmt::format("slice {}", s);
    for (size_t p = 0; p < slice.parts.size(); ++p) {
      if (slice.parts[p].has_value()) continue;
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
