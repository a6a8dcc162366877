#include "server/shard/shard.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::server {
namespace {

uint64_t BytesOf(const Contribution& contribution) {
  uint64_t bytes = 0;
  for (const GroupView& group : contribution.groups) {
    bytes += group.keys.size_bytes() + group.gradients.size_bytes();
  }
  return bytes;
}

}  // namespace

bool Shard::Slice::whole() const {
  return !parts.empty() && std::ranges::all_of(parts, [](const auto& p) { return p != nullptr; });
}

Shard::Shard(ShardId id, std::span<const std::unique_ptr<TableRows>> rows, uint32_t slices)
    : id_(id), rows_(rows), slices_(slices) {
  DT_CHECK(slices > 0);
  for (const auto& table : rows) tables_.emplace_back(*table, id);
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

bool Shard::Writable(const Slices& slices, Residency& residency) {
  std::vector<EmbeddingTable::KeyRun> runs;
  for (const GroupView* group : GroupsByTable(slices)) {
    runs.push_back({&tables_[group->table], group->keys});
  }
  return residency.Writable(runs);
}

void Shard::Advance(Step step, GradientSum& scratch, Residency* residency) {
  while (clock_ < step && Gathered(clock_)) {
    const auto it = held_.find(clock_);
    if (residency != nullptr && !Writable(it->second, *residency)) return;
    Apply(it->second, scratch);
    for (const Slice& slice : it->second) {
      for (const auto& part : slice.parts) held_bytes_ -= BytesOf(*part);
    }
    held_.erase(it);
    ++clock_;
  }
}

void Shard::Apply(const Slices& slices, GradientSum& scratch) {
  const std::vector<const GroupView*> groups = GroupsByTable(slices);
  size_t keys = 0, values = 0;
  for (const GroupView* group : groups) {
    keys += group->keys.size();
    values += group->keys.size() * tables_[group->table].dim();
  }
  scratch.Begin(keys, values);
  const UpdateInfo info{.step = clock_, .rate_scale = slices[0].parts[0]->rate_scale};
  std::vector<EmbeddingTable::PushRun> runs;
  for (size_t begin = 0, end = 0; begin < groups.size(); begin = end) {
    const uint32_t t = groups[begin]->table;
    while (end < groups.size() && groups[end]->table == t) ++end;
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
  EmbeddingTable::Push(runs, clock_);
}

// Those with keys, by table; of one table in the order of slices, within a slice of its parts.
std::vector<const GroupView*> Shard::GroupsByTable(const Slices& slices) {
  std::vector<const GroupView*> groups;
  for (const Slice& slice : slices) {
    for (const auto& part : slice.parts) {
      for (const GroupView& group : part->groups) {
        if (!group.keys.empty()) groups.push_back(&group);
      }
    }
  }
  std::ranges::stable_sort(groups, {}, &GroupView::table);
  return groups;
}

std::string Shard::Missing() const {
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
  for (EmbeddingTable& table : tables_) table.Clear();
  held_.clear();
  held_bytes_ = 0;
  clock_ = clock;
}

uint64_t Shard::index_bytes() const {
  uint64_t bytes = 0;
  for (const EmbeddingTable& table : tables_) bytes += table.index_bytes();
  return bytes;
}

}  // namespace dt::server
