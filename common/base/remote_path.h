// Paths of remote file systems, which are URIs and not files of this machine.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace dt {

inline constexpr std::array<std::string_view, 3> kRemoteSchemes = {"s3://", "gs://", "hdfs://"};

constexpr bool IsRemotePath(std::string_view path) {
  return std::ranges::any_of(kRemoteSchemes,
                             [path](std::string_view scheme) { return path.starts_with(scheme); });
}

}  // namespace dt
