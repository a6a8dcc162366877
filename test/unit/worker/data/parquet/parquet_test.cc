// Goal: a Parquet file gives the same data set as its rows in CSV, whatever its form, and damage
// gives one sentence. Method: files that parquet_files.py writes with pyarrow.
#include <cmath>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/worker/data/data_files.h"
#include "worker/data/arrow/arrow_library.h"
#include "worker/data/parquet/parquet_file.h"

namespace dt::worker {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Parquet : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    files_ = std::make_unique<TempDir>();
#ifdef DT_PYTHON
    const std::string command = std::string(DT_PYTHON) + " " + DT_PARQUET_FILES + " ";
    ASSERT_EQ(std::system((command + files_->path("")).c_str()), 0) << command;
#endif
  }
  static void TearDownTestSuite() { files_ = nullptr; }
  void SetUp() override {
#ifndef DT_PYTHON
    GTEST_SKIP() << "this build has no Arrow: scripts/setup.sh installs pyarrow";
#endif
  }

  static std::vector<ColumnSpec> Columns() {
    ColumnSpec price = Column("price", ColumnType::kFloat),
               count = Column("count", ColumnType::kId);
    price.transform = "log";
    price.fill = -1;
    count.transform = "bucket";
    ColumnSpec code = Column("code", ColumnType::kString), small = Column("small", ColumnType::kId);
    code.transform = small.transform = "named";
    ColumnSpec both = Column("both", ColumnType::kId);
    both.transform = "crossed";
    both.of = {"count", "city"};
    ColumnSpec history = Column("history", ColumnType::kIds), tags = history, pair = history;
    history.length = tags.length = 0;
    history.max_len = 4;
    tags.name = "tags";
    tags.type = ColumnType::kStrings;
    tags.weights = "scores";
    tags.weighted = true;
    pair.name = "pair";
    pair.length = 2;
    ColumnSpec place = Column("place", ColumnType::kFloat);
    place.length = 3;
    place.fill = 7;
    ColumnSpec hour = Column("hour", ColumnType::kId), day = Column("date", ColumnType::kId);
    hour.from = "time";
    hour.transform = "hour";
    day.transform = "day";
    ColumnSpec band = Column("band", ColumnType::kId);
    band.from = "price";
    band.edges = {-100, 0, 0.5f};
    return {Column("click", ColumnType::kFloat, ColumnRole::kLabel),
            both,
            Column("user", ColumnType::kId),
            tags,
            price,
            Column("wide", ColumnType::kFloat),
            count,
            Column("city", ColumnType::kString),
            code,
            small,
            history,
            pair,
            place,
            hour,
            day,
            band};
  }

  DataConfig ConfigOf(const std::vector<std::string>& names) const {
    DataConfig config;
    config.format = DataFormat::kParquet;
    for (const std::string& name : names) config.train.push_back(files_->path(name));
    config.columns = Columns();
    config.cache_dir = dir_.path("cache");
    return config;
  }
  std::unique_ptr<Dataset> MustOpen(const DataConfig& config) const {
    TaskPool pool(3);
    auto data = Dataset::Open(config, Split::kTrain, pool);
    EXPECT_TRUE(data.ok()) << data.status();
    return data.ok() ? *std::move(data) : nullptr;
  }
  // The error of opening these bytes as a file, or "no error".
  std::string ErrorOf(const std::string& bytes) const {
    DataConfig config = ConfigOf({});
    config.train = {dir_.Write("bad.parquet", bytes)};
    return OpenError(dir_, config);
  }

  static std::unique_ptr<TempDir> files_;  // The files of all tests.
  const TempDir dir_;
};
std::unique_ptr<TempDir> Parquet::files_;

TEST_F(Parquet, EqualsItsRowsInCsvInEveryForm) {
  DataConfig csv = ConfigOf({"rows.csv"});
  csv.format = DataFormat::kCsv;
  const auto expected = MustOpen(csv);
  ASSERT_NE(expected, nullptr);
  EXPECT_EQ(expected->rows(), 5000u);
  for (const char* name : {"zstd_300", "snappy_one_group", "plain", "pages", "types",
                           "small_groups_of_types", "reordered", "mixed"}) {
    const auto data = MustOpen(ConfigOf({std::string(name) + ".parquet"}));
    ASSERT_NE(data, nullptr) << name;
    EXPECT_EQ(data->columns(), expected->columns()) << name;
    EXPECT_EQ(data->fingerprint(), expected->fingerprint()) << name;
  }
}

