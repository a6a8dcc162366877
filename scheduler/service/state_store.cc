#include "scheduler/service/state_store.h"

#include "common/storage/rocksdb_store.h"

namespace dt::scheduler {
namespace {

class RocksStateStore : public StateStore {
 public:
  explicit RocksStateStore(std::unique_ptr<RocksStore> store) : store_(std::move(store)) {}

  Result<std::optional<std::string>> Get(const std::string& key) override {
    Result<std::string> value = store_->Get(key);
    if (value.status().code() == StatusCode::kNotFound) return std::optional<std::string>();
    if (!value.ok()) return value.status();
    return std::optional<std::string>(*std::move(value));
  }

  Result<std::map<std::string, std::string>> GetAll(const std::string& prefix) override {
    std::map<std::string, std::string> all;
    DT_TRY_STATUS(store_->ForEach(prefix, [&](std::string_view key, std::string_view value) {
      all.emplace(key.substr(prefix.size()), value);
      return OkStatus();
    }));
    return all;
  }

  Status RemoveAll(const std::string& prefix) override {
    DT_TRY(const auto all, GetAll(prefix));
    RocksBatch batch;
    for (const auto& [key, value] : all) batch.Delete(prefix + key);
    return store_->WriteDurably(batch);
  }

  Status Put(const std::map<std::string, std::string>& values) override {
    RocksBatch batch;
    for (const auto& [key, value] : values) batch.Put(key, value);
    return store_->WriteDurably(batch);
  }

 private:
  std::unique_ptr<RocksStore> store_;
};

}  // namespace

Result<std::unique_ptr<StateStore>> OpenRocksStateStore(const std::string& folder) {
  RocksOptions options;
  options.folder = folder;
  options.write_buffer_bytes = 1 << 20;
  options.block_cache_bytes = 1 << 20;
  Result<std::unique_ptr<RocksStore>> store = RocksStore::Open(options);
  if (!store.ok()) return Prefixed(store.status(), "the scheduler's state");
  return std::make_unique<RocksStateStore>(*std::move(store));
}

}  // namespace dt::scheduler
