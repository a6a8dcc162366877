#include "common/cluster/answer_watch.h"

#include <algorithm>

namespace dt {
namespace {

// So much of `limit` counts between two calls of Pass.
constexpr int kSteps = 8;

}  // namespace

void AnswerWatch::OnAsked(ProcessId process, const std::string& endpoint) {
  waits_.try_emplace(endpoint, Wait{process});
}

void AnswerWatch::KeepOnly(const std::set<std::string>& endpoints) {
  std::erase_if(waits_, [&](const auto& entry) { return !endpoints.contains(entry.first); });
}

void AnswerWatch::Pass(TimePoint now) {
  const Duration since = std::min<Duration>(now - passed_.value_or(now), limit_ / kSteps);
  passed_ = now;
  for (auto& [endpoint, wait] : waits_) wait.waited += since;
}

std::vector<ProcessId> AnswerWatch::Silent() const {
  std::set<ProcessId> silent;
  for (const auto& [endpoint, wait] : waits_) {
    if (wait.waited >= limit_) silent.insert(wait.process);
  }
  return {silent.begin(), silent.end()};
}

}  // namespace dt
