// The formats of training data, and which keys of the job file go with each.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

#include "common/base/joined_names.h"

namespace dt {

// The formats that worker/data/format reads. FORMAT(Csv) gives kCsv here and MakeCsvFormat there.
#define DT_DATA_FORMATS(FORMAT) FORMAT(Criteo) FORMAT(Libsvm) FORMAT(Libffm) FORMAT(Csv)

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

// A value of data.format. Two values can share a DataFormat and differ in where the bytes come
// from.
struct DataFormatInfo {
  std::string_view name;
  DataFormat format;
  DataColumns columns = DataColumns::kOptional;
  std::string_view own_columns = {};  // kOwn: the format's columns, for messages.
  bool has_delimiter = false;
  // A command prints the training data; validation and test data are files.
  bool from_command = false;
  bool is_available = true;
};

inline constexpr DataFormatInfo kDataFormats[] = {
    {.name = "criteo",
     .format = DataFormat::kCriteo,
     .columns = DataColumns::kOwn,
     .own_columns = "label, I1..I13, C1..C26"},
    {.name = "libsvm", .format = DataFormat::kLibsvm, .columns = DataColumns::kOneList},
    {.name = "libffm", .format = DataFormat::kLibffm},
    {.name = "csv",
     .format = DataFormat::kCsv,
     .columns = DataColumns::kListed,
     .has_delimiter = true},
    {.name = "binary", .format = DataFormat::kBinary, .is_available = false},
    {.name = "pipe",
     .format = DataFormat::kCsv,
     .columns = DataColumns::kListed,
     .has_delimiter = true,
     .from_command = true},
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

}  // namespace dt
