// Parquet files, by Arrow's reader.
#include <algorithm>
#include <atomic>
#include <vector>

#include <arrow/io/interfaces.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/size_statistics.h>
#include <parquet/types.h>

#include "worker/data/arrow/parts_arrow.h"

namespace dt::worker {
namespace {

constexpr int64_t kPageReadBytes = 1 << 20;  // A read of a column of a large row group.
// In smaller row groups, a dictionary is not worth its cost: each begins a new batch.
constexpr int64_t kDictionaryRowsMin = 2048;
// The length that texts of a dictionary are taken to have if the file does not state it.
constexpr uint64_t kWordBytes = 32;

// The program's file as Arrow's.
class InputFile : public arrow::io::RandomAccessFile {
 public:
  explicit InputFile(const ArrowInput& input) : input_(input) {}
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() override { input_.release(input_.context); }

  arrow::Status Close() override { return arrow::Status::OK(); }
  bool closed() const override { return false; }
  arrow::Result<int64_t> Tell() const override { return at_; }
  arrow::Status Seek(int64_t position) override {
    at_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> GetSize() override { return static_cast<int64_t>(input_.size); }

  arrow::Result<int64_t> Read(int64_t bytes, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t got, ReadAt(at_, bytes, out));
    at_ += got;
    return got;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(at_, bytes));
    at_ += buffer->size();
    return buffer;
  }
  arrow::Result<int64_t> ReadAt(int64_t at, int64_t bytes, void* out) override {
    const int64_t size = static_cast<int64_t>(input_.size);
    if (at < 0 || bytes < 0 || at > size) {
      return arrow::Status::Invalid("it points outside of the file");
    }
    bytes = std::min(bytes, size - at);
    if (bytes > 0 && !input_.read(input_.context, static_cast<uint64_t>(at),
                                  static_cast<uint64_t>(bytes), out)) {
      failed_ = true;
      return arrow::Status::IOError("reading failed");
    }
    return bytes;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t at, int64_t bytes) override {
    const int64_t size = static_cast<int64_t>(input_.size);
    bytes = std::clamp<int64_t>(bytes, 0, std::max<int64_t>(0, size - at));
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateBuffer(bytes));
    ARROW_ASSIGN_OR_RAISE(const int64_t got, ReadAt(at, bytes, buffer->mutable_data()));
    return arrow::SliceBuffer(std::move(buffer), 0, got);
  }

  bool is_remote() const { return input_.is_remote; }
  // Whether the program's file has failed, so that what was read may be sound.
  bool failed() const { return failed_; }

 private:
  const ArrowInput input_;
  int64_t at_ = 0;
  std::atomic<bool> failed_ = false;
};

}  // namespace

struct ArrowParquet {
  std::shared_ptr<InputFile> input;
  std::shared_ptr<parquet::FileMetaData> metadata;
  std::vector<ArrowField> fields;
  std::vector<std::vector<int>> leaves;  // By field: the numbers of its columns in the file.
  std::vector<bool> lists_of_words;      // By field: whether it holds lists of dictionary values.
  std::deque<std::string> texts;         // Owns the texts of fields.
};

struct ArrowRows {
  const ArrowParquet* file = nullptr;
  std::vector<uint32_t> fields;
  ArrowSelection selection;
  uint32_t started_groups = 0;  // Row groups of the selection that `batches` and those before give.
  std::unique_ptr<parquet::arrow::FileReader> reader;
  std::unique_ptr<arrow::RecordBatchReader> batches;
};

