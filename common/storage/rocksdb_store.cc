#include "common/storage/rocksdb_store.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include "common/storage/files.h"
#include "common/storage/rocksdb_info_log.h"
#include "common/storage/rocksdb_status.h"

namespace dt {
namespace {

rocksdb::Options ToRocks(const RocksOptions& options) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  rocksdb::Options out;
  out.create_if_missing = true;
  out.write_buffer_size = options.write_buffer_bytes;
  out.max_background_jobs = 2;
  out.info_log = RocksInfoLog();
  out.compression = rocksdb::kNoCompression;  // Floats do not compress well.
  out.paranoid_checks = true;
  out.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return out;
}

rocksdb::WriteBatch ToRocks(const RocksBatch& batch) {
  rocksdb::WriteBatch out;
  for (const RocksBatch::Change& change : batch.changes) {
    // Adding to a batch in memory fails only above its size limit, which is not set.
    if (change.is_delete) {
      out.Delete(change.key).PermitUncheckedError();
    } else {
      out.Put(change.key, change.value).PermitUncheckedError();
    }
  }
  return out;
}

uint64_t BytesOf(const RocksBatch& batch) {
  uint64_t bytes = 0;
  for (const RocksBatch::Change& change : batch.changes) {
    bytes += change.key.size() + change.value.size();
  }
  return bytes;
}

}  // namespace

struct RocksStore::Impl {
  std::unique_ptr<rocksdb::DB> db;
};

RocksStore::RocksStore(std::string folder, std::unique_ptr<Impl> impl)
    : folder_(std::move(folder)), impl_(std::move(impl)) {}

RocksStore::~RocksStore() = default;

Result<std::unique_ptr<RocksStore>> RocksStore::Open(const RocksOptions& options) {
  if (const Status made = MakePrivateFolder(options.folder); !made.ok()) {
    return WithHint(made, "give this user write access, or choose another folder");
  }
  rocksdb::DB* db = nullptr;
  DT_TRY_STATUS(FromRocks(rocksdb::DB::Open(ToRocks(options), options.folder, &db), "opening",
                          options.folder));
  auto impl = std::make_unique<Impl>();
  impl->db.reset(db);
  // The constructor is private, so that only Open makes stores.
  struct Opened : RocksStore {
    Opened(std::string folder, std::unique_ptr<Impl> in)
        : RocksStore(std::move(folder), std::move(in)) {}
  };
  return std::make_unique<Opened>(options.folder, std::move(impl));
}

Result<std::string> RocksStore::Get(std::string_view key) const {
  std::string value;
  DT_TRY_STATUS(
      FromRocks(impl_->db->Get(rocksdb::ReadOptions(), ToSlice(key), &value), "reading", folder_));
  return value;
}

Status RocksStore::Put(std::string_view key, std::string_view value) {
  return FromRocks(impl_->db->Put(rocksdb::WriteOptions(), ToSlice(key), ToSlice(value)), "writing",
                   folder_, key.size() + value.size());
}

Status RocksStore::Delete(std::string_view key) {
  return FromRocks(impl_->db->Delete(rocksdb::WriteOptions(), ToSlice(key)), "writing", folder_);
}

Status RocksStore::Write(const RocksBatch& batch) {
  rocksdb::WriteBatch changes = ToRocks(batch);
  return FromRocks(impl_->db->Write(rocksdb::WriteOptions(), &changes), "writing", folder_,
                   BytesOf(batch));
}

Status RocksStore::WriteDurably(const RocksBatch& batch) {
  rocksdb::WriteBatch changes = ToRocks(batch);
  rocksdb::WriteOptions options;
  options.sync = true;
  return FromRocks(impl_->db->Write(options, &changes), "writing", folder_, BytesOf(batch));
}

Status RocksStore::ForEach(std::string_view prefix, const Visit& visit) const {
  const std::unique_ptr<rocksdb::Iterator> at(impl_->db->NewIterator(rocksdb::ReadOptions()));
  for (at->Seek(ToSlice(prefix)); at->Valid(); at->Next()) {
    const std::string_view key = FromSlice(at->key());
    if (!key.starts_with(prefix)) break;
    DT_TRY_STATUS(visit(key, FromSlice(at->value())));
  }
  return FromRocks(at->status(), "reading", folder_);
}

}  // namespace dt
