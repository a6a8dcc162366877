// Goal: values of every Arrow type become what the same cells of CSV become. Method: columns in
// memory, without Arrow; rows are compared with those that the CSV reader makes.
#include "worker/data/parquet/batch_rows.h"

#include <bit>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "test/unit/worker/data/data_files.h"
#include "worker/data/format/delimited.h"
#include "worker/data/parquet/column_values.h"

namespace dt::worker {
namespace {

using testing::ElementsAre;

// A column that owns what it points to.
struct HeldColumn : ArrowColumn {
  std::vector<uint8_t> bits, held;
  std::vector<int32_t> held_ends;
  std::unique_ptr<HeldColumn> held_items;

  // Makes value i null where valid[i] is '0'.
  HeldColumn&& Valid(std::string_view text) && {
    bits.assign(text.size() / 8 + 1, 0);
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '1') bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | 1 << i % 8);
    }
    ArrowColumn::valid = bits.data();
    return std::move(*this);
  }
};

template <class T>
HeldColumn Numbers(ArrowType type, const std::vector<T>& numbers) {
  HeldColumn column;
  column.type = type;
  column.length = numbers.size();
  column.held.resize(numbers.size() * sizeof(T));
  if (!numbers.empty()) std::memcpy(column.held.data(), numbers.data(), column.held.size());
  column.values = column.held.data();
  return column;
}

HeldColumn Texts(const std::vector<std::string>& texts) {
  HeldColumn column;
  column.type = ArrowType::kText;
  column.length = texts.size();
  column.held_ends = {0};
  for (const std::string& text : texts) {
    column.held.insert(column.held.end(), text.begin(), text.end());
    column.held_ends.push_back(static_cast<int32_t>(column.held.size()));
  }
  column.values = column.held.data();
  column.ends = column.held_ends.data();
  return column;
}

HeldColumn Lists(std::vector<int32_t> ends, HeldColumn items) {
  HeldColumn column;
  column.type = ArrowType::kList;
  column.length = ends.size() - 1;
  column.held_ends = std::move(ends);
  column.ends = column.held_ends.data();
  column.held_items = std::make_unique<HeldColumn>(std::move(items));
  column.items = column.held_items.get();
  return column;
}

HeldColumn Words(const std::vector<int8_t>& positions, HeldColumn words) {
  HeldColumn column = Numbers(ArrowType::kDictionary, positions);
  column.index = ArrowType::kI8;
  column.held_items = std::make_unique<HeldColumn>(std::move(words));
  column.items = column.held_items.get();
  return column;
}

struct Rows {
  std::vector<std::byte> records;
  std::vector<uint64_t> heap;
  std::string error;
  uint64_t bad = 0;
  friend bool operator==(const Rows&, const Rows&) = default;
};

Rows RecordsOf(const BlockResult& result) {
  const auto records = result.block.records();
  const auto heap = result.block.heap();
  return {{records.begin(), records.end()},
          {heap.begin(), heap.end()},
          result.first_error,
          result.bad_lines};
}

// The rows of a batch with these columns; crossed columns have none, and weights follow their list.
template <class... Held>
Rows FromArrow(const std::vector<ColumnSpec>& columns, const Held&... held) {
  const ArrowColumn batch[] = {held...};
  const RowLayout layout(columns);
  std::vector<size_t> column_of, weights_of;
  size_t next = 0;
  for (const ColumnSpec& column : columns) {
    column_of.push_back(column.is_crossed() ? BatchRows::kNoColumn : next++);
    weights_of.push_back(column.weighted ? next++ : BatchRows::kNoColumn);
  }
  BlockResult result;
  result.Clear(layout, 0);
  const BatchRows rows(layout, column_of, false, weights_of);
  rows.Append({.rows = batch[0].length, .columns = batch}, result);
  return RecordsOf(result);
}

Rows FromCsv(const std::vector<ColumnSpec>& columns, std::string_view text) {
  DelimitedOptions options;
  for (const ColumnSpec& column : columns) {
    options.cell_of_column.push_back(column.is_crossed() ? kNoCell : options.cells++);
    options.weights_of_column.push_back(column.weighted ? options.cells++ : kNoCell);
  }
  RowScratch scratch;
  BlockResult result;
  const auto decoder = MakeDelimitedDecoder(columns, std::move(options));
  decoder->Decode(text, scratch, result);
  return RecordsOf(result);
}

