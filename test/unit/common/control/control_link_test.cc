// Goal: a process joins, exchanges messages, and learns of the job's end, with a real thread and an
// in-memory network. Method: the test plays the scheduler; every wait has a deadline.
#include "common/control/control_link.h"

#include <atomic>
#include <future>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "common/control/packet.h"
#include "common/control/session.h"
#include "common/net/memory_network.h"

namespace dt {
namespace {

constexpr Duration kTimeout = seconds(20);
constexpr auto kBegin = ControlLink::Orders::kBegin;

// The scheduler's side of one link.
class Other {
 public:
  explicit Other(Network& network) : socket_(*network.Bind("inproc://scheduler")) {}

  // Waits for the next message of this kind; others are dropped.
  template <class T>
  T Await() {
    const TimePoint deadline = SystemClock().Now() + kTimeout;
    while (SystemClock().Now() < deadline) {
      for (size_t i = 0; i < messages_.size(); ++i) {
        if (!std::holds_alternative<T>(messages_[i])) continue;
        T found = std::get<T>(messages_[i]);
        messages_.erase(messages_.begin(), messages_.begin() + static_cast<ptrdiff_t>(i) + 1);
        return found;
      }
      Receive();
    }
    ADD_FAILURE() << "nothing came";
    return {};
  }
  // Waits until everything sent is acknowledged; returns the last heartbeat received before that.
  HeartbeatMessage LastBeforeAcknowledged() {
    HeartbeatMessage last;
    const TimePoint deadline = SystemClock().Now() + kTimeout;
    while (!session_->all_acknowledged() && SystemClock().Now() < deadline) {
      Receive();
      for (const ControlMessage& message : messages_) {
        if (const auto* beat = std::get_if<HeartbeatMessage>(&message)) last = *beat;
      }
    }
    return last;
  }
  void Send(const ControlMessage& message) {
    std::vector<Packet> out;
    EXPECT_TRUE(session_->Send(SystemClock().Now(), EncodeControl(message), out).ok());
    Transmit(out);
  }

 private:
  void Receive() {
    messages_.clear();
    Result<PeerMessage> arrived = socket_->Receive(milliseconds(10));
    if (!arrived.ok()) return;
    peer_ = arrived->peer;
    Packet packet = *DecodePacket(arrived->frames);
    if (!session_) session_.emplace(packet.session, milliseconds(100));
    std::vector<std::string> delivered;
    std::vector<Packet> out;
    session_->OnPacket(SystemClock().Now(), std::move(packet), delivered, out);
    for (const std::string& payload : delivered) {
      messages_.push_back(*DecodeControl(std::as_bytes(std::span(payload.data(), payload.size()))));
    }
    Transmit(out);
  }
  void Transmit(const std::vector<Packet>& packets) {
    for (const Packet& p : packets) EXPECT_TRUE(socket_->Send(peer_, EncodePacket(p)).ok());
  }

  std::unique_ptr<ServerSocket> socket_;
  PeerId peer_;
  std::optional<Session> session_;
  std::vector<ControlMessage> messages_;
};

// A network that only counts bytes.
class Traffic : public Network {
 public:
  Result<std::unique_ptr<ServerSocket>> Bind(const std::string&) override {
    return Unavailable("no sockets");
  }
  Result<std::unique_ptr<ClientSocket>> Connect(const std::string&) override {
    return Unavailable("no sockets");
  }
  uint64_t bytes_sent() const override { return sent; }
  uint64_t bytes_received() const override { return 2 * sent; }
  std::atomic<uint64_t> sent = 0;
};

class ControlLinkTest : public ::testing::Test {
 protected:
  ControlLink::Options Options() {
    ControlLink::Options options;
    options.network = network_.get();
    options.traffic = traffic_.get();
    options.scheduler = "inproc://scheduler";
    options.join.role = Role::kWorker;
    options.join.job_fingerprint = 5;
    options.join_timeout = kTimeout;
    return options;
  }
  // Returns a joined link. Start is sent directly after Welcome.
  std::unique_ptr<ControlLink> Join() {
    auto opening = std::async(std::launch::async, [&] { return ControlLink::Open(Options()); });
    join_ = other_.Await<JoinMessage>();
    other_.Send(WelcomeMessage{ProcessId(3), Term(1), milliseconds(200)});
    other_.Send(OrderMessage{1, FinishOrder{}});
    Result<std::unique_ptr<ControlLink>> link = opening.get();
    EXPECT_TRUE(link.ok()) << link.status();
    return link.ok() ? *std::move(link) : nullptr;
  }

