// The client and server sockets of shm_network.h.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/net/shm/shm_channel.h"
#include "common/net/shm/shm_spin.h"
#include "common/net/socket.h"

namespace dt {

// Bytes sent and received through shared memory. Any thread.
struct ShmTotals {
  std::atomic<uint64_t> sent = 0, received = 0;
};

// State that the sockets of one network share. Any thread.
struct ShmShared {
  ShmShared(std::shared_ptr<ShmArena> arena, size_t most)
      : lender(std::move(arena)), lent_max(most) {}

  ShmLender lender;
  const size_t lent_max;  // See MakeShmNetwork.
  ShmTotals totals;
};

// `below` is bound to the endpoint and has a descriptor; `listener` listens beside it. `shared`
// outlives the socket.
std::unique_ptr<ServerSocket> MakeShmServerSocket(std::unique_ptr<ServerSocket> below,
                                                  OwnedFd listener, ShmShared& shared);

// Connects to one of `names`. Unavailable: nobody of our user listens there.
Result<std::unique_ptr<ShmChannel>> OpenShmChannel(const std::vector<std::string>& names,
                                                   ShmLender& lender);

// Uses shared memory while one of `names` answers, otherwise the network below.
class ShmClientSocket : public ClientSocket {
 public:
  ShmClientSocket(std::string endpoint, std::vector<std::string> names, Network& below,
                  ShmShared& shared);
  // Connects through shared memory or the network below.
  Status Open();

  Status Send(Frames message) override;
  Result<Frames> Receive(Duration timeout) override;

 private:
  Status UseBelow();
  void TryChannel();
  void TakeGreeting();
  void LeaveChannel();
  Result<std::optional<Frames>> Poll();
  // Waits for a message in the channel. REQUIRES: there is a channel.
  void Wait(TimePoint deadline);

  const std::string endpoint_;
  const std::vector<std::string> names_;
  Network& below_network_;
  ShmShared& shared_;
  std::unique_ptr<ShmChannel> channel_;
  std::unique_ptr<ClientSocket> below_;  // Used without a channel, and for some time after.
  bool greeted_ = false;                 // The server has accepted the channel.
  TimePoint greet_until_{};              // Without a greeting by then, the channel is left.
  // Messages sent through the channel before the greeting; sent below if it is refused.
  std::vector<Frames> unheard_;
  TimePoint next_try_{};           // Earliest time to open a channel.
  TimePoint below_until_{};        // With a channel: replies may still come from below until then.
  std::deque<Frames> last_words_;  // Messages of a channel that was left.
  ShmSpin spin_;
};

}  // namespace dt