ColumnSpec Transformed(std::string name, ColumnType type, std::string transform) {
  ColumnSpec column = Column(std::move(name), type);
  column.transform = std::move(transform);
  return column;
}

ColumnSpec Ragged(std::string name, ColumnType type) {
  ColumnSpec column = Column(std::move(name), type);
  column.length = 0;
  return column;
}

TEST(BatchRows, NumbersOfEveryTypeAreTheSameAsInCsv) {
  const std::vector<ColumnSpec> one_float = {Column("x", ColumnType::kFloat)};
  const std::vector<ColumnSpec> one_id = {Column("x", ColumnType::kId)};
  const std::vector<ColumnSpec> one_text = {Column("x", ColumnType::kString)};
  const auto all = [&](const HeldColumn& column, std::string_view csv) {
    EXPECT_EQ(FromArrow(one_float, column), FromCsv(one_float, csv));
    EXPECT_EQ(FromArrow(one_id, column), FromCsv(one_id, csv));
    EXPECT_EQ(FromArrow(one_text, column), FromCsv(one_text, csv));
  };
  all(Numbers<int8_t>(ArrowType::kI8, {0, 127}), "0\n127\n");
  all(Numbers<int16_t>(ArrowType::kI16, {0, 32767}), "0\n32767\n");
  all(Numbers<int32_t>(ArrowType::kI32, {7, 2147483647}), "7\n2147483647\n");
  all(Numbers<int64_t>(ArrowType::kI64, {1, 9223372036854775807}), "1\n9223372036854775807\n");
  all(Numbers<uint8_t>(ArrowType::kU8, {0, 255}), "0\n255\n");
  all(Numbers<uint16_t>(ArrowType::kU16, {0, 65535}), "0\n65535\n");
  all(Numbers<uint32_t>(ArrowType::kU32, {3, 4294967295u}), "3\n4294967295\n");
  all(Numbers<uint64_t>(ArrowType::kU64, {uint64_t{1} << 63, ~uint64_t{0}}),
      "9223372036854775808\n18446744073709551615\n");
  HeldColumn bits = Numbers<uint8_t>(ArrowType::kBool, {0b10110});
  bits.length = 3;
  bits.bits_at = 1;
  all(bits, "1\n1\n0\n");
  EXPECT_EQ(FromArrow(one_float, Numbers<double>(ArrowType::kF64, {0.1, -1e-3, 1e-300})),
            FromCsv(one_float, "0.1\n-1e-3\n1e-300\n"));
  EXPECT_EQ(FromArrow(one_float, Numbers<float>(ArrowType::kF32, {0.1f, -2.5f})),
            FromCsv(one_float, "0.1\n-2.5\n"));
  EXPECT_EQ(FromArrow(one_float, Numbers<uint16_t>(ArrowType::kF16, {0x3c00, 0xc100})),
            FromCsv(one_float, "1\n-2.5\n"));
}

TEST(BatchRows, TransformsAndCrossingsAreTheSameAsInCsv) {
  ColumnSpec both = Transformed("both", ColumnType::kId, "crossed");
  both.of = {"n", "s"};
  const std::vector<ColumnSpec> columns = {both, Transformed("p", ColumnType::kFloat, "log"),
                                           Transformed("n", ColumnType::kId, "bucket"),
                                           Transformed("i", ColumnType::kId, "named"),
                                           Transformed("s", ColumnType::kString, "named")};
  EXPECT_EQ(FromArrow(columns, Numbers<int32_t>(ArrowType::kI32, {3, -3, 5000}),
                      Numbers<int64_t>(ArrowType::kI64, {-3, 100, 2}),
                      Numbers<uint8_t>(ArrowType::kU8, {1, 2, 3}),
                      Numbers<int16_t>(ArrowType::kI16, {7, -8, 9})),
            FromCsv(columns, "3,-3,1,7\n-3,100,2,-8\n5000,2,3,9\n"));
}

