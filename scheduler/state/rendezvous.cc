#include "scheduler/state/rendezvous.h"

namespace dt::scheduler {
namespace {

constexpr uint64_t kBytesMax = 256 << 20;

}  // namespace

Result<std::vector<Rendezvous::Answer>> Rendezvous::Put(KvPutMessage put) {
  if (const auto before = record_.values.find(put.key); before != record_.values.end()) {
    record_.bytes -= before->first.size() + before->second.size();
  }
  record_.bytes += put.key.size() + put.value.size();
  if (record_.bytes > kBytesMax) return Busy("more than {} bytes are left for others", kBytesMax);
  std::vector<Answer> answers;
  if (const auto waiting = record_.waiting.find(put.key); waiting != record_.waiting.end()) {
    for (Incarnation to : waiting->second) answers.push_back({to, {put.key, put.value}});
    record_.waiting.erase(waiting);
  }
  record_.values[std::move(put.key)] = std::move(put.value);
  return answers;
}

std::vector<Rendezvous::Answer> Rendezvous::Get(Incarnation from, const KvGetMessage& get) {
  if (const auto found = record_.values.find(get.key); found != record_.values.end()) {
    return {{from, {found->first, found->second}}};
  }
  record_.waiting[get.key].insert(from);
  return {};
}

}  // namespace dt::scheduler
