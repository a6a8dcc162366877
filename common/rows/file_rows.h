// The rows of a table in a safetensors or npz file: the arrays "keys" and "values", or, as
// `dovetail export` writes them, "table.NAME.keys" and "table.NAME.values". Keys are whole numbers
// [n], values floats [n, dim]. Immutable; any thread.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "common/arrays/array_reader.h"

namespace dt {

class FileRows {
 public:
  // Errors: those of ArrayReader::Open; Malformed naming the file, if the arrays are not there or
  // have other shapes.
  static Result<FileRows> Open(const std::string& path, const std::string& table, uint32_t dim);

  uint64_t rows() const { return keys_->elements(); }
  // Calls `visit` for each row whose key `wanted` accepts, in the order of the file. Stops at the
  // first error: its own (Malformed, naming the file) or that of `visit`.
  Status ForEach(const std::function<bool(Key key)>& wanted,
                 const std::function<Status(Key key, std::span<const float> values)>& visit) const;

 private:
  explicit FileRows(ArrayReader reader) : reader_(std::move(reader)) {}

  ArrayReader reader_;
  const ArrayReader::Array* keys_ = nullptr;  // In the reader, which does not move them.
  const ArrayReader::Array* values_ = nullptr;
};

}  // namespace dt
