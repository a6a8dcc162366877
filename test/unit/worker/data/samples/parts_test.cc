// Goal: the stripes of a split have each of its rows once, in the order of the files, and each byte
// is read once. Method: files of several formats are cut into many stripes, down to a few bytes,
// and compared with the whole.
#include <cmath>

#include <gmock/gmock.h>

#include "test/unit/worker/data/data_files.h"
#include "worker/data/input/block_reader.h"
#include "worker/data/split_source.h"
#include "worker/data/striped_dataset.h"

namespace dt::worker {
namespace {

using ::testing::Each;
using ::testing::FloatEq;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Lt;

std::string CsvRows(uint32_t rows, std::string_view header = "") {
  std::string text(header);
  for (uint32_t i = 0; i < rows; ++i) {
    text += fmt::format("{},{},{}\n", i % 2, i, std::string(1 + i * i % 23, 'x'));
  }
  return text;
}

class Parts : public ::testing::Test {
 protected:
  Parts() {
    config_.format = DataFormat::kCsv;
    config_.columns = {Column("click", ColumnType::kFloat, ColumnRole::kLabel),
                       Column("item", ColumnType::kId), Column("text", ColumnType::kString)};
    config_.cache_dir = dir_.path("cache");
  }
  // The items of all stripes, one after the other.
  std::vector<Key> Striped(uint32_t stripes) {
    const StripedDataset data(config_, Split::kTrain, stripes, pool_);
    std::vector<Key> items;
    for (uint32_t s = 0; s < stripes; ++s) {
      const Result<const Dataset*> stripe = data.Stripe(s);
      EXPECT_TRUE(stripe.ok()) << stripe.status();
      if (!stripe.ok()) return {};
      const std::vector<Key> of = AllOf(**stripe).columns[1].keys;
      items.insert(items.end(), of.begin(), of.end());
    }
    return items;
  }
  std::vector<Key> Whole() {
    return AllOf(**Dataset::Open(config_, Split::kTrain, pool_)).columns[1].keys;
  }

