// Goal: each kind of bad row gives one exact sentence, or is skipped and counted. Method: a table
// of files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/worker/data/data_files.h"

namespace dt::worker {
namespace {

std::vector<ColumnSpec> ShopColumns() {
  ColumnSpec tags = Column("tags", ColumnType::kIds);
  tags.length = 0;
  ColumnSpec pair = Column("pair", ColumnType::kIds);
  pair.length = 2;
  ColumnSpec count = Column("count", ColumnType::kId);
  count.transform = "bucket";
  return {Column("click", ColumnType::kFloat, ColumnRole::kLabel),
          Column("item", ColumnType::kId),
          Column("price", ColumnType::kFloat),
          tags,
          pair,
          count};
}

const std::string kHead = "item,price,click,tags,pair,count,extra\n";
const std::string kGoodRow = "1,2.5,0,1|2,3|4,5,x\n";

struct BadCase {
  const char* name;
  DataFormat format;
  std::string text;
  std::string error;
};

std::string CriteoRow(const std::string& label, const std::string& count) {
  std::string row = label + "\t" + count;
  for (int i = 0; i < 38; ++i) row += "\t";
  return row + "\n";
}

std::vector<BadCase> BadCases() {
  const DataFormat svm = DataFormat::kLibsvm, ffm = DataFormat::kLibffm, csv = DataFormat::kCsv;
  const DataFormat criteo = DataFormat::kCriteo;
  return {
      {"label", svm, "1 1:1\nx 2:1\n",
       "train.txt:2: column \"label\": \"x\" found, a number expected"},
      {"nan label", svm, "nan 1:1\n",
       "train.txt:1: column \"label\": \"nan\" found, a number expected"},
      {"no id", svm, "1 a:1\n",
       "train.txt:1: column \"features\": \"a:1\" found, id:value with an id from 0 to "
       "18446744073709551615 and a finite value expected"},
      {"id of 65 bits", svm, "\r\n1 18446744073709551616:1\r\n",
       "train.txt:2: column \"features\": \"18446744073709551616:1\" found, id:value with an id "
       "from 0 to 18446744073709551615 and a finite value expected"},
      {"infinite value", svm, "1 1:inf",
       "train.txt:1: column \"features\": \"1:inf\" found, id:value with an id from 0 to "
       "18446744073709551615 and a finite value expected"},
      {"no field", ffm, "1 1:2:1\n0 3:1\n",
       "train.txt:2: column \"features\": \"3:1\" found, field:id:value with an id from 0 to "
       "18446744073709551615 and a finite value expected"},
      {"binary bytes", svm, std::string("\0\1\2\n", 4),
       "train.txt:1: column \"label\": \"\\x00\\x01\\x02\" found, a number expected"},
      {"empty", svm, "", "train.txt: an empty file found, rows expected"},
      {"only a mark", csv, "\xef\xbb\xbf", "train.txt: an empty file found, rows expected"},
      {"only blanks", svm, "\n\n", "train.txt: no row found in 1 input"},
      {"only a header", csv, kHead, "train.txt: no row found in 1 input"},
      {"few cells", csv, kHead + kGoodRow + "1,2,3\n", "train.txt:3: 3 cells found, 7 expected"},
      {"many cells", csv, kHead + "1,2,3,4,5,6,7,8\n", "train.txt:2: 8 cells found, 7 expected"},
      {"text as number", csv, kHead + "1,cheap,0,1,3|4,5,x\n",
       "train.txt:2: column \"price\": \"cheap\" found, a finite number expected"},
      {"no label", csv, kHead + "1,2,,1,3|4,5,x\n",
       "train.txt:2: column \"click\": an empty cell found, a finite number expected"},
      {"negative id", csv, kHead + "-1,2,0,1,3|4,5,x\n",
       "train.txt:2: column \"item\": \"-1\" found, an id from 0 to 18446744073709551615 expected; "
       "set "
       "type: float for a number, or type: string for a key made of its text"},
      {"float as id", csv, kHead + "255.0,2,0,1,3|4,5,x\n",
       "train.txt:2: column \"item\": \"255.0\" found, an id from 0 to 18446744073709551615 "
       "expected; it is a float: write 255, or set type: float"},
      {"text as id", csv, kHead + "Ann,2,0,1,3|4,5,x\n",
       "train.txt:2: column \"item\": \"Ann\" found, an id from 0 to 18446744073709551615 "
       "expected; a column of texts has type: string"},
      {"no id", csv, kHead + ",2,0,1,3|4,5,x\n",
       "train.txt:2: column \"item\": an empty cell found, an id from 0 to 18446744073709551615 "
       "expected"},
      {"bad item", csv, kHead + "1,2,0,1|b|2,3|4,5,x\n",
       "train.txt:2: column \"tags\": \"b\" found, an id from 0 to 18446744073709551615 expected; "
       "a "
       "column of texts has type: strings"},
      {"wrong length", csv, kHead + "1,2,0,1,3|4|5,5,x\n",
       "train.txt:2: column \"pair\": 3 items found, 2 items expected"},
      {"bad bucket", csv, kHead + "1,2,0,1,3|4,5.5,x\n",
       "train.txt:2: column \"count\": \"5.5\" found, an integer of at most 64 bits expected"},
      {"open quote", csv, kHead + "1,2,0,1,3|4,5,\"x\n",
       "train.txt:2: a quoted cell that does not end on its line found, a closing quote expected"},
      {"no header", csv, "item,prise,click,tags,pair,count,extra\n" + kGoodRow,
       "train.txt:1: column \"price\": no such name found in the first line, a header with all of "
       "data.columns expected; did you mean \"prise\"?"},
      {"criteo cells", criteo, "1\t2\n", "train.txt:1: 2 cells found, 40 expected"},
      {"criteo label", criteo, CriteoRow("", "3"),
       "train.txt:1: column \"label\": an empty cell found, a finite number expected"},
      {"criteo count", criteo, CriteoRow("1", "x"),
       "train.txt:1: column \"I1\": \"x\" found, a finite number expected"},
  };
}

TEST(BadRows, GiveOneExactSentence) {
  for (const BadCase& c : BadCases()) {
    const TempDir dir;
    DataConfig config = ConfigFor(dir, c.format, c.text);
    if (c.format == DataFormat::kCsv) config.columns = ShopColumns();
    EXPECT_EQ(OpenError(dir, config), c.error) << c.name;
    TaskPool pool(1);
    const auto data = Dataset::Open(config, Split::kTrain, pool);
    EXPECT_EQ(ExitCodeOf(data.status()), 3) << c.name;
    EXPECT_FALSE(std::filesystem::exists(dir.path("cache/train.dtcache"))) << c.name;
  }
}

TEST(BadRows, LeaveNoCacheBehind) {
  const TempDir dir;
  const DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, "1 1:1\nx\n");
  EXPECT_NE(OpenError(dir, config), "no error");
  for (const auto& entry : std::filesystem::directory_iterator(dir.path("cache"))) {
    EXPECT_EQ(entry.path().extension(), ".lock") << entry.path();
  }
}

TEST(BadRows, AreSkippedAndCountedOnRequest) {
  const TempDir dir;
  DataConfig config =
      ConfigFor(dir, DataFormat::kLibsvm, "1 1:1 2:1\nbad\n0 3:1 4:1\n1 x 4:1\n1 5:1 6:1\n");
  config.on_error = OnError::kSkip;
  TaskPool pool(2);
  for (const bool from_cache : {false, true}) {
    const auto data = Dataset::Open(config, Split::kTrain, pool);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ((*data)->open_stats().from_cache, from_cache);
    EXPECT_EQ((*data)->open_stats().rows_skipped, 2u);
    EXPECT_THAT(AllOf(**data).columns[1].keys, testing::ElementsAre(1, 2, 3, 4, 5, 6));
  }
}

TEST(BadRows, SkippingAllOfThemIsAnError) {
  const TempDir dir;
  DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, "a\nb\n");
  config.on_error = OnError::kSkip;
  EXPECT_EQ(
      OpenError(dir, config),
      "train.txt: no row found in 1 input, all were bad: train.txt:1: column \"label\": \"a\" "
      "found, a number expected");
}

