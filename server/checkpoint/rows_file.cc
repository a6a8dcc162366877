#include "server/checkpoint/rows_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/config/dense_tables.h"
#include "common/rows/file_rows.h"
#include "common/rows/row_keys.h"
#include "common/rows/row_record.h"
#include "common/rows/rows_header.h"
#include "common/rows/rows_reader.h"
#include "common/rows/taken_rows.h"

namespace dt::server {
namespace {

constexpr uint64_t kRowsAtOnce = 1024;

// The optimizer without what does not matter to missed updates.
OptimizerSpec NumbersOf(OptimizerSpec optimizer) {
  optimizer.l2_scope = {};
  optimizer.clip_row_norm = 0;
  return optimizer;
}

RowsHeader::Table SavedTable(const TableSpec& t, Step now) {
  RowsHeader::Table table{t.id, t.dim, t.state(), t.name, t.dtype};
  if (t.optimizer.scope == UpdateScope::kDense) table.missed = {NumbersOf(t.optimizer), now};
  return table;
}

RowsHeader HeaderOf(const ShardSet& shards, Step step) {
  RowsHeader header{.step = step, .shards = shards.shards_of_job()};
  for (const Shard& shard : shards.shards()) {
    if (!shard.place().tail) continue;
    header.holds.push_back(shard.id());
    header.positions.push_back(shard.position());
  }
  for (const TableSpec& t : shards.tables()) {
    header.tables.push_back(SavedTable(t, shards.steps_before() + step));
  }
  return header;
}

// Whether the table holds dense parameters of an asynchronous job (dense_tables.h), and this job,
// which evaluates it, has them on its worker. They are in "dense.bin", too.
bool IsPassedOver(TableId id, std::span<const TableSpec> tables) {
  const bool dense = id == TableIdOf(kDenseTable) || id == TableIdOf(kRunningTable);
  return dense && std::ranges::find(tables, id, &TableSpec::id) == tables.end();
}

// Checks that the job has every table of the header, in the same form.
Status CheckTables(const RowsHeader& header, std::span<const TableSpec> tables) {
  for (const RowsHeader::Table& saved : header.tables) {
    if (IsPassedOver(saved.id, tables)) continue;
    const auto job = std::ranges::find(tables, saved.id, &TableSpec::id);
    if (job == tables.end()) {
      return Invalid("the checkpoint has a table {}, which the job has not", saved.name);
    }
    if (job->dtype != saved.dtype) {
      return WithHint(Invalid("the rows of table {} were saved as {}; the job keeps them as {}",
                              saved.name, NameOf(saved.dtype), NameOf(job->dtype)),
                      "use the dtype of the saved job, or start anew");
    }
    if (job->dim == saved.dim && job->state() == saved.state) continue;
    return WithHint(Invalid("table {} was saved with dim {} and {} floats of optimizer state; the "
                            "job has dim {} and {}",
                            saved.name, saved.dim, saved.state, job->dim, job->state()),
                    "use the dim and optimizer of the saved job, or start anew");
  }
  return OkStatus();
}

Status CheckAllTables(const RowsHeader& header, std::span<const TableSpec> tables) {
  const auto taken = std::ranges::count_if(header.tables, [&](const RowsHeader::Table& saved) {
    return !IsPassedOver(saved.id, tables);
  });
  if (static_cast<size_t>(taken) == tables.size()) return OkStatus();
  for (const TableSpec& t : tables) {
    if (std::ranges::find(header.tables, t.id, &RowsHeader::Table::id) != header.tables.end())
      continue;
    return Invalid("the checkpoint has no table {}", t.name);
  }
  return DataLoss("the header names a table twice");
}

// Reads the rows of our shards from one folder after another.
class RowsLoader {
 public:
  RowsLoader(const RowsToLoad& load, ShardSet& shards, DiskTier* tier)
      : load_(load), shards_(shards), tier_(tier) {}

