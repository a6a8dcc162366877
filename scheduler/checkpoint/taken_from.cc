#include "scheduler/checkpoint/taken_from.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/ranges.h>

#include "common/base/text.h"
#include "common/config/dense_tables.h"
#include "common/dense/dense_file.h"
#include "common/rows/file_rows.h"
#include "common/rows/rows_reader.h"
#include "ops/update/update.h"
#include "scheduler/checkpoint/checkpoint_store.h"

namespace dt::scheduler {
namespace {

constexpr size_t kNamesShown = 5;

std::string ShapeText(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string Names(std::vector<std::string> names) {
  const size_t count = names.size();
  if (count > kNamesShown) {
    names.resize(kNamesShown);
    names.push_back(fmt::format("and {} more", count - kNamesShown));
  }
  return JoinText(names, ", ");
}

// The lines of a job's resume text that say which dense parameters there are, and in which order.
std::vector<std::string> GraphLines(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : SplitText(text, '\n')) {
    const bool matters = line.starts_with("model.graph") || line.starts_with("model.loss") ||
                         line.starts_with("train.staleness") || line.starts_with("data.columns");
    if (matters) lines.emplace_back(line);
  }
  return lines;
}

// State has the shape of its parameter, of which a worker may have a part.
Shape WholeShape(const Graph& graph, const ParameterSpec& spec) {
  const ValueIndex of = spec.state_of != kNone ? spec.state_of : spec.value;
  const auto own = std::ranges::find(graph.parameters, of, &ParameterSpec::value);
  if (own != graph.parameters.end() && !own->whole.empty()) return own->whole;
  Shape shape;
  for (const Dim& dim : graph.value(of).shape) shape.push_back(dim.times);
  return shape;
}

class Matcher {
 public:
  Matcher(const JobConfig& job, std::span<const WholeArray> arrays, const std::string& folder)
      : job_(job), arrays_(arrays), folder_(folder) {}

  Result<Taken> Match() {
    if (!folder_.empty()) DT_TRY_STATUS(MatchCheckpoint());
    for (const TableConfig& table : job_.model.tables) {
      if (!table.init_file.empty()) DT_TRY_STATUS(TakeFile(table));
    }
    if (!job_.init.arrays.empty()) DT_TRY_STATUS(TakeArraysOfFile());
    return std::move(taken_);
  }

 private:
  bool IsWanted(const std::string& name) const {
    const std::vector<std::string>& only = job_.init.only;
    return only.empty() || std::ranges::any_of(only, [&](const std::string& pattern) {
             return MatchesPattern(name, pattern);
           });
  }
  void Report(std::string line) { taken_.report.push_back(std::move(line)); }

  Status MatchCheckpoint() {
    DT_TRY(const Manifest manifest, ReadManifest(folder_));
    DT_TRY(const RowsHeader header, ReadRowsHeader(folder_));
    saved_text_ = manifest.resume_text;
    const bool keep = !job_.init.fresh_optimizer;
    if (keep) taken_.steps_before = manifest.steps_before + manifest.schedule.step;
    Report(fmt::format("begins with {}, of job {} at step {}, {}", folder_, manifest.job,
                       manifest.schedule.step,
                       keep ? fmt::format("and counts its {} steps", taken_.steps_before)
                            : std::string("with fresh optimizer state")));
    DT_TRY_STATUS(MatchTables(header));
    DT_TRY_STATUS(MatchArrays());
    if (GraphLines(manifest.resume_text) == GraphLines(job_.resume_text) && new_arrays_ == 0) {
      TakeDenseTables(header);
    }
    if (!taken_.parts.tables.empty() || !taken_.parts.arrays.empty()) return OkStatus();
    return WithWhere(WithHint(Invalid("the job takes nothing of this checkpoint: no table and no "
                                      "dense parameter matches"),
                              "names and shapes must be equal; init.only narrows them"),
                     folder_);
  }

  // ------------------------------------------------------------ tables

  Status MatchTables(const RowsHeader& header) {
    for (const TableConfig& table : job_.model.tables) {
      const auto saved = std::ranges::find(header.tables, table.id, &RowsHeader::Table::id);
      if (!table.init_file.empty()) continue;
      if (saved == header.tables.end()) {
        Report(fmt::format("table {}: new", table.name));
      } else if (!IsWanted(table.name)) {
        Report(fmt::format("table {}: new, init.only passes over it", table.name));
      } else {
        DT_TRY_STATUS(TakeTable(table, *saved));
      }
    }
    std::vector<std::string> dropped;
    for (const RowsHeader::Table& saved : header.tables) {
      const auto same = [&](const TableConfig& table) { return table.id == saved.id; };
      const bool dense = saved.name == kDenseTable || saved.name == kRunningTable;
      if (!dense && std::ranges::none_of(job_.model.tables, same)) dropped.push_back(saved.name);
    }
    if (!dropped.empty()) Report(fmt::format("dropped tables: {}", Names(std::move(dropped))));
    return OkStatus();
  }

  Status TakeTable(const TableConfig& table, const RowsHeader::Table& saved) {
    if (saved.dim != table.dim) {
      return WithHint(
          WithWhere(Invalid("table {} has dim {} there, and {} in this job", table.name, saved.dim,
                            table.dim),
                    folder_),
          fmt::format("with init.only, a list of the names to take without {}, it begins anew",
                      table.name));
    }
    const bool same_state = HasStateOf(table, saved);
    const bool state = same_state && !job_.init.fresh_optimizer;
    taken_.parts.tables.push_back({table.id, state, ""});
    Report(fmt::format("table {}: kept{}", table.name,
                       state             ? ", with its optimizer state"
                       : same_state      ? ""
                       : saved.state > 0 ? "; its optimizer is another one, whose state begins anew"
                                         : "; its optimizer's state begins anew"));
    return OkStatus();
  }

