#include "common/storage/rocksdb_rows.h"

#include <atomic>
#include <filesystem>

#include <rocksdb/cache.h>
#include <rocksdb/compaction_filter.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>

#include "common/base/check.h"
#include "common/storage/rocksdb_status.h"

namespace dt {
namespace {

constexpr uint64_t kReadingCacheBytes = 8 << 20;
constexpr uint64_t kFilesCrowded = 30;

// Live files are scratch: nobody waits until they are on the disk itself. Those of a checkpoint are
// synced when it is committed.
class UnsyncedFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
  rocksdb::IOStatus Sync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::OK();
  }
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::OK();
  }
};

class UnsyncedFolder : public rocksdb::FSDirectory {
 public:
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return rocksdb::IOStatus::OK();
  }
};

class UnsyncedFiles : public rocksdb::FileSystemWrapper {
 public:
  UnsyncedFiles() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "UnsyncedFiles"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    return Wrap(FileSystemWrapper::NewWritableFile(path, options, file, debug), file);
  }
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* debug) override {
    return Wrap(FileSystemWrapper::ReopenWritableFile(path, options, file, debug), file);
  }
  rocksdb::IOStatus NewDirectory(const std::string&, const rocksdb::IOOptions&,
                                 std::unique_ptr<rocksdb::FSDirectory>* folder,
                                 rocksdb::IODebugContext*) override {
    *folder = std::make_unique<UnsyncedFolder>();
    return rocksdb::IOStatus::OK();
  }

 private:
  static rocksdb::IOStatus Wrap(rocksdb::IOStatus status,
                                std::unique_ptr<rocksdb::FSWritableFile>* file) {
    if (status.ok()) *file = std::make_unique<UnsyncedFile>(std::move(*file));
    return status;
  }
};

rocksdb::Env* UnsyncedEnv() {
  static const std::unique_ptr<rocksdb::Env> env =
      rocksdb::NewCompositeEnv(std::make_shared<UnsyncedFiles>());
  return env.get();
}

rocksdb::Options OptionsFor(uint64_t cache_bytes) {
  rocksdb::BlockBasedTableOptions table;
  // One cache, with an end, for all that RocksDB keeps of files: the server's budget counts it. Not
  // cut into shards: an index that is larger than its shard's part would be read again each time.
  table.block_cache = rocksdb::NewLRUCache(cache_bytes, 0, false, 0.8);
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  table.index_block_restart_interval = 8;  // Keys of a shard begin alike: half the bytes.
  table.block_size = 4 << 10;              // One read of a row is one page or two.
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, false));
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  rocksdb::Options out;
  out.env = UnsyncedEnv();
  out.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  // A filter of ours has said that the key is there: the last level, most of all, needs none.
  out.optimize_filters_for_hits = true;
  // Keys are hashed: each file lies over every other, and levels would be written ten times over.
  out.compaction_style = rocksdb::kCompactionStyleUniversal;
  out.compaction_options_universal.max_size_amplification_percent = 60;
  out.compaction_options_universal.min_merge_width = 4;
  out.level0_file_num_compaction_trigger = 8;
  out.target_file_size_base = 64 << 20;  // Old files go piece by piece while they are merged.
  out.max_background_jobs = 2;
  out.bytes_per_sync = 1 << 20;
  // Rows of floats shrink by a tenth at best, and every read would pay (docs/performance.md).
  out.compression = rocksdb::kNoCompression;
  out.paranoid_checks = true;
  out.max_open_files = -1;
  out.keep_log_file_num = 2;
  out.max_log_file_size = 1 << 20;
  out.info_log_level = rocksdb::WARN_LEVEL;
  return out;
}

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

}  // namespace

struct RowsDb::Impl {
  std::unique_ptr<const Dropping> dropping;  // Outlives db.
  std::string folder;
  rocksdb::Options options;
  std::unique_ptr<rocksdb::DB> db;
  std::atomic<uint64_t> files_made = 0;
};

struct RowsDb::File::Impl {
  Impl(std::string path_in, uint64_t bytes, const rocksdb::Options& options)
      : path(std::move(path_in)), bytes_expected(bytes), writer(rocksdb::EnvOptions(), options) {}
  ~Impl() {
    std::error_code ignored;
    if (!ingested) std::filesystem::remove(path, ignored);
  }
  const std::string path;
  const uint64_t bytes_expected;
  rocksdb::SstFileWriter writer;
  bool ingested = false;
};

