#include <atomic>
#include <deque>
#include <map>
#include <tuple>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "worker/collective/mesh.h"

namespace dt::worker {
namespace {

// Messages under way. It has a mutex because the ranks share it.
struct Hub {
  explicit Hub(uint32_t ranks_in) : ranks(ranks_in) {}

  using Channel = std::tuple<uint32_t, uint32_t, uint64_t>;  // From, to, slot.
  const uint32_t ranks;
  Mutex mutex;
  Condition arrived;
  std::map<Channel, std::deque<std::vector<std::byte>>> messages DT_GUARDED_BY(mutex);
};

class MemoryMesh : public Mesh {
 public:
  MemoryMesh(std::shared_ptr<Hub> hub, uint32_t rank, const MeshLimits& limits)
      : hub_(std::move(hub)), rank_(rank), limits_(limits) {}

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return hub_->ranks; }

  Status Begin(const MessageTag& tag, std::string_view operation) override {
    operation_ = operation;
    awaited_.clear();
    sent_.Begin(tag, size());
    received_.Begin(tag, size());
    deadline_ = SystemClock().Now() + limits_.timeout;
    return OkStatus();
  }

  Status Post(std::span<const Outgoing> send, std::span<const Incoming> receive) override {
    {
      MutexLock lock(hub_->mutex);
      for (const Outgoing& out : send) {
        if (out.bytes.empty()) continue;
        const uint64_t slot = sent_.NextSlot(out.rank, out.channel);
        hub_->messages[{rank_, out.rank, slot}].emplace_back(out.bytes.begin(), out.bytes.end());
      }
    }
    hub_->arrived.NotifyAll();
    for (const Incoming& in : receive) {
      const uint64_t slot = in.bytes.empty() ? 0 : received_.NextSlot(in.rank, in.channel);
      awaited_.push_back({in, slot});
    }
    return OkStatus();
  }

  Status WaitFor(size_t received) override {
    Awaited& message = awaited_[received];
    if (message.in.bytes.empty()) return OkStatus();
    DT_TRY_STATUS(Receive(message));
    message.in.bytes = {};
    return OkStatus();
  }

  Status End() override {
    for (size_t i = 0; i < awaited_.size(); ++i) DT_TRY_STATUS(WaitFor(i));
    return OkStatus();
  }

 private:
  struct Awaited {
    Incoming in;  // Without bytes once it has arrived.
    uint64_t slot = 0;
  };

  Status Receive(const Awaited& message) {
    const Incoming& in = message.in;
    const TimePoint since = SystemClock().Now();
    MutexLock lock(hub_->mutex);
    auto& queue = hub_->messages[{in.rank, rank_, message.slot}];
    while (queue.empty()) {
      hub_->arrived.WaitUntil(lock, SystemClock().Now() + milliseconds(50));
      if (!queue.empty()) break;
      DT_TRY_STATUS(CheckCancelled());
      if (limits_.awaits) limits_.awaits(in.rank, since);
      if (limits_.interrupted) DT_TRY_STATUS(limits_.interrupted());
      if (SystemClock().Now() >= deadline_) {
        return Timeout("{}: rank {} of {} heard nothing from rank {} in {:.0f} s", operation_,
                       rank_, hub_->ranks, in.rank,
                       std::chrono::duration<double>(limits_.timeout).count());
      }
    }
    const std::vector<std::byte> bytes = std::move(queue.front());
    queue.pop_front();
    if (queue.empty()) hub_->messages.erase({in.rank, rank_, message.slot});
    if (bytes.size() != in.bytes.size()) {
      return Internal("{}: rank {} of {} got {} bytes from rank {}, not {}", operation_, rank_,
                      hub_->ranks, bytes.size(), in.rank, in.bytes.size());
    }
    std::copy(bytes.begin(), bytes.end(), in.bytes.begin());
    return OkStatus();
  }

  const std::shared_ptr<Hub> hub_;
  const uint32_t rank_;
  const MeshLimits limits_;
  // The call under way.
  std::string operation_;
  TimePoint deadline_;
  std::vector<Awaited> awaited_;
  MessageCounts sent_, received_;
};

}  // namespace

MeshLimits WithCancel(const Mesh& mesh, MeshLimits limits) {
  limits.interrupted = [&mesh, other = std::move(limits.interrupted)]() -> Status {
    DT_TRY_STATUS(mesh.CheckCancelled());
    return other ? other() : OkStatus();
  };
  return limits;
}

std::vector<std::unique_ptr<Mesh>> MakeMemoryMesh(uint32_t ranks, const MeshLimits& limits) {
  const auto hub = std::make_shared<Hub>(ranks);
  std::vector<std::unique_ptr<Mesh>> meshes;
  for (uint32_t r = 0; r < ranks; ++r) {
    meshes.push_back(std::make_unique<MemoryMesh>(hub, r, limits));
  }
  return meshes;
}

}  // namespace dt::worker