  std::unique_ptr<Network> network_ = MakeMemoryNetwork();
  std::unique_ptr<Traffic> traffic_;  // Null: the traffic of the network is reported.
  Other other_{*network_};
  JoinMessage join_;
};

TEST_F(ControlLinkTest, JoinsAndLosesNothingSentBehindTheWelcome) {
  const auto link = Join();
  EXPECT_EQ(link->welcome().id, ProcessId(3));
  EXPECT_EQ(join_.job_fingerprint, 5u);
  EXPECT_NE(join_.incarnation.value(), 0u);
  EXPECT_GT(join_.pid, 0);
  const Result<ControlMessage> order = link->Receive(kTimeout, kBegin);
  ASSERT_TRUE(order.ok());
  EXPECT_TRUE(std::holds_alternative<OrderMessage>(*order));
  EXPECT_EQ(link->Receive(milliseconds(1), kBegin).status().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(ControlLinkTest, SendsMessagesAndProgress) {
  const auto link = Join();
  link->SetProgress({.step = 17, .samples = 170});
  link->Send(ReadyMessage{});
  other_.Await<ReadyMessage>();
  HeartbeatMessage beat = other_.Await<HeartbeatMessage>();
  while (beat.step != 17 && !HasFailure()) beat = other_.Await<HeartbeatMessage>();
  EXPECT_EQ(beat.samples, 170u);
  EXPECT_GT(beat.stats.peak_rss_bytes, 0u);
}

// Traffic through shared memory does not pass through the network to the scheduler, so it is
// reported separately.
TEST_F(ControlLinkTest, TrafficIsToldWhileTheJobRunsAndBeforeItsEndIsAcknowledged) {
  traffic_ = std::make_unique<Traffic>();
  const auto link = Join();
  traffic_->sent = 77;
  HeartbeatMessage beat = other_.Await<HeartbeatMessage>();
  while (beat.stats.bytes_sent != 77 && !HasFailure()) beat = other_.Await<HeartbeatMessage>();
  EXPECT_EQ(beat.stats.bytes_received, 154u);
  traffic_->sent = 99;
  other_.Send(StopMessage{StatusCode::kCancelled, {"stopped", "", ""}});
  EXPECT_EQ(other_.LastBeforeAcknowledged().stats.bytes_sent, 99u);
}

TEST_F(ControlLinkTest, GetWaitsForTheValue) {
  const auto link = Join();
  auto value = std::async(std::launch::async, [&] { return link->Get("k", kTimeout); });
  EXPECT_EQ(other_.Await<KvGetMessage>().key, "k");
  other_.Send(KvValueMessage{"k", "v"});
  EXPECT_EQ(*value.get(), "v");
  for (int again = 0; again < 3; ++again) {
    EXPECT_EQ(link->Get("late", milliseconds(1)).status().code(), StatusCode::kDeadlineExceeded);
  }
  EXPECT_EQ(other_.Await<KvGetMessage>().key, "late");
  other_.Send(KvValueMessage{"late", "w"});
  EXPECT_EQ(*link->Get("late", kTimeout), "w") << "it was asked for once";
}

TEST_F(ControlLinkTest, StopEndsEveryWaitWithTheJobsError) {
  const auto link = Join();
  ASSERT_TRUE(link->Receive(kTimeout, kBegin).ok());
  auto message = std::async(std::launch::async, [&] { return link->Receive(kTimeout, kBegin); });
  auto value = std::async(std::launch::async, [&] { return link->Get("k", kTimeout); });
  other_.Await<KvGetMessage>();
  other_.Send(StopMessage{StatusCode::kDataLoss, {"it broke", "here", ""}});
  EXPECT_EQ(message.get().status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(value.get().status().code(), StatusCode::kDataLoss);
  EXPECT_TRUE(link->ended());
  EXPECT_EQ(ToText(link->end_status()), "it broke (here)");
}

TEST_F(ControlLinkTest, ARoleThatFailedSaysWhy) {
  const auto link = Join();
  auto end = std::async(std::launch::async,
                        [&] { return EndRole(*link, DataLoss("it broke"), std::stop_token()); });
  const FailedMessage failed = other_.Await<FailedMessage>();
  EXPECT_EQ(failed.code, StatusCode::kDataLoss);
  EXPECT_EQ(failed.problem.what, "it broke");
  EXPECT_EQ(end.get().code(), StatusCode::kDataLoss);
}

TEST_F(ControlLinkTest, ARoleThatWasStoppedSaysThatItLeaves) {
  const auto link = Join();
  std::stop_source stop;
  stop.request_stop();
  auto end = std::async(std::launch::async,
                        [&] { return EndRole(*link, DataLoss("it broke"), stop.get_token()); });
  other_.Await<LeavingMessage>();
  EXPECT_EQ(end.get().code(), StatusCode::kCancelled);
}

TEST_F(ControlLinkTest, ARoleEndsAsTheJobDid) {
  const auto link = Join();
  other_.Send(StopMessage{StatusCode::kOk, {}});
  while (link->Receive(kTimeout, kBegin).ok()) {
  }
  EXPECT_TRUE(EndRole(*link, DataLoss("it broke"), {}).ok());
}

TEST_F(ControlLinkTest, RefusalIsTheSchedulersSentence) {
  auto opening = std::async(std::launch::async, [&] { return ControlLink::Open(Options()); });
  other_.Await<JoinMessage>();
  other_.Send(RefusedMessage{StatusCode::kInvalidArgument, {"no room", "", "go home"}});
  const auto link = opening.get();
  EXPECT_EQ(link.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ToText(link.status()), "no room; go home");
}

TEST_F(ControlLinkTest, AbsentSchedulerIsNamedWithinTheTimeout) {
  ControlLink::Options options = Options();
  options.scheduler = "inproc://nobody";
  options.join_timeout = milliseconds(100);
  const auto link = ControlLink::Open(options);
  EXPECT_EQ(link.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(ToText(link.status()).find("inproc://nobody"), std::string::npos);
}

TEST_F(ControlLinkTest, AStopEndsTheJoining) {
  ControlLink::Options options = Options();
  options.scheduler = "inproc://nobody";
  std::stop_source stop;
  options.stop = stop.get_token();
  auto opening = std::async(std::launch::async, [&] { return ControlLink::Open(options); });
  stop.request_stop();
  const TimePoint begun = SystemClock().Now();
  EXPECT_EQ(opening.get().status().code(), StatusCode::kCancelled);
  EXPECT_LT(SecondsBetween(begun, SystemClock().Now()), 10);
}

TEST_F(ControlLinkTest, SilentSchedulerEndsTheLink) {
  auto opening = std::async(std::launch::async, [&] {
    ControlLink::Options options = Options();
    options.scheduler_outage = milliseconds(300);
    return ControlLink::Open(options);
  });
  other_.Await<JoinMessage>();
  other_.Send(WelcomeMessage{ProcessId(3), Term(1), milliseconds(100)});
  const auto link = opening.get();
  ASSERT_TRUE(link.ok());
  const Result<ControlMessage> message = (*link)->Receive(kTimeout, kBegin);
  EXPECT_EQ(message.status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE((*link)->ended());
}

TEST_F(ControlLinkTest, StatusIsAnsweredWithoutJoining) {
  auto asking = std::async(
      std::launch::async, [&] { return RequestStatus(*network_, "inproc://scheduler", kTimeout); });
  other_.Await<StatusRequestMessage>();
  other_.Send(StatusReplyMessage{"{}"});
  EXPECT_EQ(*asking.get(), "{}");
}

}  // namespace
}  // namespace dt
