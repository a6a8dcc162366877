#include "server/shard/shard.h"

#include <algorithm>

namespace dt::server {

// Makes the records of a shard, changes its tables, and lets their rows expire.
class Shard::Updater : public ShardUpdater {
 public:
  Updater(Shard& shard, ShardContext& context) : shard_(shard), context_(context) {}

  bool Prepare(std::span<const Contributions> pushes) override {
    if (context_.residency == nullptr) return true;
    Gather(pushes);
    context_.keys.clear();
    for (const GroupView* group : context_.groups) {
      context_.keys.push_back({&shard_.tables_[group->table], group->keys});
    }
    return context_.residency->EnsureWritable(context_.keys);
  }

  void RecordContribution(const Contribution& contribution) override {
    shard_.Note({.kind = RecordKind::kContribution, .contribution = contribution}, context_);
  }

  void RecordComplete(Step step) override {
    shard_.Note({.kind = RecordKind::kComplete, .step = step}, context_);
  }

  void Update(const UpdateInfo& info, std::span<const Contributions> pushes) override {
    Gather(pushes);
    UpdateInfo counted = info;
    counted.step += context_.steps_before;
    Apply(counted);
  }

  void RecordWorkers(ViewNumber view, std::span<const ProcessId> workers) override {
    shard_.Note({.kind = RecordKind::kWorkers,
                 .step = view.value(),
                 .workers = {workers.begin(), workers.end()}},
                context_);
  }

  void MoveTime(Step now) override {
    for (EmbeddingTable& table : shard_.tables_) {
      table.expiry().MoveClock(context_.steps_before + now);
      table.RemoveExpired();
    }
  }

 private:
  void Gather(std::span<const Contributions> pushes) {
    context_.groups.clear();
    for (const Contributions& push : pushes) {
      for (const auto& piece : push) {
        for (const GroupView& group : piece->groups) {
          if (!group.keys.empty()) context_.groups.push_back(&group);
        }
      }
    }
  }

  void Apply(const UpdateInfo& info) const;
  void ApplyToTable(const UpdateInfo& info, std::span<const GroupView* const> groups) const;

  Shard& shard_;
  ShardContext& context_;
};

void Shard::Updater::Apply(const UpdateInfo& info) const {
  std::vector<const GroupView*>& groups = context_.groups;
  // Groups of one slice are sorted already, and sorting takes memory.
  if (!std::ranges::is_sorted(groups, {}, &GroupView::table)) {
    std::ranges::stable_sort(groups, {}, &GroupView::table);
  }
  size_t keys = 0, values = 0;
  for (const GroupView* group : groups) {
    keys += group->keys.size();
    values += group->keys.size() * shard_.tables_[group->table].dim();
  }
  context_.sum.Begin(keys, values);
  context_.pushes.clear();
  for (size_t begin = 0, end = 0; begin < groups.size(); begin = end) {
    while (end < groups.size() && groups[end]->table == groups[begin]->table) ++end;
    ApplyToTable(info, std::span(groups).subspan(begin, end - begin));
  }
  EmbeddingTable::Push(context_.pushes, info.step);
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
    context_.pushes.push_back({&table, groups[0]->keys, groups[0]->gradients.data(), update, wire});
    return;
  }
  size_t keys = 0;
  for (const GroupView* group : groups) keys += group->keys.size();
  context_.sum.BeginTable(keys, table.dim());
  for (const GroupView* group : groups) {
    context_.sum.Add(group->keys, wire, group->gradients.data());
  }
  context_.pushes.push_back({&table, context_.sum.keys(), context_.sum.sums().data(), update});
}

Shard::Shard(ShardId id, std::span<const std::unique_ptr<TableRows>> rows,
             std::unique_ptr<ShardClock> clock)
    : id_(id), rows_(rows), clock_(std::move(clock)) {
  for (const auto& table : rows) tables_.emplace_back(*table, id);
}

