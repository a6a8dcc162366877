#include "common/storage/rocksdb_rows_options.h"

#include <algorithm>

#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include "common/storage/rocksdb_info_log.h"

namespace dt {
namespace {

// Files in use are scratch data, so writes do not wait for the disk. The files of a checkpoint are
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

}  // namespace

rocksdb::Options RowsOptions(uint64_t cache_bytes, uint64_t open_files) {
  rocksdb::BlockBasedTableOptions table;
  // One bounded cache holds everything that RocksDB caches of files, and the server's memory budget
  // counts it. It has one shard: with several, an index larger than a shard's share would be read
  // again each time.
  table.block_cache = rocksdb::NewLRUCache(cache_bytes, 0, false, 0.8);
  table.cache_index_and_filter_blocks = true;
  table.cache_index_and_filter_blocks_with_high_priority = true;
  // Keys of a shard have equal prefixes, so this halves the index.
  table.index_block_restart_interval = 8;
  table.block_size = 4 << 10;  // Reading a row reads one page or two.
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, false));
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  rocksdb::Options out;
  out.env = UnsyncedEnv();
  out.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  // Our own filter has already found the key, so a filter of the last level would be useless.
  out.optimize_filters_for_hits = true;
  // Keys are hashed, so every file overlaps every other, and leveled compaction would write each
  // record about ten times.
  out.compaction_style = rocksdb::kCompactionStyleUniversal;
  out.compaction_options_universal.max_size_amplification_percent = 60;
  out.compaction_options_universal.min_merge_width = 4;
  out.level0_file_num_compaction_trigger = 8;
  out.target_file_size_base = 64 << 20;
  out.max_background_jobs = 2;
  out.bytes_per_sync = 1 << 20;
  // Rows of floats shrink by a tenth at best, and every read would pay for it
  // (docs/performance.md).
  out.compression = rocksdb::kNoCompression;
  out.paranoid_checks = true;
  out.max_open_files = static_cast<int>(std::clamp<uint64_t>(open_files, 20, 1 << 20));
  out.table_cache_numshardbits = 2;  // Four shards; each keeps at least one file open.
  out.info_log = RocksInfoLog();
  return out;
}

}  // namespace dt
