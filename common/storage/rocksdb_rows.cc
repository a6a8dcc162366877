#include "common/storage/rocksdb_rows.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>

#include <rocksdb/compaction_filter.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/sst_file_writer.h>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/storage/rocksdb_checkpoint.h"
#include "common/storage/rocksdb_rows_options.h"
#include "common/storage/rocksdb_rows_parts.h"
#include "common/storage/rocksdb_status.h"

namespace dt {
namespace {

constexpr uint64_t kReadingCacheBytes = 8 << 20;
constexpr size_t kReadAheadBytes = 2 << 20;  // For each of the overlapping files.
constexpr uint64_t kReadingFiles = 20;
constexpr uint64_t kFilesCrowded = 60;
constexpr uint64_t kFilesMerged = 16;     // Lower bound of files_crowded.
constexpr uint64_t kRemovalBytes = 4096;  // Size of a file that only removes a range.

class Dropping : public rocksdb::CompactionFilter {
 public:
  explicit Dropping(RowsDb::Useless useless) : useless_(std::move(useless)) {}
  const char* Name() const override { return "Dropping"; }
  bool Filter(int, const rocksdb::Slice& key, const rocksdb::Slice& value, std::string*,
              bool*) const override {
    return useless_(FromSlice(key), FromSlice(value));
  }

 private:
  const RowsDb::Useless useless_;
};

// Records RocksDB's background errors. A full disk must remain an error of the one call or merge:
// RocksDB 7.8 clears its own error when there is room again, but the database still counts as
// stopped, and the process aborts when the next file is added (ReserveFileNumbersBeforeIngestion).
class ErrorWatch : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) override {
    if (!error->IsNoSpace()) return;
    *error = rocksdb::Status::OK();
    full_ = true;
  }
  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo& merge) override {
    MutexLock lock(mutex_);
    last_merge_ = merge.status;
  }
  rocksdb::Status last_merge() const {
    MutexLock lock(mutex_);
    return last_merge_;
  }
  // Whether the disk was full since the last call.
  bool TakeFull() { return full_.exchange(false); }

 private:
  mutable Mutex mutex_;
  rocksdb::Status last_merge_ DT_GUARDED_BY(mutex_);
  std::atomic<bool> full_ = false;
};

}  // namespace

struct RowsDb::Impl {
  enum class Mode { kCreate, kGoOn, kRead };
  Impl(std::string folder_in, Options options_in)
      : folder(std::move(folder_in)),
        rocks(RowsOptions(options_in.cache_bytes, options_in.open_files)),
        files_crowded(std::clamp<uint64_t>(options_in.open_files, kFilesMerged, kFilesCrowded)) {
    rocks.listeners.push_back(errors);
    if (options_in.useless == nullptr) return;
    dropping = std::make_unique<const Dropping>(std::move(options_in.useless));
    rocks.compaction_filter = dropping.get();
  }
  ~Impl() {
    if (db != nullptr) parts->Close(*db);
  }
  static Result<std::unique_ptr<RowsDb>> Open(const std::string& folder, Options options,
                                              Mode mode);

  const std::shared_ptr<ErrorWatch> errors = std::make_shared<ErrorWatch>();
  std::unique_ptr<const Dropping> dropping;  // Outlives db.
  const std::string folder;
  rocksdb::Options rocks;
  const uint64_t files_crowded;
  std::unique_ptr<RowsParts> parts;  // Set by Open, as is db.
  std::unique_ptr<rocksdb::DB> db;
  std::atomic<uint64_t> files_made = 0;
  bool merges_held = false;
};

RowsDb::RowsDb(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RowsDb::~RowsDb() = default;

Result<std::unique_ptr<RowsDb>> RowsDb::Create(const std::string& folder, Options options) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (!error) std::filesystem::create_directories(folder, error);
  if (error) {
    return WithHint(Unavailable("making folder {}: {}", folder, error.message()),
                    "give this user write access, or choose another folder");
  }
  return Impl::Open(folder, std::move(options), Impl::Mode::kCreate);
}

Result<std::unique_ptr<RowsDb>> RowsDb::Open(const std::string& folder, Options options) {
  return Impl::Open(folder, std::move(options), Impl::Mode::kGoOn);
}

Result<std::unique_ptr<RowsDb>> RowsDb::OpenToRead(const std::string& folder) {
  return Impl::Open(folder, {.cache_bytes = kReadingCacheBytes, .open_files = kReadingFiles},
                    Impl::Mode::kRead);
}

