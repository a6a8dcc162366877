// The mesh over Gloo's TCP transport: only its tagged point-to-point messages are used.
#include <algorithm>
#include <charconv>
#include <csignal>
#include <exception>
#include <thread>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <netdb.h>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/pause.h"
#include "worker/collective/mesh.h"

namespace dt::worker {
namespace {

constexpr Duration kConnectTimeout = seconds(10);  // Gloo cannot be interrupted meanwhile.
// Gloo takes any process that connects, such as a port scanner, for a rank; then all ranks try
// again.
constexpr int kAttempts = 5;

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

std::chrono::milliseconds InMs(Duration d) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(d);
}

// Gloo's rendezvous by means of ours. A failure is thrown, and ConnectOnce turns it into a Status.
class PrefixedStore : public gloo::rendezvous::Store {
 public:
  PrefixedStore(Rendezvous& rendezvous, const GlooOptions& options)
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
  const GlooOptions& options_;
  Status status_;
};

// Ends waits in Gloo when the job ends: Gloo can abort a wait, but cannot wait in short pieces.
class Watch {
 public:
  explicit Watch(std::function<Status()> interrupted)
      : interrupted_(std::move(interrupted)),
        thread_([this](std::stop_token stop) { Run(stop); }) {}

  // Not OK if the job has ended already; then nothing is watched.
  Status Begin(const std::vector<Buffer>* sends, const std::vector<Buffer>* receives) {
    MutexLock lock(mutex_);
    if (!reason_.ok()) return reason_;
    sends_ = sends;
    receives_ = receives;
    return OkStatus();
  }
  // The reason if the watch ended the wait.
  Status End() {
    MutexLock lock(mutex_);
    sends_ = receives_ = nullptr;
    return reason_;
  }

 private:
  void Run(const std::stop_token& stop) {
    bool goes_on = true;
    while (goes_on && Pause(milliseconds(100), stop)) goes_on = Look();
  }
  // False once the job has ended.
  bool Look() {
    MutexLock lock(mutex_);
    if (sends_ == nullptr || !interrupted_) return true;
    reason_ = interrupted_();
    if (reason_.ok()) return true;
    for (const Buffer& buffer : *sends_) buffer->abortWaitSend();
    for (const Buffer& buffer : *receives_) buffer->abortWaitRecv();
    return false;
  }

  const std::function<Status()> interrupted_;
  Mutex mutex_;
  Status reason_ DT_GUARDED_BY(mutex_);
  const std::vector<Buffer>* sends_ DT_GUARDED_BY(mutex_) = nullptr;
  const std::vector<Buffer>* receives_ DT_GUARDED_BY(mutex_) = nullptr;
  std::jthread thread_;  // Declared last: starts when the rest exists.
};

class GlooMesh : public Mesh {
 public:
  GlooMesh(const GlooOptions& options, std::shared_ptr<gloo::rendezvous::Context> context)
      : options_(options), context_(std::move(context)), watch_(options.limits.interrupted) {}

  uint32_t rank() const override { return options_.rank; }
  uint32_t size() const override { return options_.size; }

  Status Exchange(std::string_view operation, std::span<const Outgoing> send,
                  std::span<const Incoming> receive) override {
    if (!broken_.ok()) return broken_;
    uint32_t peer = options_.rank;  // The rank being waited for, to be named in an error.
    Status done = OkStatus();
    sends_.clear();
    receives_.clear();
    try {
      Post(send, receive);
      done = watch_.Begin(&sends_, &receives_);
      if (done.ok()) done = Wait(send, receive, peer);
    } catch (const std::exception& e) {
      done = Unavailable("rank {} of {} lost rank {}: {}", options_.rank, options_.size, peer,
                         e.what());
    }
    const Status interrupted = watch_.End();
    ++sequence_;
    if (done.ok()) return done;
    broken_ = interrupted.ok() ? Prefixed(done, operation) : interrupted;
    // What arrives from now on must not be written to memory that the caller gives up.
    sends_.clear();
    receives_.clear();
    return broken_;
  }

 private:
  // The slot of the n-th message of an exchange between two ranks.
  uint64_t SlotOf(uint32_t n) const { return sequence_ << 20 | n; }

  void Post(std::span<const Outgoing> send, std::span<const Incoming> receive) {
    counts_.assign(options_.size, 0);
    for (const Incoming& in : receive) {
      if (in.bytes.empty()) continue;
      receives_.push_back(context_->createUnboundBuffer(in.bytes.data(), in.bytes.size()));
      receives_.back()->recv(static_cast<int>(in.rank), SlotOf(counts_[in.rank]++));
    }
    counts_.assign(options_.size, 0);
    for (const Outgoing& out : send) {
      if (out.bytes.empty()) continue;
      // Gloo only reads what it sends, but asks for a mutable pointer.
      sends_.push_back(context_->createUnboundBuffer(const_cast<std::byte*>(out.bytes.data()),
                                                     out.bytes.size()));
      sends_.back()->send(static_cast<int>(out.rank), SlotOf(counts_[out.rank]++));
    }
  }

  Status Wait(std::span<const Outgoing> send, std::span<const Incoming> receive, uint32_t& peer) {
    const TimePoint deadline = SystemClock().Now() + options_.limits.timeout;
    const auto left = [&] {
      return std::max(milliseconds(1), InMs(deadline - SystemClock().Now()));
    };
    size_t next = 0;
    for (const Incoming& in : receive) {
      if (in.bytes.empty()) continue;
      peer = in.rank;
      if (!receives_[next++]->waitRecv(left())) return Cancelled("interrupted");
    }
    next = 0;
    for (const Outgoing& out : send) {
      if (out.bytes.empty()) continue;
      peer = out.rank;
      if (!sends_[next++]->waitSend(left())) return Cancelled("interrupted");
    }
    return OkStatus();
  }

  const GlooOptions options_;
  const std::shared_ptr<gloo::rendezvous::Context> context_;
  uint64_t sequence_ = 1;
  Status broken_;
  std::vector<uint32_t> counts_;
  std::vector<Buffer> sends_, receives_;
  Watch watch_;  // Declared last: it looks at the buffers.
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

// Gloo reports a write to a lost peer, but does not keep SIGPIPE from the process.
void KeepFromSigpipe() {
  struct sigaction now {};
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
    std::signal(SIGPIPE, SIG_IGN);
  }
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
Result<std::unique_ptr<Mesh>> ConnectOnce(Rendezvous& rendezvous, const GlooOptions& options,
                                          Status& store_status) {
  PrefixedStore store(rendezvous, options);
  try {
    gloo::transport::tcp::attr attr;
    attr.hostname = options.host;
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attr);
    auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(options.rank),
                                                               static_cast<int>(options.size));
    // Applies to peers that have published their address; the store waits for the others.
    context->setTimeout(InMs(kConnectTimeout));
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
Status Agree(Rendezvous& rendezvous, const GlooOptions& options, const Status& own) {
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

Result<std::unique_ptr<Mesh>> ConnectGlooMesh(Rendezvous& rendezvous, const GlooOptions& options) {
  DT_TRY_STATUS(CheckHost(options.host));
  KeepFromSigpipe();
  for (int attempt = 1;; ++attempt) {
    GlooOptions once = options;
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
