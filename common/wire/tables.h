// Converts between structs and FlatBuffers tables, field by field, for control messages and plans.
// This file says which struct has which table; table_writer.h and table_reader.h convert.
//
// A struct lists its fields with DT_FIELDS, the schema has a table with the same names in the same
// order, and DT_TABLE connects the two. Any difference in name, number, order or type does not
// compile. In a table, ids and enumerations are numbers, durations are nanoseconds, structs are
// tables, and a variant is a union of its alternatives in their order. Where FlatBuffers needs a
// table but the value is no struct (an alternative of a union, an item of a vector of vectors), a
// table with the one field `value` holds it. An entry of a map is a table with `name` and `value`.
//
// Bytes of a peer are safe to read: the schema is verified first, memory is limited (see
// BudgetReader), and enumerations and IsSound() of structs are checked.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "common/base/fields.h"
#include "common/base/ids.h"

namespace dt::tables {

template <class T>
struct TableOf {};
#define DT_TABLE(Struct, Table) \
  template <>                   \
  struct TableOf<Struct> {      \
    using type = Table;         \
  }

// Connects a union's tag to the generated traits that know the tag of each alternative.
template <class Tag>
struct UnionOf {};
#define DT_UNION(Tag)                                           \
  template <>                                                   \
  struct UnionOf<Tag> {                                         \
    template <class Table>                                      \
    static constexpr Tag kTag = Tag##Traits<Table>::enum_value; \
  }

// The last enumerator of an enumeration whose first is 0.
template <class Enum>
struct LastOf {};
#define DT_LAST(Enum, last)                    \
  template <>                                  \
  struct LastOf<Enum> {                        \
    static constexpr Enum kValue = Enum::last; \
  }

template <class T>
inline constexpr bool kIsId = false;
template <class Tag, class Rep>
inline constexpr bool kIsId<Id<Tag, Rep>> = true;
template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsMap = false;
template <class K, class V>
inline constexpr bool kIsMap<std::map<K, V>> = true;
template <class T>
inline constexpr bool kIsVariant = false;
template <class... T>
inline constexpr bool kIsVariant<std::variant<T...>> = true;

// The fields that a table sees: a struct's own, the name and value of a map's entry, or one field
// for any other value.
template <class T>
struct Described {
  static constexpr std::string_view kNames = "value";
  static auto Fields(T& value) { return std::tie(value); }
  static auto Fields(const T& value) { return std::tie(value); }
};
template <class T>
  requires requires { T::kFieldNames; }
struct Described<T> {
  static constexpr std::string_view kNames = T::kFieldNames;
  static_assert(FieldCount<T>() == std::tuple_size_v<decltype(std::declval<T&>().fields())>,
                "DT_FIELDS does not list every field");
  static auto Fields(T& value) { return value.fields(); }
  static auto Fields(const T& value) { return value.fields(); }
};
template <class K, class V>
struct Described<std::pair<K, V>> {
  static constexpr std::string_view kNames = "name, value";
  static auto Fields(std::pair<K, V>& entry) { return std::tie(entry.first, entry.second); }
  static auto Fields(const std::pair<K, V>& entry) { return std::tie(entry.first, entry.second); }
};

template <class T>
using FieldsOf = decltype(Described<T>::Fields(std::declval<T&>()));
template <class T, size_t I>
using FieldOf = std::remove_reference_t<std::tuple_element_t<I, FieldsOf<T>>>;
template <class T>
inline constexpr size_t kFields = std::tuple_size_v<FieldsOf<T>>;

// Position of field I of T in its table. A union takes two positions: its tag, then its table.
template <class T, size_t I>
constexpr size_t PositionOf() {
  const auto places = []<size_t... J>(std::index_sequence<J...>) {
    return (I + ... + (kIsVariant<FieldOf<T, J>> ? 1 : 0));
  };
  return places(std::make_index_sequence<I>());
}

// Checks that the struct and its table have the same fields.
template <class T>
struct Schema {
  using Table = typename TableOf<T>::type;
  using Traits = typename Table::Traits;
  template <size_t I>
  static constexpr bool HasName() {
    const size_t place = PositionOf<T, I>() + (kIsVariant<FieldOf<T, I>> ? 1 : 0);
    return Traits::field_names[place] == FieldName(Described<T>::kNames, I);
  }
  template <size_t... I>
  static constexpr bool HasNames(std::index_sequence<I...>) {
    return (true && ... && HasName<I>());
  }
  static_assert(PositionOf<T, kFields<T>>() == Traits::fields_number,
                "the struct and its table differ in the number of fields");
  static_assert(HasNames(std::make_index_sequence<kFields<T>>()),
                "the struct and its table differ in the names or the order of fields");
};

// The type of the getter of field I.
template <class T, size_t I>
using SchemaField = typename TableOf<T>::type::Traits::template FieldType<PositionOf<T, I>()>;

}  // namespace dt::tables