Result<std::unique_ptr<RowsDb>> RowsDb::Impl::Open(const std::string& folder, Options options,
                                                   Mode mode) {
  std::vector<std::string> first_keys = std::move(options.cuts);
  first_keys.insert(first_keys.begin(), "");
  auto impl = std::make_unique<Impl>(folder, std::move(options));
  impl->rocks.create_if_missing = mode == Mode::kCreate;
  if (mode != Mode::kCreate) {
    DT_TRY_STATUS(
        FromRocks(RowsParts::FindFirstKeys(impl->rocks, folder, first_keys), "opening", folder));
  }
  const size_t existing = mode == Mode::kCreate ? 1 : first_keys.size();
  impl->parts = std::make_unique<RowsParts>(std::move(first_keys));
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      impl->parts->Open(impl->rocks, folder, mode == Mode::kRead, existing, &db);
  DT_TRY_STATUS(FromRocks(opened, "opening", folder));
  impl->db.reset(db);
  return std::make_unique<RowsDb>(std::move(impl));
}

// ------------------------------------------------------------ writing

struct RowsDb::File::Impl {
  struct Piece {
    size_t part;
    std::string path;
  };
  Impl(RowsDb::Impl& db_in, uint64_t bytes) : db(db_in), bytes_expected(bytes) {}
  ~Impl() {
    std::error_code ignored;
    for (const Piece& piece : pieces) std::filesystem::remove(piece.path, ignored);
  }
  Status Begin(size_t part) {
    pieces.push_back({part, db.folder + "/new-" + std::to_string(db.files_made++) + ".sst"});
    if (pieces.size() == 1) {
      DT_TRY_STATUS(CheckRoom("writing", pieces.back().path, bytes_expected));
    }
    writer = std::make_unique<rocksdb::SstFileWriter>(rocksdb::EnvOptions(), db.rocks);
    return FromRocks(writer->Open(pieces.back().path), "writing", pieces.back().path,
                     bytes_expected);
  }
  Status End() {
    if (writer == nullptr) return OkStatus();
    return FromRocks(writer->Finish(), "writing", pieces.back().path, bytes_expected);
  }

  RowsDb::Impl& db;
  const uint64_t bytes_expected;
  std::vector<Piece> pieces;
  std::unique_ptr<rocksdb::SstFileWriter> writer;  // Writes the last piece.
};