void Shard::Note(Record record, ShardContext& context) {
  record.position = ++position_;
  if (context.sink != nullptr) context.sink->OnRecord(id_, record);
}

Status Shard::Take(Contribution contribution, ShardContext& context) {
  Updater updater(*this, context);
  return clock_->Take(std::move(contribution), updater);
}

void Shard::Advance(Step step, ShardContext& context) {
  Updater updater(*this, context);
  clock_->Advance(step, updater);
}

Status Shard::TakeFirstValues(Contribution contribution, ShardContext& context) {
  context.keys.clear();
  for (const GroupView& group : contribution.groups) {
    context.keys.push_back({&tables_[group.table], group.keys});
  }
  if (context.residency != nullptr && !context.residency->EnsureInMemory(context.keys)) {
    return Busy("rows that may be there are on their way from the disk");
  }
  for (const GroupView& group : contribution.groups) SetAbsent(group);
  Note({.kind = RecordKind::kFirstValues, .contribution = std::move(contribution)}, context);
  return OkStatus();
}

void Shard::SetAbsent(const GroupView& group) {
  EmbeddingTable& table = tables_[group.table];
  const TableSpec& spec = table.spec();
  std::vector<float> values(group.keys.size() * spec.dim);
  DecodeRows(spec.wire, spec.dim, group.gradients.data(), values);
  for (size_t k = 0; k < group.keys.size(); ++k) {
    table.SetAbsent(group.keys[k], std::span(values).subspan(k * spec.dim, spec.dim));
  }
}

void Shard::PassTime(Duration elapsed, ShardContext& context) {
  for (EmbeddingTable& table : tables_) table.expiry().PassTime(elapsed);
  Note({.kind = RecordKind::kTime, .elapsed = elapsed}, context);
}

Status Shard::Follow(Record record, ShardContext& context) {
  const Position position = record.position;
  if (position <= position_) return OkStatus();
  const auto refused = [&](std::string_view why) {
    return DataLoss("record {} of shard {}: {}", position, id_.value(), why);
  };
  if (position != position_ + 1) return refused(fmt::format("{} is the next", position_ + 1));
  Status done = DoRecord(std::move(record), context);
  if (position_ == position || done.code() == StatusCode::kResourceExhausted) return done;
  return refused(done.ok() ? "it changes nothing" : MessageOf(done));
}

Status Shard::DoRecord(Record record, ShardContext& context) {
  switch (record.kind) {
    case RecordKind::kContribution:
      clock_->Know(record.contribution.turn.worker);
      return Take(std::move(record.contribution), context);
    case RecordKind::kComplete:
      if (record.step != now() || !clock_->CanReach(record.step + 1)) {
        return Malformed("step {} is complete, while {} is next", record.step, now());
      }
      Advance(record.step + 1, context);
      return now() > record.step ? OkStatus() : Busy("step {} waits for rows on disk", now());
    case RecordKind::kFirstValues:
      return TakeFirstValues(std::move(record.contribution), context);
    case RecordKind::kTime:
      PassTime(record.elapsed, context);
      return OkStatus();
    case RecordKind::kWorkers: {
      Updater updater(*this, context);
      clock_->SetWorkers(ViewNumber(record.step), record.workers, updater);
      return OkStatus();
    }
  }
  return OkStatus();
}

Status Shard::Become(const ClockState& clock, Position position) {
  DT_TRY_STATUS(clock_->Reset(clock));
  position_ = position;
  return OkStatus();
}

void Shard::SetWorkers(ViewNumber view, std::span<const ProcessId> workers, ShardContext& context) {
  if (!place_.head || clock_->view() >= view) return;
  Updater updater(*this, context);
  clock_->SetWorkers(view, workers, updater);
}

void Shard::Reset(Step updates, const ClockState& clock) {
  for (EmbeddingTable& table : tables_) table.Clear(updates);
  clock_->Reset(clock).IgnoreError();  // It holds nothing that could be wrong.
  position_ = 0;
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

}  // namespace dt::server
