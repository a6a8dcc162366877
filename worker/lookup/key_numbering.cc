#include "worker/lookup/key_numbering.h"

#include <algorithm>
#include <array>
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
  constexpr size_t kAhead = 16;  // Probes in flight while one is resolved; a power of two.
  const size_t mask = slots_.size() - 1;
  Slot* const slots = slots_.data();
  const uint32_t round = epoch_;
  std::array<size_t, kAhead> homes;  // Home slots of the keys ahead.
  const auto look_ahead = [&](size_t i) {
    const size_t home = MixBits(keys[i]) & mask;
    homes[i % kAhead] = home;
    __builtin_prefetch(&slots[home], 1);
  };
  for (size_t i = 0; i < std::min(kAhead, keys.size()); ++i) look_ahead(i);
  for (size_t i = 0; i < keys.size(); ++i) {
    const Key key = keys[i];
    size_t at = homes[i % kAhead];
    if (i + kAhead < keys.size()) look_ahead(i + kAhead);
    while (slots[at].round == round && slots[at].key != key) at = (at + 1) & mask;
    if (slots[at].round != round) {
      slots[at] = {key, static_cast<uint32_t>(distinct.size()), round};
      distinct.push_back(key);
    }
    numbers[i] = slots[at].number;
  }
}

}  // namespace dt::worker
