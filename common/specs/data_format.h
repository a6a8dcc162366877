// The formats of training data, and which keys of the job file go with each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/joined_names.h"
#include "common/specs/column.h"

namespace dt {

// The formats that worker/data decodes. FORMAT(Csv) gives kCsv here and MakeCsvFormat there.
#define DT_DATA_FORMATS(FORMAT) \
  FORMAT(Criteo) FORMAT(Libsvm) FORMAT(Libffm) FORMAT(Csv) FORMAT(Parquet)

#define DT_DATA_FORMAT_KIND(Name) k##Name,
enum class DataFormat {
  DT_DATA_FORMATS(DT_DATA_FORMAT_KIND)  //
  kBinary,  // Needs no decoding: a data cache as `dovetail data convert` writes it.
};
#undef DT_DATA_FORMAT_KIND

enum class DataColumns {
  kOwn,       // The format fixes the columns.
  kListed,    // The job file must list them and may transform them.
  kOneList,   // One label and one list of ids; the job file may list both.
  kOptional,  // The job file may list them.
};

// Columns that a format fixes: one column, or equal ones that are numbered from 1.
struct OwnColumns {
  std::string_view name;
  uint32_t count = 0;  // 0: one column, whose name has no number.
  ColumnType type = ColumnType::kFloat;
  ColumnRole role = ColumnRole::kFeature;
  std::string_view transform = {};
};
inline constexpr OwnColumns kCriteoColumns[] = {
    {.name = "label", .role = ColumnRole::kLabel},
    {.name = "I", .count = 13, .transform = "log"},
    {.name = "C", .count = 26, .type = ColumnType::kString},
};

// A value of data.format. Two values can share a DataFormat and differ in where the bytes come
// from.
struct DataFormatInfo {
  std::string_view name;
  DataFormat format;
  DataColumns columns = DataColumns::kOptional;
  std::span<const OwnColumns> own_columns = {};  // kOwn: the format's columns, in their order.
  bool has_delimiter = false;
  // A command prints the training data; validation and test data are files.
  bool from_command = false;
  bool is_stream = false;  // Kafka gives the training data; validation and test data are files.
  bool is_available = true;

  bool trains_on_files() const { return !from_command && !is_stream; }
};

inline constexpr DataFormatInfo kDataFormats[] = {
    {.name = "criteo",
     .format = DataFormat::kCriteo,
     .columns = DataColumns::kOwn,
     .own_columns = kCriteoColumns},
    {.name = "libsvm", .format = DataFormat::kLibsvm, .columns = DataColumns::kOneList},
    {.name = "libffm", .format = DataFormat::kLibffm},
    {.name = "csv",
     .format = DataFormat::kCsv,
     .columns = DataColumns::kListed,
     .has_delimiter = true},
    {.name = "parquet", .format = DataFormat::kParquet, .columns = DataColumns::kListed},
    {.name = "binary", .format = DataFormat::kBinary, .is_available = false},
    {.name = "pipe",
     .format = DataFormat::kCsv,
     .columns = DataColumns::kListed,
     .has_delimiter = true,
     .from_command = true},
    {.name = "kafka",
     .format = DataFormat::kCsv,
     .columns = DataColumns::kListed,
     .has_delimiter = true,
     .is_stream = true},
};

struct IsAvailableFormat {
  constexpr bool operator()(const DataFormatInfo& info) const { return info.is_available; }
};
inline constexpr std::string_view kDataFormatNames = kJoinedNames<kDataFormats>;
inline constexpr std::string_view kAvailableDataFormatNames =
    kJoinedNames<kDataFormats, IsAvailableFormat>;

// The entry for files in this format.
constexpr const DataFormatInfo& InfoOf(DataFormat format) {
  return *std::ranges::find(kDataFormats, format, &DataFormatInfo::format);
}
constexpr std::string_view NameOf(DataFormat format) { return InfoOf(format).name; }
// REQUIRES: one of kDataFormatNames.
constexpr const DataFormatInfo& DataFormatNamed(std::string_view name) {
  return *std::ranges::find(kDataFormats, name, &DataFormatInfo::name);
}

// The columns that the format fixes; empty if it fixes none.
std::vector<ColumnSpec> OwnColumnsOf(const DataFormatInfo& format);
// Their names for messages: "label, I1..I13, C1..C26".
std::string OwnColumnsText(const DataFormatInfo& format);

}  // namespace dt
