#include "server/shard/shard_set.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/base/text.h"

namespace dt::server {
namespace {

constexpr uint64_t kHeldBytesMax = uint64_t{4} << 30;
// Synchronous workers are at most one step apart, since all pushes of a step arrive before any
// worker begins the next. The limit is larger for asynchronous workers.
constexpr Step kStepsAheadMax = 1024;

// Of one executor: the shards of a request need not be all here.
Status NotHere(ShardId shard) {
  return WithHint(Stale("shard {} is not on this executor", shard.value()),
                  "the sender's shard map is another one");
}

// What fills a group up to a multiple of 4 bytes, before `end`: nothing of ours may travel there.
void ZeroPadding(const WireTable& wire, uint64_t rows, std::byte* end) {
  const uint64_t bytes = wire.BytesOf(rows) - RowBytes(wire.format, wire.dim) * rows;
  std::fill_n(end - bytes, bytes, std::byte{0});
}

}  // namespace

ShardSet::ShardSet(ShardSetOptions options) : options_(std::move(options)) {
  DT_CHECK(std::ranges::is_sorted(options_.shards));
  for (const TableSpec& table : options_.tables)
    rows_.push_back(std::make_unique<TableRows>(table));
  shards_.reserve(options_.shards.size());
  for (const ShardId id : options_.shards) {
    shards_.emplace_back(id, rows_, options_.slices,
                         options_.async.has_value() ? &*options_.async : nullptr);
  }
}

Status ShardSet::CheckStamp(const Stamp& stamp) const {
  const Stamp& own = options_.stamp;
  if (stamp.generation < own.generation) {
    return Stale("sent in generation {} of the job, which is now in {}", stamp.generation.value(),
                 own.generation.value());
  }
  if (stamp.term < own.term) {
    return Stale("sent in term {} of the scheduler, which is now in {}", stamp.term.value(),
                 own.term.value());
  }
  if (stamp.map < own.map) {
    return Stale("sent with version {} of the shard map, which is now at {}", stamp.map.value(),
                 own.map.value());
  }
  if (stamp.generation > own.generation || stamp.map > own.map) {
    return Busy("generation {} and shard map {} are not known here yet", stamp.generation.value(),
                stamp.map.value());
  }
  return OkStatus();
}

Status ShardSet::CheckGroups(std::span<const KeyGroup> groups, std::span<const Key> keys) const {
  size_t at = 0;
  for (const KeyGroup& group : groups) {
    if (Find(group.shard) == nullptr) return NotHere(group.shard);
    const TableId table = options_.tables[group.table].id;
    for (const Key key : keys.subspan(at, group.rows)) {
      if (ShardOf(table, key, options_.shards_of_job) == group.shard) continue;
      return Malformed("key {} of table {} does not belong to shard {}", key,
                       options_.tables[group.table].name, group.shard.value());
    }
    at += group.rows;
  }
  return OkStatus();
}

Status ShardSet::CheckPush(const PushRequest& request) const {
  DT_TRY_STATUS(CheckGroups(request.groups, request.keys.as<Key>()));
  if (request.slices != options_.slices) {
    return Malformed("push of {} slices a step; this job has {}", request.slices, options_.slices);
  }
  size_t named = 0;
  for (size_t i = 0; i < request.groups.size(); ++i) {
    named += i == 0 || request.groups[i].shard != request.groups[i - 1].shard;
  }
  if (named == shards_.size()) return OkStatus();
  return Malformed("push that names {} of this executor's {} shards", named, shards_.size());
}

Status ShardSet::Push(PushRequest request) {
  DT_TRY_STATUS(CheckPush(request));
  if (!asynchronous()) {  // Else AsyncClock has a limit of its own.
    if (held_bytes() > kHeldBytesMax) {
      return Busy("{} bytes of pushes wait to be applied", held_bytes());
    }
    DT_TRY_STATUS(CheckStep(request.step));
    // A worker pushes step t when it is past the barrier of t - 1: all before is complete.
    Advance(request.step);
    DT_TRY_STATUS(CheckNothingLost(request.step));
    if (!std::ranges::all_of(shards_, [&](const Shard& s) { return s.CanReach(request.step); })) {
      return Busy("push of step {}, but {}", request.step, SlowestText());
    }
  }
  const PushMode mode = request.mode;
  if (mode == PushMode::kSetAbsent && !EnsureInMemory(request.groups, request.keys.as<Key>())) {
    return Busy("rows that may be there are on their way from the disk");
  }
  Cut(std::move(request));
  Status status;
  if (mode == PushMode::kSetAbsent) {
    SetAbsent();
  } else {
    status = asynchronous() ? Take() : Hold();
  }
  contributions_.clear();
  return status;
}

void ShardSet::Cut(PushRequest request) {
  struct Push {
    PushRequest request;
    PooledVector<GroupView> groups;
  };
  const auto push = MakePooled<Push>(std::move(request));
  const PushRequest& of = push->request;
  std::span<const Key> keys = of.keys.as<Key>();
  std::span<const std::byte> gradients = of.gradients.bytes();
  push->groups.reserve(of.groups.size());  // Contributions point into it.
  for (size_t i = 0; i < of.groups.size(); ++i) {
    const KeyGroup& group = of.groups[i];
    const uint64_t bytes = WireOf(group.table).BytesOf(group.rows);
    push->groups.push_back({group.table, keys.first(group.rows), gradients.first(bytes)});
    keys = keys.subspan(group.rows);
    gradients = gradients.subspan(bytes);
    if (i == 0 || of.groups[i - 1].shard != group.shard) {
      contributions_.push_back({.step = of.step,
                                .slice = of.slice,
                                .part = of.part,
                                .parts = of.parts,
                                .rate_scale = of.rate_scale,
                                .groups = {&push->groups.back(), 0},
                                .owner = push,
                                .worker = of.worker,
                                .first_step = of.first_step});
    }
    std::span<const GroupView>& groups = contributions_.back().groups;
    groups = {groups.data(), groups.size() + 1};
  }
}

Status ShardSet::Hold() {
  // All shards are at one state with respect to (step, slice, part): the first error is everyone's.
  for (size_t i = 0; i < contributions_.size(); ++i) {
    DT_TRY_STATUS(shards_[i].Hold(std::move(contributions_[i])));
  }
  ++changes_;
  return OkStatus();
}

Status ShardSet::Take() {
  // Each is asked, also after a refusal: they differ at most in which rows are in memory.
  Status status;
  for (size_t i = 0; i < contributions_.size(); ++i) {
    status.Update(shards_[i].Take(std::move(contributions_[i]), scratch_, residency_));
  }
  ++changes_;
  return status;
}

void ShardSet::SetAbsent() {
  for (size_t i = 0; i < contributions_.size(); ++i) {
    for (const GroupView& group : contributions_[i].groups) {
      EmbeddingTable& table = shards_[i].table(group.table);
      const WireTable wire = WireOf(group.table);
      std::vector<float> values(group.keys.size() * wire.dim);
      DecodeRows(wire.format, wire.dim, group.gradients.data(), values);
      for (size_t k = 0; k < group.keys.size(); ++k) {
        table.SetAbsent(group.keys[k], std::span(values).subspan(k * wire.dim, wire.dim));
      }
    }
  }
}

Status ShardSet::CheckStep(Step step) const {
  if (asynchronous() || step < kStepsAheadMax || step - kStepsAheadMax <= clock())
    return OkStatus();
  return Malformed("a request of step {}, while step {} is next", step, clock());
}

bool ShardSet::MayPull(PullMode mode, Step step) const {
  if (!asynchronous()) return clock() >= step;
  if (mode == PullMode::kEvaluate) return true;
  return std::ranges::all_of(shards_, [&](const Shard& shard) { return shard.MayPull(step); });
}

void ShardSet::Advance(Step step) {
  complete_ = std::max(complete_, step);
  for (Shard& shard : shards_) {
    const Step before = shard.clock();
    shard.Advance(step, scratch_, residency_);
    changes_ += shard.clock() != before;
  }
}

bool ShardSet::EnsureInMemory(std::span<const KeyGroup> groups, std::span<const Key> keys) {
  if (residency_ == nullptr) return true;
  key_runs_.clear();
  for (const KeyGroup& group : groups) {
    key_runs_.push_back({&Find(group.shard)->table(group.table), keys.first(group.rows)});
    keys = keys.subspan(group.rows);
  }
  return residency_->EnsureInMemory(key_runs_);
}

bool ShardSet::Settled() const {
  if (asynchronous()) return held_bytes() == 0;
  return std::ranges::none_of(shards_, [](const Shard& s) { return s.CanReach(s.clock() + 1); });
}

EmbeddingTable* ShardSet::FindTable(ShardId shard, TableId table) {
  Shard* const found = Find(shard);
  const auto spec = std::ranges::find(options_.tables, table, &TableSpec::id);
  if (found == nullptr || spec == options_.tables.end()) return nullptr;
  return &found->table(static_cast<uint32_t>(spec - options_.tables.begin()));
}

Frame ShardSet::Gather(PullMode mode, std::span<const KeyGroup> groups, std::span<const Key> keys) {
  uint64_t bytes = 0;
  for (const KeyGroup& group : groups) bytes += WireOf(group.table).BytesOf(group.rows);
  Frame frame = options_.frames->Make(bytes);
  std::byte* out = frame.bytes().data();
  pull_runs_.clear();
  for (const KeyGroup& group : groups) {
    EmbeddingTable& table = Find(group.shard)->table(group.table);
    table.tier_counts().touched += group.rows;
    const WireTable wire = WireOf(group.table);
    pull_runs_.push_back({&table, keys.first(group.rows), out, wire.format});
    keys = keys.subspan(group.rows);
    out += wire.BytesOf(group.rows);
    ZeroPadding(wire, group.rows, out);
  }
  EmbeddingTable::Pull(pull_runs_, mode == PullMode::kEvaluate);
  return frame;
}

Status ShardSet::Restore(TableId table, Key key, std::span<const std::byte> record, bool on_disk) {
  const auto spec = std::ranges::find(options_.tables, table, &TableSpec::id);
  if (spec == options_.tables.end()) return DataLoss("row {} is of an unknown table", key);
  Shard* const shard = Find(ShardOf(table, key, options_.shards_of_job));
  if (shard == nullptr || spec->on_worker) return OkStatus();
  const auto index = static_cast<uint32_t>(spec - options_.tables.begin());
  EmbeddingTable& to = shard->table(index);
  if (to.IsGone(record)) return OkStatus();
  // Every shard gets its part of the memory: were the first ones to have it all, their indexes
  // would stay large while those of the others grow.
  if (residency_ != nullptr && !spec->all_in_memory && record.size() == to.record_bytes() &&
      shard->bytes() >= residency_->bytes_max() / 16 * 15 / shards_.size()) {
    residency_->PutBelow(to, key, record, on_disk);
    return OkStatus();
  }
  const Status restored = to.Restore(key, record, on_disk);
  return restored.ok() ? restored : DataLoss("{}", MessageOf(restored));
}

Result<bool> ShardSet::RestoreLife(ShardId id, TableId table, std::string_view state) {
  const auto at = std::ranges::find(options_.tables, table, &TableSpec::id);
  if (at == options_.tables.end()) {
    return DataLoss("it holds state of table {}, which is unknown", HexOf(table.value()));
  }
  Shard* const shard = Find(id);
  if (shard == nullptr) return true;
  const auto index = static_cast<uint32_t>(at - options_.tables.begin());
  Result<bool> restored = shard->table(index).life().Restore(state);
  if (restored.ok()) return restored;
  return DataLoss("the state of table {} in shard {}: {}", at->name, id.value(),
                  MessageOf(restored.status()));
}

void ShardSet::PassTime(Duration elapsed) {
  const bool timed = std::ranges::any_of(
      options_.tables, [](const TableSpec& t) { return t.life.expiry_time > Duration::zero(); });
  if (!timed) return;
  for (Shard& shard : shards_) shard.PassTime(elapsed);
}

Step ShardSet::clock() const {
  Step least = std::numeric_limits<Step>::max();
  for (const Shard& shard : shards_) least = std::min(least, shard.clock());
  return least;
}

std::string ShardSet::SlowestText() const {
  const auto slowest = std::ranges::min_element(shards_, {}, &Shard::clock);
  if (slowest == shards_.end()) return "there are no shards here";
  if (asynchronous()) return slowest->Missing();
  return fmt::format("shard {} waits for {} of step {}", slowest->id().value(), slowest->Missing(),
                     slowest->clock());
}

Status ShardSet::CheckNothingLost(Step step) const {
  const bool lost = !log_end_.empty() && !asynchronous() &&
                    !std::ranges::all_of(shards_, [&](const Shard& s) { return s.CanReach(step); });
  if (!lost) return OkStatus();
  return DataLoss(
      "the log {} ends before what it has acknowledged: {}, and all workers are past it; "
      "--resume auto goes on from the last checkpoint",
      log_end_, SlowestText());
}

void ShardSet::Reset(Step clock, Generation generation) {
  log_end_.clear();
  for (Shard& shard : shards_) shard.Reset(clock);
  for (const auto& rows : rows_) rows->Clear();
  options_.stamp.generation = generation;
  complete_ = 0;
}

uint64_t ShardSet::held_bytes() const {
  uint64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.held_bytes();
  return bytes;
}

uint64_t ShardSet::bytes() const {
  uint64_t bytes = 0;
  for (const auto& rows : rows_) bytes += rows->bytes();
  for (const Shard& shard : shards_) bytes += shard.index_bytes();
  return bytes;
}

Shard* ShardSet::Find(ShardId id) {
  const auto it = std::ranges::lower_bound(shards_, id, {}, &Shard::id);
  return it != shards_.end() && it->id() == id ? &*it : nullptr;
}

std::vector<ShardId> ShardsOf(const ShardMap& map, ProcessId server, uint32_t executor,
                              size_t executors) {
  std::vector<ShardId> shards;
  for (uint32_t s = 0; s < map.shards(); ++s) {
    const bool ours = std::ranges::find(map.chains[s], server) != map.chains[s].end();
    if (ours && ShardMap::ExecutorOf(ShardId(s), executors) == executor) shards.emplace_back(s);
  }
  return shards;
}

}  // namespace dt::server