  Status Load(const std::string& folder) {
    DT_TRY(const auto db, RowsDb::OpenToRead(folder));
    const std::unique_ptr<RowsDb::Cursor> at = db->Read();
    DT_TRY(const RowsHeader header, ReadHeader(*at));
    if (!begins()) DT_TRY_STATUS(CheckAllTables(header, shards_.tables()));
    for (size_t i = 0; i < header.holds.size(); ++i) {
      const ShardId id = header.holds[i];
      if (!seen_.insert(id).second) return DataLoss("shard {} is in two files", id.value());
      const bool ours =
          !begins() && header.shards == shards_.shards_of_job() && !header.positions.empty();
      if (Shard* const shard = ours ? shards_.Find(id) : nullptr; shard != nullptr) {
        shard->SetPosition(header.positions[i]);
      }
    }
    // If the files hold exactly our shards, the tier goes on with them.
    on_disk_ = tier_ != nullptr && !header.holds.empty() &&
               header.shards == shards_.shards_of_job() &&
               std::ranges::equal(header.holds, shards_.shards(), {}, {}, &Shard::id) &&
               std::ranges::none_of(shards_.tables(), &TableSpec::on_worker) &&
               (!begins() || TakesAll(header));
    if (on_disk_) DT_TRY_STATUS(tier_->Adopt(folder));
    return TakeOurs(*at, header);
  }
  // Loads tables that were on workers and may be on servers now.
  Status LoadOfWorker(const std::string& folder) {
    DT_TRY(const auto db, RowsDb::OpenToRead(folder));
    const std::unique_ptr<RowsDb::Cursor> at = db->Read();
    DT_TRY(const RowsHeader header, ReadHeader(*at));
    on_disk_ = false;
    return TakeOurs(*at, header);
  }
  // Loads the rows of a file that is no checkpoint (common/rows/file_rows.h).
  Status LoadFile(const TakenTable& taken) {
    const auto spec = std::ranges::find(shards_.tables(), taken.id, &TableSpec::id);
    if (spec == shards_.tables().end() || spec->on_worker) return OkStatus();
    DT_TRY(const FileRows file, FileRows::Open(taken.file, spec->name, spec->dim));
    TakenRows rows(OptionsFor(*spec, false));
    uint64_t taken_rows = 0;
    const auto ours = [&](Key key) {
      return shards_.Find(ShardOf(taken.id, key, shards_.shards_of_job())) != nullptr;
    };
    on_disk_ = false;
    return file.ForEach(ours, [&](Key key, std::span<const float> values) -> Status {
      const std::span<const std::byte> record = rows.Make(values);
      const Status restored = shards_.Restore(taken.id, key, record);
      if (!restored.ok()) return Malformed("key {}: {}", key, MessageOf(restored));
      return ++taken_rows % kRowsAtOnce == 0 && tier_ != nullptr ? tier_->MakeRoom() : OkStatus();
    });
  }
  // True if some shards lost their counts of pushes or the times until rows expire.
  bool counts_lost() const { return counts_lost_; }
  // Checks that every shard of the saved job was in some file.
  Status CheckComplete() const {
    for (uint32_t s = 0; s < saved_shards_; ++s) {
      if (!seen_.contains(ShardId(s))) return DataLoss("the rows of shard {} are missing", s);
    }
    return OkStatus();
  }

 private:
  // Takes the rows of our shards, as far as the file holds the shards that they were in. It may
  // have rows of others, which were coming or going when it was saved.
  Status TakeOurs(RowsDb::Cursor& at, const RowsHeader& header) {
    for (const ShardId saved : header.holds) {
      const bool same = header.shards == shards_.shards_of_job();
      if (same && shards_.Find(saved) == nullptr) continue;
      const std::string prefix = ShardKey(saved);
      DT_TRY_STATUS(at.Seek(prefix));
      // Shard 0's prefix sorts after the header's key.
      DT_TRY_STATUS(TakeRows(at, prefix));
    }
    return OkStatus();
  }

  Result<RowsHeader> ReadHeader(RowsDb::Cursor& at) {
    DT_TRY_STATUS(at.Seek({}));
    if (!at.valid() || at.key() != kHeaderKey) return DataLoss("it has no header");
    DT_TRY(RowsHeader header, ParseRowsHeader(at.value()));
    if (begins()) {
      MakeTakers(header);
    } else {
      DT_TRY_STATUS(CheckTables(header, shards_.tables()));
      if (header.step != load_.step) {
        return DataLoss("it was saved at step {}, not at {}", header.step, load_.step);
      }
    }
    if (saved_shards_ == 0) saved_shards_ = header.shards;
    if (header.shards != saved_shards_) {
      return DataLoss("it is of {} shards, another file of {}", header.shards, saved_shards_);
    }
    return header;
  }

