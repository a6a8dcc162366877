// A column of the data set: its type, what it is for, and how its cells are read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/fields.h"

namespace dt {

enum class ColumnType { kFloat, kId, kString, kIds, kStrings };
inline constexpr std::string_view kColumnTypeNames = "float|id|string|ids|strings";
std::string_view NameOf(ColumnType type);
enum class ColumnRole { kFeature, kLabel, kWeight };

// One named column of a data set. Floats have width 1. Ids and strings become 64-bit keys; a column
// of them holds `length` keys per sample, or a varying number (length 0, at most max_len) if it is
// ragged.
struct ColumnSpec {
  std::string name;
  ColumnType type = ColumnType::kFloat;
  ColumnRole role = ColumnRole::kFeature;
  std::string separator = "|";  // Between the ids of one cell (ids, strings).
  uint32_t length = 1;          // Keys per sample; 0 = ragged.
  uint32_t max_len = 0;   // Ragged: longer lists are cut to their last max_len ids; 0 = no bound.
  float fill = 0;         // Value of an empty float cell.
  bool weighted = false;  // libsvm: the ids carry values that are not all 1.
  // An integer cell is bucketed before hashing: key = HashString("<name>=" + bucket), see
  // docs/job-file.md.
  std::string transform;  // "", "log", "bucket", …: the reader transforms.
  // Transform "crossed": the columns whose keys its key is made of; the file has no such column.
  std::vector<std::string> of;
  DT_FIELDS(name, type, role, separator, length, max_len, fill, weighted, transform, of)

  bool is_crossed() const { return transform == "crossed"; }
  bool is_keys() const { return type != ColumnType::kFloat; }
  bool is_ragged() const { return is_keys() && length == 0; }
  friend bool operator==(const ColumnSpec&, const ColumnSpec&) = default;
};

}  // namespace dt
