#include "common/control/control_link.h"

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <unistd.h>

#include "common/base/entropy.h"
#include "common/base/host_name.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/pause.h"
#include "common/base/thread_name.h"
#include "common/control/inbox.h"
#include "common/control/link_core.h"
#include "common/control/packet.h"
#include "common/control/read_process_stats.h"
#include "common/control/session.h"
#include "common/control/split_book.h"
#include "common/wire/data.h"

namespace dt {
namespace {

// Longest time that a message waits in a queue for the link's thread: while messages come and go,
// and after a while without any. Each look costs tens of microseconds of a processor that trains.
constexpr Duration kPoll = milliseconds(5), kIdlePoll = milliseconds(20);
constexpr Duration kIdleAfter = milliseconds(100);
constexpr Duration kJoinPoll = milliseconds(20);
constexpr Duration kStatusResendAfter = milliseconds(300);
constexpr Duration kLastWords = seconds(3);  // Time for the scheduler to hear why a role ends.

// Sends packets on the socket. If its queue is full, packets are lost as in a network, and the
// session sends them again.
void Transmit(ClientSocket& socket, const std::vector<Packet>& packets) {
  for (const Packet& packet : packets) socket.Send(EncodePacket(packet)).IgnoreError();
}

// Returns the packets that arrive within `timeout`.
std::vector<Packet> ReceivePackets(ClientSocket& socket, Duration timeout) {
  std::vector<Packet> packets;
  for (Result<Frames> frames = socket.Receive(timeout); frames.ok();
       frames = socket.Receive(Duration::zero())) {
    Result<Packet> packet = DecodePacket(*frames);
    if (packet.ok()) packets.push_back(*std::move(packet));
  }
  return packets;
}

Status NoAnswer(const std::string& address, Duration timeout) {
  return WithHint(Unavailable("no scheduler answers at {} within {:.0f} s", address,
                              std::chrono::duration<double>(timeout).count()),
                  "start it with `dovetail scheduler`, correct the address, or use the key of its "
                  "job (security.curve)");
}

class ControlLinkImpl : public ControlLink {
 public:
  ControlLinkImpl(const Options& options, JoinMessage join, std::unique_ptr<ClientSocket> socket)
      : options_(options),
        socket_(std::move(socket)),
        core_(SystemClock().Now(), {.join = std::move(join),
                                    .scheduler = options.scheduler,
                                    .outage = options.scheduler_outage,
                                    .progress = [this] { return Progress(); }}) {}

  // Returns when welcomed; from then on the link has a thread of its own.
  Status Join() {
    const TimePoint deadline = SystemClock().Now() + options_.join_timeout;
    while (!core_.welcome().has_value()) {
      if (options_.stop.stop_requested()) return Cancelled("stopped on request");
      if (core_.ended()) return core_.end_status();
      if (SystemClock().Now() >= deadline) {
        return NoAnswer(options_.scheduler, options_.join_timeout);
      }
      Turn(kJoinPoll);
    }
    welcome_ = *core_.welcome();
    Publish();
    thread_ = std::jthread([this](std::stop_token stop) {
      NameThread("control-link");
      while (!stop.stop_requested()) {
        TakeOutgoing();
        Turn(SystemClock().Now() - last_message_ > kIdleAfter ? kIdlePoll : kPoll);
        Publish();
      }
    });
    return OkStatus();
  }

  const WelcomeMessage& welcome() const override { return welcome_; }

  void Send(ControlMessage message) override {
    MutexLock lock(mutex_);
    AddOutgoing(std::move(message));
  }

  Result<ControlMessage> Receive(Duration timeout, Orders orders) override {
    const TimePoint deadline = SystemClock().Now() + timeout;
    MutexLock lock(mutex_);
    do {
      if (orders == Orders::kDrop) incoming_.DropFirstOrders();
      if (!incoming_.empty()) return incoming_.Take();
      if (ended_) return end_status_.ok() ? Cancelled("the job is complete") : end_status_;
    } while (changed_.WaitUntil(lock, deadline));
    return Timeout("no message from the scheduler");
  }

  void SetProgress(const HeartbeatMessage& progress) override {
    MutexLock lock(mutex_);
    progress_ = progress;
  }

  void Put(const std::string& key, std::string value) override {
    Send(KvPutMessage{key, std::move(value)});
  }

