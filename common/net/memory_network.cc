#include "common/net/memory_network.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

namespace dt {
namespace {

constexpr size_t kQueueMessagesMax = 10'000;

// Messages on their way to one socket. Any thread: the two ends are on different ones.
template <class Message>
class Mailbox {
 public:
  bool TryPut(Message message) {
    std::lock_guard lock(mutex_);
    if (messages_.size() >= kQueueMessagesMax) return false;
    messages_.push_back(std::move(message));
    changed_.notify_one();
    return true;
  }
  Result<Message> Take(Duration patience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] { return woken_ || !messages_.empty(); });
    if (woken_) {
      woken_ = false;
      return Cancelled("woken");
    }
    if (messages_.empty()) return Timeout("no message within {} ms", patience / milliseconds(1));
    Message message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  void Wake() {
    std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }
  void Clear() {
    std::lock_guard lock(mutex_);
    messages_.clear();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> messages_;
  bool woken_ = false;
};

using ClientBox = Mailbox<Frames>;

// A name that servers bind and clients connect to. Any thread.
struct Place {
  Mailbox<PeerMessage> inbox;
  std::mutex mutex;
  bool bound = false;                                  // Guarded by mutex.
  std::map<PeerId, std::weak_ptr<ClientBox>> clients;  // Guarded by mutex.
};

struct Totals {
  std::atomic<uint64_t> sent = 0, received = 0;
};

uint64_t BytesIn(const Frames& message) {
  uint64_t bytes = 0;
  for (const Frame& frame : message) bytes += frame.size();
  return bytes;
}

class MemoryClientSocket : public ClientSocket {
 public:
  MemoryClientSocket(std::shared_ptr<Place> place, PeerId self, std::shared_ptr<Totals> totals)
      : place_(std::move(place)), self_(std::move(self)), totals_(std::move(totals)) {
    std::lock_guard lock(place_->mutex);
    place_->clients[self_] = inbox_;
  }
  ~MemoryClientSocket() override {
    std::lock_guard lock(place_->mutex);
    place_->clients.erase(self_);
  }

  Status Send(Frames message) override {
    const uint64_t bytes = BytesIn(message);
    if (!place_->inbox.TryPut({self_, std::move(message)})) {
      return Busy("{} messages wait to be sent to the peer", kQueueMessagesMax);
    }
    totals_->sent += bytes;
    return OkStatus();
  }
  Result<Frames> Receive(Duration patience) override {
    DT_TRY(Frames frames, inbox_->Take(patience));
    totals_->received += BytesIn(frames);
    return frames;
  }

 private:
  const std::shared_ptr<Place> place_;
  const PeerId self_;
  const std::shared_ptr<Totals> totals_;
  const std::shared_ptr<ClientBox> inbox_ = std::make_shared<ClientBox>();
};

class MemoryServerSocket : public ServerSocket {
 public:
  MemoryServerSocket(std::shared_ptr<Place> place, std::string endpoint,
                     std::shared_ptr<Totals> totals)
      : place_(std::move(place)), endpoint_(std::move(endpoint)), totals_(std::move(totals)) {}
  ~MemoryServerSocket() override {
    std::lock_guard lock(place_->mutex);
    place_->bound = false;
    place_->inbox.Clear();
  }

  Status Send(const PeerId& peer, Frames message) override {
    std::shared_ptr<ClientBox> box;
    {
      std::lock_guard lock(place_->mutex);
      const auto it = place_->clients.find(peer);
      if (it != place_->clients.end()) box = it->second.lock();
    }
    const uint64_t bytes = BytesIn(message);
    if (box == nullptr || !box->TryPut(std::move(message))) return OkStatus();
    sent_ += bytes;
    totals_->sent += bytes;
    return OkStatus();
  }
  Result<PeerMessage> Receive(Duration patience) override {
    DT_TRY(PeerMessage message, place_->inbox.Take(patience));
    received_ += BytesIn(message.frames);
    totals_->received += BytesIn(message.frames);
    return message;
  }
  const std::string& endpoint() const override { return endpoint_; }
  void Wake() override { place_->inbox.Wake(); }
  int descriptor() const override { return -1; }
  uint64_t bytes_sent() const override { return sent_; }
  uint64_t bytes_received() const override { return received_; }

 private:
  const std::shared_ptr<Place> place_;
  const std::string endpoint_;
  const std::shared_ptr<Totals> totals_;
  std::atomic<uint64_t> sent_ = 0, received_ = 0;
};

class MemoryNetwork : public Network {
 public:
  Result<std::unique_ptr<ServerSocket>> Bind(const std::string& endpoint) override {
    std::lock_guard lock(mutex_);
    std::string name = endpoint;
    if (name.ends_with(":0")) name.replace(name.size() - 1, 1, std::to_string(++last_number_));
    std::shared_ptr<Place> place = PlaceOf(name);
    std::lock_guard place_lock(place->mutex);
    if (place->bound) {
      return WithHint(Unavailable("cannot listen on {}: the address is in use", endpoint),
                      "choose another port (0 takes any free one)");
    }
    place->bound = true;
    return std::make_unique<MemoryServerSocket>(place, name, totals_);
  }
  Result<std::unique_ptr<ClientSocket>> Connect(const std::string& endpoint) override {
    std::lock_guard lock(mutex_);
    PeerId self = "client " + std::to_string(++last_number_);
    return std::make_unique<MemoryClientSocket>(PlaceOf(endpoint), std::move(self), totals_);
  }
  uint64_t bytes_sent() const override { return totals_->sent; }
  uint64_t bytes_received() const override { return totals_->received; }

 private:
  std::shared_ptr<Place> PlaceOf(const std::string& name) {
    std::shared_ptr<Place>& place = places_[name];
    if (place == nullptr) place = std::make_shared<Place>();
    return place;
  }

  const std::shared_ptr<Totals> totals_ = std::make_shared<Totals>();
  std::mutex mutex_;  // Bind and Connect are called by many threads.
  std::map<std::string, std::shared_ptr<Place>> places_;  // Guarded by mutex_.
  uint64_t last_number_ = 20'000;                         // Guarded by mutex_.
};

}  // namespace

std::unique_ptr<Network> MakeMemoryNetwork() { return std::make_unique<MemoryNetwork>(); }

}  // namespace dt
