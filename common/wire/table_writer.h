// Converts structs to FlatBuffers tables; see tables.h. Equal values give equal bytes.
#pragma once

#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "common/base/clock.h"
#include "common/wire/tables.h"

namespace dt::tables {

using Builder = flatbuffers::FlatBufferBuilder;

template <class T>
auto Write(Builder& to, const T& value);

// One value as an argument of its table's Create function. Field is the type of the field's getter.
template <class Field, class T>
auto Argument(Builder& to, const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    static_assert(std::is_same_v<T, Field>, "the schema has another type");
    return value;
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<Field>(value);
  } else if constexpr (kIsId<T>) {
    static_assert(std::is_same_v<typename T::rep, Field>, "the schema has another type");
    return value.value();
  } else if constexpr (std::is_same_v<T, Duration>) {
    static_assert(std::is_same_v<Duration::rep, Field>, "the schema has another type");
    return value.count();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if constexpr (std::is_same_v<Field, const flatbuffers::String*>) {
      return to.CreateString(value);
    } else {
      return to.CreateVector(reinterpret_cast<const uint8_t*>(value.data()), value.size());
    }
  } else if constexpr (kIsVector<T>) {
    using Item = typename T::value_type;
    if constexpr (std::is_arithmetic_v<Item>) {
      return to.CreateVector(value);
    } else if constexpr (kIsId<Item>) {
      std::vector<typename Item::rep> numbers;
      for (const Item& id : value) numbers.push_back(id.value());
      return to.CreateVector(numbers);
    } else if constexpr (std::is_same_v<Item, std::string>) {
      return to.CreateVectorOfStrings(value);
    } else {
      std::vector<flatbuffers::Offset<typename TableOf<Item>::type>> items;
      items.reserve(value.size());
      for (const Item& item : value) items.push_back(Write(to, item));
      return to.CreateVector(items);
    }
  } else if constexpr (kIsMap<T>) {
    using Entry = std::pair<typename T::key_type, typename T::mapped_type>;
    std::vector<flatbuffers::Offset<typename TableOf<Entry>::type>> items;
    for (const auto& [name, item] : value) items.push_back(Write(to, Entry(name, item)));
    return to.CreateVector(items);
  } else {
    return Write(to, value);
  }
}

// Like Argument, but as a tuple: a variant becomes two arguments, the alternative's tag and its
// table.
template <class Field, class T>
auto Arguments(Builder& to, const T& value) {
  if constexpr (kIsVariant<T>) {
    return std::visit(
        [&to]<class Alternative>(const Alternative& alternative) {
          constexpr Field kTag = UnionOf<Field>::template kTag<typename TableOf<Alternative>::type>;
          return std::tuple(kTag, Write(to, alternative).Union());
        },
        value);
  } else {
    return std::tuple(Argument<Field>(to, value));
  }
}

// Fields that are not numbers are written before their table, as FlatBuffers requires.
template <class T, class Fields, size_t... I>
auto WriteFields(Builder& to, const Fields& fields, std::index_sequence<I...>) {
  // Braces guarantee that fields are written in their order, so that equal values give equal bytes.
  using All = std::tuple<decltype(Arguments<SchemaField<T, I>>(to, std::get<I>(fields)))...>;
  const All arguments{Arguments<SchemaField<T, I>>(to, std::get<I>(fields))...};
  return std::apply(
      [&](const auto&... each) {
        return std::apply([&](const auto&... all) { return Schema<T>::Traits::Create(to, all...); },
                          std::tuple_cat(each...));
      },
      arguments);
}

template <class T>
auto Write(Builder& to, const T& value) {
  using Traits = typename Schema<T>::Traits;
  if constexpr (kFields<T> == 0) {
    return Traits::Create(to);
  } else {
    return WriteFields<T>(to, Described<T>::Fields(value), std::make_index_sequence<kFields<T>>());
  }
}

template <class T>
std::string Encode(const T& value, const char* file_identifier) {
  Builder to;
  to.Finish(Write(to, value), file_identifier);
  return {reinterpret_cast<const char*>(to.GetBufferPointer()), to.GetSize()};
}

}  // namespace dt::tables
