#include "server/checkpoint/rows_file.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/storage/file_digest.h"
#include "common/storage/rocksdb_sorted_file.h"
#include "server/checkpoint/rows_header.h"

namespace dt::server {
namespace {

constexpr std::string_view kHeaderKey("\0", 1);
constexpr size_t kRowKeyBytes = 20;

void AppendBigEndian(std::string& out, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t ReadBigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

std::string ShardKey(ShardId shard) {
  std::string key;
  AppendBigEndian(key, shard.value(), 4);
  return key;
}

std::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

RowsHeader HeaderOf(const ShardSet& shards, Step step) {
  RowsHeader header{step, shards.shards_of_job(), {}, {}};
  for (const Shard& shard : shards.shards()) header.holds.push_back(shard.id());
  for (const TableSpec& t : shards.tables()) {
    header.tables.push_back({t.id, t.dim, t.state(), t.name, t.dtype});
  }
  return header;
}

Status WriteTable(const EmbeddingTable& table, std::string prefix, SortedFileWriter& file) {
  AppendBigEndian(prefix, table.spec().id.value(), 8);
  std::vector<std::byte> record(table.record_bytes());
  for (const KeyRow& row : table.SortedRows()) {
    std::string key = prefix;
    AppendBigEndian(key, row.key, 8);
    table.CopyRecord(row, record);
    DT_TRY_STATUS(file.Add(key, TextOf(record)));
  }
  return OkStatus();
}

Status WriteFile(const ShardSet& shards, Step step, const std::string& path) {
  uint64_t bytes = 4096;
  for (const Shard& shard : shards.shards()) {
    for (uint32_t t = 0; t < shard.tables(); ++t) {
      bytes += shard.table(t).rows() * (kRowKeyBytes + shard.table(t).record_bytes());
    }
  }
  // Files are sorted by table id, not by the order of the job.
  std::vector<uint32_t> order(shards.tables().size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](uint32_t t) { return shards.tables()[t].id; });
  DT_TRY(const auto file, SortedFileWriter::Open(path, bytes));
  DT_TRY_STATUS(file->Add(kHeaderKey, HeaderText(HeaderOf(shards, step))));
  for (const Shard& shard : shards.shards()) {
    for (const uint32_t t : order) {
      DT_TRY_STATUS(WriteTable(shard.table(t), ShardKey(shard.id()), *file));
    }
  }
  return file->Finish();
}

std::vector<std::string> FilesIn(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& server : fs::directory_iterator(folder, error)) {
    const bool ours = server.path().filename().string().starts_with("server-");
    if (!ours || !server.is_directory(error)) continue;
    for (const fs::directory_entry& file : fs::directory_iterator(server.path(), error)) {
      if (file.path().extension() == ".sst") files.push_back(file.path().string());
    }
  }
  std::ranges::sort(files);
  return files;
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

// Reads the rows of our shards out of one file after the other.
class RowsLoader {
 public:
  RowsLoader(Step step, ShardSet& shards) : step_(step), shards_(shards) {}

  Status Load(const std::string& path) {
    DT_TRY(const auto file, SortedFileReader::Open(path));
    return WithWhere(LoadFrom(*file), path);
  }
  // Of the saved job: those that no file held.
  Status CheckComplete() const {
    for (uint32_t s = 0; s < saved_shards_; ++s) {
      if (!seen_.contains(ShardId(s))) return DataLoss("the rows of shard {} are missing", s);
    }
    return OkStatus();
  }

 private:
  Status LoadFrom(SortedFileReader& file) {
    DT_TRY_STATUS(file.Seek({}));
    if (!file.valid() || file.key() != kHeaderKey) return DataLoss("it has no header");
    DT_TRY(const RowsHeader header, ParseRowsHeader(file.value()));
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
    if (saved_shards_ != shards_.shards_of_job()) {
      DT_TRY_STATUS(file.Next());
      return TakeRows(file, {});
    }
    for (const Shard& shard : shards_.shards()) {
      const std::string prefix = ShardKey(shard.id());
      DT_TRY_STATUS(file.Seek(prefix));
      // Shard 0's prefix sorts behind the header's key.
      DT_TRY_STATUS(TakeRows(file, prefix));
    }
    return OkStatus();
  }

  // Of the rows from here on that begin with `prefix`, those of our shards.
  Status TakeRows(SortedFileReader& file, const std::string& prefix) {
    while (file.valid() && file.key().starts_with(prefix)) {
      const std::string_view key = file.key();
      if (key.size() != kRowKeyBytes) return DataLoss("it holds a key of {} bytes", key.size());
      const TableId table(ReadBigEndian(key.substr(4, 8)));
      DT_TRY_STATUS(shards_.Restore(table, ReadBigEndian(key.substr(12)),
                                    std::as_bytes(std::span(file.value()))));
      DT_TRY_STATUS(file.Next());
    }
    return OkStatus();
  }

  const Step step_;
  ShardSet& shards_;
  uint32_t saved_shards_ = 0;
  std::set<ShardId> seen_;
};

}  // namespace

Result<CheckpointFile> SaveRows(const ShardSet& shards, Step step, const SavePlace& place) {
  const std::string server = fmt::format("server-{}", place.server.value());
  const std::string name = fmt::format("{}/rows-{}.sst", server, place.executor);
  const std::string path = place.folder + "/" + name;
  std::error_code error;
  std::filesystem::create_directories(place.folder + "/" + server, error);
  if (error) {
    return WithHint(Unavailable("making folder {}/{}: {}", place.folder, server, error.message()),
                    "checkpoint.dir must be writable by every process");
  }
  DT_TRY_STATUS(Prefixed(WriteFile(shards, step, path), "saving rows"));
  DT_TRY(const FileDigest digest, DigestOf(path));
  return CheckpointFile{.name = name, .bytes = digest.bytes, .digest = digest.digest};
}

Status LoadRows(const std::string& folder, Step step, Generation generation, ShardSet& shards) {
  shards.Reset(step, generation);
  const std::vector<std::string> files = FilesIn(folder);
  if (files.empty()) return DataLoss("checkpoint {} has no files of rows", folder);
  RowsLoader loader(step, shards);
  for (const std::string& file : files) {
    DT_TRY_STATUS(Prefixed(loader.Load(file), "loading rows of " + file));
  }
  return WithWhere(loader.CheckComplete(), folder);
}

}  // namespace dt::server
