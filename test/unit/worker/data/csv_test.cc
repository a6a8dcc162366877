// Goal: cells become the documented values and keys, with any header, quotes and line ends.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "test/unit/worker/data/data_files.h"

namespace dt::worker {
namespace {

using testing::ElementsAre;

std::unique_ptr<Dataset> MustOpenCsv(const DataConfig& config, Split split = Split::kTrain) {
  TaskPool pool(2);
  auto data = Dataset::Open(config, split, pool);
  EXPECT_TRUE(data.ok()) << data.status();
  return data.ok() ? *std::move(data) : nullptr;
}

DataConfig CsvConfig(const TempDir& dir, std::string_view text, std::vector<ColumnSpec> columns) {
  DataConfig config = ConfigFor(dir, DataFormat::kCsv, text);
  config.columns = std::move(columns);
  return config;
}

TEST(Csv, ColumnsComeInTheOrderOfTheJobFile) {
  const TempDir dir;
  ColumnSpec log = Column("price", ColumnType::kFloat);
  log.transform = "log";
  log.fill = -1;
  const auto data = MustOpenCsv(CsvConfig(
      dir, "a,click,price,name\r\n7,1,3,Ann\r\n8,0,,\r\n18446744073709551615,1,-3,Bob",
      {Column("name", ColumnType::kString), Column("click", ColumnType::kFloat, ColumnRole::kLabel),
       log, Column("a", ColumnType::kId)}));
  ASSERT_NE(data, nullptr);
  const Batch batch = AllOf(*data);
  EXPECT_THAT(batch.columns[0].keys,
              ElementsAre(HashString("Ann"), HashString(""), HashString("Bob")));
  EXPECT_THAT(batch.columns[1].floats, ElementsAre(1, 0, 1));
  EXPECT_THAT(batch.columns[2].floats, ElementsAre(std::log(4.0f), -1, -std::log(4.0f)));
  EXPECT_THAT(batch.columns[3].keys, ElementsAre(7, 8, ~uint64_t{0}));
}

TEST(Csv, ListsAreRaggedAndCutToTheirEnd) {
  const TempDir dir;
  ColumnSpec ids = Column("ids", ColumnType::kIds);
  ids.length = 0;
  ids.max_len = 2;
  ColumnSpec words = Column("words", ColumnType::kStrings);
  words.length = 0;
  words.separator = " ";
  const auto data =
      MustOpenCsv(CsvConfig(dir, "words,ids\na b,1|2|3\n,\nc,4\nd  e,5|6\n", {ids, words}));
  ASSERT_NE(data, nullptr);
  const Batch batch = AllOf(*data);
  EXPECT_THAT(batch.columns[0].offsets, ElementsAre(0, 2, 2, 3, 5));
  EXPECT_THAT(batch.columns[0].keys, ElementsAre(2, 3, 4, 5, 6));
  EXPECT_THAT(batch.columns[1].offsets, ElementsAre(0, 2, 2, 3, 6));
  EXPECT_THAT(batch.columns[1].keys, ElementsAre(HashString("a"), HashString("b"), HashString("c"),
                                                 HashString("d"), HashString(""), HashString("e")));
  Batch some;
  const uint64_t rows[] = {3, 0, 0, 1};
  ASSERT_TRUE(data->Gather(rows, some).ok());
  EXPECT_THAT(some.columns[0].offsets, ElementsAre(0, 2, 4, 6, 6));
  EXPECT_THAT(some.columns[0].keys, ElementsAre(5, 6, 2, 3, 2, 3));
}

TEST(Csv, VectorsOfNumbersAreInOrderAndFilled) {
  const TempDir dir;
  ColumnSpec place = Column("place", ColumnType::kFloat);
  place.length = 3;
  place.fill = -1;
  place.separator = " ";
  ColumnSpec log = place;
  log.name = "log";
  log.length = 2;
  log.transform = "log";
  DataConfig config = CsvConfig(dir, "place,x,log\n1 2.5 3,7,3 -3\n,8,\n0  5,9, 0\n",
                                {Column("x", ColumnType::kId), place, log});
  const auto data = MustOpenCsv(config);
  ASSERT_NE(data, nullptr);
  const Batch batch = AllOf(*data);
  EXPECT_THAT(batch.columns[1].floats, ElementsAre(1, 2.5, 3, -1, -1, -1, 0, -1, 5));
  EXPECT_THAT(batch.columns[2].floats, ElementsAre(std::log(4.0f), -std::log(4.0f), -1, -1, -1, 0));
  Batch some;
  const uint64_t rows[] = {2, 0};
  EXPECT_TRUE(data->Gather(rows, some).ok());
  EXPECT_THAT(some.columns[1].floats, ElementsAre(0, -1, 5, 1, 2.5, 3));
  EXPECT_THAT(some.columns[0].keys, ElementsAre(9, 7));

  config.train = {dir.Write("bad.txt", "place,x,log\n1 2,7,3 4\n")};
  EXPECT_EQ(OpenError(dir, config), "bad.txt:2: column \"place\": 2 items found, 3 items expected");
}

TEST(Csv, BucketsAreHashedWithTheirColumn) {
  const TempDir dir;
  ColumnSpec count = Column("n", ColumnType::kId);
  count.transform = "bucket";
  const auto data = MustOpenCsv(CsvConfig(dir, "n,x\n-3,\n2,\n3,\n100,\n,\n", {count}));
  ASSERT_NE(data, nullptr);
  // ln(3)² = 1.2, ln(100)² = 21.2.
  EXPECT_THAT(AllOf(*data).columns[0].keys,
              ElementsAre(HashString("n=-3"), HashString("n=2"), HashString("n=1"),
                          HashString("n=21"), HashString("n=")));
}

// The key as defined in docs/job-file.md.
Key CrossOf(std::string text, const std::vector<Key>& keys) {
  text.append(reinterpret_cast<const char*>(keys.data()), keys.size() * sizeof(Key));
  return HashString(text);
}

TEST(Csv, CrossedColumnsAreMadeOfTheKeysOfOthers) {
  const TempDir dir;
  ColumnSpec count = Column("n", ColumnType::kId), both = Column("both", ColumnType::kId);
  count.transform = "bucket";
  both.transform = "crossed";
  both.of = {"n", "a", "s"};
  ColumnSpec turned = both;
  turned.name = "turned";
  turned.of = {"a", "n"};
  ColumnSpec tags = Column("tags", ColumnType::kIds);
  tags.length = 0;
  const auto data = MustOpenCsv(CsvConfig(
      dir, "a,n,s,tags\n1,23,x,5|6\n12,3,x,\n1,23,y,7\n",
      {both, Column("a", ColumnType::kId), turned, tags, count, Column("s", ColumnType::kString)}));
  ASSERT_NE(data, nullptr);
  const Batch batch = AllOf(*data);
  const Key n23 = HashString("n=9"), n3 = HashString("n=1"), x = HashString("x");
  EXPECT_THAT(batch.columns[0].keys,
              ElementsAre(CrossOf("both=", {n23, 1, x}), CrossOf("both=", {n3, 12, x}),
                          CrossOf("both=", {n23, 1, HashString("y")})));
  EXPECT_THAT(batch.columns[2].keys,
              ElementsAre(CrossOf("turned=", {1, n23}), CrossOf("turned=", {12, n3}),
                          CrossOf("turned=", {1, n23})));
  EXPECT_THAT(batch.columns[3].keys, ElementsAre(5, 6, 7));
}

// The cached data of one crossing is not used for another.
TEST(Csv, AChangedCrossingIsReadAgain) {
  const TempDir dir;
  ColumnSpec both = Column("both", ColumnType::kId);
  both.transform = "crossed";
  both.of = {"a", "b"};
  DataConfig config = CsvConfig(dir, "a,b\n1,2\n",
                                {Column("a", ColumnType::kId), Column("b", ColumnType::kId), both});
  EXPECT_THAT(AllOf(*MustOpenCsv(config)).columns[2].keys, ElementsAre(CrossOf("both=", {1, 2})));
  config.columns[2].of = {"b", "a"};
  EXPECT_THAT(AllOf(*MustOpenCsv(config)).columns[2].keys, ElementsAre(CrossOf("both=", {2, 1})));
}

TEST(Csv, NamedIdsOfTwoColumnsDiffer) {
  const TempDir dir;
  ColumnSpec user = Column("user", ColumnType::kId), item = Column("item", ColumnType::kId);
  ColumnSpec seen = Column("seen", ColumnType::kIds), tags = Column("tags", ColumnType::kStrings);
  seen.length = tags.length = 0;
  for (ColumnSpec* column : {&user, &seen, &tags}) column->transform = "named";
  const auto data =
      MustOpenCsv(CsvConfig(dir, "user,item,seen,tags\n5,5,5|007,5\n", {user, item, seen, tags}));
  ASSERT_NE(data, nullptr);
  const Batch batch = AllOf(*data);
  EXPECT_THAT(batch.columns[0].keys, ElementsAre(HashString("user=5")));
  EXPECT_THAT(batch.columns[1].keys, ElementsAre(5));
  EXPECT_THAT(batch.columns[2].keys, ElementsAre(HashString("seen=5"), HashString("seen=7")));
  EXPECT_THAT(batch.columns[3].keys, ElementsAre(HashString("tags=5")));
}

TEST(Csv, AHeaderThatLacksAColumnNamesIt) {
  const TempDir dir;
  DataConfig config =
      CsvConfig(dir, "click,user,price\n1,2,3\n",
                {Column("click", ColumnType::kFloat, ColumnRole::kLabel),
                 Column("user", ColumnType::kId), Column("price", ColumnType::kFloat)});
  config.valid = {dir.Write("valid.csv", "click,user\n1,2\n")};
  EXPECT_EQ(OpenError(dir, config, Split::kValid),
            "valid.csv:1: column \"price\": no such name found in the header, all of data.columns "
            "expected");
  config.valid = {dir.Write("other.csv", "click,user,prize\n1,2,3\n")};
  EXPECT_EQ(OpenError(dir, config, Split::kValid),
            "other.csv:1: column \"price\": no such name found in the header, all of data.columns "
            "expected; did you mean \"prize\"?");
}

// Each file has its own order of columns.
TEST(Csv, EveryFileMayHaveItsOwnHeader) {
  const TempDir dir;
  DataConfig config = CsvConfig(dir, "a,b\n1,2\n", {Column("b", ColumnType::kId)});
  config.valid = {dir.Write("one.csv", " b ,x,a\n6,0,5\n"), dir.Write("two.csv", "7,0,9\n")};
  const auto valid = MustOpenCsv(config, Split::kValid);
  ASSERT_NE(valid, nullptr);
  EXPECT_THAT(AllOf(*valid).columns[0].keys, ElementsAre(6, 7));
}

TEST(Csv, QuotesHoldDelimitersAndQuotes) {
  const TempDir dir;
  const auto data =
      MustOpenCsv(CsvConfig(dir, "\"s\",t\n\"a,b\",c\n\"say \"\"hi\"\"\",\nx,\"\"\nin\"side,y\n",
                            {Column("s", ColumnType::kString), Column("t", ColumnType::kString)}));
  ASSERT_NE(data, nullptr);
  const Batch batch = AllOf(*data);
  EXPECT_THAT(batch.columns[0].keys, ElementsAre(HashString("a,b"), HashString("say \"hi\""),
                                                 HashString("x"), HashString("in\"side")));
  EXPECT_THAT(batch.columns[1].keys,
              ElementsAre(HashString("c"), HashString(""), HashString(""), HashString("y")));
}

TEST(Csv, TabsMakeQuotesPlain) {
  const TempDir dir;
  DataConfig config =
      CsvConfig(dir, "s\tt\n\"Heat\" (1995)\t1\n", {Column("s", ColumnType::kString)});
  config.delimiter = '\t';
  const auto data = MustOpenCsv(config);
  ASSERT_NE(data, nullptr);
  EXPECT_THAT(AllOf(*data).columns[0].keys, ElementsAre(HashString("\"Heat\" (1995)")));
}

TEST(Csv, FilesWithoutHeaderUseTheFirstTrainingFiles) {
  const TempDir dir;
  DataConfig config = CsvConfig(dir,
                                "\xef\xbb\xbf"
                                "a,b\n1,2\n",
                                {Column("b", ColumnType::kId)});
  config.train.push_back(dir.Write("second.csv", "3,4\n"));
  config.train.push_back(dir.Write("third.csv", "b,c,a\n6,0,5\n"));
  config.valid = {dir.Write("valid.csv", "7,8\n9,10\n")};
  const auto train = MustOpenCsv(config);
  ASSERT_NE(train, nullptr);
  EXPECT_THAT(AllOf(*train).columns[0].keys, ElementsAre(2, 4, 6));
  const auto valid = MustOpenCsv(config, Split::kValid);
  ASSERT_NE(valid, nullptr);
  EXPECT_THAT(AllOf(*valid).columns[0].keys, ElementsAre(8, 10));
}

TEST(Csv, TransformsThatDoNotExistAreRefused) {
  const TempDir dir;
  ColumnSpec bad = Column("a", ColumnType::kString);
  bad.transform = "log";
  EXPECT_EQ(OpenError(dir, CsvConfig(dir, "a\n1\n", {bad})),
            "data.columns: column \"a\": transform \"log\" found; \"log\" for type float, "
            "\"bucket\", \"crossed\" or a part of a time for type id or \"named\" for keys "
            "expected");
}

TEST(Criteo, CountsAreScaledAndEmptyCellsCount) {
  const TempDir dir;
  std::string row = "1\t0\t-2\t\t1000000";
  for (int i = 5; i <= 13; ++i) row += "\t1";
  row += "\t68fd1e64\t";
  for (int i = 3; i <= 26; ++i) row += "\tx" + std::to_string(i);
  const auto data = MustOpenCsv(ConfigFor(dir, DataFormat::kCriteo, row + "\n"));
  ASSERT_NE(data, nullptr);
  const Batch batch = AllOf(*data);
  ASSERT_EQ(batch.columns.size(), 40u);
  EXPECT_EQ(data->columns()[13].name, "I13");
  EXPECT_EQ(data->columns()[39].name, "C26");
  EXPECT_EQ(batch.columns[0].floats[0], 1);
  EXPECT_EQ(batch.columns[1].floats[0], 0);
  EXPECT_FLOAT_EQ(batch.columns[2].floats[0], -std::log(3.0f));
  EXPECT_EQ(batch.columns[3].floats[0], 0);
  EXPECT_FLOAT_EQ(batch.columns[4].floats[0], static_cast<float>(std::log(1000001.0)));
  EXPECT_FLOAT_EQ(batch.columns[5].floats[0], std::log(2.0f));
  EXPECT_EQ(batch.columns[14].keys[0], HashString("68fd1e64"));
  EXPECT_EQ(batch.columns[15].keys[0], HashString(""));
  EXPECT_EQ(batch.columns[39].keys[0], HashString("x26"));
}

TEST(Libffm, FieldsAreCheckedAndNotUsed) {
  const TempDir dir;
  const auto data =
      MustOpenCsv(ConfigFor(dir, DataFormat::kLibffm, "1 2:7:1 1:9:0.5\n0 1:3:1 2:4:1"));
  ASSERT_NE(data, nullptr);
  const Batch batch = AllOf(*data);
  EXPECT_THAT(batch.columns[1].keys, ElementsAre(7, 9, 3, 4));
  EXPECT_THAT(batch.columns[1].weights, ElementsAre(1, 0.5, 1, 1));
  EXPECT_EQ(data->columns()[1].length, 2u);
}

}  // namespace
}  // namespace dt::worker
