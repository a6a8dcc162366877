#include "scheduler/parallel/redistribution_cache.h"

#include <fmt/format.h>

#include "common/base/check.h"

namespace dt::scheduler {
namespace {

std::string KeyOf(const Layout& layout) {
  std::string key = fmt::format("({})", fmt::join(layout.matrix, ","));
  for (const CutDim& dim : layout.dims) {
    key += '|';
    for (const CutFactor& f : dim) {
      key += fmt::format("{}:{}:{};", f.size, fmt::join(f.axes, ","), fmt::join(f.parts, ","));
    }
  }
  return key + fmt::format("p{}{}", static_cast<int>(layout.join), fmt::join(layout.partial, ","));
}

}  // namespace

const Redistribution& RedistributionCache::Between(const ShapedLayout& from, const Layout& to,
                                                   bool boxes) {
  const std::string key = fmt::format("{}{}{}{}", KeyOf(from.layout), KeyOf(to),
                                      fmt::join(from.shape, ","), boxes ? "b" : "");
  const auto [at, is_new] = known_.try_emplace(key);
  if (is_new) {
    auto how = Redistribute(from, {to, from.shape}, {.all_to_all = all_to_all_, .boxes = boxes});
    DT_CHECK(how.ok());
    at->second = *std::move(how);
  }
  return at->second;
}

}  // namespace dt::scheduler
