// What a scheduler must not forget: small values by key, on the disk when Put returns. One thread.
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
  // Together or not at all.
  virtual Status Put(const std::map<std::string, std::string>& values) = 0;
};

// An embedded RocksDB in `folder`. Unavailable if another scheduler has it open.
Result<std::unique_ptr<StateStore>> OpenRocksStateStore(const std::string& folder);

// A number that a store holds under `key`; `absent` if it holds none.
Result<uint64_t> ReadNumber(StateStore& store, const std::string& key, uint64_t absent);

}  // namespace dt::scheduler