namespace {

struct OwnedBatch : ArrowBatch {
  std::shared_ptr<arrow::RecordBatch> data;
  std::vector<ArrowColumn> described;
  std::deque<ArrowColumn> more;
};

parquet::ReaderProperties FileProperties(bool is_large) {
  parquet::ReaderProperties properties(arrow::default_memory_pool());
  properties.set_page_checksum_verification(true);
  if (is_large) {
    properties.enable_buffered_stream();
    properties.set_buffer_size(kPageReadBytes);
  }
  return properties;
}

void CollectLeaves(const parquet::arrow::SchemaField& field, std::vector<int>& out) {
  if (field.is_leaf()) out.push_back(field.column_index);
  for (const auto& child : field.children) CollectLeaves(child, out);
}

ArrowField DescribeField(const arrow::Field& field, std::deque<std::string>& texts) {
  ArrowField out;
  out.name = texts.emplace_back(field.name()).c_str();
  out.type_text = texts.emplace_back(field.type()->ToString()).c_str();
  const arrow::DataType* type = &StoredType(*field.type());
  const ArrowType outer = ArrowTypeOf(*type);
  out.is_list =
      outer == ArrowType::kList || outer == ArrowType::kLargeList || outer == ArrowType::kFixedList;
  if (outer == ArrowType::kFixedList) {
    out.list_size =
        static_cast<uint32_t>(static_cast<const arrow::FixedSizeListType*>(type)->list_size());
  }
  if (out.is_list) type = static_cast<const arrow::BaseListType*>(type)->value_type().get();
  if (type->id() == arrow::Type::DICTIONARY) {
    type = static_cast<const arrow::DictionaryType*>(type)->value_type().get();
  }
  out.type = ArrowTypeOf(*type);
  return out;
}

arrow::Status CheckGroups(const parquet::FileMetaData& metadata) {
  for (int g = 0; g < metadata.num_row_groups(); ++g) {
    const auto group = metadata.RowGroup(g);
    if (group->num_rows() < 0 || group->num_columns() != metadata.num_columns()) {
      return arrow::Status::Invalid("its description of row group ", g, " is damaged");
    }
  }
  return arrow::Status::OK();
}

arrow::Status Describe(ArrowParquet& file) {
  auto opened = parquet::ParquetFileReader::Open(file.input, FileProperties(false));
  file.metadata = opened->metadata();
  ARROW_RETURN_NOT_OK(CheckGroups(*file.metadata));
  ARROW_ASSIGN_OR_RAISE(auto reader, parquet::arrow::FileReader::Make(arrow::default_memory_pool(),
                                                                      std::move(opened)));
  for (const auto& field : reader->manifest().schema_fields) {
    file.fields.push_back(DescribeField(*field.field, file.texts));
    CollectLeaves(field, file.leaves.emplace_back());
    const arrow::DataType& type = StoredType(*field.field->type());
    file.lists_of_words.push_back(file.fields.back().is_list &&
                                  type.field(0)->type()->id() == arrow::Type::DICTIONARY);
  }
  return arrow::Status::OK();
}

ArrowError OpenParquet(const ArrowInput& input, ArrowParquet** out) {
  auto file = std::make_unique<ArrowParquet>();
  file->input = std::make_shared<InputFile>(input);
  const arrow::Status status = Caught([&] { return Describe(*file); });
  if (!status.ok()) return ToArrowError(status, ArrowCode::kMalformed);
  *out = file.release();
  return {};
}

void CloseParquet(ArrowParquet* file) { delete file; }

const ArrowField* FieldsOf(const ArrowParquet* file, size_t* count) {
  *count = file->fields.size();
  return file->fields.data();
}

uint32_t GroupCount(const ArrowParquet* file) {
  return static_cast<uint32_t>(file->metadata->num_row_groups());
}

uint64_t GroupRows(const ArrowParquet* file, uint32_t group) {
  return static_cast<uint64_t>(file->metadata->RowGroup(static_cast<int>(group))->num_rows());
}

// Whether every page of the column is written as positions in a dictionary. Arrow can then return
// these; it would otherwise have to make a dictionary, which is slower than reading the texts.
bool IsInDictionary(const parquet::RowGroupMetaData& group, int leaf) {
  if (group.num_rows() < kDictionaryRowsMin) return false;
  const auto column = group.ColumnChunk(leaf);
  if (column->type() != parquet::Type::BYTE_ARRAY || !column->has_dictionary_page()) return false;
  for (const parquet::PageEncodingStats& pages : column->encoding_stats()) {
    const bool is_data = pages.page_type == parquet::PageType::DATA_PAGE ||
                         pages.page_type == parquet::PageType::DATA_PAGE_V2;
    if (is_data && pages.encoding != parquet::Encoding::RLE_DICTIONARY &&
        pages.encoding != parquet::Encoding::PLAIN_DICTIONARY) {
      return false;
    }
  }
  return !column->encoding_stats().empty();
}

// A value takes more than it does in the file, where it may be a few bits: a number its width, a
// text its bytes and its end, or the position in its dictionary.
uint64_t DecodedBytesOf(const parquet::ColumnChunkMetaData& column, bool is_in_dictionary) {
  const auto values = static_cast<uint64_t>(std::max<int64_t>(0, column.num_values()));
  const auto encoded =
      static_cast<uint64_t>(std::max<int64_t>(0, column.total_uncompressed_size()));
  if (column.type() != parquet::Type::BYTE_ARRAY) {
    const auto width = static_cast<uint64_t>(parquet::GetTypeByteSize(column.type()));
    return std::max(encoded, values * width);
  }
  const uint64_t ends = values * sizeof(int32_t);
  if (is_in_dictionary) return std::max(encoded, ends);
  const std::shared_ptr<parquet::SizeStatistics> sizes = column.size_statistics();
  if (sizes != nullptr && sizes->unencoded_byte_array_data_bytes.has_value()) {
    const int64_t bytes = std::max<int64_t>(0, *sizes->unencoded_byte_array_data_bytes);
    return ends + static_cast<uint64_t>(bytes);
  }
  return ends + std::max(encoded, column.has_dictionary_page() ? values * kWordBytes : 0);
}

uint64_t DecodedBytes(const ArrowParquet* file, const ArrowSelection& selection) {
  uint64_t bytes = 0;
  const arrow::Status status = Caught([&] {
    for (uint32_t g = 0; g < selection.group_count; ++g) {
      const auto group = file->metadata->RowGroup(static_cast<int>(selection.first_group + g));
      for (size_t i = 0; i < selection.field_count; ++i) {
        const uint32_t field = selection.fields[i];
        for (const int leaf : file->leaves[field]) {
          const bool is_in_dictionary =
              !file->fields[field].is_list && IsInDictionary(*group, leaf);
          bytes += DecodedBytesOf(*group->ColumnChunk(leaf), is_in_dictionary);
        }
      }
    }
    return arrow::Status::OK();
  });
  return status.ok() ? bytes : 0;
}

// Starts to read the row groups that have not been started; only one of them if they hold lists of
// dictionary values: each has a dictionary of its own, and Arrow cannot join these inside lists.
arrow::Status Start(ArrowRows& rows) {
  const ArrowParquet& file = *rows.file;
  const ArrowSelection& selection = rows.selection;
  std::vector<int> groups, leaves;
  bool one_by_one = false;
  for (const uint32_t field : rows.fields) {
    leaves.insert(leaves.end(), file.leaves[field].begin(), file.leaves[field].end());
    one_by_one = one_by_one || file.lists_of_words[field];
  }
  while (rows.started_groups < selection.group_count && (groups.empty() || !one_by_one)) {
    groups.push_back(static_cast<int>(selection.first_group + rows.started_groups++));
  }
  rows.batches = nullptr;  // It uses the reader.
  parquet::ArrowReaderProperties properties(selection.is_large);
  properties.set_batch_size(static_cast<int64_t>(selection.batch_rows));
  properties.set_pre_buffer(file.input->is_remote() && !selection.is_large);
  for (const uint32_t field : rows.fields) {
    if (file.fields[field].is_list) continue;
    const int leaf = file.leaves[field].front();
    properties.set_read_dictionary(leaf, std::ranges::all_of(groups, [&](int g) {
                                     return IsInDictionary(*file.metadata->RowGroup(g), leaf);
                                   }));
  }
  ARROW_ASSIGN_OR_RAISE(rows.reader,
                        parquet::arrow::FileReader::Make(
                            arrow::default_memory_pool(),
                            parquet::ParquetFileReader::Open(
                                file.input, FileProperties(selection.is_large), file.metadata),
                            properties));
  ARROW_ASSIGN_OR_RAISE(rows.batches, rows.reader->GetRecordBatchReader(groups, leaves));
  return arrow::Status::OK();
}

// Reads all rows of a selection and forgets them.
arrow::Status ReadThrough(const ArrowParquet& file, uint32_t group, uint32_t field) {
  ArrowRows rows{.file = &file, .fields = {field}};
  rows.selection = {.first_group = group, .group_count = 1, .batch_rows = 4096, .is_large = true};
  ARROW_RETURN_NOT_OK(Start(rows));
  std::shared_ptr<arrow::RecordBatch> batch;
  do {
    ARROW_RETURN_NOT_OK(rows.batches->ReadNext(&batch));
  } while (batch != nullptr);
  return arrow::Status::OK();
}

// Finds where a selection fails by reading each of its columns alone.
ArrowError FailureIn(const ArrowRows& rows, const arrow::Status& status) {
  if (rows.file->input->failed() || status.IsOutOfMemory()) {
    return ToArrowError(status, ArrowCode::kMalformed);
  }
  const ArrowSelection& selection = rows.selection;
  for (uint32_t g = 0; g < selection.group_count; ++g) {
    const uint32_t group = selection.first_group + g;
    for (const uint32_t field : rows.fields) {
      const arrow::Status one = Caught([&] { return ReadThrough(*rows.file, group, field); });
      if (one.ok()) continue;
      return MakeArrowError(ArrowCode::kMalformed,
                            "row group " + std::to_string(group) + ", column \"" +
                                rows.file->fields[field].name + "\": " + one.message());
    }
  }
  return MakeArrowError(
      ArrowCode::kMalformed,
      "row group " + std::to_string(selection.first_group) + ": " + status.message());
}

ArrowError OpenRows(const ArrowParquet* file, const ArrowSelection& selection, ArrowRows** out) {
  auto rows = std::make_unique<ArrowRows>();
  rows->file = file;
  rows->fields.assign(selection.fields, selection.fields + selection.field_count);
  rows->selection = selection;
  const arrow::Status status = Caught([&] { return Start(*rows); });
  if (!status.ok()) return FailureIn(*rows, status);
  *out = rows.release();
  return {};
}

// `out` has no data at the end.
arrow::Status ReadBatch(ArrowRows& rows, OwnedBatch& out) {
  ARROW_RETURN_NOT_OK(rows.batches->ReadNext(&out.data));
  while (out.data == nullptr && rows.started_groups < rows.selection.group_count) {
    ARROW_RETURN_NOT_OK(Start(rows));
    ARROW_RETURN_NOT_OK(rows.batches->ReadNext(&out.data));
  }
  if (out.data == nullptr) return arrow::Status::OK();
  out.rows = static_cast<uint64_t>(out.data->num_rows());
  out.described.resize(static_cast<size_t>(out.data->num_columns()));
  for (size_t c = 0; c < out.described.size(); ++c) {
    DescribeArray(*out.data->column(static_cast<int>(c)), out.described[c], out.more);
  }
  out.columns = out.described.data();
  return arrow::Status::OK();
}

ArrowError NextBatch(ArrowRows* rows, const ArrowBatch** out) {
  auto batch = std::make_unique<OwnedBatch>();
  const arrow::Status status = Caught([&] { return ReadBatch(*rows, *batch); });
  if (!status.ok()) return FailureIn(*rows, status);
  *out = batch->data == nullptr ? nullptr : batch.release();
  return {};
}

void FreeBatch(const ArrowBatch* batch) { delete static_cast<const OwnedBatch*>(batch); }

void CloseRows(ArrowRows* rows) { delete rows; }

}  // namespace

void FillParquet(ArrowTable& table) {
  table.open_parquet = OpenParquet;
  table.close_parquet = CloseParquet;
  table.fields = FieldsOf;
  table.group_count = GroupCount;
  table.group_rows = GroupRows;
  table.decoded_bytes = DecodedBytes;
  table.open_rows = OpenRows;
  table.next_batch = NextBatch;
  table.free_batch = FreeBatch;
  table.close_rows = CloseRows;
}

}  // namespace dt::worker
