// Goal: numbers and keys change as docs/job-file.md says. Method: values that were worked out by
// hand.
#include "worker/data/format/cell_values.h"

#include <cmath>

#include <gtest/gtest.h>

#include "test/unit/worker/data/data_files.h"

namespace dt::worker {
namespace {

const SignedLogs kLogs;

TEST(CellConverter, ClipsThenTakesLogarithmsThenStandardises) {
  ColumnSpec column = Column("x", ColumnType::kFloat);
  EXPECT_EQ(CellConverter(column, kLogs).Number(-300), -300);
  column.clip = {0, 7};
  EXPECT_EQ(CellConverter(column, kLogs).Number(-300), 0);
  EXPECT_EQ(CellConverter(column, kLogs).Number(300), 7);
  column.transform = "log";
  EXPECT_FLOAT_EQ(CellConverter(column, kLogs).Number(300), std::log(8.0f));
  column.standardise = true;
  column.mean = 1, column.deviation = 2;
  EXPECT_FLOAT_EQ(CellConverter(column, kLogs).Number(300), (std::log(8.0f) - 1) / 2);
  column.deviation = 0;
  EXPECT_EQ(CellConverter(column, kLogs).Number(300), 0);
}

TEST(CellConverter, ABinIsTheNumberOfEdgesThatAreNotAbove) {
  ColumnSpec column = Column("x", ColumnType::kId);
  column.edges = {0, 10, 100};
  const CellConverter bins(column, kLogs);
  EXPECT_EQ(bins.OfBin(-1.0f), HashString("x=0"));
  EXPECT_EQ(bins.OfBin(0.0f), HashString("x=1"));
  EXPECT_EQ(bins.OfBin(9.5f), HashString("x=1"));
  EXPECT_EQ(bins.OfBin(10.0f), HashString("x=2"));
  EXPECT_EQ(bins.OfBin(1e9f), HashString("x=3"));
  EXPECT_EQ(bins.OfBin(std::nullopt), HashString("x="));
}

TEST(CellConverter, HashesStayBelowTheirNumberAndDependOnNothingElse) {
  ColumnSpec ids = Column("x", ColumnType::kId), texts = Column("y", ColumnType::kString);
  ids.hash = texts.hash = 10;
  EXPECT_EQ(CellConverter(ids, kLogs).OfId(7), MixBits(7) % 10);
  EXPECT_EQ(CellConverter(texts, kLogs).OfText("a"), MixBits(HashString("a")) % 10);
  texts.transform = "named";
  EXPECT_EQ(CellConverter(texts, kLogs).OfText("a"), MixBits(HashString("y=a")) % 10);
  ids.transform = "bucket";
  EXPECT_EQ(CellConverter(ids, kLogs).OfBucket(2), MixBits(HashString("x=2")) % 10);
}

Key PartOfCell(const char* part, std::string_view text) {
  ColumnSpec column = Column("t", ColumnType::kId);
  column.transform = part;
  int64_t seconds = 0;
  EXPECT_TRUE(ParseTime(text, seconds)) << text;
  return CellConverter(column, kLogs).OfTime(seconds);
}

TEST(Times, HaveTheirPartsInUtc) {
  EXPECT_EQ(PartOfCell("hour", "2024-05-01 12:34:56"), 12u);
  EXPECT_EQ(PartOfCell("weekday", "2024-05-01"), 2u) << "a Wednesday";
  EXPECT_EQ(PartOfCell("day", "2024-05-01"), 1u);
  EXPECT_EQ(PartOfCell("month", "2024-05-01"), 5u);
  EXPECT_EQ(PartOfCell("hour", "0"), 0u);
  EXPECT_EQ(PartOfCell("weekday", "0"), 3u) << "a Thursday";
  EXPECT_EQ(PartOfCell("hour", "-1"), 23u);
  EXPECT_EQ(PartOfCell("day", "-1"), 31u);
  EXPECT_EQ(PartOfCell("day", "2024-03-01T00:30+01:00"), 29u) << "of February, in UTC";
  EXPECT_EQ(PartOfCell("hour", "2024-05-01T23:30:00-0145"), 1u);
  EXPECT_EQ(PartOfCell("hour", "2024-05-01 00:30:00+02"), 22u);
  EXPECT_EQ(PartOfCell("weekday", "2024-05-05T23:59:59.999999Z"), 6u) << "a Sunday";
  EXPECT_EQ(PartOfCell("month", "0000-01-01"), 1u);
  EXPECT_EQ(PartOfCell("month", "9999-12-31T23:59:59"), 12u);
}

TEST(Columns, MayShareACellOfTheFile) {
  const TempDir dir;
  ColumnSpec price = Column("x", ColumnType::kFloat), band = Column("band", ColumnType::kId);
  price.from = band.from = "price";
  band.edges = {10};
  DataConfig config = ConfigFor(dir, DataFormat::kCsv, "price,other\n4,a\n,b\n");
  config.columns = {price, band};
  TaskPool pool(2);
  const auto data = Dataset::Open(config, Split::kTrain, pool);
  ASSERT_TRUE(data.ok()) << data.status();
  const Batch batch = AllOf(**data);
  EXPECT_EQ(batch.columns[0].floats, std::vector<float>({4, 0}));
  EXPECT_EQ(batch.columns[1].keys, std::vector<Key>({HashString("band=0"), HashString("band=")}));
  config.columns[1].from = "prise";
  EXPECT_EQ(
      OpenError(dir, config),
      "train.txt:1: column \"prise\": no such name found in the first line, a header with all "
      "of data.columns expected; did you mean \"price\"?");
}

TEST(Columns, OfLibsvmHaveHashes) {
  const TempDir dir;
  ColumnSpec ids = Column("ids", ColumnType::kIds);
  ids.length = 0;
  ids.hash = 10;
  DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, "1 7:1 8:1\n");
  config.columns = {Column("label", ColumnType::kFloat, ColumnRole::kLabel), ids};
  TaskPool pool(2);
  const auto data = Dataset::Open(config, Split::kTrain, pool);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(AllOf(**data).columns[1].keys, std::vector<Key>({MixBits(7) % 10, MixBits(8) % 10}));
}

TEST(Times, AreWrittenInFewWays) {
  for (const char* text : {"",
                           "noon",
                           "2024",
                           "2024-5-1",
                           "2024-13-01",
                           "2023-02-29",
                           "2024-05-01 ",
                           "2024-05-01 12",
                           "2024-05-01 24:00",
                           "2024-05-01 12:60",
                           "2024-05-01T12:34:56.",
                           "2024-05-01Z",
                           "2024-05-01T12:34z",
                           "2024-05-01T12:34+1",
                           "2024-05-01T12:34Z5",
                           "1.5",
                           "1e9",
                           "1714567890000",
                           "0000-01-01T00:00+01:00",
                           "+2024-05-01",
                           "2024-05-01T-1:30"}) {
    int64_t seconds = 0;
    if (std::string_view(text) == "2024") {
      EXPECT_TRUE(ParseTime(text, seconds)) << "seconds";
    } else {
      EXPECT_FALSE(ParseTime(text, seconds)) << text;
    }
  }
}

}  // namespace
}  // namespace dt::worker