// Many blocks are parsed in parallel; the first bad row of the input is named, not the first one
// found.
TEST(BadRows, FarBehindIsNamedByItsLine) {
  const TempDir dir;
  std::string text = "\xef\xbb\xbf";
  for (int line = 1; line <= 400000; ++line) {
    text += line == 200003 || line == 200001 || line == 399999 ? "1 2:1 z:1\n" : "1 2:1 3:1\r\n";
  }
  EXPECT_EQ(OpenError(dir, ConfigFor(dir, DataFormat::kLibsvm, text)),
            "train.txt:200001: column \"features\": \"z:1\" found, id:value with an id from 0 to "
            "18446744073709551615 and a finite value expected");
}

TEST(BadRows, InALaterFileAreNamedByThatFile) {
  const TempDir dir;
  DataConfig config = ConfigFor(dir, DataFormat::kCsv, kHead + kGoodRow);
  config.columns = ShopColumns();
  config.train.push_back(dir.Write("more.txt", kHead + kGoodRow + "1,2,3\n"));
  EXPECT_EQ(OpenError(dir, config), "more.txt:3: 3 cells found, 7 expected");
}

TEST(MissingFiles, AreOneSentence) {
  const TempDir dir;
  DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, "1 1:1\n");
  config.valid = {dir.path("none.txt")};
  EXPECT_EQ(OpenError(dir, config, Split::kValid),
            "none.txt: the file of data.valid cannot be read: No such file or directory");
}

}  // namespace
}  // namespace dt::worker
