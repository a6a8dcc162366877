// Goal: another account of this host, without a key of the job, gets nothing from the job and
// changes nothing: it reads no status and no rows, joins neither as a process nor as a server's
// successor, and cannot end the job. Method: this program starts itself as another account, which
// sends the job's own messages to every listening port while the job trains; the checksums are
// compared with those of an undisturbed job. Needs root to become another account.
#include <cstdio>
#include <filesystem>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "common/control/control_link.h"
#include "common/control/packet.h"
#include "test/hostile/victim_job.h"

namespace dt::test {
namespace {

constexpr unsigned kOtherAccount = 65534;  // The account "nobody".
constexpr char kPortsVariable[] = "DT_STRANGER_PORTS";
constexpr Duration kTimeout = milliseconds(100);

Status Joins(Network& network, const std::string& address, const JoinMessage& join) {
  ControlLink::Options options;
  options.network = &network;
  options.scheduler = address;
  options.join = join;
  options.join_timeout = kTimeout;
  return ControlLink::Open(options).status();
}

Status IsAnswered(Network& network, const std::string& address, Frames request) {
  DT_TRY(const auto socket, network.Connect(address));
  DT_TRY_STATUS(socket->Send(std::move(request)));
  return socket->Receive(kTimeout).status();
}

// Everything that a stranger could ask at a port, with the outcome: OK means that it was answered.
std::vector<std::pair<std::string, Status>> Tries(Network& network, const std::string& address) {
  Random random(1);
  PushRequest push;
  push.groups = {{ShardId(0), 0, 1}};
  push.keys = Frame::Of(sizeof(Key));
  push.gradients = Frame::Of(64);
  const auto said = [](const ControlMessage& message) {
    return EncodePacket({7, 1, 0, EncodeControl(message)});
  };
  return {
      {"status", RequestStatus(network, address, kTimeout).status()},
      {"pull", IsAnswered(network, address, Encode(FirstRows(random, 10)))},
      {"push", IsAnswered(network, address, Encode(push))},
      {"join", Joins(network, address, {.role = Role::kWorker})},
      {"server token",
       Joins(network, address, {.role = Role::kServer, .endpoints = {address}, .server_token = 1})},
      {"abort", IsAnswered(network, address, said(FailedMessage{StatusCode::kInternal, {"x"}}))},
  };
}

void ExpectNothing(Network& network, const std::string& address) {
  for (const auto& [what, status] : Tries(network, address)) {
    EXPECT_TRUE(status.code() == StatusCode::kUnavailable ||
                status.code() == StatusCode::kDeadlineExceeded)
        << what << " at " << address << ": " << status;
  }
}

// The test below runs this one as the other account.
TEST(Stranger, DISABLED_Asks) {
  ASSERT_NE(getuid(), 0u);
  const KeyPair own = MakeKeyPair(), other = MakeKeyPair();
  const std::unique_ptr<Network> networks[] = {
      MakeZmqNetwork({.insecure = true}),
      MakeZmqNetwork({.curve = CurveOptions{.job = other, .own = own}})};
  const char* const ports = std::getenv(kPortsVariable);
  ASSERT_NE(ports, nullptr);
  std::istringstream in(ports);
  // A refusal is silence, so all of them wait at the same time.
  std::vector<std::jthread> strangers;
  for (std::string address; in >> address;) {
    for (const auto& network : networks) {
      strangers.emplace_back([&network, address] { ExpectNothing(*network, address); });
    }
  }
  EXPECT_FALSE(strangers.empty());
}

// Returns true if every request of the stranger was refused.
bool StrangerIsRefused(const Targets& targets) {
  std::string ports;
  for (const uint16_t port : targets.ports) ports += fmt::format("tcp://127.0.0.1:{} ", port);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const pid_t child = fork();
  if (child == 0) {
    setenv(kPortsVariable, ports.c_str(), 1);
    if (setgid(kOtherAccount) != 0 || setuid(kOtherAccount) != 0) _exit(2);
    execl(self.c_str(), self.c_str(), "--gtest_also_run_disabled_tests",
          "--gtest_filter=Stranger.*", nullptr);
    _exit(3);
  }
  int state = 0;
  waitpid(child, &state, 0);
  return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

TEST(Strangers, OfAnotherAccountGetNothingAndChangeNothing) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become another account";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  for (std::filesystem::path at = self; at != "/"; at = at.parent_path()) {
    const auto mode = std::filesystem::status(at).permissions();
    if ((mode & std::filesystem::perms::others_exec) == std::filesystem::perms::none) {
      GTEST_SKIP() << "another account cannot run " << self;
    }
  }
  uint64_t strangers = 0, let_in = 0;
  const VictimEnd end = RunVictim([&](const Targets& targets) {
    ++strangers;
    let_in += !StrangerIsRefused(targets);
  });
  std::printf("%lu strangers, %lu of them let in\n", strangers, let_in);
  EXPECT_GT(strangers, 0u);
  EXPECT_EQ(let_in, 0u);
  EXPECT_EQ(end.program.exit_code, 0) << end.program.output;
  EXPECT_EQ(end.checksum, ChecksumInPeace());
  EXPECT_NE(end.checksum, "");
}

}  // namespace
}  // namespace dt::test
