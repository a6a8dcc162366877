#include "scheduler/service/state_store.h"

#include <charconv>

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

Result<uint64_t> ReadNumber(StateStore& store, const std::string& key, uint64_t absent) {
  DT_TRY(const std::optional<std::string> text, store.Get(key));
  if (!text.has_value()) return absent;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size()) {
    return DataLoss("the scheduler's state holds \"{}\" as {}", *text, key);
  }
  return number;
}

}  // namespace dt::scheduler