  // Whether the rows have state, and the job's optimizer is the saved one.
  bool HasStateOf(const TableConfig& table, const RowsHeader::Table& saved) const {
    const uint32_t state = StateFloats(table.optimizer, table.dim);
    return state > 0 && state == saved.state &&
           LineOf("model.tables." + table.name + ".optimizer.name") == NameOf(table.optimizer.kind);
  }
  // The value of a key of the saved job.
  std::optional<std::string> LineOf(const std::string& key) const {
    for (const std::string_view line : SplitText(saved_text_, '\n')) {
      if (line.starts_with(key + ": ")) return std::string(line.substr(key.size() + 2));
    }
    return std::nullopt;
  }

  // Asynchronous jobs have dense parameters, with their state, in tables, too, which fit if the
  // graph is the same.
  void TakeDenseTables(const RowsHeader& header) {
    for (const TableConfig& table : DenseTables(job_)) {
      const auto saved = std::ranges::find(header.tables, table.id, &RowsHeader::Table::id);
      if (saved == header.tables.end()) continue;
      const bool state = saved->state == StateFloats(table.optimizer, table.dim);
      taken_.parts.tables.push_back({table.id, state && !job_.init.fresh_optimizer, ""});
    }
  }

  // ------------------------------------------------------------ dense parameters

  Status MatchArrays() {
    std::map<std::string, Shape> saved;
    DT_TRY_STATUS(ReadDenseParts(folder_, [&](const DensePart& part) {
      saved.emplace(part.name, part.whole);
      return OkStatus();
    }));
    const bool keeps_state =
        !job_.init.fresh_optimizer && LineOf("optimizer.name") == NameOf(job_.optimizer.spec.kind);
    std::vector<std::string> fresh, other, dropped;
    for (const WholeArray& array : arrays_) {
      const auto there = saved.find(array.name);
      const bool wanted = IsWanted(array.name) && (keeps_state || !array.state);
      if (there == saved.end() || !wanted) {
        fresh.push_back(array.name);
      } else if (there->second != array.shape) {
        other.push_back(fmt::format("{} ({} there, {} here)", array.name, ShapeText(there->second),
                                    ShapeText(array.shape)));
      } else {
        taken_.parts.arrays.push_back(array.name);
      }
      if (there != saved.end()) saved.erase(there);
    }
    for (const auto& [name, shape] : saved) dropped.push_back(name);
    new_arrays_ = fresh.size() + other.size();
    Report(fmt::format("dense parameters: {} kept", taken_.parts.arrays.size()));
    if (!fresh.empty()) Report(fmt::format("  new: {}", Names(std::move(fresh))));
    if (!other.empty()) Report(fmt::format("  of another shape, new: {}", Names(std::move(other))));
    if (!dropped.empty()) Report(fmt::format("  dropped: {}", Names(std::move(dropped))));
    return OkStatus();
  }

  // ------------------------------------------------------------ files

  Status TakeFile(const TableConfig& table) {
    const std::string path = std::filesystem::absolute(table.init_file).lexically_normal();
    DT_TRY(const FileRows rows, FileRows::Open(path, table.name, table.dim));
    taken_.parts.tables.push_back({table.id, false, path});
    Report(fmt::format("table {}: {} rows of {}", table.name, rows.rows(), path));
    return OkStatus();
  }

  Status TakeArraysOfFile() {
    const std::string path = std::filesystem::absolute(job_.init.arrays).lexically_normal();
    DT_TRY(const ArrayReader file, ArrayReader::Open(path));
    for (const WholeArray& array : arrays_) {
      const ArrayReader::Array* const found = DenseArrayIn(file, array.name);
      if (found == nullptr) continue;
      if (!std::ranges::equal(found->shape, array.shape)) {
        return WithWhere(Invalid("{} has shape [{}] there, and {} in this job", array.name,
                                 fmt::join(found->shape, ", "), ShapeText(array.shape)),
                         path);
      }
      taken_.parts.of_file.push_back(array.name);
    }
    if (taken_.parts.of_file.empty()) {
      return WithWhere(Invalid("none of its arrays is a dense parameter of this job"), path);
    }
    taken_.parts.file = path;
    Report(fmt::format("dense parameters of {}: {}", path, Names(taken_.parts.of_file)));
    return OkStatus();
  }

  const JobConfig& job_;
  const std::span<const WholeArray> arrays_;
  const std::string& folder_;
  Taken taken_;
  std::string saved_text_;  // Manifest::resume_text.
  size_t new_arrays_ = 0;
};

}  // namespace

std::vector<WholeArray> WholeArraysOf(std::span<const Plan> plans) {
  std::vector<WholeArray> arrays;
  for (const Plan& plan : plans) {
    const Graph& graph = plan.graph;
    for (const ParameterSpec& spec : graph.parameters) {
      WholeArray array{graph.value(spec.value).name, WholeShape(graph, spec),
                       spec.state_of != kNone};
      const bool known = std::ranges::find(arrays, array.name, &WholeArray::name) != arrays.end();
      if (!known) arrays.push_back(std::move(array));
    }
  }
  return arrays;
}

Result<Taken> TakenFrom(const JobConfig& job, std::span<const WholeArray> arrays,
                        const std::string& folder) {
  return Matcher(job, arrays, folder).Match();
}

}  // namespace dt::scheduler
