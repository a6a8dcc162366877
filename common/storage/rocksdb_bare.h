// RocksDB without any of our code around it, with which `dovetail bench store` compares the disk
// tier. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace dt {

class BareRocks {
 public:
  virtual ~BareRocks() = default;
  // Writes one WriteBatch, without a write-ahead log.
  virtual void Write(std::span<const std::string> keys, std::string_view value) = 0;
  // Writes everything to files. Waits for running compactions; none begins before the next Write.
  virtual void Flush() = 0;
  // One MultiGet; returns the number of keys found. REQUIRES: ascending keys.
  virtual size_t MultiGet(std::span<const std::string> keys) = 0;
};
// Creates the folder; default options except for a Bloom filter of 10 bits per key.
std::unique_ptr<BareRocks> MakeBareRocks(const std::string& folder);

}  // namespace dt
