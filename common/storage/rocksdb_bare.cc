#include "common/storage/rocksdb_bare.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include "common/base/check.h"
#include "common/storage/rocksdb_status.h"

namespace dt {
namespace {

void Check(const rocksdb::Status& status) { DT_CHECK_MSG(status.ok(), "{}", status.ToString()); }

class Bare : public BareRocks {
 public:
  explicit Bare(const std::string& folder) {
    rocksdb::BlockBasedTableOptions table;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, false));
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(options, folder, &db));
    db_.reset(db);
  }

  void Write(std::span<const std::string> keys, std::string_view value) override {
    if (std::exchange(paused_, false)) Check(db_->ContinueBackgroundWork());
    rocksdb::WriteBatch batch(keys.size() * (value.size() + 40));
    for (const std::string& key : keys) Check(batch.Put(key, ToSlice(value)));
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    Check(db_->Write(options, &batch));
  }
  void Flush() override {
    Check(db_->Flush(rocksdb::FlushOptions()));
    if (!std::exchange(paused_, true)) Check(db_->PauseBackgroundWork());
  }
  size_t MultiGet(std::span<const std::string> keys) override {
    slices_.assign(keys.begin(), keys.end());
    values_.resize(keys.size());
    statuses_.resize(keys.size());
    db_->MultiGet(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), keys.size(), slices_.data(),
                  values_.data(), statuses_.data(), true);
    for (rocksdb::PinnableSlice& value : values_) value.Reset();
    return static_cast<size_t>(
        std::ranges::count_if(statuses_, [](const rocksdb::Status& s) { return s.ok(); }));
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  bool paused_ = false;
  std::vector<rocksdb::Slice> slices_;
  std::vector<rocksdb::PinnableSlice> values_;
  std::vector<rocksdb::Status> statuses_;
};

}  // namespace

std::unique_ptr<BareRocks> MakeBareRocks(const std::string& folder) {
  return std::make_unique<Bare>(folder);
}

}  // namespace dt