TEST_F(Parquet, FilesFollowEachOtherAndMayLackRows) {
  const auto data = MustOpen(ConfigOf({"no_rows.parquet", "empty_group.parquet", "small.parquet"}));
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(data->rows(), 210u);
  EXPECT_THAT(OpenError(*files_, ConfigOf({"no_rows.parquet"})),
              StartsWith("no_rows.parquet: no row found in 1 input"));
}

// A row group of 1,500 rows of 32 KiB is read in parts.
TEST_F(Parquet, ALargeRowGroupIsReadInParts) {
  DataConfig config = ConfigOf({"wide.parquet"});
  ColumnSpec ids = Column("ids", ColumnType::kIds);
  ids.length = 4096;
  config.columns = {Column("click", ColumnType::kFloat, ColumnRole::kLabel), ids};
  const auto data = MustOpen(config);
  ASSERT_NE(data, nullptr);
  ASSERT_EQ(data->rows(), 1500u);
  const Batch batch = AllOf(*data);
  for (size_t row = 0; row < 1500; row += 37) {
    EXPECT_EQ(batch.columns[1].keys[row * 4096 + 5], (31 * row + 5) % 1000);
  }
}

// Parts are cut by this size, so that lists of padding do not fill the memory.
TEST_F(Parquet, ValuesCountWithTheirDecodedSize) {
  const std::string path = files_->path("repeated.parquet");
  EXPECT_LT(std::filesystem::file_size(path), 10'000u);
  auto bytes = OpenRandomFile(path);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  auto file = ParquetFile::Open(*std::move(bytes), path);
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->Select({0});
  EXPECT_GE((*file)->DecodedBytes({0, 1}), 300 * 64 * sizeof(int64_t));
  (*file)->Select({1});
  EXPECT_GE((*file)->DecodedBytes({0, 1}), 300 * 4 * 100u);
}

TEST_F(Parquet, BadRowsAreNamedByRowGroupAndRow) {
  DataConfig config = ConfigOf({"bad_rows.parquet"});
  config.columns = {Column("click", ColumnType::kFloat, ColumnRole::kLabel),
                    Column("user", ColumnType::kId), Column("price", ColumnType::kFloat)};
  EXPECT_EQ(OpenError(*files_, config),
            "bad_rows.parquet: row group 0, row 1: column \"user\": -5 found, an id from 0 to "
            "18446744073709551615 expected");
  config.columns.erase(config.columns.begin() + 1);
  EXPECT_EQ(OpenError(*files_, config),
            "bad_rows.parquet: row group 0, row 2: column \"click\": null found, a finite number "
            "expected");
  config.on_error = OnError::kSkip;
  config.columns.push_back(Column("user", ColumnType::kId));
  const auto data = MustOpen(config);
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(data->open_stats().rows_skipped, 5u);
  EXPECT_THAT(AllOf(*data).columns[1].floats, testing::ElementsAre(0.5, 6.5));
}

TEST_F(Parquet, ColumnsThatAreAbsentOrOfAnotherTypeAreNamed) {
  DataConfig config = ConfigOf({"small.parquet"});
  config.columns.push_back(Column("prise", ColumnType::kFloat));
  EXPECT_EQ(OpenError(*files_, config),
            "small.parquet: column \"prise\": no such column found, all of data.columns expected; "
            "did you mean \"price\"?");
  const std::pair<ColumnSpec, const char*> cases[] = {
      {Column("wide", ColumnType::kId),
       "column \"wide\": type double found, integers for type id of data.columns expected"},
      {Column("city", ColumnType::kFloat),
       "column \"city\": type string found, numbers for type float of data.columns expected"},
      {Column("pair", ColumnType::kId),
       "column \"pair\": type fixed_size_list<element: int32>[2] "
       "found, integers for type id of data.columns expected"},
      {Column("tags", ColumnType::kIds),
       "column \"tags\": type list<element: string> found, lists "
       "of integers for type ids of data.columns expected"},
      {Column("place", ColumnType::kFloat),
       "column \"place\": type fixed_size_list<element: float>[3] found, numbers for type float of "
       "data.columns expected"},
      {Column("time", ColumnType::kId),
       "column \"time\": type timestamp[us] found, integers for type id of data.columns expected"},
      {Column("price", ColumnType::kStrings),
       "column \"price\": type float found, lists of texts or integers for type strings of "
       "data.columns expected"},
  };
  for (const auto& [column, error] : cases) {
    config.columns.back() = column;
    config.columns.erase(config.columns.begin(), config.columns.end() - 1);
    EXPECT_EQ(OpenError(*files_, config), std::string("small.parquet: ") + error);
    TaskPool pool(1);
    EXPECT_EQ(ExitCodeOf(Dataset::Open(config, Split::kTrain, pool).status()), 3);
  }
}

TEST_F(Parquet, LabelsMayBeAbsentWhereTheyAreNotNeeded) {
  DataConfig config = ConfigOf({"small.parquet"});
  config.columns = {Column("label", ColumnType::kFloat, ColumnRole::kLabel),
                    Column("user", ColumnType::kId)};
  config.test = config.train;
  config.labels_optional = true;
  TaskPool pool(2);
  const auto data = Dataset::Open(config, Split::kTest, pool);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->rows(), 200u);
  EXPECT_TRUE(std::isnan(AllOf(**data).columns[0].floats[7]));
}

