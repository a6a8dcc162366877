#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>

#include <glob.h>

#include "common/base/remote_path.h"
#include "common/base/text.h"
#include "common/config/load_job.h"
#include "common/config/read_sections.h"

namespace dt {
// A pattern without a match stays in the list: opening it then reports that the file is absent. So
// does a pattern of remote files, which are listed when the data is opened.
std::vector<std::string> ExpandGlob(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> files = {pattern};
  const bool is_glob = !IsRemotePath(pattern) && pattern.find_first_of("*?[") != std::string::npos;
  if (is_glob && glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    std::sort(files.begin(), files.end());
  }
  globfree(&found);
  return files;
}

namespace {

// The text after the last slash that is outside ${…}.
std::string_view LastComponent(std::string_view written) {
  size_t begin = 0;
  for (size_t at = 0; at < written.size(); ++at) {
    if (written.substr(at).starts_with("${")) at = std::min(written.find('}', at), written.size());
    if (at < written.size() && written[at] == '/') begin = at + 1;
  }
  return written.substr(begin);
}

// The file names that a path, which may be a glob, adds to the fingerprint.
std::string NamesOf(const ConfigNode& path) {
  const std::string_view last = LastComponent(path.written);
  if (last.find("${") != std::string_view::npos) return std::string(last) + ",";
  std::string names;
  for (const std::string& file : ExpandGlob(BesideFile(path.text, path.mark))) {
    names += std::filesystem::path(file).filename().string() + ",";
  }
  return names;
}

std::string ReadNames(const MapReader& in, std::string_view name) {
  const ConfigNode* const value = in.Find(name);
  if (value == nullptr) return "";
  if (value->is_scalar()) return NamesOf(*value);
  std::string names;
  for (const ConfigNode& item : value->items) names += NamesOf(item);
  return names;
}

}  // namespace

FileNames ReadFileNames(const MapReader& data) {
  return {ReadNames(data, "train"), ReadNames(data, "valid"), ReadNames(data, "test")};
}

std::vector<std::string> ReadFiles(const MapReader& in, std::string_view name) {
  std::vector<std::string> files;
  for (const std::string& path : in.Paths(name)) {
    const std::vector<std::string> named = ExpandGlob(path);
    files.insert(files.end(), named.begin(), named.end());
  }
  if (in.Has(name) && files.empty()) in.Report(name, "found an empty list, expected files");
  if (std::find(files.begin(), files.end(), "") != files.end()) {
    in.Report(name, "found an empty name, expected files");
  }
  return files;
}

namespace {

constexpr size_t kEdgesMax = 1000;

void RefuseKeyFor(const MapReader& in, std::string_view key, bool allowed, std::string_view only) {
  if (!allowed && in.Has(key)) in.Report(key, fmt::format("is for {} only", only));
}

void CheckTransform(const MapReader& in, const ColumnSpec& column) {
  const auto refuse = [&](std::string_view type) {
    in.Report("transform",
              fmt::format("found \"{}\", which is for {} only", column.transform, type));
  };
  if (column.transform == "log" && column.type != ColumnType::kFloat) refuse("type float");
  if (column.transform == "bucket" && column.type != ColumnType::kId) refuse("type id");
  if (column.transform == "named" && !column.is_keys()) {
    refuse("types id, ids, string and strings");
  }
  if (column.is_crossed() && column.type != ColumnType::kId) refuse("type id");
  if (column.is_time_part() && column.type != ColumnType::kId) refuse("type id");
  const bool fixed_ids = column.type == ColumnType::kIds && column.length > 0;
  if (column.is_sampled() && !fixed_ids) refuse("type ids with a length");
  if (column.transform == "log_frequency" &&
      (column.type != ColumnType::kFloat || column.role != ColumnRole::kFeature)) {
    refuse("type float and role feature");
  }
  RefuseKeyFor(in, "of", column.is_crossed() || column.is_derived(),
               "transforms crossed, sampled_uniform, sampled_unigram and log_frequency");
  const bool made = column.is_crossed() || column.is_derived();
  for (const char* key : {"separator", "fill", "weighted", "from", "weights"}) {
    const bool reported = in.problems().HasUnder(in.PathOf(key));
    const bool of_crossed = key == std::string_view("from") && made;
    RefuseKeyFor(in, key, reported || !(column.is_derived() || of_crossed), "columns in files");
  }
}

bool Ascends(const std::vector<float>& numbers) {
  return std::ranges::adjacent_find(numbers, std::greater_equal<>()) == numbers.end();
}

// How numbers are changed, and which keys they or other keys become.
void ReadValues(const MapReader& in, ColumnSpec& column) {
  in.Read("from", column.from);
  in.Read("weights", column.weights);
  in.Read("hash", column.hash);
  column.clip = in.Floats("clip");
  in.Read("standardise", column.standardise);
  column.edges = in.Floats("edges");
  in.Read("quantiles", column.quantiles);

  const bool list = column.type == ColumnType::kIds || column.type == ColumnType::kStrings;
  const bool number = column.type == ColumnType::kFloat && column.role == ColumnRole::kFeature &&
                      !column.is_derived();
  const bool id = column.type == ColumnType::kId && column.transform.empty();
  RefuseKeyFor(in, "weights", list, "ids and strings");
  RefuseKeyFor(in, "hash", column.is_keys() && !column.is_sampled(), "keys in files");
  for (const char* key : {"clip", "standardise"}) {
    RefuseKeyFor(in, key, number, "features of type float in files");
  }
  for (const char* key : {"edges", "quantiles"}) {
    RefuseKeyFor(in, key, id, "type id without a transform");
  }
  if (in.Has("edges") && in.Has("quantiles")) {
    in.Report("quantiles", "found beside edges, expected one of them");
  }
  if (in.Has("weights") && column.weighted) {
    in.Report("weights", "found beside weighted, which is for libsvm and libffm");
  }
  column.weighted = column.weighted || !column.weights.empty();
  if (in.Has("clip") && (column.clip.size() != 2 || !Ascends(column.clip))) {
    in.Report("clip", "expected two numbers, the least and the greatest, such as [0, 100]");
  }
  const size_t edges = column.edges.size();
  if (in.Has("edges") && (edges == 0 || edges > kEdgesMax || !Ascends(column.edges))) {
    in.Report("edges",
              fmt::format("expected 1 to {} numbers that ascend, such as [0, 10, 100]", kEdgesMax));
  }
}

ColumnSpec ReadColumn(const MapReader& in) {
  ColumnSpec column;
  in.Read("name", column.name);
  in.Read("type", column.type);
  in.Read("role", column.role);
  in.Read("length", column.length);
  in.Read("max_len", column.max_len);
  in.Read("fill", column.fill);
  in.Read("weighted", column.weighted);
  in.Read("transform", column.transform);
  if (column.transform == "none") column.transform.clear();
  char separator = '|';
  in.Read("separator", separator);
  column.separator = std::string(1, separator);
  column.of = in.Texts("of");

  const bool list = column.type == ColumnType::kIds || column.type == ColumnType::kStrings;
  if (list && !in.Has("length")) column.length = 0;
  const bool vector = column.type == ColumnType::kFloat && column.role == ColumnRole::kFeature;
  RefuseKeyFor(in, "length", list || vector, "ids, strings and features of type float");
  RefuseKeyFor(in, "max_len", list && !in.Has("length"), "ids and strings without a length");
  RefuseKeyFor(in, "separator", list || column.is_vector(), "ids, strings and vectors of floats");
  RefuseKeyFor(in, "fill", column.type == ColumnType::kFloat, "type float");
  if (column.role != ColumnRole::kFeature && column.type != ColumnType::kFloat) {
    in.Report("role", "a label or weight is a number, expected type float");
  }
  ReadValues(in, column);
  CheckTransform(in, column);
  return column;
}

void ReadColumns(const MapReader& in, std::vector<ColumnSpec>& columns) {
  std::set<std::string> seen;
  for (const auto& [name, item] : in.Items("columns")) {
    ColumnSpec column = ReadColumn(item);
    if (column.name.empty()) continue;  // Reported as missing.
    if (!seen.insert(column.name).second) {
      item.Report("name",
                  fmt::format("\"{}\" is written twice, expected a name of its own", column.name));
      continue;
    }
    columns.push_back(std::move(column));
  }
}

// The columns that are crossed, and the one from which a column is derived, must be in the file and
// have one key per sample.
void CheckOf(const MapReader& in, const ColumnSpec& made, const std::vector<ColumnSpec>& columns) {
  if (made.is_crossed() ? made.of.size() < 2 : made.of.size() != 1) {
    return in.problems().Add(in.MarkOf("of"), in.PathOf("of"),
                             fmt::format("found {} columns, expected the {}", made.of.size(),
                                         made.is_crossed() ? "two or more that are crossed"
                                                           : "one from which it is computed"));
  }
  for (const std::string& name : made.of) {
    const auto found = std::ranges::find(columns, name, &ColumnSpec::name);
    if (found == columns.end()) {
      std::vector<std::string> names;
      for (const ColumnSpec& column : columns) names.push_back(column.name);
      in.Report("of", fmt::format("there is no column \"{}\"{}", name, DidYouMean(name, names)));
    } else if (found->is_crossed() || found->is_sampled() ||
               (found->type != ColumnType::kId && found->type != ColumnType::kString)) {
      in.Report("of", fmt::format("\"{}\" {}, expected columns of type id or string", name,
                                  found->is_crossed()   ? "is crossed itself"
                                  : found->is_sampled() ? "is drawn itself"
                                  : found->is_keys()    ? "holds lists"
                                                        : "holds numbers"));
    }
  }
}

void CheckOneList(const MapReader& in, const DataFormatInfo& format,
                  const std::vector<ColumnSpec>& columns) {
  const auto is_label = [](const ColumnSpec& c) { return c.role == ColumnRole::kLabel; };
  const auto is_ids = [](const ColumnSpec& c) { return c.type == ColumnType::kIds; };
  if (columns.size() == 2 && std::any_of(columns.begin(), columns.end(), is_label) &&
      std::any_of(columns.begin(), columns.end(), is_ids)) {
    return;
  }
  in.Report("columns",
            fmt::format("format {} has one float label and one column of type ids", format.name));
}

// Names the formats for which the predicate holds: "formats csv and pipe".
template <class Holds>
std::string FormatsOf(Holds holds) {
  std::vector<std::string> names;
  for (const DataFormatInfo& info : kDataFormats) {
    if (holds(info)) names.emplace_back(info.name);
  }
  return (names.size() == 1 ? "format " : "formats ") + JoinText(names, " and ");
}

bool ListsColumns(const DataFormatInfo& info) { return info.columns == DataColumns::kListed; }

void CheckColumns(const MapReader& in, const DataFormatInfo& format, const DataConfig& data) {
  for (const auto& [name, item] : in.Items("columns")) {
    const auto column = std::ranges::find(data.columns, name, &ColumnSpec::name);
    const bool well_formed = !item.problems().HasUnder(item.path());
    const bool made =
        column != data.columns.end() && (column->is_crossed() || column->is_derived());
    if (made && well_formed) CheckOf(item, *column, data.columns);
    if (ListsColumns(format) || !well_formed) continue;
    for (const char* key :
         {"transform", "from", "weights", "clip", "standardise", "edges", "quantiles"}) {
      if (!item.Has(key) || item.Find(key)->text == "none") continue;
      item.Report(key, fmt::format("is for {} only", FormatsOf(ListsColumns)));
    }
  }
  if (ListsColumns(format) && in.node()->Find("columns") == nullptr) {
    in.problems().Add(in.mark(), in.PathOf("columns"),
                      fmt::format("missing, format {} needs a list of columns", format.name));
  }
  if (!in.Has("columns")) return;
  if (format.columns == DataColumns::kOwn) {
    in.Report("columns",
              fmt::format("format {} has its own: {}", format.name, OwnColumnsText(format)));
  }
  if (format.columns == DataColumns::kOneList) CheckOneList(in, format, data.columns);
}

// Checks that the training data has one source: a command, or files.
void CheckOrigin(const MapReader& in, const DataFormatInfo& format, const DataConfig& data) {
  const auto from_command = [](const DataFormatInfo& info) { return info.from_command; };
  const std::string formats = FormatsOf(from_command);
  RefuseKeyFor(in, "command", format.from_command, formats);
  RefuseKeyFor(in, "train", format.trains_on_files(),
               fmt::format("formats other than {}, which gives the samples", format.name));
  RefuseKeyFor(in, "kafka", format.is_stream, "format kafka");
  if (format.is_stream && !in.Has("kafka")) {
    in.problems().Add(in.mark(), in.PathOf("kafka"),
                      "missing, format kafka needs brokers and topic");
  }
  if (format.from_command && data.command.empty()) {
    in.problems().Add(in.mark(), in.PathOf("command"),
                      fmt::format("missing, format {} runs it to read CSV", format.name));
  }
  if (format.trains_on_files() && !in.Has("train") && in.node() != nullptr &&
      in.node()->Find("train") == nullptr) {
    in.problems().Add(in.mark(), in.PathOf("train"), "missing, expected a text or a list of texts");
  }
}

// How samples are ordered, and who reads them.
void ReadOrder(const MapReader& in, DataConfig& data) {
  const MapReader shuffle = in.Sub("shuffle");
  shuffle.Read("window", data.shuffle_window);
  const ConfigNode *const by = shuffle.Find("by"), *const read = in.Find("read");
  data.read_part = read != nullptr && read->text == "part";
  data.by_slices = by == nullptr ? data.read_part : by->text == "slices";
  if (data.read_part && !data.by_slices) {
    in.Report("read", "found \"part\", which needs shuffle.by: slices");
  }
  if (!data.by_slices || !in.Has("format")) return;
  const DataFormatInfo& format = DataFormatNamed(in.Find("format")->text);
  if (!format.trains_on_files()) {
    in.Report(data.read_part ? "read" : "shuffle",
              fmt::format("needs files, which format {} is not about", format.name));
  }
}

}  // namespace

void ReadData(const MapReader& in, DataConfig& data) {
  data.train = ReadFiles(in, "train");
  data.valid = ReadFiles(in, "valid");
  data.test = ReadFiles(in, "test");
  in.Read("command", data.command);
  if (in.Has("kafka")) ReadStream(in.Sub("kafka"), data);
  ReadColumns(in, data.columns);
  in.Read("delimiter", data.delimiter);
  ReadOrder(in, data);
  if (const std::vector<std::string> stats = in.Paths("stats"); !stats.empty()) {
    data.stats = stats[0];
  }
  in.Read("on_error", data.on_error);
  in.Read("cache_dir", data.cache_dir);
  if (!in.Has("format")) return;

  const DataFormatInfo& format = DataFormatNamed(in.Find("format")->text);
  const auto has_delimiter = [](const DataFormatInfo& info) { return info.has_delimiter; };
  data.format = format.format;
  CheckColumns(in, format, data);
  CheckOrigin(in, format, data);
  RefuseKeyFor(in, "delimiter", format.has_delimiter, FormatsOf(has_delimiter));
}

std::vector<ColumnSpec> ConfiguredColumns(const DataConfig& data) {
  const DataFormatInfo& format = InfoOf(data.format);
  if (format.columns == DataColumns::kOwn) return OwnColumnsOf(format);
  std::vector<ColumnSpec> columns = WithoutDerived(data.columns);
  std::ranges::copy(DerivedColumns(data.columns), std::back_inserter(columns));
  return columns;
}

}  // namespace dt
