// Redistributions that have been asked for before: large graphs repeat the same few.
#pragma once

#include <map>
#include <string>

#include "common/layout/redistribute.h"

namespace dt::scheduler {

class RedistributionCache {
 public:
  explicit RedistributionCache(bool all_to_all) : all_to_all_(all_to_all) {}

  // The result stays valid. REQUIRES: `to` is partial only where `from` is.
  const Redistribution& Between(const ShapedLayout& from, const Layout& to, bool boxes);

 private:
  const bool all_to_all_;
  std::map<std::string, Redistribution> known_;
};

}  // namespace dt::scheduler