TEST(BatchRows, NullsAreEmptyCells) {
  ColumnSpec price = Column("price", ColumnType::kFloat);
  price.fill = 2.5;
  const std::vector<ColumnSpec> columns = {
      price, Transformed("n", ColumnType::kId, "bucket"), Column("s", ColumnType::kString),
      Ragged("l", ColumnType::kIds), Ragged("t", ColumnType::kStrings)};
  EXPECT_EQ(
      FromArrow(columns, Numbers<float>(ArrowType::kF32, {1, NAN, 3}).Valid("101"),
                Numbers<int32_t>(ArrowType::kI32, {1, 2, 3}).Valid("110"),
                Texts({"a", "b", "c"}).Valid("011"),
                Lists({0, 2, 2, 3}, Numbers<int64_t>(ArrowType::kI64, {5, 6, 7})).Valid("110"),
                Lists({0, 3, 3, 5}, Texts({"x", "y", "z", "u", "v"}).Valid("10111"))),
      FromCsv(columns, "1,1,,5|6,x||z\n,2,b,,\n3,,c,,u|v\n"));
}

TEST(BatchRows, AValueWhereListsAreExpectedIsAListOfOne) {
  const std::vector<ColumnSpec> columns = {Ragged("l", ColumnType::kIds)};
  EXPECT_EQ(FromArrow(columns, Numbers<uint32_t>(ArrowType::kU32, {5, 6, 7}).Valid("101")),
            FromCsv(columns, "5\n\"\"\n7\n"));
}

TEST(BatchRows, ListsOfNumbersAreVectors) {
  ColumnSpec place = Column("v", ColumnType::kFloat);
  place.length = 2;
  place.fill = 0.5;
  const std::vector<ColumnSpec> columns = {place, Column("i", ColumnType::kId)};
  const HeldColumn ids = Numbers<uint8_t>(ArrowType::kU8, {1, 2, 3});
  EXPECT_EQ(FromArrow(columns,
                      Lists({0, 2, 4, 6},
                            Numbers<double>(ArrowType::kF64, {1, 2, 9, 9, 5, 6}).Valid("011111"))
                          .Valid("101"),
                      ids),
            FromCsv(columns, "|2,1\n,2\n5|6,3\n"));
  HeldColumn fixed = Lists({0, 0, 0, 0}, Numbers<float>(ArrowType::kF32, {1, 2, 3, 4, 5, 6}));
  fixed.type = ArrowType::kFixedList;
  fixed.list_size = 2;
  EXPECT_EQ(FromArrow(columns, fixed, ids), FromCsv(columns, "1|2,1\n3|4,2\n5|6,3\n"));
  EXPECT_EQ(
      FromArrow(columns, Lists({0, 2, 3, 5}, Numbers<float>(ArrowType::kF32, {1, 2, 3, 4, 5})), ids)
          .error,
      "column \"v\": 1 items found, 2 items expected");
  EXPECT_EQ(
      FromArrow(columns, Lists({0, 2, 4, 6}, Numbers<float>(ArrowType::kF32, {1, NAN, 3, 4, 5, 6})),
                ids)
          .error,
      "column \"v\": nan found, a finite number expected");
}

TEST(BatchRows, WordsOfADictionaryAreTheSameAsTexts) {
  const std::vector<ColumnSpec> columns = {Column("s", ColumnType::kString)};
  const Rows expected = FromCsv(columns, "b\na\nb\n\"\"\na\n");
  const std::vector<int8_t> positions = {1, 0, 1, 2, 0};
  EXPECT_EQ(FromArrow(columns, Words(positions, Texts({"a", "b", "c"})).Valid("11101")), expected);
  EXPECT_EQ(FromArrow(columns, Words(positions, Texts({"a", "b", "c"}).Valid("110"))), expected);
  // With a longer dictionary, only the words in use are hashed.
  EXPECT_EQ(FromArrow(columns, Words(positions, Texts({"a", "b", "", "d", "e", "f", "g"}))),
            expected);
  EXPECT_EQ(FromArrow(columns, Words({1, 0, 9}, Texts({"a", "b"}))).error,
            "column \"s\": a position outside of the dictionary found, a text expected");
}

