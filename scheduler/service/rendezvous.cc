#include "scheduler/service/rendezvous.h"

namespace dt::scheduler {
namespace {

constexpr uint64_t kBytesMax = 256 << 20;

}  // namespace

Result<std::vector<Rendezvous::Answer>> Rendezvous::Put(KvPutMessage put) {
  bytes_ += put.key.size() + put.value.size();
  if (bytes_ > kBytesMax) return Busy("more than {} bytes are left for others", kBytesMax);
  std::vector<Answer> answers;
  if (const auto waiting = waiting_.find(put.key); waiting != waiting_.end()) {
    for (Incarnation to : waiting->second) answers.push_back({to, {put.key, put.value}});
    waiting_.erase(waiting);
  }
  values_[std::move(put.key)] = std::move(put.value);
  return answers;
}

std::vector<Rendezvous::Answer> Rendezvous::Get(Incarnation from, const KvGetMessage& get) {
  if (const auto found = values_.find(get.key); found != values_.end()) {
    return {{from, {found->first, found->second}}};
  }
  waiting_[get.key].insert(from);
  return {};
}

}  // namespace dt::scheduler
