#include "server/checkpoint/rows_file.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "server/checkpoint/rows_header.h"

namespace dt::server {
namespace {

constexpr std::string_view kHeaderKey("\0", 1);
constexpr uint64_t kRowsAtOnce = 1024;

std::string ShardKey(ShardId shard) {
  return std::string(RowKey(shard, TableId(0), 0).text().substr(0, sizeof(uint32_t)));
}

RowsHeader HeaderOf(const ShardSet& shards, Step step) {
  RowsHeader header{step, shards.shards_of_job(), {}, {}};
  for (const Shard& shard : shards.shards()) header.holds.push_back(shard.id());
  for (const TableSpec& t : shards.tables()) {
    header.tables.push_back({t.id, t.dim, t.state(), t.name, t.dtype});
  }
  return header;
}

// <folder>/server-<id>/rows-<executor>
std::vector<std::string> FoldersIn(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& server : fs::directory_iterator(folder, error)) {
    const bool ours = server.path().filename().string().starts_with("server-");
    if (!ours || !server.is_directory(error)) continue;
    for (const fs::directory_entry& rows : fs::directory_iterator(server.path(), error)) {
      if (rows.path().filename().string().starts_with("rows-")) found.push_back(rows.path());
    }
  }
  std::ranges::sort(found);
  return found;
}

Status CheckTables(const RowsHeader& header, std::span<const TableSpec> tables) {
  for (const RowsHeader::Table& saved : header.tables) {
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
  if (header.tables.size() == tables.size()) return OkStatus();
  for (const TableSpec& t : tables) {
    if (std::ranges::find(header.tables, t.id, &RowsHeader::Table::id) != header.tables.end())
      continue;
    return Invalid("the checkpoint has no table {}", t.name);
  }
  return DataLoss("the header names a table twice");
}

// Reads the rows of our shards out of one folder after the other.
class RowsLoader {
 public:
  RowsLoader(Step step, ShardSet& shards, DiskTier* tier)
      : step_(step), shards_(shards), tier_(tier) {}

  Status Load(const std::string& folder) {
    DT_TRY(const auto db, RowsDb::OpenToRead(folder));
    const std::unique_ptr<RowsDb::Cursor> at = db->Read();
    DT_TRY(const RowsHeader header, ReadHeader(*at));
    // All of ours, and nothing else: the tier goes on with these files.
    on_disk_ = tier_ != nullptr && header.shards == shards_.shards_of_job() &&
               std::ranges::equal(header.holds, shards_.shards(), {}, {}, &Shard::id);
    if (on_disk_) DT_TRY_STATUS(tier_->Adopt(folder));
    if (saved_shards_ != shards_.shards_of_job()) {
      DT_TRY_STATUS(at->Next());
      return TakeRows(*at, {});
    }
    for (const Shard& shard : shards_.shards()) {
      const std::string prefix = ShardKey(shard.id());
      DT_TRY_STATUS(at->Seek(prefix));
      // Shard 0's prefix sorts behind the header's key.
      DT_TRY_STATUS(TakeRows(*at, prefix));
    }
    return OkStatus();
  }
  // Of the saved job: those that no file held.
  Status CheckComplete() const {
    for (uint32_t s = 0; s < saved_shards_; ++s) {
      if (!seen_.contains(ShardId(s))) return DataLoss("the rows of shard {} are missing", s);
    }
    return OkStatus();
  }

 private:
  Result<RowsHeader> ReadHeader(RowsDb::Cursor& at) {
    DT_TRY_STATUS(at.Seek({}));
    if (!at.valid() || at.key() != kHeaderKey) return DataLoss("it has no header");
    DT_TRY(RowsHeader header, ParseRowsHeader(at.value()));
    DT_TRY_STATUS(CheckTables(header, shards_.tables()));
    if (header.step != step_) {
      return DataLoss("it was saved at step {}, not at {}", header.step, step_);
    }
    if (saved_shards_ == 0) saved_shards_ = header.shards;
    if (header.shards != saved_shards_) {
      return DataLoss("it is of {} shards, another file of {}", header.shards, saved_shards_);
    }
    for (const ShardId shard : header.holds) {
      if (!seen_.insert(shard).second) return DataLoss("shard {} is in two files", shard.value());
    }
    return header;
  }

  // Of the rows from here on that begin with `prefix`, those of our shards.
  Status TakeRows(RowsDb::Cursor& at, const std::string& prefix) {
    for (uint64_t n = 1; at.valid() && at.key().starts_with(prefix); ++n) {
      const std::string_view key = at.key();
      if (key.size() != RowKey::kBytes) return DataLoss("it holds a key of {} bytes", key.size());
      const RowKey row(key);
      DT_TRY_STATUS(
          shards_.Restore(row.table(), row.key(), std::as_bytes(std::span(at.value())), on_disk_));
      DT_TRY_STATUS(at.Next());
      if (tier_ != nullptr && n % kRowsAtOnce == 0) DT_TRY_STATUS(tier_->MakeRoom());
    }
    return OkStatus();
  }

  const Step step_;
  ShardSet& shards_;
  DiskTier* const tier_;
  bool on_disk_ = false;
  uint32_t saved_shards_ = 0;
  std::set<ShardId> seen_;
};

}  // namespace

std::unique_ptr<CheckpointTask> SaveTask(const ShardSet& shards, Step step,
                                         const SavePlace& place) {
  auto task = std::make_unique<CheckpointTask>();
  task->name = fmt::format("server-{}/rows-{}", place.server.value(), place.executor);
  task->folder = place.folder + "/" + task->name;
  task->notes.emplace_back(kHeaderKey, HeaderText(HeaderOf(shards, step)));
  return task;
}

Status LoadRows(const std::string& folder, Step step, Generation generation, ShardSet& shards,
                DiskTier* tier) {
  shards.Reset(step, generation);
  const std::vector<std::string> folders = FoldersIn(folder);
  if (folders.empty()) return DataLoss("checkpoint {} has no rows", folder);
  RowsLoader loader(step, shards, tier);
  for (const std::string& one : folders) {
    DT_TRY_STATUS(WithWhere(Prefixed(loader.Load(one), "loading rows"), one));
  }
  return WithWhere(loader.CheckComplete(), folder);
}

}  // namespace dt::server
