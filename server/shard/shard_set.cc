#include "server/shard/shard_set.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/base/text.h"

namespace dt::server {
namespace {

constexpr uint64_t kHeldBytesMax = uint64_t{4} << 30;
// Synchronous workers are at most one step apart, because all pushes of a step arrive before any
// worker begins the next. So a request this far ahead of the clock is an error.
constexpr Step kStepsAheadMax = 1024;
// Rows expire this part of their life late, at most.
constexpr int kTimeStepsPerLife = 256;
constexpr Duration kTimeStepMax = seconds(10);

// How often time is told to the shards; zero: no table has rows that expire by time.
Duration TimeStepOf(std::span<const TableSpec> tables) {
  Duration step{};
  for (const TableSpec& table : tables) {
    const Duration life = table.life.expiry_time;
    if (life <= Duration::zero()) continue;
    const Duration own = std::clamp<Duration>(life / kTimeStepsPerLife, Duration(1), kTimeStepMax);
    step = step == Duration::zero() ? own : std::min(step, own);
  }
  return step;
}

// Zeroes the padding of a group to a multiple of 4 bytes, which ends at `end`, so that no other
// content of memory is sent.
void ZeroPadding(const WireTable& wire, uint64_t rows, std::byte* end) {
  const uint64_t bytes = wire.BytesOf(rows) - RowBytes(wire.format, wire.dim) * rows;
  std::fill_n(end - bytes, bytes, std::byte{0});
}

}  // namespace

ShardSet::ShardSet(ShardSetOptions options)
    : options_(std::move(options)), time_step_(TimeStepOf(options_.tables)) {
  context_.steps_before = options_.steps_before;
  for (const TableSpec& table : options_.tables)
    rows_.push_back(std::make_unique<TableRows>(table));
  for (const ShardId id :
       ShardsOf(options_.view.map, options_.self, options_.executor, options_.executors)) {
    shards_.emplace_back(id, rows_, MakeClock()).SetPlace(PlaceOf(id));
  }
}

std::unique_ptr<ShardClock> ShardSet::MakeClock() const {
  if (!asynchronous()) return MakeSyncClock(options_.slices);
  return MakeAsyncClock(*options_.staleness, ClockAt(0));
}

ClockState ShardSet::ClockAt(Step step) const {
  ClockState clock{.now = step, .view = options_.view.number, .settled = step};
  for (const ProcessId id : options_.view.workers) {
    clock.turns.push_back({.worker = id, .order = step, .clock = step});
  }
  return clock;
}

Status ShardSet::CheckStamp(const Stamp& stamp) const {
  const View& own = options_.view;
  if (stamp.server != options_.self) {
    // Another server had this address before. The sender will learn where to send it.
    return Busy("sent to server {}; this is server {}", stamp.server.value(),
                options_.self.value());
  }
  if (stamp.generation < own.generation) {
    return Stale("sent in generation {} of the job, which is now in {}", stamp.generation.value(),
                 own.generation.value());
  }
  if (stamp.view < own.number) {
    return Stale("sent in view {} of the job, which is now in {}", stamp.view.value(),
                 own.number.value());
  }
  if (stamp.generation > own.generation || stamp.view > own.number || stamp.map > own.map.version) {
    return Busy("generation {}, view {} and shard map {} are not known here yet",
                stamp.generation.value(), stamp.view.value(), stamp.map.value());
  }
  return OkStatus();
}

Result<std::vector<ShardId>> ShardSet::Refused(const Stamp& stamp,
                                               std::span<const ShardId> shards) const {
  std::vector<ShardId> refused;
  const ShardMap& map = options_.view.map;
  for (const ShardId shard : shards) {
    if (shard.value() >= map.shards()) {
      return Malformed("shard {} of {}", shard.value(), map.shards());
    }
    if (map.chains[shard.value()].since > stamp.map) {
      refused.push_back(shard);
    } else if (!IsMember(shard)) {
      return Malformed("shard {} is not on this executor", shard.value());
    }
  }
  return refused;
}

Status ShardSet::CheckHeads(std::span<const ShardId> shards,
                            std::span<const ShardId> refused) const {
  for (const ShardId shard : shards) {
    if (std::ranges::binary_search(refused, shard) || Find(shard)->place().head) continue;
    return Malformed("a push for shard {}, whose head is another server", shard.value());
  }
  return OkStatus();
}

Status ShardSet::CheckKeys(std::span<const KeyGroup> groups, std::span<const Key> keys) const {
  size_t at = 0;
  for (const KeyGroup& group : groups) {
    const TableId table = options_.tables[group.table].id;
    for (const Key key : keys.subspan(at, group.rows)) {
      if (ShardOf(table, key, shards_of_job()) == group.shard) continue;
      return Malformed("key {} of table {} does not belong to shard {}", key,
                       options_.tables[group.table].name, group.shard.value());
    }
    at += group.rows;
  }
  return OkStatus();
}

Status ShardSet::CheckSlices(uint32_t slices) const {
  if (slices == options_.slices || asynchronous()) return OkStatus();
  return Malformed("push of {} slices a step; this job has {}", slices, options_.slices);
}

Status ShardSet::Push(PushRequest request, std::span<const ShardId> refused) {
  DT_TRY_STATUS(CheckStep(request.step));
  // For asynchronous workers, the clock has a limit for each of them.
  if (!asynchronous() && held_bytes() > kHeldBytesMax) {
    return Busy("{} bytes of pushes wait to be applied", held_bytes());
  }
  // A worker pushes step t after the barrier of t - 1, so that all earlier steps are complete.
  Advance(request.step);
  DT_TRY_STATUS(CheckNothingLost(request.step));
  const PushMode mode = request.mode;
  Cut(std::move(request), refused);
  Status status = Take(mode);
  parts_.clear();
  return status;
}

void ShardSet::Cut(PushRequest request, std::span<const ShardId> refused) {
  struct Push {
    PushRequest request;
    PooledVector<GroupView> groups;
  };
  const auto push = MakePooled<Push>(std::move(request));
  const PushRequest& of = push->request;
  std::span<const Key> keys = of.keys.as<Key>();
  std::span<const std::byte> gradients = of.gradients.bytes();
  push->groups.reserve(of.groups.size());  // No reallocation: contributions point into it.
  size_t next = 0;
  for (const ShardPiece& piece : of.pieces) {
    const size_t first = push->groups.size();
    for (; next < of.groups.size() && of.groups[next].shard == piece.shard; ++next) {
      const KeyGroup& group = of.groups[next];
      const uint64_t bytes = WireOf(group.table).BytesOf(group.rows);
      push->groups.push_back({group.table, keys.first(group.rows), gradients.first(bytes)});
      keys = keys.subspan(group.rows);
      gradients = gradients.subspan(bytes);
    }
    if (std::ranges::binary_search(refused, piece.shard)) continue;
    parts_.push_back({Find(piece.shard),
                      {.step = of.step,
                       .slice = of.slice,
                       .piece = piece.piece,
                       .pieces = piece.pieces,
                       .lr_scale = of.lr_scale,
                       .groups = std::span<const GroupView>(push->groups).subspan(first),
                       .owner = push,
                       .turn = of.turn}});
  }
}

// Asks each shard, even after one has refused: what a shard takes need not be sent again.
Status ShardSet::Take(PushMode mode) {
  Status status;
  for (Part& part : parts_) {
    Contribution& contribution = part.contribution;
    status.Update(mode == PushMode::kGradients
                      ? part.shard->Take(std::move(contribution), context_)
                      : part.shard->TakeFirstValues(std::move(contribution), context_));
  }
  ++changes_;
  return status;
}

Status ShardSet::Follow(ShardId id, Record record) {
  Shard* const shard = Find(id);
  if (shard == nullptr) return DataLoss("a record of shard {}, which is not here", id.value());
  ++changes_;
  return shard->Follow(std::move(record), context_);
}

Status ShardSet::CheckStep(Step step) const {
  if (asynchronous() || step < kStepsAheadMax || step - kStepsAheadMax <= clock())
    return OkStatus();
  return Malformed("a request of step {}, while step {} is next", step, clock());
}

ShardClock::Pullable ShardSet::MayPull(PullMode mode, Step step) const {
  auto all = ShardClock::Pullable::kYes;
  for (const Shard& shard : shards_) {
    if (shard.place().syncing) continue;
    const ShardClock::Pullable one = shard.clock().MayPull(mode, step);
    if (one == ShardClock::Pullable::kNotYet) return one;
    if (one != ShardClock::Pullable::kYes) all = one;
  }
  return all;
}

void ShardSet::Advance(Step step) {
  complete_ = std::max(complete_, step);
  for (Shard& shard : shards_) {
    if (!shard.place().head) continue;
    const Step before = shard.now();
    shard.Advance(step, context_);
    changes_ += shard.now() != before;
  }
}

bool ShardSet::EnsureInMemory(std::span<const KeyGroup> groups, std::span<const Key> keys) {
  if (residency() == nullptr) return true;
  key_runs_.clear();
  for (const KeyGroup& group : groups) {
    key_runs_.push_back({&Find(group.shard)->table(group.table), keys.first(group.rows)});
    keys = keys.subspan(group.rows);
  }
  return residency()->EnsureInMemory(key_runs_);
}

bool ShardSet::Settled() const {
  return std::ranges::all_of(
      shards_, [](const Shard& shard) { return shard.place().syncing || shard.clock().settled(); });
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
    Shard& shard = *Find(group.shard);
    EmbeddingTable& table = shard.table(group.table);
    table.tier_counts().touched += group.rows;
    const WireTable wire = WireOf(group.table);
    const bool moves = table.rows_of_all().has_missed_updates();
    const Step now = moves ? options_.steps_before + shard.now() : 0;
    pull_runs_.push_back({&table, keys.first(group.rows), out, wire.format, now});
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
  Shard* const shard = Find(ShardOf(table, key, shards_of_job()));
  if (shard == nullptr || spec->on_worker) return OkStatus();
  const auto index = static_cast<uint32_t>(spec - options_.tables.begin());
  EmbeddingTable& to = shard->table(index);
  if (to.IsExpired(record)) return OkStatus();
  // Every shard gets its part of the memory: if the first ones took all of it, their indexes would
  // stay large while those of the others grow.
  if (residency() != nullptr && !spec->all_in_memory && record.size() == to.record_bytes() &&
      shard->bytes() >= residency()->bytes_max() / 16 * 15 / shards_.size()) {
    residency()->PutBelow(to, key, record, on_disk);
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
  Result<bool> restored = shard->table(index).RestoreLife(state);
  if (restored.ok()) return restored;
  return DataLoss("the state of table {} in shard {}: {}", at->name, id.value(),
                  MessageOf(restored.status()));
}

void ShardSet::PassTime(Duration elapsed) {
  if (time_step_ == Duration::zero()) return;
  time_passed_ += elapsed;
  if (time_passed_ < time_step_) return;
  for (Shard& shard : shards_) {
    if (shard.place().head) shard.PassTime(time_passed_, context_);
  }
  time_passed_ = {};
}

Step ShardSet::clock() const {
  Step least = std::numeric_limits<Step>::max();
  for (const Shard& shard : shards_) {
    if (!shard.place().syncing) least = std::min(least, shard.now());
  }
  return least;
}

std::string ShardSet::SlowestText() const {
  const auto slowest = std::ranges::min_element(shards_, {}, [](const Shard& shard) {
    return std::pair(shard.place().syncing, shard.now());
  });
  if (slowest == shards_.end()) return "there are no shards here";
  return fmt::format("shard {} waits for {}", slowest->id().value(), slowest->clock().Missing());
}

Status ShardSet::CheckNothingLost(Step step) const {
  const auto can_reach = [step](const Shard& shard) {
    return !shard.place().head || shard.clock().CanReach(step);
  };
  if (log_end_.empty() || std::ranges::all_of(shards_, can_reach)) return OkStatus();
  return DataLoss(
      "the log {} ends before what it has acknowledged: {}, and all workers are past it; "
      "--resume auto goes on from the last checkpoint",
      log_end_, SlowestText());
}

void ShardSet::Reset(Step clock, Generation generation) {
  log_end_.clear();
  for (Shard& shard : shards_) {
    shard.Reset(options_.steps_before + clock, ClockAt(clock));
  }
  removed_.clear();
  for (const auto& rows : rows_) rows->Clear();
  options_.view.generation = generation;
  complete_ = 0;
}

uint64_t ShardSet::held_bytes() const {
  uint64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.clock().held_bytes();
  return bytes;
}

uint64_t ShardSet::bytes() const {
  uint64_t bytes = 0;
  for (const auto& rows : rows_) bytes += rows->bytes();
  for (const Shard& shard : shards_) bytes += shard.index_bytes();
  for (const Removed& shard : removed_) {
    for (const EmbeddingTable& table : shard.tables) bytes += table.index_bytes();
  }
  return bytes;
}

Shard* ShardSet::Find(ShardId id) {
  const auto it = std::ranges::lower_bound(shards_, id, {}, &Shard::id);
  return it != shards_.end() && it->id() == id ? &*it : nullptr;
}

}  // namespace dt::server
