#include "common/control/control_link.h"

#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include "common/base/entropy.h"
#include "common/base/host_name.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/control/packet.h"
#include "common/control/session.h"
#include "common/wire/data.h"

namespace dt {
namespace {

// How long a message may lie in a queue before the link's thread looks.
constexpr Duration kPoll = milliseconds(5);
constexpr Duration kResendAfter = milliseconds(300);
constexpr Duration kLastWords = seconds(3);  // For the scheduler to hear why a role ends.

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Status FromProblem(StatusCode code, const Problem& problem) {
  Status status = MakeStatus(code, problem.what);
  if (!problem.where.empty()) status = WithWhere(std::move(status), problem.where);
  if (!problem.hint.empty()) status = WithHint(std::move(status), problem.hint);
  return status;
}

// Session over a socket: what both the joining and the joined link do. One thread at a time.
class Channel {
 public:
  Channel(std::unique_ptr<ClientSocket> socket, uint64_t id)
      : socket_(std::move(socket)), session_(id, kResendAfter) {}

  Status Send(TimePoint now, const ControlMessage& message) {
    std::vector<Packet> out;
    DT_TRY_STATUS(session_.Send(now, EncodeControl(message), out));
    Transmit(out);
    return OkStatus();
  }
  void SendDatagram(const ControlMessage& message) {
    Transmit({session_.Datagram(EncodeControl(message))});
  }
  void Tick(TimePoint now) {
    std::vector<Packet> out;
    session_.Tick(now, out);
    Transmit(out);
  }
  // What arrives within `patience`; `heard` is set if the other side showed life. The other side
  // hears of it by Acknowledge.
  std::vector<ControlMessage> Receive(const Clock& clock, Duration patience, bool& heard) {
    std::vector<std::string> payloads;
    std::vector<Packet> out;
    Result<Frames> frames = socket_->Receive(patience);
    while (frames.ok()) {
      Result<Packet> packet = DecodePacket(*frames);
      if (packet.ok() && packet->session == session_.id()) {
        heard = true;
        session_.OnPacket(clock.Now(), *std::move(packet), payloads, out);
      }
      frames = socket_->Receive(Duration(0));
    }
    acknowledgements_.insert(acknowledgements_.end(), out.begin(), out.end());
    std::vector<ControlMessage> messages = std::move(unread_);
    unread_.clear();
    for (const std::string& payload : payloads) {
      Result<ControlMessage> message = DecodeControl(BytesOf(payload));
      if (message.ok()) {
        messages.push_back(*std::move(message));
      } else {
        LogWarn("control.malformed", {{"problem", MessageOf(message.status())}});
      }
    }
    return messages;
  }
  void Acknowledge() { Transmit(std::exchange(acknowledgements_, {})); }
  // The next Receive begins with these.
  void PutBack(std::vector<ControlMessage> messages) { unread_ = std::move(messages); }
  bool all_acknowledged() const { return session_.all_acknowledged(); }

 private:
  // A full queue loses the packet, as the network may: the session sends it again.
  void Transmit(const std::vector<Packet>& packets) {
    for (const Packet& packet : packets) socket_->Send(EncodePacket(packet)).IgnoreError();
  }

  std::unique_ptr<ClientSocket> socket_;
  Session session_;
  std::vector<ControlMessage> unread_;
  std::vector<Packet> acknowledgements_;
};

class ControlLinkImpl : public ControlLink {
 public:
  ControlLinkImpl(const Options& options, Channel channel, WelcomeMessage welcome)
      : options_(options),
        welcome_(welcome),
        channel_(std::move(channel)),
        thread_([this](std::stop_token stop) { Run(stop); }) {}

  const WelcomeMessage& welcome() const override { return welcome_; }

  void Send(ControlMessage message) override {
    MutexLock lock(mutex_);
    outgoing_.push_back(std::move(message));
    unsent_ = true;
  }

  Result<ControlMessage> Receive(Duration patience) override {
    const TimePoint deadline = SystemClock().Now() + patience;
    MutexLock lock(mutex_);
    while (incoming_.empty() && !ended_ && changed_.WaitUntil(lock, deadline)) {
    }
    if (!incoming_.empty()) {
      ControlMessage message = std::move(incoming_.front());
      incoming_.pop_front();
      return message;
    }
    if (ended_) return end_status_.ok() ? Cancelled("the job is complete") : end_status_;
    return Timeout("no message from the scheduler");
  }

  void SetProgress(const HeartbeatMessage& progress) override {
    MutexLock lock(mutex_);
    progress_ = progress;
  }

  void Put(const std::string& key, std::string value) override {
    Send(KvPutMessage{key, std::move(value)});
  }

