#pragma once

namespace dt::cli {
inline constexpr char kVersion[] = "0.1.0";
}  // namespace dt::cli
