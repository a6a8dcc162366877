#include "worker/engine/op_work.h"

#include <map>
#include <set>

#include "common/base/immortal.h"
#include "common/base/mutex.h"

namespace dt::worker {

WorkKind& WorkOfOp(const std::string& op) {
  struct All {
    Mutex mutex;
    std::set<std::string> names DT_GUARDED_BY(mutex);
    std::map<std::string_view, WorkKind> by_op DT_GUARDED_BY(mutex);
  };
  static Immortal<All> all;
  MutexLock lock((*all).mutex);
  const auto at = (*all).names.insert(op).first;  // The name must exist as long as its work.
  return (*all).by_op.try_emplace(*at, *at).first->second;
}

}  // namespace dt::worker