  Result<std::string> Get(const std::string& key, Duration patience) override {
    Send(KvGetMessage{key});
    const TimePoint deadline = SystemClock().Now() + patience;
    MutexLock lock(mutex_);
    while (!values_.contains(key) && !ended_ && changed_.WaitUntil(lock, deadline)) {
    }
    const auto found = values_.find(key);
    if (found != values_.end()) return found->second;
    if (ended_) return end_status_.ok() ? Cancelled("the job is complete") : end_status_;
    return Timeout("no process has published \"{}\" within {:.0f} s", key,
                   std::chrono::duration<double>(patience).count());
  }

  Result<SplitMessage> NextSplit(uint64_t order, Duration patience) override {
    if (!std::exchange(split_asked_, true)) Send(SplitRequestMessage{order});
    const TimePoint deadline = SystemClock().Now() + patience;
    MutexLock lock(mutex_);
    while (!split_.has_value() && !ended_ && changed_.WaitUntil(lock, deadline)) {
    }
    if (split_.has_value()) {
      split_asked_ = false;
      return *std::exchange(split_, std::nullopt);
    }
    if (ended_) return end_status_.ok() ? Cancelled("the job is complete") : end_status_;
    return Timeout("the scheduler has not shared out more of the order");
  }

  bool ended() const override { return ended_; }

  Status end_status() const override {
    MutexLock lock(mutex_);
    return end_status_;
  }

  void Flush(Duration patience) override {
    const TimePoint deadline = SystemClock().Now() + patience;
    MutexLock lock(mutex_);
    while (unsent_ && changed_.WaitUntil(lock, deadline)) {
    }
  }

 private:
  void Run(std::stop_token stop) {
    const Clock& clock = SystemClock();
    TimePoint last_heard = clock.Now();
    TimePoint next_heartbeat = clock.Now();
    while (!stop.stop_requested()) {
      bool heard = false;
      for (ControlMessage& message : channel_.Receive(clock, kPoll, heard)) {
        Take(std::move(message));
      }
      // The scheduler may end when the Stop is acknowledged: the last figures go before that.
      if (ended_ && !std::exchange(said_last_, true)) channel_.SendDatagram(Progress());
      channel_.Acknowledge();
      const TimePoint now = clock.Now();
      if (heard) last_heard = now;
      if (now >= next_heartbeat) {
        channel_.SendDatagram(Progress());
        next_heartbeat = now + welcome_.lease / 4;
      }
      SendOutgoing(now);
      channel_.Tick(now);
      if (now - last_heard > options_.scheduler_outage) {
        End(Unavailable("the scheduler at {} has been silent for {:.0f} s", options_.scheduler,
                        SecondsBetween(last_heard, now)));
      }
    }
  }

  HeartbeatMessage Progress() {
    HeartbeatMessage heartbeat;
    {
      MutexLock lock(mutex_);
      heartbeat = progress_;
    }
    heartbeat.stats =
        ReadProcessStats(options_.traffic != nullptr ? options_.traffic : options_.network);
    return heartbeat;
  }

  void SendOutgoing(TimePoint now) {
    std::deque<ControlMessage> messages;
    {
      MutexLock lock(mutex_);
      messages.swap(outgoing_);
    }
    while (!messages.empty() && channel_.Send(now, messages.front()).ok()) messages.pop_front();
    MutexLock lock(mutex_);
    while (!messages.empty()) {  // The window is full: later, before what was sent meanwhile.
      outgoing_.push_front(std::move(messages.back()));
      messages.pop_back();
    }
    const bool unsent = !outgoing_.empty() || !channel_.all_acknowledged();
    if (unsent_ && !unsent) changed_.NotifyAll();
    unsent_ = unsent;
  }

  void Take(ControlMessage message) {
    if (const auto* stop = std::get_if<StopMessage>(&message)) {
      End(FromProblem(stop->code, stop->problem));
      return;
    }
    MutexLock lock(mutex_);
    if (auto* kv = std::get_if<KvValueMessage>(&message)) {
      values_[kv->key] = std::move(kv->value);
    } else if (const auto* split = std::get_if<SplitMessage>(&message)) {
      split_ = *split;
    } else {
      incoming_.push_back(std::move(message));
    }
    changed_.NotifyAll();
  }

  void End(Status status) {
    MutexLock lock(mutex_);
    if (ended_) return;
    end_status_ = std::move(status);
    ended_ = true;
    changed_.NotifyAll();
  }

