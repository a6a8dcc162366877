// Goal: a format turns the bytes of an input into blocks and blocks into rows, wherever the bytes
// come from. Method: inputs in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "test/unit/worker/data/data_files.h"
#include "worker/data/format/file_format.h"
#include "worker/data/format/line_format.h"
#include "worker/data/input/block_reader.h"

namespace dt::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

FormatRequest Csv() {
  return {.format = DataFormat::kCsv,
          .columns = {Column("y", ColumnType::kFloat, ColumnRole::kLabel),
                      Column("a", ColumnType::kId)}};
}

NamedSource Memory(std::string_view text, std::string name = "x") {
  return {MakeMemorySource(text), std::move(name)};
}

std::unique_ptr<InputReader> Opened(FileFormat& format, NamedSource input) {
  Result<std::unique_ptr<InputReader>> reader = format.Open(std::move(input));
  EXPECT_TRUE(reader.ok()) << reader.status();
  return *std::move(reader);
}

// Reads the whole input, which must have no bad row; returns the number of rows.
uint64_t RowsOf(InputReader& reader) {
  RowScratch scratch;
  BlockResult result;
  uint64_t rows = 0;
  for (std::string bytes;;) {
    const Status read = reader.Next(bytes);
    EXPECT_TRUE(read.ok()) << read;
    if (!read.ok() || bytes.empty()) return rows;
    reader.decoder()->Decode(bytes, scratch, result);
    EXPECT_EQ(result.first_error, "");
    rows += result.block.rows();
  }
}

TEST(FileFormat, EveryFormatIsMadeAndKnowsItsColumns) {
  for (const DataFormatInfo& info : kDataFormats) {
    if (info.format == DataFormat::kBinary) continue;  // It is not decoded.
    const bool own = info.columns == DataColumns::kOwn;
    const std::vector<ColumnSpec> columns = own ? OwnColumnsOf(info) : Csv().columns;
    const auto format = MakeFileFormat({.format = info.format, .columns = columns});
    EXPECT_EQ(format->columns(), columns) << info.name;
    EXPECT_TRUE(format->CheckColumns().ok()) << info.name;
    EXPECT_EQ(Opened(*format, Memory(""))->lines(), nullptr) << info.name;
  }
}

TEST(FileFormat, ColumnsThatAFormatCannotReadAreRefused) {
  FormatRequest request = Csv();
  request.columns.push_back(Column("b", ColumnType::kId));
  request.format = DataFormat::kLibsvm;
  EXPECT_THAT(std::string(MessageOf(MakeFileFormat(request)->CheckColumns())),
              HasSubstr("data.columns: 3 columns found"));
  request.format = DataFormat::kCsv;
  EXPECT_TRUE(MakeFileFormat(request)->CheckColumns().ok());
  request.columns[2].transform = "log";
  EXPECT_THAT(std::string(MessageOf(MakeFileFormat(request)->CheckColumns())),
              HasSubstr("column \"b\": transform \"log\" found"));
}

TEST(LineFormat, AHeaderIsInNoBlock) {
  const auto format = MakeFileFormat(Csv());
  const std::string text = "y,b,a\n1,x,5\n0,y,6";
  const auto reader = Opened(*format, Memory(text));
  std::string bytes;
  ASSERT_TRUE(reader->Next(bytes).ok());
  EXPECT_EQ(bytes, "1,x,5\n0,y,6");
  EXPECT_EQ(reader->header_lines(), 1u);
  ASSERT_NE(reader->lines(), nullptr);
  EXPECT_THAT(reader->lines()->cell_names, ElementsAre("y", "b", "a"));
  EXPECT_EQ(reader->consumed(), text.size());
  ASSERT_TRUE(reader->Next(bytes).ok());
  EXPECT_EQ(bytes, "");
}

TEST(LineFormat, AHeaderAloneIsNotAnEmptyInput) {
  const auto format = MakeFileFormat(Csv());
  for (const std::string_view text : {"y,a", "y,a\n", "y,a\r\n"}) {
    const auto reader = Opened(*format, Memory(text));
    EXPECT_EQ(RowsOf(*reader), 0u);
    EXPECT_EQ(reader->header_lines(), 1u);
  }
  const auto empty = Opened(*format, Memory(""));
  EXPECT_EQ(RowsOf(*empty), 0u);
  EXPECT_EQ(empty->header_lines(), 0u);
}

