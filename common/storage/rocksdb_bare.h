// RocksDB as it comes, with nothing of ours around it: what `dovetail bench store` measures the
// disk tier against. One thread.
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
  // One WriteBatch, without write-ahead log.
  virtual void Write(std::span<const std::string> keys, std::string_view value) = 0;
  // What was written is in files. Waits for merges under way; none begins before the next Write.
  virtual void Flush() = 0;
  // One MultiGet; the number of keys found. REQUIRES: ascending keys.
  virtual size_t MultiGet(std::span<const std::string> keys) = 0;
};
// In a folder that is made; default options but for a Bloom filter of 10 bits a key.
std::unique_ptr<BareRocks> MakeBareRocks(const std::string& folder);

}  // namespace dt
