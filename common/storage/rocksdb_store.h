// Keys and values on the local disk, in key order, changed in atomic batches. Wraps RocksDB, so
// that the rest of the program does not depend on it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace dt {

struct RocksOptions {
  std::string folder;                     // Created if absent, with its parents.
  uint64_t write_buffer_bytes = 4 << 20;  // Buffered in memory before it is written to a file.
  uint64_t block_cache_bytes = 8 << 20;
};

// Changes that are applied together or not at all.
struct RocksBatch {
  struct Change {
    std::string key;
    std::string value;
    bool is_delete = false;
  };
  std::vector<Change> changes;

  void Put(std::string key, std::string value) {
    changes.push_back({std::move(key), std::move(value), false});
  }
  void Delete(std::string key) { changes.push_back({std::move(key), {}, true}); }
};

// Any thread. Only one process at a time can open a folder. Errors say what was done and where:
// DataLoss names the damaged file; Unavailable, with a hint, is a full disk, a missing permission,
// or a folder that another process has open.
class RocksStore {
 public:
  static Result<std::unique_ptr<RocksStore>> Open(const RocksOptions& options);
  ~RocksStore();

  Result<std::string> Get(std::string_view key) const;  // NotFound.
  Status Put(std::string_view key, std::string_view value);
  Status Delete(std::string_view key);
  Status Write(const RocksBatch& batch);
  // Like Write, but the changes are on disk when it returns and survive a loss of power.
  Status WriteDurably(const RocksBatch& batch);

  // Visits every pair whose key begins with `prefix`, in ascending byte order, as of the call.
  // Stops at the first error of `visit` and returns it.
  using Visit = std::function<Status(std::string_view key, std::string_view value)>;
  Status ForEach(std::string_view prefix, const Visit& visit) const;

  const std::string& folder() const { return folder_; }

 private:
  struct Impl;
  RocksStore(std::string folder, std::unique_ptr<Impl> impl);

  const std::string folder_;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace dt