  const Options options_;
  const WelcomeMessage welcome_;
  bool split_asked_ = false;  // Touched by NextSplit only.
  Channel channel_;           // Touched by thread_ only.
  bool said_last_ = false;    // Touched by thread_ only: the figures at the end were sent.

  // A mutex, because several threads of a process talk to the one scheduler, and wait for its
  // answers.
  mutable Mutex mutex_;
  Condition changed_;
  std::deque<ControlMessage> outgoing_ DT_GUARDED_BY(mutex_);
  std::deque<ControlMessage> incoming_ DT_GUARDED_BY(mutex_);
  std::map<std::string, std::string> values_ DT_GUARDED_BY(mutex_);
  std::optional<SplitMessage> split_ DT_GUARDED_BY(mutex_);
  HeartbeatMessage progress_ DT_GUARDED_BY(mutex_);
  bool unsent_ DT_GUARDED_BY(mutex_) = false;  // Something is queued or unacknowledged.
  Status end_status_ DT_GUARDED_BY(mutex_);
  std::atomic<bool> ended_ = false;  // Set under the mutex, after end_status_.

  std::jthread thread_;  // Last: starts when the rest exists, ends before it goes.
};

Status NoAnswer(const std::string& address, Duration patience) {
  return WithHint(Unavailable("no scheduler answers at {} within {:.0f} s", address,
                              std::chrono::duration<double>(patience).count()),
                  "start it with `dovetail scheduler`, correct the address, or use the key of its "
                  "job (security.curve)");
}

// The first of `Wanted` or Refused that arrives.
template <class Wanted>
Result<Wanted> Await(Channel& channel, const std::string& address, Duration patience,
                     const std::stop_token& stop = {}) {
  const Clock& clock = SystemClock();
  const TimePoint deadline = clock.Now() + patience;
  while (clock.Now() < deadline) {
    if (stop.stop_requested()) return Cancelled("stopped on request");
    bool heard = false;
    std::vector<ControlMessage> messages = channel.Receive(clock, milliseconds(20), heard);
    channel.Acknowledge();
    for (size_t i = 0; i < messages.size(); ++i) {
      if (const auto* refused = std::get_if<RefusedMessage>(&messages[i])) {
        return FromProblem(refused->code, refused->problem);
      }
      if (auto* wanted = std::get_if<Wanted>(&messages[i])) {
        Wanted found = std::move(*wanted);
        messages.erase(messages.begin(), messages.begin() + static_cast<ptrdiff_t>(i) + 1);
        channel.PutBack(std::move(messages));
        return found;
      }
    }
    channel.Tick(clock.Now());
  }
  return NoAnswer(address, patience);
}

}  // namespace

Result<std::unique_ptr<ControlLink>> ControlLink::Open(const Options& options) {
  DT_TRY(std::unique_ptr<ClientSocket> socket, options.network->Connect(options.scheduler));
  JoinMessage join = options.join;
  join.incarnation = Incarnation(EntropyBits());
  join.wire_version = kWireVersion;
  if (join.pid == 0) join.pid = getpid();
  if (join.host.empty()) join.host = HostName();
  Channel channel(std::move(socket), join.incarnation.value());
  DT_TRY_STATUS(channel.Send(SystemClock().Now(), join));
  DT_TRY(const WelcomeMessage welcome,
         Await<WelcomeMessage>(channel, options.scheduler, options.join_patience, options.stop));
  return std::make_unique<ControlLinkImpl>(options, std::move(channel), welcome);
}

Status EndRole(ControlLink& link, const Status& worked, std::stop_token stop) {
  if (link.ended()) return link.end_status();
  const bool stopped = stop.stop_requested();
  if (stopped) {
    link.Send(LeavingMessage{});
  } else {
    link.Send(FailedMessage{.code = worked.code(), .problem = ProblemOf(worked)});
  }
  link.Flush(kLastWords);
  return stopped ? Cancelled("stopped on request") : worked;
}

Result<std::string> RequestStatus(Network& network, const std::string& scheduler,
                                  Duration patience) {
  DT_TRY(std::unique_ptr<ClientSocket> socket, network.Connect(scheduler));
  Channel channel(std::move(socket), EntropyBits());
  DT_TRY_STATUS(channel.Send(SystemClock().Now(), StatusRequestMessage{}));
  DT_TRY(StatusReplyMessage reply, Await<StatusReplyMessage>(channel, scheduler, patience));
  return std::move(reply.json);
}

ProcessStats ReadProcessStats(const Network* network) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds_of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  ProcessStats stats;
  stats.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  stats.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  if (network != nullptr) {
    stats.bytes_sent = network->bytes_sent();
    stats.bytes_received = network->bytes_received();
  }
  return stats;
}

}  // namespace dt
