#include "common/net/shm/shm_network.h"

#include <optional>

#include "common/base/log.h"
#include "common/net/shm/shm_rendezvous.h"
#include "common/net/shm/shm_socket.h"

namespace dt {
namespace {

class ShmNetwork : public Network {
 public:
  ShmNetwork(Network& below, size_t lent_max) : below_(below) {
    Result<std::shared_ptr<ShmArena>> arena = ShmArena::Create();
    if (!arena.ok()) {
      LogWarn("net.no_shared_memory", {{"problem", MessageOf(arena.status())}});
      return;
    }
    shared_ = std::make_unique<ShmShared>(*std::move(arena), lent_max);
  }

  Result<std::unique_ptr<ServerSocket>> Bind(const std::string& endpoint) override {
    DT_TRY(std::unique_ptr<ServerSocket> socket, below_.Bind(endpoint));
    if (shared_ == nullptr || socket->descriptor() < 0) return socket;
    Result<OwnedFd> listener = ListenForShm(socket->endpoint());
    if (!listener.ok()) return socket;
    return MakeShmServerSocket(std::move(socket), *std::move(listener), *shared_);
  }

  Result<std::unique_ptr<ClientSocket>> Connect(const std::string& endpoint) override {
    std::vector<std::string> names;
    if (shared_ != nullptr) names = ShmNamesOf(endpoint);
    if (names.empty()) return below_.Connect(endpoint);
    auto socket = std::make_unique<ShmClientSocket>(endpoint, std::move(names), below_, *shared_);
    DT_TRY_STATUS(socket->Open());
    return socket;
  }

  uint64_t bytes_sent() const override {
    const uint64_t ours = shared_ ? shared_->totals.sent.load(std::memory_order_relaxed) : 0;
    return ours + below_.bytes_sent();
  }
  uint64_t bytes_received() const override {
    const uint64_t ours = shared_ ? shared_->totals.received.load(std::memory_order_relaxed) : 0;
    return ours + below_.bytes_received();
  }
  FramePool& frames() override { return shared_ ? shared_->lender.frames : below_.frames(); }

 private:
  Network& below_;
  std::unique_ptr<ShmShared> shared_;  // Null: the system offers no shared memory.
};

}  // namespace

std::unique_ptr<Network> MakeShmNetwork(Network& below, size_t lent_max) {
  return std::make_unique<ShmNetwork>(below, lent_max);
}

}  // namespace dt