RowsDb::RowsDb(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RowsDb::~RowsDb() = default;
RowsDb::File::File(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RowsDb::File::~File() = default;

Result<std::unique_ptr<RowsDb>> RowsDb::Create(const std::string& folder, uint64_t cache_bytes,
                                               Useless useless) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (!error) std::filesystem::create_directories(folder, error);
  if (error) {
    return WithHint(Unavailable("making folder {}: {}", folder, error.message()),
                    "give this user write access, or choose another folder");
  }
  return OpenAt(folder, cache_bytes, std::move(useless), true);
}

Result<std::unique_ptr<RowsDb>> RowsDb::Open(const std::string& folder, uint64_t cache_bytes,
                                             Useless useless) {
  return OpenAt(folder, cache_bytes, std::move(useless), false);
}

Result<std::unique_ptr<RowsDb>> RowsDb::OpenAt(const std::string& folder, uint64_t cache_bytes,
                                               Useless useless, bool create) {
  auto impl = std::make_unique<Impl>();
  impl->folder = folder;
  impl->options = OptionsFor(cache_bytes);
  impl->options.create_if_missing = create;
  if (useless != nullptr) {
    impl->dropping = std::make_unique<const Dropping>(std::move(useless));
    impl->options.compaction_filter = impl->dropping.get();
  }
  rocksdb::DB* db = nullptr;
  DT_TRY_STATUS(FromRocks(rocksdb::DB::Open(impl->options, folder, &db), "opening", folder));
  impl->db.reset(db);
  return std::make_unique<RowsDb>(std::move(impl));
}

Result<std::unique_ptr<RowsDb>> RowsDb::OpenToRead(const std::string& folder) {
  auto impl = std::make_unique<Impl>();
  impl->folder = folder;
  impl->options = OptionsFor(kReadingCacheBytes);
  rocksdb::DB* db = nullptr;
  DT_TRY_STATUS(
      FromRocks(rocksdb::DB::OpenForReadOnly(impl->options, folder, &db), "opening", folder));
  impl->db.reset(db);
  return std::make_unique<RowsDb>(std::move(impl));
}

// ------------------------------------------------------------ writing

Result<std::unique_ptr<RowsDb::File>> RowsDb::NewFile(uint64_t bytes_expected) {
  const std::string path =
      impl_->folder + "/new-" + std::to_string(impl_->files_made.fetch_add(1)) + ".sst";
  auto file = std::make_unique<File::Impl>(path, bytes_expected, impl_->options);
  DT_TRY_STATUS(FromRocks(file->writer.Open(path), "writing", path, bytes_expected));
  return std::make_unique<File>(std::move(file));
}

Status RowsDb::File::Add(std::string_view key, std::string_view value) {
  const rocksdb::Status status = impl_->writer.Put(ToSlice(key), ToSlice(value));
  DT_CHECK_MSG(!status.IsInvalidArgument(), "{}: {}", impl_->path, status.ToString());
  return FromRocks(status, "writing", impl_->path, impl_->bytes_expected);
}

Status RowsDb::Ingest(std::unique_ptr<File> file) {
  File::Impl& impl = *file->impl_;
  DT_TRY_STATUS(FromRocks(impl.writer.Finish(), "writing", impl.path, impl.bytes_expected));
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  options.write_global_seqno = false;
  DT_TRY_STATUS(FromRocks(impl_->db->IngestExternalFile({impl.path}, options), "adding rows to",
                          impl_->folder, impl.bytes_expected));
  impl.ingested = true;
  return OkStatus();
}

bool RowsDb::Crowded() const {
  uint64_t files = 0;
  return impl_->db->GetIntProperty("rocksdb.num-files-at-level0", &files) && files > kFilesCrowded;
}

Status RowsDb::Checkpoint(const std::string& folder) {
  rocksdb::Checkpoint* made = nullptr;
  DT_TRY_STATUS(FromRocks(rocksdb::Checkpoint::Create(impl_->db.get(), &made), "checkpointing",
                          impl_->folder));
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  return FromRocks(checkpoint->CreateCheckpoint(folder), "writing", folder);
}

uint64_t RowsDb::bytes_on_disk() const {
  uint64_t bytes = 0;
  impl_->db->GetIntProperty("rocksdb.total-sst-files-size", &bytes);
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
  for (size_t begin = 0; begin < keys.size(); begin += kAtOnce) {
    const size_t n = std::min(kAtOnce, keys.size() - begin);
    for (size_t i = 0; i < n; ++i) slices[i] = ToSlice(keys[begin + i]);
    impl_->db->MultiGet(options, impl_->db->DefaultColumnFamily(), n, slices, values, statuses,
                        true);
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
  std::string folder;
  std::unique_ptr<rocksdb::Iterator> at;
};

RowsDb::Cursor::Cursor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RowsDb::Cursor::~Cursor() = default;

std::unique_ptr<RowsDb::Cursor> RowsDb::Read() const {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.readahead_size = 2 << 20;
  auto impl = std::make_unique<Cursor::Impl>();
  impl->folder = impl_->folder;
  impl->at.reset(impl_->db->NewIterator(options));
  return std::make_unique<Cursor>(std::move(impl));
}

Status RowsDb::Cursor::Seek(std::string_view key) {
  impl_->at->Seek(ToSlice(key));
  return FromRocks(impl_->at->status(), "reading rows of", impl_->folder);
}

Status RowsDb::Cursor::Next() {
  DT_CHECK(impl_->at->Valid());
  impl_->at->Next();
  return FromRocks(impl_->at->status(), "reading rows of", impl_->folder);
}

bool RowsDb::Cursor::valid() const { return impl_->at->Valid(); }
std::string_view RowsDb::Cursor::key() const { return FromSlice(impl_->at->key()); }
std::string_view RowsDb::Cursor::value() const { return FromSlice(impl_->at->value()); }

}  // namespace dt
