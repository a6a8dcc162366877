// Which keys may be on disk: a Bloom filter of cache-line blocks (Putze, Sanders and Singler,
// "Cache-, hash- and space-efficient Bloom filters", 2007), in layers of doubling size (Almeida et
// al., "Scalable Bloom filters", 2007), because the number of keys is not known beforehand. It
// takes 12 bits per key; about 0.5 % of absent keys pass a layer. Keys are never removed. Owned by
// one thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "server/table/page_memory.h"

namespace dt::server {

class KeyFilter {
 public:
  // The first layer is for `keys_first` keys. Each further layer makes queries slower.
  explicit KeyFilter(uint64_t keys_first) : keys_first_(keys_first) {}

  // REQUIRES: the bits of `hash` are well mixed.
  void Add(uint64_t hash);
  bool MayContain(uint64_t hash) const;
  // Prefetches the lines that MayContain will read.
  void Prefetch(uint64_t hash) const {
    for (const Layer& layer : layers_) __builtin_prefetch(&layer.block(hash));
  }
  uint64_t bytes() const;

 private:
  struct alignas(64) Block {
    std::array<uint64_t, 8> words;
  };
  struct Layer {
    PageMemory memory;
    uint64_t blocks = 0;
    uint64_t keys = 0;

    Block& block(uint64_t hash) {
      const uint64_t i = static_cast<uint64_t>(static_cast<unsigned __int128>(hash) * blocks >> 64);
      return reinterpret_cast<Block*>(memory.data())[i];
    }
    const Block& block(uint64_t hash) const { return const_cast<Layer*>(this)->block(hash); }
  };

  const uint64_t keys_first_;
  std::vector<Layer> layers_;
};

}  // namespace dt::server