  // Takes our rows from the cursor on, while keys begin with `prefix`.
  Status TakeRows(RowsDb::Cursor& at, const std::string& prefix) {
    for (uint64_t n = 1; at.valid() && at.key().starts_with(prefix); ++n) {
      DT_TRY_STATUS(Take(at.key(), at.value()));
      DT_TRY_STATUS(at.Next());
      if (tier_ != nullptr && n % kRowsAtOnce == 0) DT_TRY_STATUS(tier_->MakeRoom());
    }
    return OkStatus();
  }

  // Takes one key and value of a file.
  Status Take(std::string_view key, std::string_view value) {
    if (key.size() == kStateKeyBytes) return TakeState(key, value);
    if (key.size() != RowKey::kBytes) return DataLoss("it holds a key of {} bytes", key.size());
    const RowKey row(key);
    if (PassesOver(row.table())) return OkStatus();
    if (!expired_in_.empty() && key.starts_with(expired_in_)) {
      const std::optional<Step> last_push = LastPushOf(std::as_bytes(std::span(value)));
      if (!last_push.has_value()) return DataLoss("a row has {} bytes", value.size());
      if (*last_push < expire_before_) return OkStatus();
    }
    std::span<const std::byte> record = std::as_bytes(std::span(value));
    if (const auto taker = takers_.find(row.table()); taker != takers_.end()) {
      DT_TRY(record, taker->second.rows.Take(taker->second.saved, record));
    }
    return shards_.Restore(row.table(), row.key(), record, on_disk_);
  }
  Status TakeState(std::string_view key, std::string_view value) {
    if (value.empty() || PassesOver(TableOfKey(key))) return OkStatus();
    const bool same = saved_shards_ == shards_.shards_of_job();
    // Steps that are not those of this job tell nothing about its rows.
    const bool counts_only = begins() && shards_.steps_before() == 0;
    // A row that is brought up to date would no longer count as expired.
    if (!same || begins()) {
      expired_in_ = key;
      const Result<Step> before = ExpireBeforeOf(value);
      if (!before.ok()) return DataLoss("a state: {}", MessageOf(before.status()));
      expire_before_ = *before;
    }
    if (!same) {
      counts_lost_ = true;
      return OkStatus();
    }
    std::string state(value);
    if (counts_only) {
      DT_TRY(state, CountsOf(value));
    }
    DT_TRY(const bool taken, shards_.RestoreLife(ShardOfKey(key), TableOfKey(key), state));
    counts_lost_ = counts_lost_ || !taken;
    return OkStatus();
  }

  // ---------------------------------------------------------- another job's rows

  bool begins() const { return load_.taken.has_value(); }
  const TakenTable* TakenOf(TableId id) const {
    const TakenTable* const taken = load_.taken->Find(id);
    return taken == nullptr || !taken->file.empty() ? nullptr : taken;
  }
  bool PassesOver(TableId id) const {
    return begins() ? TakenOf(id) == nullptr : IsPassedOver(id, shards_.tables());
  }
  TakenRows::Options OptionsFor(const TableSpec& spec, bool keep_state) const {
    std::vector<float> state(spec.state());
    InitState(spec.optimizer, state);
    return {.table = SavedTable(spec, shards_.steps_before()),
            .initial_state = std::move(state),
            .keep_state = keep_state,
            .steps_before = shards_.steps_before()};
  }
  void MakeTakers(const RowsHeader& header) {
    takers_.clear();
    for (const RowsHeader::Table& saved : header.tables) {
      const auto spec = std::ranges::find(shards_.tables(), saved.id, &TableSpec::id);
      const TakenTable* const taken = TakenOf(saved.id);
      if (taken == nullptr || spec == shards_.tables().end()) continue;
      takers_.emplace(saved.id,
                      Taker{SavedValues(saved), TakenRows(OptionsFor(*spec, taken->state))});
    }
  }
  // Whether the rows of both miss the same updates, or none.
  static bool MissesTheSame(const TableSpec& spec, const RowsHeader::Table& saved) {
    const auto ours = SavedTable(spec, 0).missed;
    if (!ours.has_value() || !saved.missed.has_value()) return ours == saved.missed;
    return ours->optimizer == saved.missed->optimizer;
  }
  // Whether all records are taken as they are.
  bool TakesAll(const RowsHeader& header) const {
    const bool same_tables = header.tables.size() == shards_.tables().size();
    return shards_.steps_before() > 0 && same_tables &&
           std::ranges::all_of(header.tables, [&](const RowsHeader::Table& saved) {
             const TakenTable* const taken = TakenOf(saved.id);
             const auto spec = std::ranges::find(shards_.tables(), saved.id, &TableSpec::id);
             return taken != nullptr && taken->state && spec != shards_.tables().end() &&
                    spec->dtype == saved.dtype && MissesTheSame(*spec, saved);
           });
  }

