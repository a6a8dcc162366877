// A column of the data set: its type, its role, and how its cells are read.
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

// A named column of a data set. Float columns have `length` numbers per sample. Ids and strings
// become 64-bit keys: `length` keys per sample, or, if the column is ragged (length 0), a varying
// number.
struct ColumnSpec {
  std::string name;
  ColumnType type = ColumnType::kFloat;
  ColumnRole role = ColumnRole::kFeature;
  std::string separator = "|";  // Separates the ids or numbers of one cell.
  uint32_t length = 1;          // Keys or numbers per sample; 0 = ragged.
  // Ragged columns: longer lists are cut to their last max_len ids; 0 = no limit.
  uint32_t max_len = 0;
  float fill = 0;         // Value of an empty float cell.
  bool weighted = false;  // Keys carry weights: the values of libsvm, or those of `weights`.
  // How the reader transforms a cell: "", "log", "bucket", … (docs/job-file.md). "bucket" puts
  // integers into buckets before hashing: key = HashString("<name>=" + bucket).
  std::string transform;
  // Transform "crossed": the columns whose keys are combined. Derived columns: the one column from
  // which they are computed. The file has no column of this name.
  std::vector<std::string> of;
  std::string from;         // The name in the file; empty: `name`.
  uint64_t hash = 0;        // Each key becomes a hash of it below this number; 0: it stays.
  std::string weights;      // Lists: the file's column with a weight for each item; empty: none.
  std::vector<float> clip;  // The least and the greatest number; empty: no bounds.
  // Numbers become (x - mean) / deviation, after clip and log; 0 where the deviation is 0.
  bool standardise = false;
  float mean = 0, deviation = 1;
  // Type id: a number x becomes the key of its bin, the number of edges that are at most x. The
  // edges ascend; those of `quantiles` bins, if it is not 0, are constants as `mean` is: statistics
  // of the training data (data.stats), or what a checkpoint was trained with.
  uint32_t quantiles = 0;
  std::vector<float> edges;
  DT_FIELDS(name, type, role, separator, length, max_len, fill, weighted, transform, of, from, hash,
            weights, clip, standardise, mean, deviation, quantiles, edges)

  const std::string& name_in_file() const { return from.empty() ? name : from; }

  bool is_crossed() const { return transform == "crossed"; }
  // Holds keys that are drawn from another column.
  bool is_sampled() const { return transform.starts_with("sampled_"); }
  // Computed when samples are read, and so in no cache; see worker/data/derived_column.h.
  bool is_derived() const { return is_sampled() || transform == "log_frequency"; }
  // Its key is the bin of a number.
  bool is_binned() const { return quantiles > 0 || !edges.empty(); }
  // Its key is a part of a time, such as the hour.
  bool is_time_part() const {
    return transform == "hour" || transform == "weekday" || transform == "day" ||
           transform == "month";
  }
  // Needs constants that the job file does not state.
  bool needs_constants() const { return standardise || quantiles > 0; }
  bool is_keys() const { return type != ColumnType::kFloat; }
  bool is_ragged() const { return is_keys() && length == 0; }
  // Whether a cell holds several numbers, in an order that counts.
  bool is_vector() const { return !is_keys() && length != 1; }
  friend bool operator==(const ColumnSpec&, const ColumnSpec&) = default;
};

inline std::vector<ColumnSpec> DerivedColumns(std::vector<ColumnSpec> columns) {
  std::erase_if(columns, [](const ColumnSpec& column) { return !column.is_derived(); });
  return columns;
}
inline std::vector<ColumnSpec> WithoutDerived(std::vector<ColumnSpec> columns) {
  std::erase_if(columns, [](const ColumnSpec& column) { return column.is_derived(); });
  return columns;
}

}  // namespace dt
