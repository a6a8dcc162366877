// Parquet: columns by name, row groups decoded in parallel.
#include <algorithm>
#include <cstring>

#include "common/base/text.h"
#include "worker/data/format/cell_values.h"
#include "worker/data/parquet/batch_rows.h"
#include "worker/data/parquet/column_values.h"
#include "worker/data/parquet/row_parts.h"

namespace dt::worker {
namespace {

// What a block's bytes are: the part's number.
struct PartToken {
  uint64_t run = 0;
  uint64_t part = 0;
};

// Where the values of columns, and the weights of lists, are in a batch; see BatchRows.
struct FieldPlaces {
  std::vector<size_t> column_of, weights_of;
};

class ParquetDecoder : public BlockDecoder {
 public:
  ParquetDecoder(std::unique_ptr<ParquetFile> file, std::vector<ColumnSpec> columns,
                 FieldPlaces fields, bool labels_optional)
      : BlockDecoder(RowLayout(std::move(columns))),
        file_(std::move(file)),
        rows_(layout(), std::move(fields.column_of), labels_optional,
              std::move(fields.weights_of)) {}

  const ParquetFile& file() const { return *file_; }

  // Returns the number of the run in tokens.
  uint64_t Add(const RowRun& run) {
    MutexLock lock(mutex_);
    runs_.emplace(runs_added_, std::make_shared<RunReader>(*file_, run));
    return runs_added_++;
  }

  void Decode(std::string_view bytes, RowScratch& /*scratch*/, BlockResult& out) const override {
    PartToken token;
    std::memcpy(&token, bytes.data(), sizeof token);
    const std::shared_ptr<RunReader> reader = RunOf(token.run);
    const RowRun& run = reader->run();
    out.Clear(layout(), std::min(run.part_rows, run.rows));
    bool was_last = false;
    Result<std::vector<OwnedBatch>> batches = reader->Take(token.part, was_last);
    if (was_last) Remove(token.run);
    if (!batches.ok()) {
      out.failed = batches.status();
      return;
    }
    for (OwnedBatch& batch : *batches) {
      rows_.Append(*batch, out);
      batch = nullptr;
    }
    if (out.bad_lines == 0) return;
    out.first_place = reader->PlaceOf(token.part * run.part_rows + out.first_bad);
  }

 private:
  std::shared_ptr<RunReader> RunOf(uint64_t run) const {
    MutexLock lock(mutex_);
    return runs_.at(run);
  }
  void Remove(uint64_t run) const {
    MutexLock lock(mutex_);
    runs_.erase(run);
  }

  const std::unique_ptr<ParquetFile> file_;
  const BatchRows rows_;
  // The reader adds runs while other threads decode.
  mutable Mutex mutex_;
  mutable std::map<uint64_t, std::shared_ptr<RunReader>> runs_ DT_GUARDED_BY(mutex_);
  uint64_t runs_added_ DT_GUARDED_BY(mutex_) = 0;
};

class ParquetReader : public InputReader {
 public:
  ParquetReader(const FormatRequest& request, NamedSource input)
      : request_(request),
        name_(std::move(input.name)),
        file_(input.bytes->file()),
        part_(input.part) {}

  Status Next(std::string& bytes) override {
    bytes.clear();
    if (decoder_ == nullptr) DT_TRY_STATUS(Open());
    if (decoder_ == nullptr) return OkStatus();
    if (next_.part == parts_) {
      RowRun run;
      if (!runs_->Next(run)) return OkStatus();
      next_ = {.run = decoder_->Add(run)};
      parts_ = run.parts();
    }
    bytes.assign(reinterpret_cast<const char*>(&next_), sizeof next_);
    ++next_.part;
    return OkStatus();
  }
  std::shared_ptr<const BlockDecoder> decoder() const override { return decoder_; }
  // Writers of many files leave some without rows; only an empty file is a mistake.
  bool may_lack_rows() const override { return decoder_ != nullptr; }
  uint64_t consumed() const override {
    if (rows_ == 0) return 0;
    const double read = static_cast<double>(runs_->rows_given()) / static_cast<double>(rows_);
    const uint64_t bytes = std::min(part_.end, file_->size()) - part_.begin;
    return static_cast<uint64_t>(read * static_cast<double>(bytes));
  }

 private:
  Status Open();
  GroupRange GroupsOf(const ParquetFile& file) const;
  Status FindColumns(ParquetFile& file, FieldPlaces& out) const;
  bool MayBeAbsent(const ColumnSpec& column) const {
    return request_.labels_optional && column.role != ColumnRole::kFeature;
  }

