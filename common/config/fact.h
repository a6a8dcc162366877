// How the values of keys are written for fingerprints, from the members that they were read into.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/config/value_text.h"

namespace dt {

// How the value of a key is written; nothing if the key does not apply.
template <class Of>
struct Fact {
  std::string_view section, key;
  std::optional<std::string> (*text)(const Of& of);
};

template <auto kMember>
struct ClassOf;
template <class Class, class T, T Class::*kMember>
struct ClassOf<kMember> {
  using Type = Class;
};

// The text of a member, or of a member of a member.
template <auto kMember, auto... kInner>
std::optional<std::string> Member(const typename ClassOf<kMember>::Type& of) {
  if constexpr (sizeof...(kInner) > 0) {
    return Member<kInner...>(of.*kMember);
  } else {
    return ValueText(of.*kMember);
  }
}

// The text of an optional member; nothing if it is absent.
template <auto kOptional>
std::optional<std::string> IfAny(const typename ClassOf<kOptional>::Type& of) {
  return (of.*kOptional).has_value() ? std::optional(ValueText(*(of.*kOptional))) : std::nullopt;
}
// The text of a member of an optional member; nothing if it is absent.
template <auto kOptional, auto kMember>
std::optional<std::string> MemberIfAny(const auto& of) {
  return (of.*kOptional).has_value() ? Member<kMember>(*(of.*kOptional)) : std::nullopt;
}
// The text of a member that is not as in a new object. It is absent where it changes nothing, as in
// checkpoints of versions without it.
template <auto kMember>
std::optional<std::string> IfSet(const typename ClassOf<kMember>::Type& of) {
  const bool is_set = of.*kMember != typename ClassOf<kMember>::Type().*kMember;
  return is_set ? std::optional(ValueText(of.*kMember)) : std::nullopt;
}

}  // namespace dt
