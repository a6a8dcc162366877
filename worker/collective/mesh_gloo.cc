// The mesh over Gloo's TCP transport: only its tagged point-to-point messages are used.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <functional>
#include <optional>
#include <thread>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <netdb.h>

#include "common/base/broken_pipe.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/pause.h"
#include "worker/collective/farewells_gloo.h"
#include "worker/collective/mesh.h"

namespace dt::worker {
namespace {

constexpr Duration kConnectTimeout = seconds(5);  // Gloo cannot be interrupted meanwhile.
// Gloo waits so many times a context's timeout for a connection (transport/tcp/pair.cc, waitUntil).
constexpr int kTimeoutsToConnect = 5;
// Gloo takes any process that connects, such as a port scanner, for a rank; then all ranks try
// again.
constexpr int kAttempts = 5;
constexpr uint32_t kNobody = ~uint32_t{0};

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

std::chrono::milliseconds InMs(Duration d) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(d);
}

// Gloo's rendezvous by means of ours. A failure is thrown, and ConnectOnce turns it into a Status.
class PrefixedStore : public gloo::rendezvous::Store {
 public:
  PrefixedStore(Rendezvous& rendezvous, const MeshOptions& options)
      : rendezvous_(rendezvous), options_(options) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    Keep(rendezvous_.Put(NameOf(key), std::string(data.begin(), data.end())));
  }
  std::vector<char> get(const std::string& key) override {
    Result<std::string> value = rendezvous_.Get(NameOf(key), options_.limits.timeout);
    Keep(value.status());
    return {value->begin(), value->end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }

  const Status& status() const { return status_; }

 private:
  std::string NameOf(const std::string& key) const { return options_.prefix + "/" + key; }
  void Keep(const Status& status) {
    if (status.ok()) return;
    status_ = status;
    throw std::runtime_error(std::string(MessageOf(status)));
  }

  Rendezvous& rendezvous_;
  const MeshOptions& options_;
  Status status_;
};

// The buffers of a call. Ends waits in Gloo when the job ends: Gloo can abort a wait, but cannot
// wait in short pieces.
class Watch {
 public:
  explicit Watch(std::function<Status()> interrupted)
      : interrupted_(std::move(interrupted)),
        thread_([this](std::stop_token stop) { Run(stop); }) {}

  // Adds a buffer, and starts its message. A null buffer stands for an empty message. Not OK if
  // the job has ended.
  Status AddSend(Buffer buffer, const std::function<void(Buffer&)>& start) {
    return Add(sends_, std::move(buffer), start);
  }
  Status AddReceive(Buffer buffer, const std::function<void(Buffer&)>& start) {
    return Add(receives_, std::move(buffer), start);
  }
  // The vectors are changed only by the thread that makes the call, which may therefore read them.
  const std::vector<Buffer>& sends() const { return sends_; }
  const std::vector<Buffer>& receives() const { return receives_; }
  // Forgets the buffers; the reason if the watch ended a wait.
  Status End() {
    MutexLock lock(mutex_);
    sends_.clear();
    receives_.clear();
    return reason_;
  }

 private:
  Status Add(std::vector<Buffer>& to, Buffer buffer, const std::function<void(Buffer&)>& start) {
    MutexLock lock(mutex_);
    if (!reason_.ok()) return reason_;
    to.push_back(std::move(buffer));
    if (to.back() != nullptr) start(to.back());
    return OkStatus();
  }

  void Run(const std::stop_token& stop) {
    bool goes_on = true;
    while (goes_on && Pause(milliseconds(100), stop)) goes_on = Look();
  }
  // False once the job has ended.
  bool Look() {
    MutexLock lock(mutex_);
    if (sends_.empty() && receives_.empty()) return true;
    reason_ = interrupted_();
    if (reason_.ok()) return true;
    for (const Buffer& buffer : sends_) {
      if (buffer != nullptr) buffer->abortWaitSend();
    }
    for (const Buffer& buffer : receives_) {
      if (buffer != nullptr) buffer->abortWaitRecv();
    }
    return false;
  }

  const std::function<Status()> interrupted_;
  Mutex mutex_;
  Status reason_ DT_GUARDED_BY(mutex_);
  std::vector<Buffer> sends_, receives_;
  std::jthread thread_;  // Declared last: starts when the rest exists.
};

class GlooMesh : public Mesh {
 public:
  GlooMesh(const MeshOptions& options, std::shared_ptr<gloo::rendezvous::Context> context)
      : options_(options), context_(std::move(context)), watch_([this] { return Interrupted(); }) {}

  uint32_t rank() const override { return options_.rank; }
  uint32_t size() const override { return options_.size; }

