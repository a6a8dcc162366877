// Reads named arrays of safetensors and npz files, whichever program wrote them. A file is mapped,
// so that it may be larger than memory. Immutable after Open; any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/storage/mapped_file.h"

namespace dt {

class ArrayReader {
 public:
  enum class Type : uint8_t { kF64, kF32, kF16, kBf16, kI64, kI32, kU64, kU32, kOther };
  struct Array {
    std::string name;
    Type type = Type::kOther;
    std::string type_name;  // As the file calls it.
    std::vector<uint64_t> shape;
    std::span<const std::byte> data;  // Little-endian, row by row; not aligned.

    uint64_t elements() const;
  };

  // Arrays of any type are accepted here, those that the readers below do not know included.
  // Errors: those of OpenForReading; Malformed naming the file, if it is damaged, or has a
  // compressed array or one in column order.
  static Result<ArrayReader> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<Array>& arrays() const { return arrays_; }
  const Array* Find(std::string_view name) const;  // Null if there is none.

  // Elements [first, first + out.size()) as floats, rounded to the nearest. Malformed: it is an
  // array of whole numbers. REQUIRES: the array has them.
  Status ReadFloats(const Array& array, uint64_t first, std::span<float> out) const;
  // The same as keys. Malformed: it is no array of whole numbers, or one is negative.
  Status ReadKeys(const Array& array, uint64_t first, std::span<Key> out) const;

 private:
  std::string path_;
  std::unique_ptr<MappedFile> file_;
  std::vector<Array> arrays_;
};

}  // namespace dt