// The first bad row is named, and only the sound rows are kept, with their lists.
TEST(BatchRows, BadRowsAreDroppedWithAllTheyHave) {
  ColumnSpec pair = Ragged("pair", ColumnType::kIds);
  pair.length = 2;
  const std::vector<ColumnSpec> columns = {Ragged("l", ColumnType::kIds),
                                           Column("i", ColumnType::kId), pair};
  const HeldColumn lists =
      Lists({0, 1, 3, 4, 6, 7}, Numbers<int8_t>(ArrowType::kI8, {1, 2, 3, 4, 5, -6, 7}));
  const HeldColumn pairs =
      Lists({0, 2, 4, 5, 7, 9}, Numbers<int8_t>(ArrowType::kI8, {1, 1, 2, 2, 3, 4, 4, 5, 5}));
  const Rows rows =
      FromArrow(columns, lists, Numbers<int64_t>(ArrowType::kI64, {9, -8, 7, 6, 5}), pairs);
  EXPECT_EQ(rows.error, "column \"i\": -8 found, an id from 0 to 18446744073709551615 expected");
  EXPECT_EQ(rows.bad, 3u);
  Rows kept = FromCsv(columns, "1,9,1|1\n7,5,5|5\n");
  EXPECT_EQ(rows.records, kept.records);
  EXPECT_EQ(rows.heap, kept.heap);
  EXPECT_EQ(
      FromArrow(columns, lists, Numbers<int64_t>(ArrowType::kI64, {9, 8, 7, 6, 5}), pairs).error,
      "column \"pair\": 1 items found, 2 items expected");
}

TEST(BatchRows, ValuesThatAColumnCannotHaveAreQuoted) {
  const ColumnSpec number = Column("x", ColumnType::kFloat), id = Column("x", ColumnType::kId);
  const ColumnSpec label = Column("x", ColumnType::kFloat, ColumnRole::kLabel);
  const auto error_of = [](const ColumnSpec& column, const HeldColumn& values) {
    const std::string error = FromArrow({column}, values).error;
    return error.substr(0, error.find(" found"));
  };
  EXPECT_EQ(error_of(number, Numbers<float>(ArrowType::kF32, {NAN})), "column \"x\": nan");
  EXPECT_EQ(error_of(number, Numbers<double>(ArrowType::kF64, {1e300})), "column \"x\": 1e+300");
  EXPECT_EQ(error_of(number, Numbers<uint16_t>(ArrowType::kF16, {0xfc00})), "column \"x\": -inf");
  EXPECT_EQ(error_of(label, Numbers<float>(ArrowType::kF32, {1}).Valid("0")), "column \"x\": null");
  EXPECT_EQ(error_of(id, Numbers<int16_t>(ArrowType::kI16, {-1})), "column \"x\": -1");
  EXPECT_EQ(error_of(id, Numbers<int16_t>(ArrowType::kI16, {1}).Valid("0")), "column \"x\": null");
  EXPECT_EQ(error_of(Transformed("x", ColumnType::kId, "bucket"),
                     Numbers<uint64_t>(ArrowType::kU64, {uint64_t{1} << 63})),
            "column \"x\": 9223372036854775808");
  EXPECT_EQ(error_of(Ragged("x", ColumnType::kIds),
                     Lists({0, 2}, Numbers<int32_t>(ArrowType::kI32, {1, 2}).Valid("10"))),
            "column \"x\": null");
}

// More rows than are filled at once, of which every tenth is bad.
TEST(BatchRows, ManyRowsAreTheSameAsInCsv) {
  const std::vector<ColumnSpec> columns = {Column("a", ColumnType::kId),
                                           Ragged("l", ColumnType::kIds)};
  std::vector<int32_t> numbers, ends = {0}, items;
  std::string csv;
  for (int32_t i = 0; i < 1000; ++i) {
    numbers.push_back(i % 10 == 3 ? -i : i);
    csv += std::to_string(numbers.back()) + ",";
    for (int32_t k = 0; k < i % 4; ++k) {
      items.push_back(i + k);
      csv += (k > 0 ? "|" : "") + std::to_string(i + k);
    }
    ends.push_back(static_cast<int32_t>(items.size()));
    csv += "\n";
  }
  Rows expected = FromCsv(columns, csv);
  expected.error = "column \"a\": -3 found, an id from 0 to 18446744073709551615 expected";
  EXPECT_EQ(FromArrow(columns, Numbers(ArrowType::kI32, numbers),
                      Lists(ends, Numbers(ArrowType::kI32, items))),
            expected);
}