  // Makes the job's rows of the saved ones of a table.
  struct Taker {
    SavedValues saved;
    TakenRows rows;
  };

  const RowsToLoad& load_;
  ShardSet& shards_;
  DiskTier* const tier_;
  bool on_disk_ = false;
  bool counts_lost_ = false;
  std::map<TableId, Taker> takers_;  // Of the file that is being read, if the job begins with it.
  // If the shards cannot tell: rows whose keys begin with expired_in_ and that were last pushed
  // before expire_before_ have expired.
  std::string expired_in_;
  Step expire_before_ = 0;
  uint32_t saved_shards_ = 0;
  std::set<ShardId> seen_;
};

}  // namespace

std::unique_ptr<CheckpointTask> SaveTask(const ShardSet& shards, Step step,
                                         const CheckpointLocation& location) {
  auto task = std::make_unique<CheckpointTask>();
  task->name = fmt::format("server-{}/rows-{}", location.server.value(), location.executor);
  task->folder = location.folder + "/" + task->name;
  task->notes.emplace_back(kHeaderKey, HeaderText(HeaderOf(shards, step)));
  // On disk, tables are sorted by id, not in the order of the job. Empty states are written too:
  // they replace the states of an adopted checkpoint.
  std::vector<uint32_t> order(shards.tables().size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](uint32_t t) { return shards.tables()[t].id; });
  for (const Shard& shard : shards.shards()) {
    if (!shard.place().tail) continue;
    for (const uint32_t t : order) {
      const EmbeddingTable& table = shard.table(t);
      task->notes.emplace_back(StateKey(shard.id(), table.spec().id), table.LifeState());
    }
  }
  return task;
}

namespace {

// All files of a checkpoint.
Status LoadCheckpoint(const std::string& folder, RowsLoader& loader) {
  const std::vector<std::string> folders = RowsFoldersIn(folder);
  if (folders.empty()) return DataLoss("checkpoint {} has no rows", folder);
  for (const std::string& one : folders) {
    DT_TRY_STATUS(WithWhere(Prefixed(loader.Load(one), "loading rows"), one));
  }
  for (const std::string& one : WorkerRowsFoldersIn(folder)) {
    DT_TRY_STATUS(WithWhere(Prefixed(loader.LoadOfWorker(one), "loading rows"), one));
  }
  return WithWhere(loader.CheckComplete(), folder);
}

}  // namespace

Status LoadRows(const RowsToLoad& load, ShardSet& shards, DiskTier* tier) {
  shards.Reset(load.step, load.generation);
  RowsLoader loader(load, shards, tier);
  const std::string& folder = load.folder;
  if (!folder.empty()) DT_TRY_STATUS(LoadCheckpoint(folder, loader));
  for (const TakenTable& table : load.taken.value_or(TakenParts()).tables) {
    if (table.file.empty()) continue;
    DT_TRY_STATUS(WithWhere(Prefixed(loader.LoadFile(table), "loading rows"), table.file));
  }
  if (loader.counts_lost()) {
    LogWarn("server.counts_begin_anew",
            {{"checkpoint", folder}, {"why", "another number of shards, or size of the sketch"}});
  }
  return OkStatus();
}

}  // namespace dt::server
