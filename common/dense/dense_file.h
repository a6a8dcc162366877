// The files of a checkpoint with the dense parameters, one for each worker of a team: "dense.bin"
// of the first one, "dense-1.bin" of the next one, and so on. Little-endian:
//
//   "DTDENSE2" | u32 files | u32 parts | part [parts] | u64 digest
//   part: u32 name bytes, name, u32 dims, i64 whole…, i64 first…, i64 length…, f32 values…
//
// A part is a box of an array: `whole` is the array's shape. Parts are in the order of names, and
// no two files have the same element. The digest is the XXH3-64 of everything before it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/arrays/array_reader.h"
#include "common/base/status.h"
#include "common/cluster/checkpoint_file.h"
#include "common/graph/graph.h"

namespace dt {

// Positions [first, first + length) of each dimension of an array.
struct DenseBox {
  Shape first, length;
};
struct DensePart {
  std::string_view name;
  Shape whole;
  DenseBox box;
  std::span<const std::byte> values;  // f32, not aligned.
};

// The path of the file of a team's worker.
std::string DensePath(const std::string& folder, uint32_t position);

// Calls row(first, length) for each row of the box: its last dimension. `first` is the position of
// the row's first element in an array of the shape `whole`. Not for boxes without elements.
template <class Row>
void ForEachRow(const DenseBox& box, const Shape& whole, const Row& row) {
  const size_t dims = whole.size();
  for (const int64_t length : box.length) {
    if (length == 0) return;
  }
  if (dims == 0) return row(int64_t{0}, int64_t{1});
  Shape at(dims, 0);
  for (;;) {
    int64_t first = 0;
    for (size_t d = 0; d < dims; ++d) first = first * whole[d] + box.first[d] + at[d];
    row(first, box.length[dims - 1]);
    size_t d = dims - 1;
    while (d > 0 && ++at[d - 1] == box.length[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

// Copies what a part has of a box into the box's elements; returns how many.
size_t CopyCommon(const DensePart& part, const DenseBox& to, std::span<float> values);

class DenseWriter {
 public:
  // A file of a team of `files` workers, with so many parts.
  DenseWriter(uint32_t files, size_t parts);
  void Add(const DensePart& part);
  // Writes the file whole or not at all. Errors: Unavailable naming it.
  Result<CheckpointFile> Write(const std::string& folder, uint32_t position);

 private:
  std::string content_;
};

// Calls `take` for each part of all files; one file at a time is in memory. Errors: NotFound;
// DataLoss naming file and offset, if a file is damaged; those of `take`.
Status ReadDenseParts(const std::string& folder,
                      const std::function<Status(const DensePart&)>& take);

// The array of a safetensors or npz file with a dense parameter's values: "NAME" or, as
// `dovetail export` writes it, "dense.NAME"; null if there is none.
const ArrayReader::Array* DenseArrayIn(const ArrayReader& file, const std::string& name);

struct DenseArray {
  std::string name;
  Shape shape;
  std::vector<float> values;
};
// Whole arrays, in the order of names. Errors: those of ReadDenseParts.
Result<std::vector<DenseArray>> ReadDenseArrays(const std::string& folder);

}  // namespace dt