RowsDb::File::File(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RowsDb::File::~File() = default;

std::unique_ptr<RowsDb::File> RowsDb::NewFile(uint64_t bytes_expected) {
  return std::make_unique<File>(std::make_unique<File::Impl>(*impl_, bytes_expected));
}

Status RowsDb::File::Add(std::string_view key, std::string_view value) {
  if (impl_->writer == nullptr || impl_->db.parts->PartOf(key) != impl_->pieces.back().part) {
    DT_TRY_STATUS(impl_->End());
    DT_TRY_STATUS(impl_->Begin(impl_->db.parts->PartOf(key)));
  }
  const rocksdb::Status status = impl_->writer->Put(ToSlice(key), ToSlice(value));
  const std::string& path = impl_->pieces.back().path;
  DT_CHECK_MSG(!status.IsInvalidArgument(), "{}: {}", path, status.ToString());
  return FromRocks(status, "writing", path, impl_->bytes_expected);
}

// Adds the files of one part per call. Given several parts, RocksDB 7.8 may look up a file's level
// in an older version of its part than the version that chose the level
// (AssignLevelAndSeqnoForIngestedFile), because only the first part of a call installs what a merge
// has added meanwhile.
Status RowsDb::Ingest(std::unique_ptr<File> file) {
  File::Impl& impl = *file->impl_;
  DT_TRY_STATUS(impl.End());
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  options.write_global_seqno = false;
  const auto check = [&](const rocksdb::Status& status) {
    return FromRocks(status, "adding rows to", impl_->folder, impl.bytes_expected);
  };
  std::vector<size_t> missing;
  for (const File::Impl::Piece& piece : impl.pieces) {
    if (impl_->parts->Find(piece.part) == nullptr) missing.push_back(piece.part);
  }
  if (!missing.empty()) {
    DT_TRY_STATUS(check(impl_->parts->Make(impl_->rocks, missing, *impl_->db)));
  }
  for (const File::Impl::Piece& piece : impl.pieces) {
    DT_TRY_STATUS(check(
        impl_->db->IngestExternalFile(impl_->parts->Find(piece.part), {piece.path}, options)));
  }
  // After an error RocksDB keeps every file that its list of files names. Adding a file has written
  // a new list, so deletions can be enabled again.
  if (impl_->errors->TakeFull()) impl_->db->EnableFileDeletions(true);
  return OkStatus();
}

Status RowsDb::RemoveRange(std::string_view begin, std::string_view end) {
  const size_t part = impl_->parts->PartOf(begin);
  if (impl_->parts->Find(part) == nullptr) return OkStatus();
  std::unique_ptr<File> file = NewFile(kRemovalBytes);
  DT_TRY_STATUS(file->impl_->Begin(part));
  const rocksdb::Status added = file->impl_->writer->DeleteRange(ToSlice(begin), ToSlice(end));
  DT_TRY_STATUS(FromRocks(added, "writing", file->impl_->pieces.back().path, kRemovalBytes));
  return Ingest(std::move(file));
}

bool RowsDb::Crowded() const {
  for (size_t part = 0; part < impl_->parts->count(); ++part) {
    rocksdb::ColumnFamilyHandle* const found = impl_->parts->Find(part);
    std::string files;  // GetIntProperty does not offer this property as a number.
    if (found != nullptr && impl_->db->GetProperty(found, "rocksdb.num-files-at-level0", &files) &&
        std::strtoull(files.c_str(), nullptr, 10) > impl_->files_crowded) {
      return true;
    }
  }
  return false;
}

Status RowsDb::merge_problem() const {
  return FromRocks(impl_->errors->last_merge(), "merging rows of", impl_->folder);
}

Status RowsDb::Checkpoint(const std::string& folder) {
  return FromRocks(CheckpointTo(folder, *impl_->db), "writing", folder);
}

void RowsDb::HoldMerges() {
  if (!std::exchange(impl_->merges_held, true)) impl_->db->PauseBackgroundWork();
}

void RowsDb::ReleaseMerges() {
  if (std::exchange(impl_->merges_held, false)) impl_->db->ContinueBackgroundWork();
}

uint64_t RowsDb::bytes_on_disk() const {
  uint64_t bytes = 0;
  impl_->db->GetAggregatedIntProperty("rocksdb.total-sst-files-size", &bytes);
  return bytes;
}

// ------------------------------------------------------------ reading

Status RowsDb::MultiGet(std::span<const std::string_view> keys, const Visit& visit) const {
  constexpr size_t kAtOnce = 128;
  rocksdb::ReadOptions options;
  options.verify_checksums = true;
  rocksdb::Slice slices[kAtOnce];
  rocksdb::PinnableSlice values[kAtOnce];
  rocksdb::Status statuses[kAtOnce];
  for (size_t begin = 0, n = 0; begin < keys.size(); begin += n) {
    const size_t part = impl_->parts->PartOf(keys[begin]);
    const size_t end = std::min(keys.size(), begin + kAtOnce);
    for (n = 0; begin + n < end && impl_->parts->PartOf(keys[begin + n]) == part; ++n) {
      slices[n] = ToSlice(keys[begin + n]);
    }
    rocksdb::ColumnFamilyHandle* const found = impl_->parts->Find(part);
    if (found == nullptr) {
      for (size_t i = 0; i < n; ++i) visit(begin + i, std::nullopt);
      continue;
    }
    impl_->db->MultiGet(options, found, n, slices, values, statuses, true);
    for (size_t i = 0; i < n; ++i) {
      if (statuses[i].ok()) {
        visit(begin + i, FromSlice(values[i]));
      } else if (statuses[i].IsNotFound()) {
        visit(begin + i, std::nullopt);
      } else {
        return FromRocks(statuses[i], "reading rows of", impl_->folder);
      }
      values[i].Reset();
    }
  }
  return OkStatus();
}

struct RowsDb::Cursor::Impl {
  explicit Impl(const RowsDb::Impl& db_in) : db(db_in) {
    options.fill_cache = false;
    options.readahead_size = kReadAheadBytes;
  }
  // An iterator keeps its read-ahead buffers for every file, so only one part has an iterator.
  void Enter(size_t next) {
    if (at != nullptr && part == next) return;
    rocksdb::ColumnFamilyHandle* const found = db.parts->Find(next);
    at.reset(found == nullptr ? rocksdb::NewEmptyIterator() : db.db->NewIterator(options, found));
    part = next;
  }
  // Moves to the next part with records if the current one has no more.
  Status Settle() {
    DT_TRY_STATUS(FromRocks(at->status(), "reading rows of", db.folder));
    while (!at->Valid() && part + 1 < db.parts->count()) {
      Enter(part + 1);
      at->SeekToFirst();
      DT_TRY_STATUS(FromRocks(at->status(), "reading rows of", db.folder));
    }
    return OkStatus();
  }

  const RowsDb::Impl& db;
  rocksdb::ReadOptions options;
  std::unique_ptr<rocksdb::Iterator> at;  // Iterates over `part`.
  size_t part = 0;
};

RowsDb::Cursor::Cursor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RowsDb::Cursor::~Cursor() = default;

std::unique_ptr<RowsDb::Cursor> RowsDb::Read() const {
  auto impl = std::make_unique<Cursor::Impl>(*impl_);
  impl->Enter(0);
  return std::make_unique<Cursor>(std::move(impl));
}

Status RowsDb::Cursor::Seek(std::string_view key) {
  impl_->Enter(impl_->db.parts->PartOf(key));
  impl_->at->Seek(ToSlice(key));
  return impl_->Settle();
}

Status RowsDb::Cursor::Next() {
  DT_CHECK(valid());
  impl_->at->Next();
  return impl_->Settle();
}

bool RowsDb::Cursor::valid() const { return impl_->at->Valid(); }
std::string_view RowsDb::Cursor::key() const { return FromSlice(impl_->at->key()); }
std::string_view RowsDb::Cursor::value() const { return FromSlice(impl_->at->value()); }

}  // namespace dt
