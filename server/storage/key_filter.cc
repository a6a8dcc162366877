#include "server/storage/key_filter.h"

#include "common/base/hash.h"

namespace dt::server {
namespace {

constexpr uint64_t kKeysPerBlock = 42;  // In 512 bits.
constexpr int kProbes = 7;

// The hash, mixed again, chooses the bits; its high bits have chosen the block.
template <class Word>
bool EachProbe(uint64_t hash, Word&& word) {
  uint64_t bits = MixBits(hash);
  for (int p = 0; p < kProbes; ++p, bits >>= 9) {
    if (!word((bits >> 6) & 7, uint64_t{1} << (bits & 63))) return false;
  }
  return true;
}

}  // namespace

bool KeyFilter::MayContain(uint64_t hash) const {
  for (const Layer& layer : layers_) {
    const Block& block = layer.block(hash);
    if (EachProbe(hash, [&](uint64_t w, uint64_t bit) { return (block.words[w] & bit) != 0; })) {
      return true;
    }
  }
  return false;
}

void KeyFilter::Add(uint64_t hash) {
  if (MayContain(hash)) return;
  if (layers_.empty() || layers_.back().keys == layers_.back().blocks * kKeysPerBlock) {
    const uint64_t keys = layers_.empty() ? keys_first_ : layers_.back().keys * 2;
    Layer layer;
    layer.blocks = keys / kKeysPerBlock + 1;
    layer.memory = PageMemory::Zeroed(layer.blocks * sizeof(Block));
    layers_.push_back(std::move(layer));
  }
  Layer& layer = layers_.back();
  ++layer.keys;
  Block& block = layer.block(hash);
  EachProbe(hash, [&](uint64_t w, uint64_t bit) {
    block.words[w] |= bit;
    return true;
  });
}

uint64_t KeyFilter::bytes() const {
  uint64_t bytes = 0;
  for (const Layer& layer : layers_) bytes += layer.memory.size();
  return bytes;
}

}  // namespace dt::server
