#include <deque>

#include "common/base/mutex.h"
#include "worker/collective/mesh.h"

namespace dt::worker {
namespace {

// Messages under way, in order for each (from, to). It has a mutex because the ranks share it.
struct Hub {
  explicit Hub(uint32_t ranks_in) : ranks(ranks_in), queues(ranks_in * ranks_in) {}
  std::deque<std::vector<std::byte>>& QueueOf(uint32_t from, uint32_t to) DT_REQUIRES(mutex) {
    return queues[from * ranks + to];
  }
  const uint32_t ranks;
  Mutex mutex;
  Condition arrived;
  std::vector<std::deque<std::vector<std::byte>>> queues DT_GUARDED_BY(mutex);
};

class MemoryMesh : public Mesh {
 public:
  MemoryMesh(std::shared_ptr<Hub> hub, uint32_t rank, const MeshLimits& limits)
      : hub_(std::move(hub)), rank_(rank), limits_(limits) {}

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return hub_->ranks; }

  Status Exchange(std::string_view operation, std::span<const Outgoing> send,
                  std::span<const Incoming> receive) override {
    {
      MutexLock lock(hub_->mutex);
      for (const Outgoing& out : send) {
        if (out.bytes.empty()) continue;
        hub_->QueueOf(rank_, out.rank).emplace_back(out.bytes.begin(), out.bytes.end());
      }
    }
    hub_->arrived.NotifyAll();
    const TimePoint deadline = SystemClock().Now() + limits_.timeout;
    for (const Incoming& in : receive) {
      if (!in.bytes.empty()) DT_TRY_STATUS(ReceiveOne(operation, in, deadline));
    }
    return OkStatus();
  }

 private:
  Status ReceiveOne(std::string_view operation, const Incoming& in, TimePoint deadline) {
    MutexLock lock(hub_->mutex);
    auto& queue = hub_->QueueOf(in.rank, rank_);
    while (queue.empty()) {
      hub_->arrived.WaitUntil(lock, SystemClock().Now() + milliseconds(50));
      if (!queue.empty()) break;
      if (limits_.interrupted) DT_TRY_STATUS(limits_.interrupted());
      if (SystemClock().Now() >= deadline) {
        return Timeout("{}: rank {} of {} heard nothing from rank {} in {:.0f} s", operation, rank_,
                       hub_->ranks, in.rank,
                       std::chrono::duration<double>(limits_.timeout).count());
      }
    }
    const std::vector<std::byte> bytes = std::move(queue.front());
    queue.pop_front();
    if (bytes.size() != in.bytes.size()) {
      return Internal("{}: rank {} of {} got {} bytes from rank {}, not {}", operation, rank_,
                      hub_->ranks, bytes.size(), in.rank, in.bytes.size());
    }
    std::copy(bytes.begin(), bytes.end(), in.bytes.begin());
    return OkStatus();
  }

  const std::shared_ptr<Hub> hub_;
  const uint32_t rank_;
  const MeshLimits limits_;
};

}  // namespace

std::vector<std::unique_ptr<Mesh>> MakeMemoryMesh(uint32_t ranks, const MeshLimits& limits) {
  const auto hub = std::make_shared<Hub>(ranks);
  std::vector<std::unique_ptr<Mesh>> meshes;
  for (uint32_t r = 0; r < ranks; ++r) {
    meshes.push_back(std::make_unique<MemoryMesh>(hub, r, limits));
  }
  return meshes;
}

}  // namespace dt::worker
