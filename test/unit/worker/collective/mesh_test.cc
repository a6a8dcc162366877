// Goal: a mesh of processes starts beside strangers, and what fails or comes late does no harm.
// Method: ranks on threads connect over Gloo while others scan their ports, leave, or send too
// late.
#include "worker/collective/mesh.h"

#include <arpa/inet.h>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <latch>
#include <set>
#include <sstream>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "test/support/hash_rendezvous.h"

namespace dt::worker {
namespace {

// The ports on which this process listens.
std::set<uint16_t> ListeningPorts() {
  std::set<std::string> ours;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string to = std::filesystem::read_symlink(entry.path(), gone).string();
    if (to.starts_with("socket:[")) ours.insert(to.substr(8, to.size() - 9));
  }
  std::ifstream table("/proc/self/net/tcp");
  std::string line, slot, local, remote, state, skipped, inode;
  std::set<uint16_t> ports;
  for (std::getline(table, line); std::getline(table, line);) {
    std::istringstream fields(line);
    fields >> slot >> local >> remote >> state >> skipped >> skipped >> skipped >> skipped >>
        skipped >> inode;
    if (state != "0A" || !ours.contains(inode)) continue;
    ports.insert(static_cast<uint16_t>(std::stoul(local.substr(local.find(':') + 1), nullptr, 16)));
  }
  return ports;
}

// Another program scans this machine's ports once, just when the first rank listens.
class ScannedRendezvous : public HashRendezvous {
 public:
  Status Put(const std::string& key, std::string value) override {
    if (strangers == 0) {
      for (const uint16_t port : ListeningPorts()) {
        const int stranger = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port);
        if (connect(stranger, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
          ++strangers;
        }
        close(stranger);
      }
    }
    return HashRendezvous::Put(key, std::move(value));
  }
  std::atomic<int> strangers = 0;
};

TEST(GlooMesh, AScanOfItsPortsDoesNotEndTheStart) {
  ScannedRendezvous rendezvous;
  const TimePoint begin = SystemClock().Now();
  std::vector<std::jthread> threads;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const auto mesh = ConnectGlooMesh(rendezvous, {.rank = rank, .size = 3, .prefix = "g0"});
      EXPECT_TRUE(mesh.ok()) << ToText(mesh.status());
    });
  }
  threads.clear();
  EXPECT_GT(rendezvous.strangers, 0);
  EXPECT_LT(SecondsBetween(begin, SystemClock().Now()), 20) << "Gloo cannot be interrupted";
}

TEST(GlooMesh, ListensAtNoAddressThatMeansAll) {
  HashRendezvous rendezvous;
  const auto mesh =
      ConnectGlooMesh(rendezvous, {.rank = 0, .size = 2, .host = "0.0.0.0", .prefix = "g0"});
  EXPECT_EQ(mesh.status().code(), StatusCode::kInvalidArgument);
}

TEST(GlooMesh, WhatComesTooLateIsWrittenNowhere) {
  HashRendezvous rendezvous;
  std::atomic<bool> ended = false;
  const auto connect = [&](uint32_t rank) {
    MeshLimits limits{.timeout = seconds(20)};
    if (rank == 1) limits.interrupted = [&] { return ended ? Cancelled("stopped") : OkStatus(); };
    return *ConnectGlooMesh(rendezvous,
                            {.rank = rank, .size = 2, .prefix = "late", .limits = limits});
  };
  std::latch gave_up(1), sent(1);
  std::jthread other([&] {
    const std::unique_ptr<Mesh> mesh = connect(0);
    ended = true;
    gave_up.wait();
    const std::byte late{7};
    const Outgoing out{1, std::span(&late, 1)};
    mesh->Exchange({}, "late", std::span(&out, 1), {}).IgnoreError();
    sent.count_down();
    sent.wait();
  });
  const std::unique_ptr<Mesh> mesh = connect(1);
  std::byte place{1};
  const Incoming in{0, std::span(&place, 1)};
  EXPECT_EQ(ToText(mesh->Exchange({}, "late", {}, std::span(&in, 1))), "stopped");
  gave_up.count_down();
  sent.wait();
  other.join();
  EXPECT_EQ(place, std::byte{1});
}

// Some messages are written after the other end has gone; the system then sends SIGPIPE to a
// process that does not ignore it.
TEST(GlooMesh, WritingToOneThatIsGoneIsAnErrorAndNoSignal) {
  for (int repeat = 0; repeat < 3; ++repeat) {
    HashRendezvous rendezvous;
    const auto connect = [&](uint32_t rank) {
      return *ConnectGlooMesh(
          rendezvous,
          {.rank = rank, .size = 2, .prefix = "gone", .limits = {.timeout = seconds(5)}});
    };
    std::latch sending(1);
    std::jthread other([&] {
      const std::unique_ptr<Mesh> mesh = connect(0);
      sending.wait();
    });
    const std::unique_ptr<Mesh> mesh = connect(1);
    const std::byte byte{7};
    const std::vector<Outgoing> out(20'000, {0, std::span(&byte, 1)});
    std::byte place{};
    const Incoming in{0, std::span(&place, 1)};
    sending.count_down();
    EXPECT_EQ(mesh->Exchange({}, "sum", out, std::span(&in, 1)).code(), StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace dt::worker
