// The initial values of a row or a dense parameter.
#pragma once

#include <string_view>

#include "common/base/fields.h"

namespace dt {

enum class InitKind { kZeros, kConstant, kNormal, kUniform, kXavierNormal, kXavierUniform };
inline constexpr std::string_view kInitNames =
    "zeros|constant|normal|uniform|xavier_normal|xavier_uniform";
std::string_view NameOf(InitKind kind);

struct InitSpec {
  InitKind kind = InitKind::kNormal;
  // The constant, the standard deviation, or half the width of the interval. The Xavier kinds do
  // not use it: the shape gives their range.
  float value = 1.0e-4f;
  DT_FIELDS(kind, value)
  friend bool operator==(const InitSpec&, const InitSpec&) = default;
};

}  // namespace dt
