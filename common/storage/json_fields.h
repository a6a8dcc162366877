// Converts between structs and JSON, field by field. A struct lists its fields with DT_FIELDS and
// becomes an object with one member for each. An absent optional is null, a map is an array of
// pairs, and a variant includes the index of its alternative. Enumerations and ids are numbers.
//
// Reading throws the exceptions of nlohmann's JSON if a member is missing or has another type; only
// an optional may be missing, and is then absent: earlier versions did not write every one.
// Numbers of enumerations are not checked, so the JSON must have been written by this program.
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "common/base/fields.h"
#include "common/storage/json_file.h"

namespace dt {

template <class T>
concept HasFields = requires { T::kFieldNames; };
template <class T>
concept IsId = requires(const T id) {
  typename T::rep;
  id.value();
};
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsPair = false;
template <class A, class B>
inline constexpr bool kIsPair<std::pair<A, B>> = true;
template <class T>
inline constexpr bool kIsVariant = false;
template <class... T>
inline constexpr bool kIsVariant<std::variant<T...>> = true;

// Calls `visit` with the name and the value of each field.
template <class T, class Visit>
void ForEachField(T& value, Visit&& visit) {
  using Plain = std::remove_const_t<T>;
  constexpr size_t kCount = std::tuple_size_v<decltype(value.fields())>;
  static_assert(FieldCount<Plain>() == kCount, "DT_FIELDS does not list every field");
  [&]<size_t... I>(std::index_sequence<I...>) {
    (visit(std::string(FieldName(Plain::kFieldNames, I)), std::get<I>(value.fields())), ...);
  }(std::make_index_sequence<kCount>());
}

template <class T>
Json FieldsToJson(const T& value) {
  if constexpr (HasFields<T>) {
    Json object = Json::object();
    ForEachField(value, [&](const std::string& name, const auto& field) {
      object[name] = FieldsToJson(field);
    });
    return object;
  } else if constexpr (IsId<T>) {
    return value.value();
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<std::underlying_type_t<T>>(value);
  } else if constexpr (kIsOptional<T>) {
    return value.has_value() ? FieldsToJson(*value) : Json(nullptr);
  } else if constexpr (kIsPair<T>) {
    return Json::array({FieldsToJson(value.first), FieldsToJson(value.second)});
  } else if constexpr (kIsVariant<T>) {
    Json json = {{"alternative", value.index()}};
    std::visit([&](const auto& held) { json["value"] = FieldsToJson(held); }, value);
    return json;
  } else if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
    return value;
  } else {  // A container.
    Json array = Json::array();
    for (const auto& item : value) array.push_back(FieldsToJson(item));
    return array;
  }
}

template <class T>
void FieldsFromJson(const Json& json, T& value);

template <size_t I, class... T>
void AlternativeFromJson(const Json& json, std::variant<T...>& value) {
  if constexpr (I < sizeof...(T)) {
    if (json.at("alternative").get<size_t>() != I) return AlternativeFromJson<I + 1>(json, value);
    FieldsFromJson(json.at("value"), value.template emplace<I>());
  }
}

template <class T>
void FieldsFromJson(const Json& json, T& value) {
  if constexpr (HasFields<T>) {
    ForEachField(value, [&]<class Field>(const std::string& name, Field& field) {
      if constexpr (kIsOptional<Field>) {
        if (!json.contains(name)) return field.reset();
      }
      FieldsFromJson(json.at(name), field);
    });
  } else if constexpr (IsId<T>) {
    value = T(json.get<typename T::rep>());
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(json.get<std::underlying_type_t<T>>());
  } else if constexpr (kIsOptional<T>) {
    value.reset();
    if (!json.is_null()) FieldsFromJson(json, value.emplace());
  } else if constexpr (kIsPair<T>) {
    FieldsFromJson(json.at(0), value.first);
    FieldsFromJson(json.at(1), value.second);
  } else if constexpr (kIsVariant<T>) {
    AlternativeFromJson<0>(json, value);
  } else if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
    value = json.get<T>();
  } else if constexpr (requires { typename T::mapped_type; }) {
    value.clear();
    for (const Json& item : json.get_ref<const Json::array_t&>()) {
      std::pair<typename T::key_type, typename T::mapped_type> entry;
      FieldsFromJson(item, entry);
      value.insert(std::move(entry));
    }
  } else {
    value.clear();
    for (const Json& item : json.get_ref<const Json::array_t&>()) {
      typename T::value_type entry{};
      FieldsFromJson(item, entry);
      value.insert(value.end(), std::move(entry));
    }
  }
}

}  // namespace dt