  Result<std::string> Get(const std::string& key, Duration timeout) override {
    const TimePoint deadline = SystemClock().Now() + timeout;
    if (IsFirstGet(key)) Send(KvGetMessage{key});
    MutexLock lock(mutex_);
    while (!values_.contains(key) && !ended_ && changed_.WaitUntil(lock, deadline)) {
    }
    const auto found = values_.find(key);
    if (found != values_.end()) return found->second;
    if (ended_) return end_status_.ok() ? Cancelled("the job is complete") : end_status_;
    return Timeout("no process has published \"{}\" within {:.1f} s", key,
                   std::chrono::duration<double>(timeout).count());
  }

  Result<SplitMessage> NextSplit(uint64_t order, Duration timeout) override {
    const TimePoint deadline = SystemClock().Now() + timeout;
    MutexLock lock(mutex_);
    do {
      if (const auto split = splits_.Take(order)) return *split;
      if (splits_.Ask()) AddOutgoing(SplitRequestMessage{order});
    } while (!ended_ && changed_.WaitUntil(lock, deadline));
    if (ended_) return end_status_.ok() ? Cancelled("the job is complete") : end_status_;
    return Timeout("the scheduler has not shared out more of the order");
  }

  bool ended() const override { return ended_; }

  Status end_status() const override {
    MutexLock lock(mutex_);
    return end_status_;
  }

  void Flush(Duration timeout) override {
    const TimePoint deadline = SystemClock().Now() + timeout;
    MutexLock lock(mutex_);
    while (unsent_ && changed_.WaitUntil(lock, deadline)) {
    }
  }

 private:
  bool IsFirstGet(const std::string& key) {
    MutexLock lock(mutex_);
    return asked_.insert(key).second;
  }
  // Runs the core once. Called on the caller's thread until Join has returned, then on thread_.
  void Turn(Duration timeout) {
    for (Packet& packet : ReceivePackets(*socket_, timeout)) {
      core_.OnPacket(SystemClock().Now(), std::move(packet));
    }
    core_.Tick(SystemClock().Now());
    Transmit(*socket_, core_.TakePackets());
  }

  HeartbeatMessage Progress() {
    HeartbeatMessage heartbeat;
    {
      MutexLock lock(mutex_);
      heartbeat = progress_;
    }
    if (options_.on_heartbeat) options_.on_heartbeat(heartbeat);
    heartbeat.stats =
        ReadProcessStats(options_.traffic != nullptr ? options_.traffic : options_.network);
    return heartbeat;
  }

  void AddOutgoing(ControlMessage message) DT_REQUIRES(mutex_) {
    outgoing_.push_back(std::move(message));
    unsent_ = true;
  }

  void TakeOutgoing() {
    MutexLock lock(mutex_);
    if (!outgoing_.empty()) last_message_ = SystemClock().Now();
    for (ControlMessage& message : outgoing_) core_.Send(std::move(message));
    outgoing_.clear();
  }

  void Publish() {
    std::vector<ControlMessage> messages = core_.TakeMessages();
    if (!messages.empty()) last_message_ = SystemClock().Now();
    MutexLock lock(mutex_);
    for (ControlMessage& message : messages) Take(std::move(message));
    const bool unsent = !outgoing_.empty() || !core_.all_acknowledged();
    const bool ends = core_.ended() && !ended_;
    if (ends) end_status_ = core_.end_status();
    if (ends) ended_ = true;
    if (!messages.empty() || ends || (unsent_ && !unsent)) changed_.NotifyAll();
    unsent_ = unsent;
  }

  void Take(ControlMessage message) DT_REQUIRES(mutex_) {
    if (auto* kv = std::get_if<KvValueMessage>(&message)) {
      values_[kv->key] = std::move(kv->value);
    } else if (const auto* split = std::get_if<SplitMessage>(&message)) {
      splits_.OnAnswer(*split);
    } else if (auto* map = std::get_if<MapChangedMessage>(&message); map && options_.on_map) {
      options_.on_map(std::move(map->map));
    } else if (const auto* recall = std::get_if<RecallMessage>(&message)) {
      outgoing_.push_back(incoming_.OnRecall(*recall));
    } else {
      if (const auto* next = std::get_if<NewViewMessage>(&message); next && options_.on_view) {
        incoming_.OnNewView();
        splits_.OnNewView();
        options_.on_view(next->view.number);
      }
      incoming_.Add(std::move(message));
    }
  }

  const Options options_;
  // Used only by the thread that calls Turn, like core_.
  const std::unique_ptr<ClientSocket> socket_;
  LinkCore core_;
  TimePoint last_message_ = SystemClock().Now();  // When one last came or went, but for heartbeats.
  WelcomeMessage welcome_;                        // Set by Join.

