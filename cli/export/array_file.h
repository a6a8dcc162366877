// Files of named arrays for other programs, larger than memory: all shapes are known first, then
// the arrays are filled side by side, each front to back.
//
//   safetensors: u64 header bytes | JSON: name → type, shape, place | arrays
//   npz:         a zip archive, nothing compressed (values hardly would be), of one .npy each;
//                ZIP64, so of any size (APPNOTE.TXT 6.3.10, sections 4.3 to 4.5)
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"

namespace dt::cli {

enum class ArrayFormat { kSafetensors, kNpz };

struct ArraySpec {
  enum class Type { kF32, kU64, kU8 };
  std::string name;
  Type type = Type::kF32;
  std::vector<uint64_t> shape;

  uint64_t bytes() const;
};

// Where things stand in the file.
struct ArrayLayout {
  std::string head;                // At 0, before what comes first.
  std::vector<std::string> intro;  // Of each array, right before its data.
  std::vector<uint64_t> data_at;   // Of each array.
  uint64_t end = 0;                // Behind the last.
};
// The names and texts that a file has beside its arrays.
using Metadata = std::vector<std::pair<std::string, std::string>>;
ArrayLayout SafetensorsLayout(std::span<const ArraySpec> arrays, const Metadata& metadata);
std::string MetadataJson(const Metadata& metadata);
ArrayLayout NpzLayout(std::span<const ArraySpec> arrays);
// The intro of an array with the checksum of its data, and what stands at `end`.
std::string NpzIntro(const ArraySpec& array, uint32_t crc);
std::string NpzEnd(std::span<const ArraySpec> arrays, const ArrayLayout& layout,
                   std::span<const uint32_t> crcs);

class ArrayFile {
 public:
  // `metadata`: the header's "__metadata__" of safetensors; a JSON object in the bytes of a last
  // array "metadata" of npz. Errors of the disk are Unavailable and name the file.
  static Result<std::unique_ptr<ArrayFile>> Create(const std::string& path, ArrayFormat format,
                                                   std::vector<ArraySpec> arrays,
                                                   const Metadata& metadata);
  virtual ~ArrayFile() = default;  // What was not finished is removed.

  // The next bytes of an array.
  virtual Status Append(size_t array, std::span<const std::byte> bytes) = 0;
  // The file appears under its name, complete. REQUIRES: every array is full.
  virtual Status Finish() = 0;
};

}  // namespace dt::cli
