// The fields of a plain struct, listed once for all code that treats every field alike: messages,
// comparisons, prints.
//
//   struct Range {
//     uint64_t begin = 0, end = 0;
//     DT_FIELDS(begin, end)
//   };
//
// gives `fields()`, a tuple of references in the order of the list, and `kFieldNames`, the list as
// text. Code that uses the list checks with FieldCount that no field is missing.
#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>

#define DT_FIELDS(...)                                          \
  static constexpr std::string_view kFieldNames = #__VA_ARGS__; \
  auto fields() { return std::tie(__VA_ARGS__); }               \
  auto fields() const { return std::tie(__VA_ARGS__); }

namespace dt {

// Converts to a value of any type; for counting only.
struct AnyField {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): a brace must convert it.
};

// The number of fields of an aggregate: how many values its braces take.
template <class T, class... Some>
constexpr size_t FieldCount(Some... some) {
  if constexpr (requires { T{some..., AnyField()}; }) {
    return FieldCount<T>(some..., AnyField());
  } else {
    return sizeof...(Some);
  }
}

// Name number `at` in a list such as kFieldNames.
constexpr std::string_view FieldName(std::string_view names, size_t at) {
  for (; at > 0; --at) names.remove_prefix(names.find(", ") + 2);
  return names.substr(0, names.find(", "));
}

}  // namespace dt