  const FormatRequest& request_;
  const std::string name_;
  const std::shared_ptr<const RandomFile> file_;
  const ByteRange part_;
  std::shared_ptr<ParquetDecoder> decoder_;  // Null until the file has been opened.
  std::unique_ptr<RowRuns> runs_;
  uint64_t rows_ = 0;  // Rows of the file.
  PartToken next_;
  uint64_t parts_ = 0;  // Parts of the run of next_.
};

Status ParquetReader::Open() {
  if (file_ == nullptr) {
    return Malformed("{}: a file found that is compressed as a whole; Parquet compresses its pages",
                     name_);
  }
  if (file_->size() == 0) return OkStatus();
  DT_TRY(std::unique_ptr<ParquetFile> file, ParquetFile::Open(file_, name_));
  FieldPlaces fields;
  DT_TRY_STATUS(FindColumns(*file, fields));
  const GroupRange groups = GroupsOf(*file);
  for (uint32_t g = 0; g < groups.count; ++g) rows_ += file->rows_of(groups.first + g);
  decoder_ = std::make_shared<ParquetDecoder>(std::move(file), request_.columns, std::move(fields),
                                              request_.labels_optional);
  runs_ = std::make_unique<RowRuns>(decoder_->file(), decoder_->layout().record_bytes(), groups);
  return OkStatus();
}

// A row group begins where it would if all rows had the same size.
GroupRange ParquetReader::GroupsOf(const ParquetFile& file) const {
  if (part_.is_all()) return {0, file.group_count()};
  uint64_t all = 0, before = 0;
  for (uint32_t g = 0; g < file.group_count(); ++g) all += file.rows_of(g);
  GroupRange groups;
  for (uint32_t g = 0; g < file.group_count(); before += file.rows_of(g++)) {
    const double share =
        static_cast<double>(before) / static_cast<double>(std::max<uint64_t>(1, all));
    if (!part_.Has(static_cast<uint64_t>(share * static_cast<double>(file_->size())))) continue;
    if (groups.count++ == 0) groups.first = g;
  }
  return groups;
}

// The fields of a file that are read, each once.
class FieldSelection {
 public:
  FieldSelection(const ParquetFile& file, const std::string& file_name)
      : file_(file), file_name_(file_name) {
    for (const ArrowField& field : file.fields()) names_.emplace_back(field.name);
  }

  bool Has(const std::string& name) const { return std::ranges::count(names_, name) > 0; }
  // Sets the place of a field in batches. `mismatch` says what is wrong with a field, or "".
  template <class Mismatch>
  Status Add(const std::string& name, const Mismatch& mismatch, size_t& place) {
    const auto at = std::ranges::find(names_, name);
    if (at == names_.end()) {
      return Malformed("{}: column \"{}\": no such column found, all of data.columns expected{}",
                       file_name_, name, DidYouMean(name, names_));
    }
    const auto field = static_cast<uint32_t>(at - names_.begin());
    const std::string wrong = mismatch(file_.fields()[field]);
    if (!wrong.empty()) return Malformed("{}: column \"{}\": {}", file_name_, name, wrong);
    const auto known = std::ranges::find(fields_, field);
    place = static_cast<size_t>(known - fields_.begin());
    if (known == fields_.end()) fields_.push_back(field);
    return OkStatus();
  }
  std::vector<uint32_t> Take() { return std::move(fields_); }

 private:
  const ParquetFile& file_;
  const std::string& file_name_;
  std::vector<std::string> names_;
  std::vector<uint32_t> fields_;
};

Status ParquetReader::FindColumns(ParquetFile& file, FieldPlaces& out) const {
  FieldSelection selection(file, name_);
  for (const ColumnSpec& column : request_.columns) {
    size_t& place = out.column_of.emplace_back(BatchRows::kNoColumn);
    size_t& weights = out.weights_of.emplace_back(BatchRows::kNoColumn);
    const std::string& name = column.name_in_file();
    if (column.is_crossed() || (!selection.Has(name) && MayBeAbsent(column))) continue;
    DT_TRY_STATUS(selection.Add(
        name, [&](const ArrowField& field) { return TypeMismatch(column, field); }, place));
    if (!column.weighted) continue;
    DT_TRY_STATUS(selection.Add(
        column.weights, [&](const ArrowField& field) { return WeightsMismatch(column, field); },
        weights));
  }
  file.Select(selection.Take());
  return OkStatus();
}

class ParquetFormat : public FileFormat {
 public:
  explicit ParquetFormat(FormatRequest request) : request_(std::move(request)) {}

  Status CheckColumns() const override { return CheckListedColumns(request_.columns); }
  std::vector<ColumnSpec> columns() const override { return request_.columns; }
  Result<std::unique_ptr<InputReader>> Open(NamedSource input) override {
    return std::make_unique<ParquetReader>(request_, std::move(input));
  }

 private:
  const FormatRequest request_;
};

}  // namespace

std::unique_ptr<FileFormat> MakeParquetFormat(FormatRequest request) {
  return std::make_unique<ParquetFormat>(std::move(request));
}

}  // namespace dt::worker
