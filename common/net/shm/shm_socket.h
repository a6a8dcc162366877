// The two sockets of shm_network.h.
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

// Bytes through shared memory. Any thread.
struct ShmTotals {
  std::atomic<uint64_t> sent = 0, received = 0;
};

// What the sockets of one network share. Any thread.
struct ShmShared {
  ShmShared(std::shared_ptr<ShmArena> arena, size_t most)
      : lender(std::move(arena)), lent_max(most) {}

  ShmLender lender;
  const size_t lent_max;  // See MakeShmNetwork.
  ShmTotals totals;
};

// `below` is bound to the endpoint; `listener` listens beside it. `below` has a descriptor.
// `shared` outlives the socket.
std::unique_ptr<ServerSocket> MakeShmServerSocket(std::unique_ptr<ServerSocket> below,
                                                  OwnedFd listener, ShmShared& shared);

// A connection to one of `names`; Unavailable when nobody of our user listens there.
Result<std::unique_ptr<ShmChannel>> OpenShmChannel(const std::vector<std::string>& names,
                                                   ShmLender& lender);

// Uses shared memory whenever one of `names` answers, the network below at other times.
class ShmClientSocket : public ClientSocket {
 public:
  ShmClientSocket(std::string endpoint, std::vector<std::string> names, Network& below,
                  ShmShared& shared);
  // Connects, either way.
  Status Open();

  Status Send(Frames message) override;
  Result<Frames> Receive(Duration timeout) override;

 private:
  Status UseBelow();
  void TryChannel();
  void TakeGreeting();
  void LeaveChannel();
  Result<std::optional<Frames>> Poll();
  // For a message through the channel. REQUIRES: there is a channel.
  void Wait(TimePoint deadline);

  const std::string endpoint_;
  const std::vector<std::string> names_;
  Network& below_network_;
  ShmShared& shared_;
  std::unique_ptr<ShmChannel> channel_;
  std::unique_ptr<ClientSocket> below_;  // While there is no channel, and for some time after.
  bool greeted_ = false;                 // The channel, by the server.
  TimePoint greet_until_{};              // Else it is left.
  std::vector<Frames> unheard_;          // Sent through it before; sent below if it is refused.
  TimePoint next_try_{};                 // Of a channel.
  TimePoint below_until_{};              // With a channel: answers may still come from below.
  std::deque<Frames> last_words_;        // Of a peer that has gone.
  ShmSpin spin_;
};

}  // namespace dt
