#include <algorithm>

#include "scheduler/composites/composite.h"

namespace dt::scheduler {

std::vector<const Composite*> AllComposites() {
  std::vector<const Composite*> all;
  for (const std::span<const Composite> part :
       {ActivationComposites(), DenseComposites(), LookupComposites(), AttentionComposites(),
        CinComposites(), SequenceComposites(), MmoeComposites(), MoeComposites()}) {
    for (const Composite& composite : part) all.push_back(&composite);
  }
  return all;
}

const Composite* FindComposite(std::string_view name) {
  static const std::vector<const Composite*> all = AllComposites();
  const auto found = std::ranges::find(all, name, &Composite::name);
  return found == all.end() ? nullptr : *found;
}

}  // namespace dt::scheduler
