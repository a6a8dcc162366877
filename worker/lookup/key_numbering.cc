#include "worker/lookup/key_numbering.h"

#include <algorithm>
#include <bit>

#include "common/base/hash.h"

namespace dt::worker {

void KeyNumbering::Begin(size_t keys_max) {
  const size_t wanted = std::bit_ceil(std::max<size_t>(64, 2 * keys_max));
  if (slots_.size() < wanted || epoch_ == ~uint32_t{0}) {
    slots_.assign(std::max(wanted, slots_.size()), Slot{0, 0, 0});
    epoch_ = 0;
  }
  ++epoch_;
}

void KeyNumbering::Number(std::span<const Key> keys, std::span<uint32_t> numbers,
                          std::vector<Key>& distinct) {
  constexpr size_t kAhead = 12;  // Probes in flight while one is resolved.
  const size_t mask = slots_.size() - 1;
  Slot* const slots = slots_.data();
  const uint32_t epoch = epoch_;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i + kAhead < keys.size()) __builtin_prefetch(&slots[MixBits(keys[i + kAhead]) & mask], 1);
    const Key key = keys[i];
    size_t at = MixBits(key) & mask;
    while (slots[at].epoch == epoch && slots[at].key != key) at = (at + 1) & mask;
    if (slots[at].epoch != epoch) {
      slots[at] = {key, static_cast<uint32_t>(distinct.size()), epoch};
      distinct.push_back(key);
    }
    numbers[i] = slots[at].number;
  }
}

}  // namespace dt::worker
