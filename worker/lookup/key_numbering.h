// Numbers the distinct keys that a table, or several with the same lookups, sees in one batch: 0,
// 1, … by first occurrence. Open addressing with linear probing; each slot says which batch it
// belongs to, so that the next batch clears nothing. Owned by one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace dt::worker {

class KeyNumbering {
 public:
  // Forgets all keys and makes room for `keys_max` keys.
  void Begin(size_t keys_max);
  // numbers[i] becomes the number of keys[i]; keys not seen since Begin are appended to `distinct`.
  // REQUIRES: at most keys_max keys since Begin; `distinct` holds exactly those numbered so far.
  void Number(std::span<const Key> keys, std::span<uint32_t> numbers, std::vector<Key>& distinct);

 private:
  struct Slot {
    Key key;
    uint32_t number;
    uint32_t
        round;  // The Begin that it belongs to, by number; if not the last one, the slot is free.
  };
  std::vector<Slot> slots_;
  uint32_t epoch_ = 0;
};

}  // namespace dt::worker
