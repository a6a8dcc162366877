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
  // Writes all values or none.
  virtual Status Put(const std::map<std::string, std::string>& values) = 0;
};

// Opens an embedded RocksDB in `folder`. Errors: Unavailable, if another scheduler has it open.
Result<std::unique_ptr<StateStore>> OpenRocksStateStore(const std::string& folder);

// The number stored under `key`, or `absent` if there is none.
Result<uint64_t> ReadNumber(StateStore& store, const std::string& key, uint64_t absent);

}  // namespace dt::scheduler