  Status Begin(const MessageTag& tag, std::string_view operation) override {
    if (!broken_.ok()) return broken_;
    // Not earlier: until all ranks agree that they have connected, a peer may be a stranger.
    if (!farewells_) farewells_.emplace(options_.rank, options_.size, *context_);
    operation_ = operation;
    sent_.Begin(tag, options_.size);
    received_.Begin(tag, options_.size);
    senders_.clear();
    arrived_.clear();
    receivers_.clear();
    deadline_ = SystemClock().Now() + options_.limits.timeout;
    return OkStatus();
  }

  Status Post(std::span<const Outgoing> send, std::span<const Incoming> receive) override {
    if (!broken_.ok()) return broken_;
    for (const Incoming& in : receive) {
      senders_.push_back(in.rank);
      arrived_.push_back(false);
      DT_TRY_STATUS(Attempt(in.rank, [&] { return PostReceive(in); }));
    }
    for (const Outgoing& out : send) {
      if (out.bytes.empty()) continue;
      receivers_.push_back(out.rank);
      DT_TRY_STATUS(Attempt(out.rank, [&] { return PostSend(out); }));
    }
    return OkStatus();
  }

  Status WaitFor(size_t received) override {
    if (!broken_.ok()) return broken_;
    if (arrived_[received]) return OkStatus();
    arrived_[received] = true;
    return Attempt(senders_[received], [&] {
      const Buffer& buffer = watch_.receives()[received];
      const bool arrived = buffer == nullptr || buffer->waitRecv(TimeLeft());
      return arrived ? OkStatus() : Cancelled("interrupted");
    });
  }

  Status End() override {
    for (size_t i = 0; i < senders_.size(); ++i) DT_TRY_STATUS(WaitFor(i));
    for (size_t i = 0; i < receivers_.size(); ++i) {
      DT_TRY_STATUS(Attempt(receivers_[i], [&] {
        return watch_.sends()[i]->waitSend(TimeLeft()) ? OkStatus() : Cancelled("interrupted");
      }));
    }
    const Status interrupted = watch_.End();
    if (!interrupted.ok()) broken_ = interrupted;
    return broken_;
  }

 private:
  // Called again and again by another thread while a call is under way.
  Status Interrupted() const {
    DT_TRY_STATUS(CheckCancelled());
    const uint32_t awaited = awaited_;
    if (options_.limits.awaits && awaited != kNobody) {
      options_.limits.awaits(awaited, awaited_since_.load());
    }
    return options_.limits.interrupted ? options_.limits.interrupted() : OkStatus();
  }

  // Runs what may fail because of this peer. After an error the mesh is broken, and nothing that
  // arrives is written to memory that the caller gives up.
  template <class Body>
  Status Attempt(uint32_t peer, const Body& body) {
    Status done;
    awaited_since_ = SystemClock().Now();
    awaited_ = peer;
    try {
      done = body();
    } catch (const std::exception& e) {
      const uint32_t lost = farewells_->LostBehind(peer);
      done = lost == peer ? Unavailable("rank {} of {} lost rank {}: {}", options_.rank,
                                        options_.size, peer, e.what())
                          : Unavailable("rank {} of {} lost rank {}, as rank {} says",
                                        options_.rank, options_.size, lost, peer);
      farewells_->Send(lost);
      if (options_.limits.awaits) options_.limits.awaits(lost, SystemClock().Now());
    }
    awaited_ = kNobody;
    if (done.ok()) return done;
    const Status interrupted = watch_.End();
    broken_ = interrupted.ok() ? Prefixed(done, operation_) : interrupted;
    return broken_;
  }

  std::chrono::milliseconds TimeLeft() const {
    return std::max(milliseconds(1), InMs(deadline_ - SystemClock().Now()));
  }

  Status PostReceive(const Incoming& in) {
    if (in.bytes.empty()) return watch_.AddReceive(nullptr, {});
    const uint64_t slot = received_.NextSlot(in.rank, in.channel);
    return watch_.AddReceive(
        context_->createUnboundBuffer(in.bytes.data(), in.bytes.size()),
        [&](Buffer& buffer) { buffer->recv(static_cast<int>(in.rank), slot); });
  }

  Status PostSend(const Outgoing& out) {
    const uint64_t slot = sent_.NextSlot(out.rank, out.channel);
    // Gloo only reads what it sends, but asks for a mutable pointer.
    auto* const bytes = const_cast<std::byte*>(out.bytes.data());
    return watch_.AddSend(context_->createUnboundBuffer(bytes, out.bytes.size()),
                          [&](Buffer& buffer) { buffer->send(static_cast<int>(out.rank), slot); });
  }

