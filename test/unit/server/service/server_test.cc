// Goal: the role joins, starts, serves, saves, loads, reports and ends as the scheduler orders.
// Method: the real server and its threads over the in-memory network; the test plays the scheduler
// and the worker; every wait has a deadline.
#include "server/service/server.h"

#include <deque>
#include <filesystem>
#include <future>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "common/control/messages.h"
#include "common/control/packet.h"
#include "common/control/session.h"
#include "common/net/memory_network.h"
#include "common/wire/data.h"
#include "server/table/table_specs.h"
#include "test/support/push_maker.h"
#include "test/support/scratch_folder.h"

namespace dt::server {
namespace {

constexpr Duration kServerTimeout = seconds(20);
constexpr uint32_t kServerShards = 8;
const ProcessId kSelf(4);

// The scheduler's side of the link.
class Orders {
 public:
  explicit Orders(Network& network) : socket_(*network.Bind("inproc://scheduler")) {}

  // Waits for the next message of this kind; others are dropped.
  template <class T>
  T Await() {
    const TimePoint deadline = SystemClock().Now() + kServerTimeout;
    while (SystemClock().Now() < deadline) {
      while (!messages_.empty()) {
        ControlMessage message = std::move(messages_.front());
        messages_.pop_front();
        if (std::holds_alternative<T>(message)) return std::get<T>(std::move(message));
      }
      Receive();
    }
    ADD_FAILURE() << "nothing came";
    return {};
  }
  void Send(const ControlMessage& message) {
    std::vector<Packet> out;
    EXPECT_TRUE(session_->Send(SystemClock().Now(), EncodeControl(message), out).ok());
    Transmit(out);
  }
  template <class Done, class Order>
  Done Do(Order order) {
    Send(OrderMessage{++number_, std::move(order)});
    OrderDoneMessage done = Await<OrderDoneMessage>();
    EXPECT_EQ(done.order, number_);
    EXPECT_TRUE(std::holds_alternative<Done>(done.result));
    return std::holds_alternative<Done>(done.result) ? std::get<Done>(done.result) : Done{};
  }

  void Receive() {
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

 private:
  void Transmit(const std::vector<Packet>& packets) {
    for (const Packet& p : packets) EXPECT_TRUE(socket_->Send(peer_, EncodePacket(p)).ok());
  }

  const std::unique_ptr<ServerSocket> socket_;
  PeerId peer_;
  std::optional<Session> session_;
  std::deque<ControlMessage> messages_;
  uint64_t number_ = 0;
};

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    job_.fingerprint = 77;
    TableConfig table;
    table.name = "item";
    table.id = TableIdOf("item");
    table.dim = 2;
    table.init = {InitKind::kZeros, 0};
    table.optimizer.kind = OptimizerKind::kSgd;
    table.optimizer.lr = 1;
    job_.model.tables = {table};
    job_.cluster.scheduler_outage = kServerTimeout;
    job_.cluster.server.dir = state_.path();
    job_.checkpoint.dir = checkpoints_.path();
    std::filesystem::create_directory(saved_);
  }
  void SetUp() override {
    auto server = Server::Open({.job = job_,
                                .network = *network_,
                                .scheduler = "inproc://scheduler",
                                .listen = "inproc://server",
                                .executors = 2});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    end_ = std::async(std::launch::async, [this] { return server_->Run(stop_.get_token()); });
    join_ = orders_.Await<JoinMessage>();
    orders_.Send(WelcomeMessage{kSelf, Term(1), milliseconds(400)});
  }
  void Start() {
    StartMessage start;
    start.view = {Generation(1),
                  ViewNumber(1),
                  MakeShardMap(MapVersion(1), kServerShards, {{kSelf, join_.endpoints}}),
                  {ProcessId(9)}};
    start.slices = 1;
    orders_.Send(start);
    orders_.Await<ReadyMessage>();
  }
  // Sends one request to one executor and returns its answer.
  template <class Request>
  DataReply Ask(uint32_t executor, Request request, Generation generation) {
    request.request = ++number_;
    request.stamp = {generation, ViewNumber(1), MapVersion(1), kSelf};
    auto socket = *network_->Connect(join_.endpoints[executor]);
    EXPECT_TRUE(socket->Send(Encode(request)).ok());
    auto frames = socket->Receive(kServerTimeout);
    EXPECT_TRUE(frames.ok()) << frames.status();
    return frames.ok() ? *DecodeDataReply(*std::move(frames)) : DataReply{};
  }
  static std::vector<ShardId> ShardsOf(uint32_t executor) {
    std::vector<ShardId> shards;
    for (uint32_t s = executor; s < kServerShards; s += 2) shards.emplace_back(s);
    return shards;
  }
  // Pushes a gradient of 1 to keys 0 to 99.
  void Push(Step step, Generation generation = Generation(1)) {
    test::RowMap rows;
    for (Key key = 0; key < 100; ++key) rows[{0, key}] = {1, 1};
    for (uint32_t e = 0; e < 2; ++e) {
      const test::Grouping grouping(TableSpecsOf(job_), kServerShards, ShardsOf(e), rows);
      const DataReply reply = Ask(e, grouping.Push(0, {}, step), generation);
      EXPECT_TRUE(reply.status.ok()) << reply.status;
    }
  }
  Status End() {
    if (end_.wait_for(kServerTimeout) == std::future_status::ready) return end_.get();
    return Internal("it does not end");
  }
  void TearDown() override {
    stop_.request_stop();
    while (end_.valid() && end_.wait_for(Duration::zero()) != std::future_status::ready) {
      orders_.Receive();  // Acknowledges its last messages.
    }
  }

