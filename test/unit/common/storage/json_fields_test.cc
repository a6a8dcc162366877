#include "common/storage/json_fields.h"

#include <deque>
#include <list>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/ids.h"

namespace dt {
namespace {

enum class Color : uint8_t { kRed, kBlue };

struct Leaf {
  int64_t number = 0;
  DT_FIELDS(number)
};
struct Empty {
  DT_FIELDS()
};

struct Everything {
  bool flag = false;
  uint64_t large = 0;
  float small = 0;
  std::string text;
  Color color = Color::kRed;
  ShardId shard;
  std::optional<Leaf> leaf, absent;
  std::vector<double> numbers;
  std::list<Leaf> leaves;
  std::deque<std::string> texts;
  std::set<ProcessId> ids;
  std::map<ProcessId, Leaf> by_id;
  std::vector<std::pair<std::string, uint32_t>> pairs;
  std::variant<Empty, Leaf> either;
  DT_FIELDS(flag, large, small, text, color, shard, leaf, absent, numbers, leaves, texts, ids,
            by_id, pairs, either)
};

Everything Sample() {
  return {.flag = true,
          .large = ~0ull,
          .small = 0.1f,
          .text = "a\nb",
          .color = Color::kBlue,
          .shard = ShardId(3),
          .leaf = Leaf{-5},
          .numbers = {0.1, 1e300},
          .leaves = {{1}, {2}},
          .texts = {"x"},
          .ids = {ProcessId(7), ProcessId(9)},
          .by_id = {{ProcessId(4), {8}}},
          .pairs = {{"p", 6}},
          .either = Leaf{11}};
}

TEST(JsonFields, EveryKindOfFieldHasItsForm) {
  EXPECT_EQ(FieldsToJson(Sample()).dump(),
            R"({"flag":true,"large":18446744073709551615,"small":0.10000000149011612,)"
            R"("text":"a\nb","color":1,"shard":3,"leaf":{"number":-5},"absent":null,)"
            R"("numbers":[0.1,1e+300],"leaves":[{"number":1},{"number":2}],"texts":["x"],)"
            R"("ids":[7,9],"by_id":[[4,{"number":8}]],"pairs":[["p",6]],)"
            R"("either":{"alternative":1,"value":{"number":11}}})");
}

TEST(JsonFields, WhatIsReadIsWhatWasWritten) {
  const Json json = FieldsToJson(Sample());
  Everything back;
  back.absent = Leaf{1};
  back.ids = {ProcessId(1)};
  FieldsFromJson(json, back);
  EXPECT_EQ(FieldsToJson(back), json) << "nothing is left of what was there before";
  EXPECT_EQ(back.large, ~0ull);
  EXPECT_EQ(back.small, 0.1f);
}

TEST(JsonFields, AMemberThatIsMissingOrOfAnotherTypeIsNotRead) {
  Leaf leaf;
  EXPECT_THROW(FieldsFromJson(Json::object(), leaf), std::exception);
  EXPECT_THROW(FieldsFromJson(Json({{"number", "text"}}), leaf), std::exception);
  std::vector<double> numbers;
  EXPECT_THROW(FieldsFromJson(Json(5), numbers), std::exception);
}

TEST(JsonFields, AnOptionalThatIsMissingIsAbsent) {
  Json json = FieldsToJson(Sample());
  json.erase("leaf");
  Everything back;
  back.leaf = Leaf{1};
  FieldsFromJson(json, back);
  EXPECT_FALSE(back.leaf.has_value());
  EXPECT_EQ(back.text, "a\nb") << "the fields after it are read";
}

}  // namespace
}  // namespace dt