TEST_F(Parquet, AFileThatWasCutShortIsRefused) {
  const std::string whole = files_->Read("small.parquet");
  ASSERT_EQ(ErrorOf(whole), "no error");
  for (size_t size = 1; size < whole.size(); size += whole.size() / 40) {
    EXPECT_THAT(ErrorOf(whole.substr(0, size)), StartsWith("bad.parquet: ")) << size;
  }
  EXPECT_EQ(ErrorOf(""), "bad.parquet: an empty file found, rows expected");
  EXPECT_THAT(ErrorOf("click,user\n1,2\n" + std::string(100, 'x')), HasSubstr("Parquet"));
  EXPECT_THAT(ErrorOf("\x1f\x8b" + whole), HasSubstr("compressed as a whole"));
}

// The pages have checksums, and the description at the end is checked by its use.
TEST_F(Parquet, DamageIsFoundAndNamedByRowGroupAndColumn) {
  const std::string whole = files_->Read("small.parquet");
  DataConfig config = ConfigOf({"small.parquet"});
  const uint64_t sound = MustOpen(config)->fingerprint();
  int named = 0;
  for (size_t at = 4; at + 8 < whole.size(); at += 61) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x5a);
    config.train = {dir_.Write("bad.parquet", bytes)};
    TaskPool pool(2);
    const auto data = Dataset::Open(config, Split::kTrain, pool);
    if (data.ok()) {
      EXPECT_EQ((*data)->fingerprint(), sound) << "byte " << at;
      continue;
    }
    const std::string text(MessageOf(data.status()));
    EXPECT_THAT(text, StartsWith(dir_.path("bad.parquet") + ": "));
    EXPECT_EQ(ExitCodeOf(data.status()), 3) << text;
    named += text.find(": row group ") != text.npos && text.find(", column \"") != text.npos;
  }
  EXPECT_GT(named, 50);
}

TEST(ArrowLibrary, SaysWhatBringsItWhereItIsAbsent) {
  const Result<ArrowLibrary> absent = ArrowLibrary::Open("format: parquet", "/nowhere/arrow.so");
  EXPECT_EQ(absent.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(ToText(absent.status()),
              StartsWith("format: parquet needs Arrow, and this build has no such library "
                         "(/nowhere/arrow.so); run scripts/setup.sh"));
  const TempDir dir;
  const Result<ArrowLibrary> broken =
      ArrowLibrary::Open("format: parquet", dir.Write("arrow.so", "no library"));
  EXPECT_THAT(ToText(broken.status()), HasSubstr("which cannot be loaded: "));
  EXPECT_THAT(ToText(broken.status()), HasSubstr("it is in the Python package pyarrow"));
}

}  // namespace
}  // namespace dt::worker