  const MeshOptions options_;
  const std::shared_ptr<gloo::rendezvous::Context> context_;
  std::optional<Farewells> farewells_;  // From the first call on.
  Status broken_;
  // For those who ask what holds the call up.
  std::atomic<TimePoint> awaited_since_{};
  std::atomic<uint32_t> awaited_ = kNobody;
  // The call under way.
  std::string operation_;
  TimePoint deadline_;
  MessageCounts sent_, received_;
  std::vector<uint32_t> senders_, receivers_;  // The peers of messages, as posted.
  std::vector<bool> arrived_;                  // By message awaited: waited for already.
  Watch watch_;                                // Declared last: its thread looks at the buffers.
};

// Gloo would use the result of a failed look-up of the host's address, so it is looked up here
// first.
Status CheckHost(const std::string& host) {
  for (const char* all : {"0.0.0.0", "::", "[::]", "*"}) {
    if (host != all) continue;
    return WithHint(Invalid("\"{}\" is no address that other workers could reach, and would let "
                            "every network connect",
                            host),
                    "give --listen tcp://ADDRESS:0 with this machine's address");
  }
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  if (error != 0) {
    return WithHint(Invalid("the host \"{}\" has no address: {}", host, gai_strerror(error)),
                    "give --listen tcp://ADDRESS:0 with this machine's address as a number");
  }
  freeaddrinfo(found);
  return OkStatus();
}

// Swaps the two bytes of ports: Gloo names a peer by an address that has them the wrong way round.
std::string WithTruePorts(const std::string& text) {
  std::string fixed;
  for (size_t at = 0; at < text.size();) {
    fixed += text[at++];
    uint32_t port = 0;
    const char* const end = text.data() + text.size();
    if (!fixed.ends_with("]:")) continue;
    const auto [stop, error] = std::from_chars(text.data() + at, end, port);
    if (error != std::errc() || port > 0xffff) continue;
    fixed += std::to_string((port & 0xff) << 8 | port >> 8);
    at = static_cast<size_t>(stop - text.data());
  }
  return fixed;
}

// Sets `store_status` if the rendezvous itself failed; then it is useless to try again.
Result<std::unique_ptr<Mesh>> ConnectOnce(Rendezvous& rendezvous, const MeshOptions& options,
                                          Status& store_status) {
  PrefixedStore store(rendezvous, options);
  try {
    gloo::transport::tcp::attr attr;
    attr.hostname = options.host;
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attr);
    auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(options.rank),
                                                               static_cast<int>(options.size));
    // Applies to peers that have published their address; the store waits for the others.
    context->setTimeout(InMs(kConnectTimeout / kTimeoutsToConnect));
    context->connectFullMesh(store, device);
    return std::make_unique<GlooMesh>(options, std::move(context));
  } catch (const std::exception& e) {
    store_status = store.status();
    const std::string doing =
        fmt::format("connecting rank {} of {} from {}", options.rank, options.size, options.host);
    if (!store.status().ok()) return Prefixed(store.status(), doing);
    return WithHint(Unavailable("{}: {}", doing, WithTruePorts(e.what())),
                    "check that the workers reach each other at the addresses of --listen");
  }
}

// OK if every rank has connected. The ranks exchange their results, so all decide the same.
Status Agree(Rendezvous& rendezvous, const MeshOptions& options, const Status& own) {
  const auto key = [&](uint32_t rank) {
    return fmt::format("{}/connected/{}", options.prefix, rank);
  };
  DT_TRY_STATUS(rendezvous.Put(key(options.rank), own.ok() ? "" : ToText(own)));
  Status all = own;
  for (uint32_t rank = 0; rank < options.size; ++rank) {
    DT_TRY(const std::string problem, rendezvous.Get(key(rank), options.limits.timeout));
    if (all.ok() && !problem.empty()) all = Unavailable("{}", problem);
  }
  return all;
}

}  // namespace

Result<std::unique_ptr<Mesh>> ConnectGlooMesh(Rendezvous& rendezvous, const MeshOptions& options) {
  DT_TRY_STATUS(CheckHost(options.host));
  IgnoreBrokenPipes();  // Gloo reports such a write, but does not suppress the signal.
  for (int attempt = 1;; ++attempt) {
    MeshOptions once = options;
    once.prefix += fmt::format("/{}", attempt);
    Status store_status;
    Result<std::unique_ptr<Mesh>> mesh = ConnectOnce(rendezvous, once, store_status);
    if (!store_status.ok()) return mesh;
    const Status all = Agree(rendezvous, once, mesh.status());
    if (all.ok()) return mesh;
    if (attempt == kAttempts) return all;
    LogWarn("worker.connects_again", {{"attempt", attempt}, {"why", ToText(all)}});
  }
}

}  // namespace dt::worker