// The first block ends with the header, because the first row does not fit in it.
TEST(LineFormat, RowsBehindAVeryLongHeaderAreRead) {
  const auto format = MakeFileFormat(Csv());
  std::string header = "y,a", row = "1,5";
  while (row.size() < kBlockBytes) {
    header += ",b";
    row += ",12345";
  }
  const std::string text = header + "\n" + row + "\n" + row + "\n";
  const auto reader = Opened(*format, Memory(text));
  EXPECT_EQ(RowsOf(*reader), 2u);
  EXPECT_EQ(reader->header_lines(), 1u);
}

TEST(LineFormat, LinesAndBadLinesAreCounted) {
  const auto format = MakeFileFormat(Csv());
  const auto reader = Opened(*format, Memory("y,a\n1,1\n\nx,2\r\n0,z\n0,3\n"));
  std::string bytes;
  ASSERT_TRUE(reader->Next(bytes).ok());
  RowScratch scratch;
  BlockResult result;
  reader->decoder()->Decode(bytes, scratch, result);
  EXPECT_EQ(result.lines, 5u);
  EXPECT_EQ(result.bad_lines, 2u);
  EXPECT_EQ(result.first_bad, 2u);
  EXPECT_EQ(result.first_error, "column \"y\": \"x\" found, a finite number expected");
  EXPECT_EQ(result.block.rows(), 2u);
}

TEST(CsvFormat, AFileWithoutAHeaderHasTheCellsOfTheTrainingFile) {
  FormatRequest request = Csv();
  const auto without = MakeFileFormat(request);
  std::string bytes;
  EXPECT_THAT(std::string(MessageOf(Opened(*without, Memory("5,1\n"))->Next(bytes))),
              HasSubstr("x:1: column \"y\": no such name found in the first line"));

  int opened = 0;
  request.open_training = [&opened]() -> Result<NamedSource> {
    ++opened;
    return Memory("a,y\n7,1\n", "train");
  };
  const auto format = MakeFileFormat(request);
  for (int i = 0; i < 2; ++i) {
    const auto reader = Opened(*format, Memory("5,1\n6,0\n"));
    EXPECT_EQ(RowsOf(*reader), 2u);
    EXPECT_EQ(reader->header_lines(), 0u);
    EXPECT_THAT(reader->lines()->cell_names, ElementsAre("a", "y"));
  }
  EXPECT_EQ(opened, 1) << "the header is remembered";

  request.open_training = []() -> Result<NamedSource> { return NotFound("no such file"); };
  const auto absent = MakeFileFormat(request);
  EXPECT_THAT(std::string(MessageOf(Opened(*absent, Memory("5,1\n"))->Next(bytes))),
              HasSubstr("no such name found in the first line"));
}

TEST(LibsvmFormat, TheFirstInputDecidesTheShapeUntilItIsWidened) {
  const auto format = MakeFileFormat({.format = DataFormat::kLibsvm});
  EXPECT_TRUE(format->has_key_shape());
  EXPECT_TRUE(format->columns()[1].is_ragged()) << "nothing has been read";
  EXPECT_EQ(RowsOf(*Opened(*format, Memory("1 5:1 6:1\n"))), 1u);
  EXPECT_EQ(format->columns()[1].length, 2u);

  const auto wider = Opened(*format, Memory("0 7:0.5\n"));
  std::string bytes;
  ASSERT_TRUE(wider->Next(bytes).ok());
  RowScratch scratch;
  BlockResult result;
  wider->decoder()->Decode(bytes, scratch, result);
  ASSERT_TRUE(result.widen);
  EXPECT_EQ(result.wider, (KeyShape{.length = 0, .weighted = true}));
  format->Widen(result.wider);
  EXPECT_EQ(RowsOf(*Opened(*format, Memory("0 7:0.5\n1 5:1 6:1\n"))), 2u);
}

TEST(CriteoFormat, TheCellsOfLinesWithoutALabelAreNamedWithoutIt) {
  const std::string features = std::string(38, '\t') + "\n";
  const auto format = MakeFileFormat({.format = DataFormat::kCriteo, .labels_optional = true});
  const auto plain = Opened(*format, Memory(features));
  EXPECT_EQ(RowsOf(*plain), 1u);
  ASSERT_EQ(plain->lines()->cell_names.size(), 39u);
  EXPECT_EQ(plain->lines()->cell_names[0], "I1");
  const std::string sample = "1\t" + features;
  const auto strict = MakeFileFormat({.format = DataFormat::kCriteo});
  const auto labelled = Opened(*strict, Memory(sample));
  EXPECT_EQ(RowsOf(*labelled), 1u);
  EXPECT_EQ(labelled->lines()->cell_names[0], "label");
}

}  // namespace
}  // namespace dt::worker
