#include "common/net/memory_network.h"

#include <atomic>
#include <deque>
#include <map>

#include "common/base/mutex.h"

namespace dt {
namespace {

constexpr size_t kInboxMessagesMax = 10'000;

// A queue of messages to one socket. Any thread: sender and receiver are on different ones.
template <class Message>
class Mailbox {
 public:
  bool TryPut(Message message) {
    MutexLock lock(mutex_);
    if (messages_.size() >= kInboxMessagesMax) return false;
    messages_.push_back(std::move(message));
    changed_.NotifyOne();
    return true;
  }
  Result<Message> Take(Duration timeout) {
    const TimePoint deadline = SystemClock().Now() + timeout;
    MutexLock lock(mutex_);
    while (!woken_ && messages_.empty() && changed_.WaitUntil(lock, deadline)) {
    }
    if (woken_) {
      woken_ = false;
      return Cancelled("woken");
    }
    if (messages_.empty()) return Timeout("no message within {} ms", timeout / milliseconds(1));
    Message message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  void Wake() {
    MutexLock lock(mutex_);
    woken_ = true;
    changed_.NotifyOne();
  }
  void Clear() {
    MutexLock lock(mutex_);
    messages_.clear();
  }

 private:
  Mutex mutex_;
  Condition changed_;
  std::deque<Message> messages_ DT_GUARDED_BY(mutex_);
  bool woken_ DT_GUARDED_BY(mutex_) = false;
};

using ClientBox = Mailbox<Frames>;

// A name that servers bind and clients connect to. Any thread.
struct Address {
  Mailbox<PeerMessage> inbox;
  Mutex mutex;
  bool bound DT_GUARDED_BY(mutex) = false;
  std::map<PeerId, std::weak_ptr<ClientBox>> clients DT_GUARDED_BY(mutex);
};

struct MemoryTotals {
  std::atomic<uint64_t> sent = 0, received = 0;
};

class MemoryClientSocket : public ClientSocket {
 public:
  MemoryClientSocket(std::shared_ptr<Address> address, PeerId self,
                     std::shared_ptr<MemoryTotals> totals)
      : address_(std::move(address)), self_(std::move(self)), totals_(std::move(totals)) {
    MutexLock lock(address_->mutex);
    address_->clients[self_] = inbox_;
  }
  ~MemoryClientSocket() override {
    MutexLock lock(address_->mutex);
    address_->clients.erase(self_);
  }

  Status Send(Frames message) override {
    const uint64_t bytes = BytesIn(message);
    if (!address_->inbox.TryPut({self_, std::move(message)})) {
      return Busy("{} messages wait to be sent to the peer", kInboxMessagesMax);
    }
    totals_->sent += bytes;
    return OkStatus();
  }
  Result<Frames> Receive(Duration timeout) override {
    DT_TRY(Frames frames, inbox_->Take(timeout));
    totals_->received += BytesIn(frames);
    return frames;
  }

 private:
  const std::shared_ptr<Address> address_;
  const PeerId self_;
  const std::shared_ptr<MemoryTotals> totals_;
  const std::shared_ptr<ClientBox> inbox_ = std::make_shared<ClientBox>();
};

class MemoryServerSocket : public ServerSocket {
 public:
  MemoryServerSocket(std::shared_ptr<Address> address, std::string endpoint,
                     std::shared_ptr<MemoryTotals> totals)
      : address_(std::move(address)), endpoint_(std::move(endpoint)), totals_(std::move(totals)) {}
  ~MemoryServerSocket() override {
    MutexLock lock(address_->mutex);
    address_->bound = false;
    address_->inbox.Clear();
  }

  Status Send(const PeerId& peer, Frames message) override {
    std::shared_ptr<ClientBox> box;
    {
      MutexLock lock(address_->mutex);
      const auto it = address_->clients.find(peer);
      if (it != address_->clients.end()) box = it->second.lock();
    }
    const uint64_t bytes = BytesIn(message);
    if (box == nullptr || !box->TryPut(std::move(message))) return OkStatus();
    sent_ += bytes;
    totals_->sent += bytes;
    return OkStatus();
  }
  Result<PeerMessage> Receive(Duration timeout) override {
    DT_TRY(PeerMessage message, address_->inbox.Take(timeout));
    received_ += BytesIn(message.frames);
    totals_->received += BytesIn(message.frames);
    return message;
  }
  const std::string& endpoint() const override { return endpoint_; }
  void Wake() override { address_->inbox.Wake(); }
  int descriptor() const override { return -1; }
  uint64_t bytes_sent() const override { return sent_; }
  uint64_t bytes_received() const override { return received_; }

 private:
  const std::shared_ptr<Address> address_;
  const std::string endpoint_;
  const std::shared_ptr<MemoryTotals> totals_;
  std::atomic<uint64_t> sent_ = 0, received_ = 0;
};

class MemoryNetwork : public Network {
 public:
  Result<std::unique_ptr<ServerSocket>> Bind(const std::string& endpoint) override {
    MutexLock lock(mutex_);
    std::string name = endpoint;
    if (name.ends_with(":0")) name.replace(name.size() - 1, 1, std::to_string(++last_number_));
    std::shared_ptr<Address> address = AddressOf(name);
    MutexLock address_lock(address->mutex);
    if (address->bound) {
      return WithHint(Unavailable("cannot listen on {}: the address is in use", endpoint),
                      "choose another port (0 takes any free one)");
    }
    address->bound = true;
    return std::make_unique<MemoryServerSocket>(address, name, totals_);
  }
  Result<std::unique_ptr<ClientSocket>> Connect(const std::string& endpoint) override {
    MutexLock lock(mutex_);
    PeerId self = "client " + std::to_string(++last_number_);
    return std::make_unique<MemoryClientSocket>(AddressOf(endpoint), std::move(self), totals_);
  }
  uint64_t bytes_sent() const override { return totals_->sent; }
  uint64_t bytes_received() const override { return totals_->received; }

 private:
  std::shared_ptr<Address> AddressOf(const std::string& name) DT_REQUIRES(mutex_) {
    std::shared_ptr<Address>& address = addresses_[name];
    if (address == nullptr) address = std::make_shared<Address>();
    return address;
  }

  const std::shared_ptr<MemoryTotals> totals_ = std::make_shared<MemoryTotals>();
  Mutex mutex_;  // Bind and Connect are called by many threads.
  std::map<std::string, std::shared_ptr<Address>> addresses_ DT_GUARDED_BY(mutex_);
  uint64_t last_number_ DT_GUARDED_BY(mutex_) = 20'000;
};

}  // namespace

std::unique_ptr<Network> MakeMemoryNetwork() { return std::make_unique<MemoryNetwork>(); }

}  // namespace dt