  TempDir dir_;
  TaskPool pool_;
  DataConfig config_;
};

TEST_F(Parts, HaveEachRowOnce) {
  config_.train = {dir_.Write("a.csv", CsvRows(100, "click,item,text\n")),
                   dir_.Write("b.csv", CsvRows(3, "click,item,text\n")),
                   dir_.Write("c.csv", CsvRows(40))};
  for (const uint32_t stripes : {1u, 2u, 3u, 7u, 150u}) {
    EXPECT_EQ(Striped(stripes), Whole()) << stripes;
  }
}

TEST_F(Parts, CutNoLineHoweverItEnds) {
  for (const char* const text : {"0,1,a\n1,2,b", "0,1,a\r\n1,2,b\r\n", "\n\n0,1,a\n\n1,2,b\n\n"}) {
    config_.train = {dir_.Write("a.csv", std::string("click,item,text\n") + text)};
    for (uint32_t stripes = 1; stripes < 16; ++stripes) {
      EXPECT_EQ(Striped(stripes), (std::vector<Key>{1, 2})) << text << " in " << stripes;
    }
  }
}

TEST_F(Parts, OfAByteOrderMark) {
  config_.train = {dir_.Write("a.csv", CsvRows(30,
                                               "\xef\xbb\xbf"
                                               "click,item,text\n"))};
  EXPECT_EQ(Striped(5), Whole());
}

TEST_F(Parts, AreNamedInErrors) {
  std::string text = CsvRows(100, "click,item,text\n");
  text += "1,none,x\n";
  config_.train = {dir_.Write("a.csv", text)};
  const StripedDataset data(config_, Split::kTrain, 2, pool_);
  EXPECT_TRUE(data.Stripe(0).ok());
  EXPECT_THAT(ToText(data.Stripe(1).status()), HasSubstr(" behind byte "));
}

TEST_F(Parts, GatherOfSeveralStripesIsThatOfEach) {
  config_.train = {dir_.Write("a.csv", CsvRows(50, "click,item,text\n"))};
  config_.columns.push_back(Column("more", ColumnType::kIds));
  config_.columns.back().length = 0;
  std::string text = "click,item,text,more\n";
  for (uint32_t i = 0; i < 50; ++i) {
    text += fmt::format("0,{},t,{}\n", i, i % 3 == 0 ? "" : i % 3 == 1 ? "5" : "6|7");
  }
  config_.train = {dir_.Write("a.csv", text)};
  const StripedDataset data(config_, Split::kTrain, 3, pool_);
  std::vector<uint64_t> rows;
  Batch want;
  for (const uint32_t stripe : {2u, 0u}) {
    for (uint64_t row = 3; row < 9; ++row) rows.push_back(StripeRow(stripe, row));
  }
  Batch batch;
  ASSERT_TRUE(data.Gather(rows, batch).ok());
  EXPECT_EQ(batch.samples, 12u);
  for (size_t i = 0; i < rows.size(); ++i) {
    Batch one;
    ASSERT_TRUE(data.Gather(std::span(rows).subspan(i, 1), one).ok());
    EXPECT_EQ(batch.columns[1].keys[i], one.columns[1].keys[0]);
    const auto& more = batch.columns[3];
    EXPECT_EQ(std::vector<Key>(more.keys.begin() + more.offsets[i],
                               more.keys.begin() + more.offsets[i + 1]),
              one.columns[3].keys);
  }
}

TEST_F(Parts, AStripeComesFromItsCache) {
  config_.train = {dir_.Write("a.csv", CsvRows(50, "click,item,text\n"))};
  for (const bool cached : {false, true}) {
    const auto stripe = Dataset::OpenStripe(config_, Split::kTrain, {1, 4}, pool_);
    ASSERT_TRUE(stripe.ok()) << stripe.status();
    EXPECT_EQ((*stripe)->open_stats().from_cache, cached);
  }
}

// Stripes 0 and 1 hold equal rows, stripe 2 others.
TEST_F(Parts, DerivedColumnsAreOfTheStripe) {
  std::string ten = "click,item,text\n", four = ten;
  for (uint32_t i = 0; i < 120; ++i) ten += fmt::format("1,{},t\n", 10 + i % 10);
  for (uint32_t i = 0; i < 120; ++i) four += fmt::format("1,{},t\n", 20 + i % 4);
  config_.train = {dir_.Write("a.csv", ten), dir_.Write("b.csv", ten), dir_.Write("c.csv", four)};
  config_.columns.push_back(Column("others", ColumnType::kIds));
  config_.columns.back().transform = "sampled_uniform";
  config_.columns.back().length = 2;
  config_.columns.push_back(Column("log_q", ColumnType::kFloat));
  config_.columns.back().transform = "log_frequency";
  for (const size_t column : {3u, 4u}) config_.columns[column].of = {"item"};
  const StripedDataset data(config_, Split::kTrain, 3, pool_);
  std::vector<Batch> stripes;
  for (uint32_t s = 0; s < 3; ++s) stripes.push_back(AllOf(**data.Stripe(s)));
  EXPECT_THAT(stripes[0].columns[4].floats, Each(FloatEq(std::log(0.1f))));
  EXPECT_THAT(stripes[2].columns[4].floats, Each(FloatEq(std::log(0.25f))));
  EXPECT_THAT(stripes[0].columns[3].keys, Each(::testing::AllOf(Ge(10u), Lt(20u))));
  EXPECT_THAT(stripes[2].columns[3].keys, Each(::testing::AllOf(Ge(20u), Lt(24u))));
  EXPECT_EQ(stripes[0].columns[1].keys, stripes[1].columns[1].keys);
  EXPECT_NE(stripes[0].columns[3].keys, stripes[1].columns[3].keys);
}

// Counts the bytes that are read.
class CountedFile : public RandomFile {
 public:
  explicit CountedFile(std::string_view text) : text_(text) {}
  Result<size_t> ReadAt(uint64_t at, std::span<char> out) const override {
    const std::string_view rest = text_.substr(std::min<size_t>(at, text_.size()));
    const size_t count = std::min(rest.size(), out.size());
    std::copy_n(rest.data(), count, out.data());
    read += count;
    return count;
  }
  uint64_t size() const override { return text_.size(); }
  mutable uint64_t read = 0;

 private:
  const std::string_view text_;
};

TEST(BlockReader, ReadsOnlyItsPart) {
  const std::string text = CsvRows(500'000);
  const auto file = std::make_shared<CountedFile>(text);
  uint64_t lines = 0;
  constexpr uint64_t kParts = 4;
  for (uint64_t p = 0; p < kParts; ++p) {
    const ByteRange part{text.size() * p / kParts, text.size() * (p + 1) / kParts};
    const uint64_t from = part.begin == 0 ? 0 : part.begin - 1;
    BlockReader reader(SourceFrom(file, from), "file", part, from);
    std::string block;
    do {
      ASSERT_TRUE(reader.Next(block).ok());
      lines += static_cast<uint64_t>(std::ranges::count(block, '\n'));
    } while (!block.empty());
  }
  EXPECT_EQ(lines, 500'000u);
  EXPECT_LE(file->read, text.size() + kParts * 8192);
}

}  // namespace
}  // namespace dt::worker