TEST(BatchRows, ChangedNumbersAndHashedKeysAreTheSameAsInCsv) {
  ColumnSpec x = Transformed("x", ColumnType::kFloat, "log");
  x.clip = {-1, 90};
  x.standardise = true, x.mean = 1.5f, x.deviation = 0.25f;
  x.fill = 77;
  ColumnSpec bin = Column("b", ColumnType::kId), id = Column("i", ColumnType::kId);
  bin.edges = {0, 2.5f, 10};
  bin.hash = 1000;
  id.hash = 7;
  ColumnSpec text = Transformed("s", ColumnType::kString, "named");
  text.hash = 1 << 20;
  ColumnSpec both = Transformed("both", ColumnType::kId, "crossed");
  both.of = {"i", "s"};
  both.hash = 50;
  const std::vector<ColumnSpec> columns = {x, bin, both, id, text};
  EXPECT_EQ(FromArrow(columns, Numbers<double>(ArrowType::kF64, {0, 500, -7, 8}).Valid("1110"),
                      Numbers<float>(ArrowType::kF32, {2.5f, -3, NAN, 11}).Valid("1101"),
                      Numbers<int64_t>(ArrowType::kI64, {1, 2, 3, 1ll << 60}),
                      Texts({"a", "b", "", "d"})),
            FromCsv(columns, "0,2.5,1,a\n500,-3,2,b\n-7,,3,\n,11,1152921504606846976,d\n"));
  EXPECT_EQ(FromArrow({bin}, Numbers<int16_t>(ArrowType::kI16, {-3, 2, 3, 10})),
            FromCsv({bin}, "-3\n2\n3\n10\n"));
  EXPECT_EQ(FromArrow({bin}, Numbers<float>(ArrowType::kF32, {NAN})).error,
            "column \"b\": nan found, a finite number expected");
}

TEST(BatchRows, TimesOfEveryTypeHaveTheSamePartsAsInCsv) {
  const char* const csv = "1969-12-31T23:59:59Z\n2024-02-29 12:34:56.75\n";
  const int64_t times[] = {-1, 1709210096};
  const auto in_units = [&](ArrowType type, int64_t units, int64_t rest) {
    return Numbers<int64_t>(type, {times[0] * units + rest, times[1] * units + rest});
  };
  for (const char* part : {"hour", "weekday", "day", "month"}) {
    const std::vector<ColumnSpec> columns = {Transformed("t", ColumnType::kId, part)};
    const Rows expected = FromCsv(columns, csv);
    EXPECT_EQ(expected.error, "");
    EXPECT_EQ(FromCsv(columns, "-1\n1709210096\n"), expected) << part;
    EXPECT_EQ(FromArrow(columns, in_units(ArrowType::kI64, 1, 0)), expected) << part;
    EXPECT_EQ(FromArrow(columns, in_units(ArrowType::kTimeS, 1, 0)), expected) << part;
    EXPECT_EQ(FromArrow(columns, in_units(ArrowType::kTimeMs, 1000, 999)), expected) << part;
    EXPECT_EQ(FromArrow(columns, in_units(ArrowType::kDateMs, 1000, 1)), expected) << part;
    EXPECT_EQ(FromArrow(columns, in_units(ArrowType::kTimeUs, 1000000, 999999)), expected) << part;
    EXPECT_EQ(FromArrow(columns, in_units(ArrowType::kTimeNs, 1000000000, 5)), expected) << part;
    EXPECT_EQ(FromArrow(columns, Texts({"1969-12-31 23:59:59", "2024-02-29T12:34:56+00:00"})),
              expected)
        << part;
    EXPECT_EQ(FromArrow(columns, Words({1, 0}, Texts({"1709210096", "-1"}))), expected) << part;
    EXPECT_EQ(FromArrow(columns, Numbers<int32_t>(ArrowType::kDays, {-1, 19782})),
              FromCsv(columns, "1969-12-31\n2024-02-29\n"))
        << part;
  }
}

