// Writes files of named arrays for other programs; they may be larger than memory. All shapes are
// known first; then all arrays are filled concurrently, each from front to back.
//
//   safetensors: u64 header bytes | JSON: name → type, shape, position | arrays
//   npz:         a zip archive with one .npy per array, not compressed (values would hardly
//                shrink); ZIP64, so of any size (APPNOTE.TXT 6.3.10, sections 4.3 to 4.5)
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace dt {

enum class ArrayFormat { kSafetensors, kNpz };

struct ArraySpec {
  enum class Type { kF32, kU64, kU8 };
  std::string name;
  Type type = Type::kF32;
  std::vector<uint64_t> shape;

  uint64_t bytes() const;
};

// The positions of all contents in a file.
struct ArrayLayout {
  std::string head;                // At offset 0.
  std::vector<std::string> intro;  // By array: the bytes right before its data.
  std::vector<uint64_t> data_at;   // By array: the offset of its data.
  uint64_t end = 0;                // The offset after the last array.
};
// Names and texts that a file contains besides its arrays.
using Metadata = std::vector<std::pair<std::string, std::string>>;
ArrayLayout SafetensorsLayout(std::span<const ArraySpec> arrays, const Metadata& metadata);
std::string MetadataJson(const Metadata& metadata);
ArrayLayout NpzLayout(std::span<const ArraySpec> arrays);
// The intro of an array once the checksum of its data is known, and the bytes at `end`.
std::string NpzIntro(const ArraySpec& array, uint32_t crc);
std::string NpzEnd(std::span<const ArraySpec> arrays, const ArrayLayout& layout,
                   std::span<const uint32_t> crcs);

class ArrayFile {
 public:
  // safetensors stores `metadata` as "__metadata__" of its header; npz as a JSON object in the
  // bytes of an additional last array "metadata". Errors of the disk are Unavailable and name the
  // file.
  static Result<std::unique_ptr<ArrayFile>> Create(const std::string& path, ArrayFormat format,
                                                   std::vector<ArraySpec> arrays,
                                                   const Metadata& metadata);
  virtual ~ArrayFile() = default;  // Removes an unfinished file.

  // Appends bytes to an array.
  virtual Status Append(size_t array, std::span<const std::byte> bytes) = 0;
  // Makes the complete file appear under its name. REQUIRES: every array is full.
  virtual Status Finish() = 0;
};

}  // namespace dt
