// Converts FlatBuffers tables to structs; see tables.h.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "common/base/clock.h"
#include "common/wire/budget_reader.h"
#include "common/wire/tables.h"

namespace dt::tables {

template <class T>
void Read(BudgetReader& in, const typename TableOf<T>::type& table, T& value);

template <class T, class Vector>
void ReadItems(BudgetReader& in, const Vector* from, std::vector<T>& to) {
  if constexpr (kIsId<T>) {
    for (const auto number : in.Numbers(from)) to.push_back(T(number));
  } else {
    if (from == nullptr || !in.Charge(from->size(), sizeof(T))) return;
    to.resize(from->size());
    for (flatbuffers::uoffset_t i = 0; i < from->size() && in.ok(); ++i) {
      if constexpr (std::is_same_v<T, std::string>) {
        to[i] = in.Text(from->Get(i));
      } else {
        Read(in, *from->Get(i), to[i]);
      }
    }
  }
}

template <class T, class Field>
void ReadField(BudgetReader& in, Field from, T& to) {
  if constexpr (std::is_arithmetic_v<T>) {
    to = from;
  } else if constexpr (std::is_enum_v<T>) {
    to = in.Code(from, LastOf<T>::kValue);
  } else if constexpr (kIsId<T> || std::is_same_v<T, Duration>) {
    to = T(from);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if constexpr (std::is_same_v<Field, const flatbuffers::String*>) {
      to = in.Text(from);
    } else {
      to = in.Bytes(from);
    }
  } else if constexpr (kIsVector<T>) {
    if constexpr (std::is_arithmetic_v<typename T::value_type>) {
      to = in.Numbers(from);
    } else {
      ReadItems(in, from, to);
    }
  } else if constexpr (kIsMap<T>) {
    std::vector<std::pair<typename T::key_type, typename T::mapped_type>> entries;
    ReadItems(in, from, entries);
    for (auto& entry : entries) to.insert(std::move(entry));
    in.Require(to.size() == entries.size());
  } else if (in.Require(from != nullptr)) {
    Read(in, *from, to);
  }
}

template <size_t I, class Tag, class... T>
void ReadAlternative(BudgetReader& in, Tag tag, const void* table, std::variant<T...>& to) {
  if constexpr (I < sizeof...(T)) {
    using Alternative = std::variant_alternative_t<I, std::variant<T...>>;
    using Table = typename TableOf<Alternative>::type;
    if (tag != UnionOf<Tag>::template kTag<Table>)
      return ReadAlternative<I + 1>(in, tag, table, to);
    Read(in, *static_cast<const Table*>(table), to.template emplace<I>());
  } else {
    in.Require(false);
  }
}

template <size_t I, class T>
void ReadFieldOf(BudgetReader& in, const typename TableOf<T>::type& table, T& value) {
  auto& to = std::get<I>(Described<T>::Fields(value));
  constexpr size_t kPosition = PositionOf<T, I>();
  if constexpr (kIsVariant<FieldOf<T, I>>) {
    const void* const alternative = table.template get_field<kPosition + 1>();
    if (!in.Require(alternative != nullptr)) return;
    ReadAlternative<0>(in, table.template get_field<kPosition>(), alternative, to);
  } else {
    ReadField(in, table.template get_field<kPosition>(), to);
  }
}

template <class T>
void Read(BudgetReader& in, const typename TableOf<T>::type& table, T& value) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    (ReadFieldOf<I>(in, table, value), ...);
  }(std::make_index_sequence<kFields<T>>());
  if constexpr (requires { value.IsSound(); }) in.Require(value.IsSound());
}

// Returns false if the bytes do not follow the schema, or contain values that no writer produces.
template <class T>
bool Decode(std::span<const std::byte> bytes, const char* file_identifier, BudgetReader& in,
            T& value) {
  using Table = typename TableOf<T>::type;
  // Messages can start at any address, but FlatBuffers needs aligned bytes.
  std::vector<uint64_t> aligned;
  if (reinterpret_cast<uintptr_t>(bytes.data()) % sizeof(uint64_t) != 0) {
    aligned.resize((bytes.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    std::memcpy(aligned.data(), bytes.data(), bytes.size());
    bytes = {reinterpret_cast<const std::byte*>(aligned.data()), bytes.size()};
  }
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  flatbuffers::Verifier verifier(data, bytes.size());
  if (bytes.size() < 8 || !verifier.VerifyBuffer<Table>(file_identifier)) return false;
  Read(in, *flatbuffers::GetRoot<Table>(data), value);
  return in.ok();
}

}  // namespace dt::tables