  // Several threads of the process exchange messages with the scheduler.
  mutable Mutex mutex_;
  Condition changed_;
  std::vector<ControlMessage> outgoing_ DT_GUARDED_BY(mutex_);
  Inbox incoming_ DT_GUARDED_BY(mutex_);
  std::map<std::string, std::string> values_ DT_GUARDED_BY(mutex_);
  std::set<std::string> asked_ DT_GUARDED_BY(mutex_);  // Keys.
  SplitBook splits_ DT_GUARDED_BY(mutex_);
  HeartbeatMessage progress_ DT_GUARDED_BY(mutex_);
  bool unsent_ DT_GUARDED_BY(mutex_) = false;  // Something is queued or unacknowledged.
  Status end_status_ DT_GUARDED_BY(mutex_);
  std::atomic<bool> ended_ = false;  // Set under the mutex, after end_status_.

  std::jthread thread_;  // Must be last: it uses the other members.
};

}  // namespace

Result<std::unique_ptr<ControlLink>> ControlLink::Open(const Options& options) {
  DT_TRY(std::unique_ptr<ClientSocket> socket, options.network->Connect(options.scheduler));
  JoinMessage join = options.join;
  join.incarnation = Incarnation(EntropyBits());
  join.wire_version = kWireVersion;
  if (join.pid == 0) join.pid = getpid();
  if (join.host.empty()) join.host = HostName();
  auto link = std::make_unique<ControlLinkImpl>(options, std::move(join), std::move(socket));
  DT_TRY_STATUS(link->Join());
  return link;
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
  if (worked.code() == StatusCode::kDataLoss && !stopped) {
    // If the checkpoint is damaged, the job returns to another one, and this role takes part.
    PollUntil(SystemClock().Now() + kLastWords, kPoll, [&] { return link.ended(); });
    if (link.end_status().code() == StatusCode::kAborted) return link.end_status();
  }
  return stopped ? Cancelled("stopped on request") : worked;
}

namespace {

// Sends one message to the scheduler, and returns its answer.
template <class Answer>
Result<Answer> Ask(Network& network, const std::string& scheduler, const ControlMessage& question,
                   Duration timeout) {
  DT_TRY(std::unique_ptr<ClientSocket> socket, network.Connect(scheduler));
  const Clock& clock = SystemClock();
  Session session(EntropyBits(), kStatusResendAfter);
  std::vector<Packet> out;
  DT_TRY_STATUS(session.Send(clock.Now(), EncodeControl(question), out));
  for (const TimePoint deadline = clock.Now() + timeout; clock.Now() < deadline;) {
    Transmit(*socket, std::exchange(out, {}));
    std::vector<std::string> payloads;
    for (Packet& packet : ReceivePackets(*socket, kJoinPoll)) {
      if (packet.session != session.id()) continue;
      session.OnPacket(clock.Now(), std::move(packet), payloads, out);
    }
    for (const std::string& payload : payloads) {
      Result<ControlMessage> message =
          DecodeControl(std::as_bytes(std::span(payload.data(), payload.size())));
      if (!message.ok()) continue;
      if (const auto* refused = std::get_if<RefusedMessage>(&*message)) {
        return StatusOf(refused->code, refused->problem);
      }
      if (auto* reply = std::get_if<Answer>(&*message)) return std::move(*reply);
    }
    session.Tick(clock.Now(), out);
  }
  return NoAnswer(scheduler, timeout);
}

}  // namespace

Result<std::string> RequestStatus(Network& network, const std::string& scheduler,
                                  Duration timeout) {
  DT_TRY(StatusReplyMessage reply,
         Ask<StatusReplyMessage>(network, scheduler, StatusRequestMessage{}, timeout));
  return std::move(reply.json);
}

Status RequestDrain(Network& network, const std::string& scheduler, ProcessId server,
                    Duration timeout) {
  DT_TRY(const CommandReplyMessage reply,
         Ask<CommandReplyMessage>(network, scheduler, DrainRequestMessage{server}, timeout));
  return StatusOf(reply.code, reply.problem);
}

Status RequestScale(Network& network, const std::string& scheduler, Role role, uint32_t count,
                    Duration timeout) {
  DT_TRY(const CommandReplyMessage reply,
         Ask<CommandReplyMessage>(network, scheduler, ScaleRequestMessage{role, count}, timeout));
  return StatusOf(reply.code, reply.problem);
}

}  // namespace dt