TEST(BatchRows, WhatIsNoTimeIsQuoted) {
  const std::vector<ColumnSpec> columns = {Transformed("t", ColumnType::kId, "hour")};
  const std::string expected =
      " found, a time of the years 0 to 9999, as seconds since 1970 or such as 2024-05-01 "
      "12:34:56, "
      "expected";
  EXPECT_EQ(FromCsv(columns, "noon\n").error, "column \"t\": \"noon\"" + expected);
  EXPECT_EQ(FromCsv(columns, "1714567890000\n").error,
            "column \"t\": \"1714567890000\"" + expected);
  EXPECT_EQ(FromCsv(columns, "\"\"\n").error, "column \"t\": an empty cell" + expected);
  EXPECT_EQ(FromArrow(columns, Texts({"noon"})).error, "column \"t\": \"noon\"" + expected);
  EXPECT_EQ(FromArrow(columns, Numbers<uint64_t>(ArrowType::kU64, {~uint64_t{0}})).error,
            "column \"t\": 18446744073709551615" + expected);
  EXPECT_EQ(FromArrow(columns, Numbers<int64_t>(ArrowType::kTimeMs, {int64_t{1} << 60})).error,
            "column \"t\": 1152921504606846976" + expected);
  EXPECT_EQ(FromArrow(columns, Numbers<int64_t>(ArrowType::kTimeS, {5}).Valid("0")).error,
            "column \"t\": null" + expected);
}

TEST(BatchRows, WeightsOfListsAreTheSameAsInCsv) {
  ColumnSpec tags = Ragged("tags", ColumnType::kStrings), pair = Ragged("pair", ColumnType::kIds);
  tags.weights = "shares", tags.weighted = true;
  tags.max_len = 2;
  pair.weights = "halves", pair.weighted = true;
  pair.length = 2;
  const std::vector<ColumnSpec> columns = {tags, pair};
  const HeldColumn pairs =
      Lists({0, 2, 4, 6}, Numbers<int32_t>(ArrowType::kI32, {1, 2, 3, 4, 5, 6}));
  const HeldColumn halves =
      Lists({0, 2, 4, 6}, Numbers<float>(ArrowType::kF32, {1, 2, 3, 4, 5, 6}));
  const HeldColumn texts = Lists({0, 3, 3, 4}, Texts({"a", "b", "c", "d"}));
  EXPECT_EQ(
      FromArrow(
          columns, texts,
          Lists({0, 3, 4, 5}, Numbers<double>(ArrowType::kF64, {0.5, 1, -2, 9, 4})).Valid("101"),
          pairs, halves),
      FromCsv(columns, "a|b|c,0.5|1|-2,1|2,1|2\n,,3|4,3|4\nd,4,5|6,5|6\n"));
  const auto errors = [&](const HeldColumn& weights, const std::string& csv) {
    const std::string error = FromArrow({tags}, texts, weights).error;
    EXPECT_EQ(FromCsv({tags}, csv).error, error);
    return error;
  };
  EXPECT_EQ(errors(Lists({0, 2, 2, 3}, Numbers<float>(ArrowType::kF32, {1, 2, 3})),
                   "a|b|c,1|2\n,\nd,3\n"),
            "column \"tags\": 2 weights for 3 items found, one for each item expected");
  EXPECT_EQ(errors(Lists({0, 3, 4, 5}, Numbers<float>(ArrowType::kF32, {1, 2, 3, 4, 5})),
                   "a|b|c,1|2|3\n,4\nd,5\n"),
            "column \"tags\": 1 weights for 0 items found, one for each item expected");
  EXPECT_EQ(FromArrow({tags}, texts,
                      Lists({0, 3, 3, 4}, Numbers<float>(ArrowType::kF32, {1, INFINITY, 3, 4})))
                .error,
            "column \"shares\": inf found, a finite number expected");
  EXPECT_EQ(FromCsv({tags}, "a|b,1|\n").error,
            "column \"shares\": an empty cell found, a finite number expected");
}

}  // namespace
}  // namespace dt::worker