  const test::ScratchFolder state_, checkpoints_;
  const std::string saved_ = checkpoints_ / "saved";
  JobConfig job_;
  const std::unique_ptr<Network> network_ = MakeMemoryNetwork();
  Orders orders_{*network_};
  std::unique_ptr<Server> server_;
  std::stop_source stop_;
  std::future<Status> end_;
  JoinMessage join_;
  uint64_t number_ = 0;
};

TEST_F(ServerTest, JoinsWithAnEndpointPerExecutor) {
  EXPECT_EQ(join_.role, Role::kServer);
  EXPECT_EQ(join_.job_fingerprint, 77u);
  ASSERT_EQ(join_.endpoints.size(), 2u);
  EXPECT_NE(join_.endpoints[0], join_.endpoints[1]);
}

TEST_F(ServerTest, ServesSavesLoadsAndReports) {
  Start();
  Push(0);
  Push(1);
  // There is no Complete: the order itself implies that all steps before 2 are complete.
  EXPECT_TRUE(orders_.Do<SaveDone>(SaveOrder{2, "saved"}).writing);
  const auto saved = orders_.Await<RowsWrittenMessage>();
  EXPECT_EQ(saved.order, 1u);
  ASSERT_FALSE(saved.files.empty());
  std::set<std::string> folders;
  for (const CheckpointFile& file : saved.files) {
    folders.insert(std::filesystem::path(file.name).parent_path());
  }
  EXPECT_EQ(folders, (std::set<std::string>{"server-4/rows-0", "server-4/rows-1"}));
  Push(2);
  const auto at3 = orders_.Do<FinishDone>(FinishOrder{});
  ASSERT_EQ(at3.tables.size(), 1u);
  EXPECT_EQ(at3.tables[0].name, "item");
  EXPECT_EQ(at3.tables[0].rows, 100u);
  EXPECT_GT(at3.stats.peak_rss_bytes, 0u);
  orders_.Do<LoadDone>(LoadOrder{2, saved_, Generation(2)});
  const auto at2 = orders_.Do<FinishDone>(FinishOrder{});
  EXPECT_NE(at2.tables[0].checksum_low, at3.tables[0].checksum_low);
  Push(2, Generation(2));
  const auto again = orders_.Do<FinishDone>(FinishOrder{});
  EXPECT_EQ(again.tables[0].checksum_low, at3.tables[0].checksum_low);
  EXPECT_EQ(again.tables[0].checksum_high, at3.tables[0].checksum_high);
  PullRequest old;
  old.step = 3;
  EXPECT_EQ(Ask(0, old, Generation(1)).status.code(), StatusCode::kFailedPrecondition);
  orders_.Send(StopMessage{});
  EXPECT_TRUE(End().ok());
}

TEST_F(ServerTest, ReportsTheLeastAppliedStep) {
  Start();
  Push(0);
  Push(1);
  HeartbeatMessage beat = orders_.Await<HeartbeatMessage>();
  for (int i = 0; i < 50 && beat.step != 1; ++i) beat = orders_.Await<HeartbeatMessage>();
  EXPECT_EQ(beat.step, 1u);
  ASSERT_EQ(beat.executors.size(), 2u);
  for (const ExecutorReport& executor : beat.executors) EXPECT_LT(executor.turn_age, 60);
}

TEST_F(ServerTest, EndsWithTheJobsError) {
  orders_.Send(StopMessage{StatusCode::kDataLoss, {"the data is damaged", "file", ""}});
  const Status end = End();
  EXPECT_EQ(end.code(), StatusCode::kDataLoss);
  EXPECT_NE(dt::ToText(end).find("the data is damaged"), std::string::npos);
}

TEST_F(ServerTest, StopOnRequestSaysSo) {
  Start();
  stop_.request_stop();
  orders_.Await<LeavingMessage>();
  EXPECT_EQ(End().code(), StatusCode::kCancelled);
}

TEST_F(ServerTest, FailedSaveIsToldAndLeavesNothing) {
  Start();
  // This folder prevents executor 1 from writing its file.
  std::filesystem::create_directories(saved_ + "/server-4/rows-1");
  orders_.Send(OrderMessage{1, SaveOrder{0, "saved"}});
  const auto failed = orders_.Await<FailedMessage>();
  EXPECT_EQ(failed.code, StatusCode::kUnavailable);
  EXPECT_NE(failed.problem.what.find("server-4/rows-1"), std::string::npos) << failed.problem.what;
  EXPECT_FALSE(End().ok());
  EXPECT_FALSE(std::filesystem::exists(saved_ + "/server-4"));
}

// Even a false scheduler can make a server write or remove files in checkpoint.dir only.
TEST_F(ServerTest, ASaveElsewhereIsRefused) {
  const test::ScratchFolder elsewhere;
  Start();
  const std::string name = "../" + std::filesystem::path(elsewhere.path()).filename().string();
  orders_.Send(OrderMessage{1, SaveOrder{0, name}});
  const auto failed = orders_.Await<FailedMessage>();
  EXPECT_EQ(failed.code, StatusCode::kOutOfRange);
  EXPECT_NE(failed.problem.what.find(name), std::string::npos) << failed.problem.what;
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere.path()));
}

TEST_F(ServerTest, LoadOfAnEmptyFolderIsTold) {
  const test::ScratchFolder temp;
  Start();
  orders_.Send(OrderMessage{1, LoadOrder{5, temp.path(), Generation(2)}});
  const auto failed = orders_.Await<FailedMessage>();
  EXPECT_EQ(failed.code, StatusCode::kDataLoss);
  EXPECT_NE(failed.problem.what.find(temp.path()), std::string::npos) << failed.problem.what;
}

TEST(Server, AddressInUseIsNamed) {
  JobConfig job;
  const auto network = MakeMemoryNetwork();
  const auto first = network->Bind("inproc://server");
  const auto server = Server::Open({.job = job,
                                    .network = *network,
                                    .scheduler = "inproc://scheduler",
                                    .listen = "inproc://server"});
  ASSERT_FALSE(server.ok());
  EXPECT_NE(dt::ToText(server.status()).find("inproc://server"), std::string::npos);
}

}  // namespace
}  // namespace dt::server
