#include "worker/data/parquet/column_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "common/base/float_formats.h"
#include "worker/data/format/number.h"

namespace dt::worker {
namespace {

struct Half {
  uint16_t bits;
  explicit operator float() const {
    float value = 0;
    DecodeRow(FloatFormat::kFp16, reinterpret_cast<const std::byte*>(&bits), {&value, 1});
    return value;
  }
};

bool IsInteger(ArrowType type) { return type >= ArrowType::kBool && type <= ArrowType::kU64; }
bool IsNumber(ArrowType type) { return type <= ArrowType::kF64; }
bool IsTime(ArrowType type) { return type >= ArrowType::kDays && type <= ArrowType::kTimeNs; }
bool IsText(ArrowType type) { return type == ArrowType::kText || type == ArrowType::kLargeText; }

bool BitAt(const uint8_t* bits, uint64_t at) { return (bits[at / 8] >> (at % 8) & 1) != 0; }

// Calls visit(at), where at(i) is number i of the column in its own type. Returns false if the
// column holds no numbers.
template <class Visit>
bool VisitNumbers(const ArrowColumn& from, const Visit& visit) {
  const auto as = [&]<class T>(const T* numbers) {
    visit([numbers](uint64_t i) { return numbers[i]; });
    return true;
  };
  switch (from.type) {
    case ArrowType::kBool:
      visit([bits = static_cast<const uint8_t*>(from.values), at = from.bits_at](uint64_t i) {
        return static_cast<uint8_t>(BitAt(bits, at + i));
      });
      return true;
    case ArrowType::kI8:
      return as(static_cast<const int8_t*>(from.values));
    case ArrowType::kI16:
      return as(static_cast<const int16_t*>(from.values));
    case ArrowType::kI32:
    case ArrowType::kDays:
      return as(static_cast<const int32_t*>(from.values));
    case ArrowType::kI64:
    case ArrowType::kDateMs:
    case ArrowType::kTimeS:
    case ArrowType::kTimeMs:
    case ArrowType::kTimeUs:
    case ArrowType::kTimeNs:
      return as(static_cast<const int64_t*>(from.values));
    case ArrowType::kU8:
      return as(static_cast<const uint8_t*>(from.values));
    case ArrowType::kU16:
      return as(static_cast<const uint16_t*>(from.values));
    case ArrowType::kU32:
      return as(static_cast<const uint32_t*>(from.values));
    case ArrowType::kU64:
      return as(static_cast<const uint64_t*>(from.values));
    case ArrowType::kF16:
      return as(static_cast<const Half*>(from.values));
    case ArrowType::kF32:
      return as(static_cast<const float*>(from.values));
    case ArrowType::kF64:
      return as(static_cast<const double*>(from.values));
    default:
      return false;
  }
}

std::string_view TextAt(const ArrowColumn& from, uint64_t i) {
  const char* const bytes = static_cast<const char*>(from.values);
  const auto between = [&](const auto* ends) {
    return std::string_view(bytes + ends[i], static_cast<size_t>(ends[i + 1] - ends[i]));
  };
  return from.type == ArrowType::kText ? between(static_cast<const int32_t*>(from.ends))
                                       : between(static_cast<const int64_t*>(from.ends));
}

void Resize(const ColumnSpec& column, size_t count, Values& out) {
  out.floats.resize(column.is_keys() ? 0 : count);
  out.keys.resize(column.is_keys() ? count : 0);
  out.states.assign(count, ValueState::kGood);
  out.all_good = true;
}

void MarkBad(size_t i, Values& out) {
  out.states[i] = ValueState::kBad;
  out.all_good = false;
}

// The seconds of a time in its own unit; a number without a unit is in seconds.
int64_t SecondsOf(ArrowType type, int64_t time) {
  int64_t units = 1;  // In a second.
  switch (type) {
    case ArrowType::kDays:
      return time * 86400;
    case ArrowType::kDateMs:
    case ArrowType::kTimeMs:
      units = 1000;
      break;
    case ArrowType::kTimeUs:
      units = 1000000;
      break;
    case ArrowType::kTimeNs:
      units = 1000000000;
      break;
    default:
      break;
  }
  return time / units - (time % units < 0 ? 1 : 0);
}

// What a column takes besides lists, for messages.
std::string_view TypesOf(const ColumnSpec& column) {
  if (column.type == ColumnType::kString || column.type == ColumnType::kStrings) {
    return "texts or integers";
  }
  if (column.is_time_part()) return "times, texts or integers";
  return column.is_keys() && !column.is_binned() ? "integers" : "numbers";
}

bool Fits(const ColumnSpec& column, ArrowType type) {
  if (column.type == ColumnType::kString || column.type == ColumnType::kStrings) {
    return IsText(type) || IsInteger(type);
  }
  if (column.is_time_part()) return IsTime(type) || IsText(type) || IsInteger(type);
  return column.is_keys() && !column.is_binned() ? IsInteger(type) : IsNumber(type);
}

}  // namespace

bool IsNull(const ArrowColumn& column, uint64_t index) {
  return column.valid != nullptr && !BitAt(column.valid, column.bits_at + index);
}

bool TakesLists(const ColumnSpec& column) {
  return column.type == ColumnType::kIds || column.type == ColumnType::kStrings ||
         column.is_vector();
}

std::string TypeMismatch(const ColumnSpec& column, const ArrowField& field) {
  const bool takes_lists = TakesLists(column);
  const bool fits = Fits(column, field.type);
  if (fits && (takes_lists || !field.is_list) && (!column.is_vector() || field.is_list)) return "";
  return fmt::format("type {} found, {}{} for type {} of data.columns expected", field.type_text,
                     takes_lists ? "lists of " : "", TypesOf(column), NameOf(column.type));
}

std::string WeightsMismatch(const ColumnSpec& column, const ArrowField& field) {
  if (IsNumber(field.type)) return "";
  return fmt::format("type {} found, lists of numbers expected, the weights of column \"{}\"",
                     field.type_text, column.name);
}

void ColumnValues::Load(uint64_t begin, size_t count, Values& out) {
  Resize(column_, count, out);
  if (from_.type == ArrowType::kDictionary) {
    LoadFromDictionary(begin, count, out);
  } else {
    LoadPlain(from_, begin, count, out);
  }
}

void ColumnValues::LoadPlain(const ArrowColumn& from, uint64_t begin, size_t count,
                             Values& out) const {
  switch (converter_.kind()) {
    case CellConverter::Kind::kNumber:
      LoadFloats(from, begin, count, out);
      break;
    case CellConverter::Kind::kText:
      LoadTexts(from, begin, count, out);
      break;
    case CellConverter::Kind::kBin:
      LoadBins(from, begin, count, out);
      break;
    case CellConverter::Kind::kTime:
      LoadTimes(from, begin, count, out);
      break;
    default:
      LoadIds(from, begin, count, out);
  }
  if (from.valid == nullptr) return;
  for (size_t i = 0; i < count; ++i) {
    if (!IsNull(from, begin + i)) continue;
    out.states[i] = ValueState::kNull;
    out.all_good = false;
  }
}

void ColumnValues::ReadFloats(const ArrowColumn& from, uint64_t begin, size_t count, Values& out) {
  VisitNumbers(from, [&](const auto& at) {
    for (size_t i = 0; i < count; ++i) out.floats[i] = static_cast<float>(at(begin + i));
  });
  const float most = std::numeric_limits<float>::max();
  for (size_t i = 0; i < count; ++i) {
    if (!(std::abs(out.floats[i]) <= most)) MarkBad(i, out);
  }
}

void ColumnValues::LoadFloats(const ArrowColumn& from, uint64_t begin, size_t count,
                              Values& out) const {
  ReadFloats(from, begin, count, out);
  if (!converter_.changes_numbers()) return;
  for (float& value : out.floats) value = converter_.Number(value);
}

void ColumnValues::LoadBins(const ArrowColumn& from, uint64_t begin, size_t count,
                            Values& out) const {
  out.floats.resize(count);
  ReadFloats(from, begin, count, out);
  for (size_t i = 0; i < count; ++i) out.keys[i] = converter_.OfBin(out.floats[i]);
}

void ColumnValues::LoadTimes(const ArrowColumn& from, uint64_t begin, size_t count,
                             Values& out) const {
  const auto put = [&](size_t i, bool is_time, int64_t seconds) {
    if (is_time) {
      out.keys[i] = converter_.OfTime(seconds);
    } else {
      MarkBad(i, out);
    }
  };
  if (IsText(from.type)) {
    for (size_t i = 0; i < count; ++i) {
      int64_t seconds = 0;
      const bool parsed = ParseTime(Trimmed(TextAt(from, begin + i)), seconds);
      put(i, parsed, seconds);
    }
    return;
  }
  VisitNumbers(from, [&](const auto& at) {
    using T = std::decay_t<decltype(at(0))>;
    if constexpr (std::is_integral_v<T>) {
      for (size_t i = 0; i < count; ++i) {
        const T time = at(begin + i);
        const int64_t seconds = SecondsOf(from.type, static_cast<int64_t>(time));
        put(i, std::in_range<int64_t>(time) && worker::IsTime(seconds), seconds);
      }
    }
  });
}

void ColumnValues::LoadIds(const ArrowColumn& from, uint64_t begin, size_t count,
                           Values& out) const {
  const bool buckets = converter_.kind() == CellConverter::Kind::kBucket;
  VisitNumbers(from, [&](const auto& at) {
    using T = std::decay_t<decltype(at(0))>;
    if constexpr (std::is_integral_v<T>) {
      for (size_t i = 0; i < count; ++i) {
        const T value = at(begin + i);
        out.keys[i] = static_cast<Key>(value);
        const bool bad = buckets ? std::cmp_greater(value, std::numeric_limits<int64_t>::max())
                                 : std::cmp_less(value, 0);
        if (bad) MarkBad(i, out);
      }
    }
  });
  if (!buckets && converter_.keeps_ids()) return;
  for (Key& key : out.keys) {
    key = buckets ? converter_.OfBucket(static_cast<int64_t>(key)) : converter_.OfId(key);
  }
}

void ColumnValues::LoadTexts(const ArrowColumn& from, uint64_t begin, size_t count,
                             Values& out) const {
  if (IsText(from.type)) {
    for (size_t i = 0; i < count; ++i) out.keys[i] = converter_.OfText(TextAt(from, begin + i));
    return;
  }
  VisitNumbers(from, [&](const auto& at) {
    using T = std::decay_t<decltype(at(0))>;
    if constexpr (std::is_integral_v<T>) {
      for (size_t i = 0; i < count; ++i) {
        const fmt::format_int text(at(begin + i));
        out.keys[i] = converter_.OfText({text.data(), text.size()});
      }
    }
  });
}

// Each value of the dictionary is converted once, unless it is longer than what is read of it.
void ColumnValues::LoadFromDictionary(uint64_t begin, size_t count, Values& out) {
  const ArrowColumn& words = *from_.items;
  const bool whole = words.length <= from_.length;
  if (whole && !has_dictionary_) {
    Resize(column_, words.length, dictionary_);
    LoadPlain(words, 0, words.length, dictionary_);
    has_dictionary_ = true;
  }
  for (size_t i = 0; i < count; ++i) {
    uint64_t word = PositionAt(begin + i);
    if (IsNull(from_, begin + i) || word >= words.length) {
      out.states[i] = IsNull(from_, begin + i) ? ValueState::kNull : ValueState::kBad;
      out.all_good = false;
      continue;
    }
    if (!whole) {
      Resize(column_, 1, dictionary_);
      LoadPlain(words, word, 1, dictionary_);
      word = 0;
    }
    if (column_.is_keys()) {
      out.keys[i] = dictionary_.keys[word];
    } else {
      out.floats[i] = dictionary_.floats[word];
    }
    out.states[i] = dictionary_.states[word];
    out.all_good = out.all_good && out.states[i] == ValueState::kGood;
  }
}

// The position in the dictionary that value i has; one outside of it if it is damaged.
uint64_t ColumnValues::PositionAt(uint64_t i) const {
  switch (from_.index) {
    case ArrowType::kI8:
      return static_cast<uint64_t>(static_cast<const int8_t*>(from_.values)[i]);
    case ArrowType::kU8:
      return static_cast<const uint8_t*>(from_.values)[i];
    case ArrowType::kI16:
      return static_cast<uint64_t>(static_cast<const int16_t*>(from_.values)[i]);
    case ArrowType::kU16:
      return static_cast<const uint16_t*>(from_.values)[i];
    case ArrowType::kI32:
      return static_cast<uint64_t>(static_cast<const int32_t*>(from_.values)[i]);
    case ArrowType::kU32:
      return static_cast<const uint32_t*>(from_.values)[i];
    default:
      return static_cast<const uint64_t*>(from_.values)[i];
  }
}

std::string ColumnValues::TextOf(uint64_t index) const {
  if (IsNull(from_, index)) return "null";
  const ArrowColumn* from = &from_;
  if (from->type == ArrowType::kDictionary) {
    from = from_.items;
    index = PositionAt(index);
    if (index >= from->length) return "a position outside of the dictionary";
    if (IsNull(*from, index)) return "null";
  }
  std::string text;
  const bool is_number = VisitNumbers(*from, [&](const auto& at) {
    using T = std::decay_t<decltype(at(0))>;
    if constexpr (std::is_same_v<T, Half>) {
      text = fmt::format("{}", static_cast<float>(at(index)));
    } else {
      text = fmt::format("{}", at(index));
    }
  });
  return is_number ? text : Quoted(TextAt(*from, index));
}

}  // namespace dt::worker
