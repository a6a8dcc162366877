// Reads any bytes as training data; the first byte selects the reader. Also checks that text gives
// the same rows in one block and in two, and that a compressed source gives the same bytes in
// pieces of any size.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "worker/data/cache_meta.h"
#include "worker/data/format/delimited.h"
#include "worker/data/format/libsvm.h"
#include "worker/data/format/line_format.h"
#include "worker/data/input/block_reader.h"

namespace dt::worker {
namespace {

void FuzzRows(const BlockDecoder& decoder, std::string_view text) {
  RowScratch scratch;
  BlockResult whole, first, second;
  decoder.Decode(text, scratch, whole);
  if (whole.widen) return;
  DT_CHECK(whole.block.rows() + whole.bad_lines <= whole.lines);
  DT_CHECK((whole.bad_lines == 0) == whole.first_error.empty());
  const size_t cut = text.find('\n', text.size() / 2);
  if (cut == std::string_view::npos) return;
  decoder.Decode(text.substr(0, cut + 1), scratch, first);
  decoder.Decode(text.substr(cut + 1), scratch, second);
  DT_CHECK(first.lines + second.lines == whole.lines);
  DT_CHECK(first.bad_lines + second.bad_lines == whole.bad_lines);
  second.block.MoveHeap(first.block.heap().size());
  std::vector<std::byte> records(first.block.records().begin(), first.block.records().end());
  records.insert(records.end(), second.block.records().begin(), second.block.records().end());
  DT_CHECK(records.size() == whole.block.records().size());
  DT_CHECK(records.empty() ||
           std::memcmp(records.data(), whole.block.records().data(), records.size()) == 0);
}

void FuzzLibsvm(std::string_view text, LibsvmOptions options) {
  KeyShape shape = ProbeLibsvm(text, options);
  if (shape.length > 1000) shape.length = 0;
  FuzzRows(*MakeLibsvmDecoder(LibsvmColumns(shape), options), text);
  shape = {.length = 0, .weighted = true};
  FuzzRows(*MakeLibsvmDecoder(LibsvmColumns(shape), options), text);
}

ColumnSpec Column(const char* name, ColumnType type, uint32_t length, const char* transform) {
  ColumnSpec column;
  column.name = name;
  column.type = type;
  column.length = length;
  column.transform = transform;
  return column;
}

// Cells that become keys of bins and of parts of times, and lists with weights.
void FuzzValues(std::string_view text, char delimiter) {
  std::vector<ColumnSpec> columns = {
      Column("bin", ColumnType::kId, 1, ""), Column("hour", ColumnType::kId, 1, "hour"),
      Column("price", ColumnType::kFloat, 1, "log"), Column("tags", ColumnType::kStrings, 0, "")};
  columns[0].edges = {0, 10};
  columns[0].hash = 5;
  columns[2].clip = {-1, 1};
  columns[2].standardise = true;
  columns[3].weights = "weights";
  columns[3].weighted = true;
  DelimitedOptions options{.delimiter = delimiter, .cells = 3};
  options.cell_of_column = {0, 0, 0, 1};
  options.weights_of_column = {kNoCell, kNoCell, kNoCell, 2};
  FuzzRows(*MakeDelimitedDecoder(columns, options), text);
}

void FuzzCsv(std::string_view text, char delimiter) {
  std::vector<ColumnSpec> columns = {
      Column("click", ColumnType::kFloat, 1, ""),   Column("price", ColumnType::kFloat, 1, "log"),
      Column("id", ColumnType::kId, 1, ""),         Column("bucket", ColumnType::kId, 1, "bucket"),
      Column("name", ColumnType::kString, 1, ""),   Column("pair", ColumnType::kIds, 2, ""),
      Column("history", ColumnType::kIds, 0, ""),   Column("words", ColumnType::kStrings, 0, ""),
      Column("both", ColumnType::kId, 1, "crossed")};
  columns[0].role = ColumnRole::kLabel;
  columns[8].of = {"bucket", "name"};
  columns[6].max_len = 3;
  columns[7].separator = text.size() % 2 == 0 ? "" : "::";
  HeaderCells(text.substr(0, text.find('\n')), delimiter);
  DelimitedOptions options{.delimiter = delimiter, .cells = 9, .cell_of_column = {}};
  options.cell_of_column = {8, 0, 1, 2, 3, 4, 5, 6, kNoCell};
  FuzzRows(*MakeDelimitedDecoder(columns, options), text);
}

// Goes through the reader, because the first line decides whether there are labels, where they are
// optional.
void FuzzCriteo(std::string_view text, bool labels_optional) {
  const auto format =
      MakeFileFormat({.format = DataFormat::kCriteo, .labels_optional = labels_optional});
  const auto reader = format->Open({MakeMemorySource(text), "input"});
  DT_CHECK(reader.ok());
  std::string block;
  if (!(*reader)->Next(block).ok() || block.empty()) return;
  FuzzRows(*(*reader)->decoder(), block);
}

using Opener = std::unique_ptr<ByteSource> (*)(std::unique_ptr<ByteSource>, std::string);

// Reads at most 16 MiB; returns them and whether the source ended without an error.
std::pair<std::string, bool> ReadAll(ByteSource& source, size_t step) {
  std::string text, piece(step, '\0');
  while (text.size() < 16 << 20) {
    const Result<size_t> got = source.Read(piece);
    if (!got.ok()) return {text, false};
    text.append(piece, 0, *got);
    if (*got < step) return {text, true};
  }
  return {text, true};
}

void FuzzPacked(std::string_view bytes, Opener open) {
  const auto large = open(MakeMemorySource(bytes), "x");
  const auto [whole, whole_ok] = ReadAll(*large, 1 << 20);
  if (whole.size() > 1 << 16) return;
  const auto small = open(MakeMemorySource(bytes), "x");
  const auto [pieces, pieces_ok] = ReadAll(*small, 13);
  DT_CHECK(whole_ok == pieces_ok);
  DT_CHECK(!whole_ok || whole == pieces);
}

void FuzzMeta(std::string_view bytes) {
  const Result<CacheMeta> meta = DecodeMeta(bytes);
  if (!meta.ok()) return;
  DT_CHECK(EncodeMeta(*meta) == bytes);
  DT_CHECK(RowLayout(meta->columns).record_bytes() <= 1u << 30);
}

}  // namespace

void FuzzData(char reader, std::string_view rest) {
  switch (reader) {
    case 'l':
      FuzzLibsvm(rest, {.open_length = true, .open_weights = true});
      break;
    case 'L':
      FuzzLibsvm(rest, {});
      break;
    case 'o':
      FuzzLibsvm(rest, {.open_length = true, .labels_optional = true});
      break;
    case 'f':
      FuzzLibsvm(rest, {.fields = true, .open_length = true});
      break;
    case 'c':
      FuzzCriteo(rest, false);
      break;
    case 'C':
      FuzzCriteo(rest, true);
      break;
    case 'v':
      FuzzCsv(rest, ',');
      FuzzValues(rest, ',');
      break;
    case 't':
      FuzzCsv(rest, '\t');
      break;
    case 'g':
      FuzzPacked(rest, MakeGzipSource);
      break;
    case 'z':
      FuzzPacked(rest, MakeZstdSource);
      break;
    default:
      FuzzMeta(rest);
  }
}

}  // namespace dt::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  dt::worker::FuzzData(static_cast<char>(data[0]), rest);
  return 0;
}
