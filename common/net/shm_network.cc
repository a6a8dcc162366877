#include "common/net/shm_network.h"

#include "common/base/log.h"
#include "common/net/shm_arena.h"
#include "common/net/shm_rendezvous.h"
#include "common/net/shm_socket.h"

namespace dt {
namespace {

class ShmNetwork : public Network {
 public:
  ShmNetwork(Network& below, size_t lent_max)
      : below_(below), lent_max_(lent_max), arena_(ShmArena::Open()) {
    if (!arena_.ok()) LogWarn("net.no_shared_memory", {{"problem", MessageOf(arena_)}});
  }

  Result<std::unique_ptr<ServerSocket>> Bind(const std::string& endpoint) override {
    DT_TRY(std::unique_ptr<ServerSocket> socket, below_.Bind(endpoint));
    if (!arena_.ok() || socket->descriptor() < 0) return socket;
    Result<OwnedFd> listener = ListenForShm(socket->endpoint());
    if (!listener.ok()) return socket;
    return MakeShmServerSocket(std::move(socket), *std::move(listener), totals_, lent_max_);
  }

  Result<std::unique_ptr<ClientSocket>> Connect(const std::string& endpoint) override {
    std::vector<std::string> names;
    if (arena_.ok()) names = ShmNamesOf(endpoint);
    if (names.empty()) return below_.Connect(endpoint);
    auto socket = std::make_unique<ShmClientSocket>(endpoint, std::move(names), below_, totals_);
    DT_TRY_STATUS(socket->Open());
    return socket;
  }

  uint64_t bytes_sent() const override {
    return totals_.sent.load(std::memory_order_relaxed) + below_.bytes_sent();
  }
  uint64_t bytes_received() const override {
    return totals_.received.load(std::memory_order_relaxed) + below_.bytes_received();
  }

 private:
  Network& below_;
  const size_t lent_max_;
  const Status arena_;
  ShmTotals totals_;
};

}  // namespace

std::unique_ptr<Network> MakeShmNetwork(Network& below, size_t lent_max) {
  return std::make_unique<ShmNetwork>(below, lent_max);
}

}  // namespace dt
