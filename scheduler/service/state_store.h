// State that a scheduler must not lose: small values by key, which are on disk when Put returns.
// One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/base/status.h"

namespace dt::scheduler {

class StateStore {
 public:
  virtual ~StateStore() = default;
  virtual Result<std::optional<std::string>> Get(const std::string& key) = 0;
  // All values whose key begins with `prefix`, by the rest of the key.
  virtual Result<std::map<std::string, std::string>> GetAll(const std::string& prefix) = 0;
  virtual Status RemoveAll(const std::string& prefix) = 0;
  // Writes all values or none.
  virtual Status Put(const std::map<std::string, std::string>& values) = 0;
};

// Opens an embedded RocksDB in `folder`. Errors: Unavailable, if another scheduler has it open.
Result<std::unique_ptr<StateStore>> OpenRocksStateStore(const std::string& folder);

}  // namespace dt::scheduler
