// Goal: when a process is killed in the middle of a collective, every other one ends in time and
// names it. Method: three processes repeat each collective until one of them gets
// SIGKILL. It forks, so no thread may run before.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/pause.h"
#include "test/support/scratch_folder.h"
#include "test/unit/worker/collective/operations.h"

namespace dt::worker {
namespace {

constexpr uint32_t kRanks = 3;
constexpr Duration kTimeout = seconds(5), kPoll = milliseconds(1);

std::string Content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path + ".new") << text;
  std::filesystem::rename(path + ".new", path);
}

bool Appears(const std::string& path, Duration timeout) {
  return PollUntil(SystemClock().Now() + timeout, kPoll,
                   [&] { return std::filesystem::exists(path); });
}

// Where processes find each other: a file for each key.
class FileRendezvous : public Rendezvous {
 public:
  explicit FileRendezvous(std::string folder) : folder_(std::move(folder)) {}
  Status Put(const std::string& key, std::string value) override {
    Write(PathOf(key), value);
    return OkStatus();
  }
  Result<std::string> Get(const std::string& key, Duration timeout) override {
    if (!Appears(PathOf(key), timeout)) return Timeout("nobody put {}", key);
    return Content(PathOf(key));
  }

 private:
  std::string PathOf(std::string key) const {
    std::ranges::replace(key, '/', '_');
    return folder_ + "/key_" + key;
  }
  const std::string folder_;
};

// A process of its own: repeats the operation until it fails, and writes down why.
void Repeat(const std::string& folder, uint32_t rank, bool shared,
            const NamedOperation& operation) {
  FileRendezvous rendezvous(folder);
  const std::string own = folder + "/" + std::to_string(rank);
  const MeshOptions options = {
      .rank = rank, .size = kRanks, .prefix = "g0", .limits = {.timeout = kTimeout}};
  Result<std::unique_ptr<Mesh>> mesh =
      shared ? ConnectMesh(rendezvous, options) : ConnectGlooMesh(rendezvous, options);
  if (!mesh.ok()) return Write(own, ToText(mesh.status()));
  const std::unique_ptr<Communicator> communicator = MakeMeshCommunicator(**mesh);
  const RankGroup all = RankGroup::All(kRanks);
  Status status;
  for (Step step = 0; status.ok(); ++step) {
    status = operation.run(*communicator, {.group = all, .name = "wide", .step = step});
    if (step == 100) Write(own + ".runs", "");
  }
  Write(own, ToText(status));
}

class KilledRank : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Meshes, KilledRank, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "SharedMemory" : "Gloo"; });

TEST_P(KilledRank, IsNamedByAllOthersInEveryCollective) {
  for (const NamedOperation& operation : Operations(kRanks)) {
    SCOPED_TRACE(operation.name);
    const test::ScratchFolder folder;
    std::vector<pid_t> processes;
    for (uint32_t r = 0; r < kRanks; ++r) {
      const pid_t process = fork();
      ASSERT_GE(process, 0);
      if (process == 0) {
        Repeat(folder.path(), r, GetParam(), operation);
        _exit(0);
      }
      processes.push_back(process);
    }
    for (const char* const rank : {"0", "1", "2"}) {
      EXPECT_TRUE(Appears(folder / (std::string(rank) + ".runs"), seconds(60))) << rank;
    }
    const TimePoint killed = SystemClock().Now();
    kill(processes[1], SIGKILL);
    for (const pid_t process : processes) EXPECT_EQ(waitpid(process, nullptr, 0), process);
    EXPECT_LT(SystemClock().Now() - killed, kTimeout + seconds(5));
    for (const char* const rank : {"0", "2"}) {
      const std::string text = Content(folder / rank);
      EXPECT_THAT(text, testing::HasSubstr(", " + operation.name + ": wide: ")) << rank;
      EXPECT_THAT(text, testing::HasSubstr("rank 1")) << rank;
    }
  }
}

}  // namespace
}  // namespace dt::worker
