// Goal: servers that are lost, join or leave while training goes on change no bit of the result,
// nor does a scheduler that is lost meanwhile. Method: real processes under `launch`, killed by
// SIGKILL, with further servers started by hand; the final checksums are those of an undisturbed
// job. Leases are longer than the test: `launch` reports the end of its processes.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <signal.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/full_disk.h"
#include "test/support/http_get.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Arguments = std::vector<std::string>;
using Json = nlohmann::json;

// Long enough for all that is done while it trains.
const TinyJobOptions kOptions = {.epochs = 50, .slices = 2, .servers = 2, .workers = 2};

// The settings of all jobs here. None of them may change a bit of the result, but those of the
// model.
Arguments With(Arguments arguments, const std::string& mark, const Arguments& settings) {
  for (const std::string& each : {mark, std::string("cluster.lease=60s")}) {
    arguments.insert(arguments.end(), {"--set", each});
  }
  arguments.insert(arguments.end(), {"--set", "train.evaluate_every=60"});
  for (const std::string& each : settings) arguments.insert(arguments.end(), {"--set", each});
  return arguments;
}

// The checksums of a job with this model, trained in one process.
std::string Undisturbed(const Arguments& model) {
  static std::map<Arguments, std::string> checksums;
  std::string& checksum = checksums[model];
  if (!checksum.empty()) return checksum;
  const TempFolder folder;
  const std::string job = WriteTinyJob(folder, kOptions);
  const ProgramEnd end =
      RunProgram(folder.path(), With({"train", job, "--result", "calm.json"}, "job=calm", model));
  EXPECT_EQ(end.exit_code, 0) << end.output;
  return checksum = ChecksumOf(folder, "calm.json");
}

class Chains : public ::testing::Test {
 protected:
  // Starts the job and waits until it trains.
  void Launch(const std::string& name, const Arguments& settings) {
    name_ = JobNameOfOurs(name);
    mark_ = "job=" + name_;
    settings_ = settings;
    settings_.insert(settings_.end(), model_.begin(), model_.end());
    launch_ = std::make_unique<Program>(
        folder_.path(),
        With({"launch", job_, "--result", "r.json", "--no-progress"}, mark_, settings_));
    ASSERT_TRUE(Eventually([&] { return Get("/step", 0) >= 60; })) << launch_->Output();
  }
  bool Eventually(const std::function<bool()>& done) { return test::Eventually(seconds(30), done); }

  // The value at a JSON pointer of what the job's page says, or `absent`. The page is another one
  // after a restart of the scheduler.
  template <class Value>
  Value Get(const std::string& pointer, const Value& absent) const {
    const std::string page = TextAt(folder_, "runs/" + name_ + "/run.json", "/http");
    const HttpAnswer answer = HttpGet(page + "status");
    if (answer.status != 200) return absent;
    return Json::parse(answer.body).value(Json::json_pointer(pointer), absent);
  }

  // Starts a server as a user would, with settings of its own.
  std::unique_ptr<Program> StartServer(const Arguments& own = {}) const {
    const std::string scheduler = TextAt(folder_, "runs/" + name_ + "/run.json", "/scheduler");
    Arguments settings = settings_;
    settings.insert(settings.end(), own.begin(), own.end());
    return std::make_unique<Program>(
        folder_.path(), With({"server", job_, "--scheduler", scheduler}, mark_, settings));
  }
  ProgramEnd Drain(uint32_t server) const {
    return RunProgram(folder_.path(),
                      With({"drain", std::to_string(server), job_}, mark_, settings_));
  }
  // The process that `launch` runs as this server; -1: none.
  pid_t PidOf(uint32_t server) const {
    const std::string child = fmt::format("--child{0}{1}{0}", '\0', server);
    const std::vector<pid_t> ours = ProcessesWith(mark_, "server");
    for (const pid_t pid : ProcessesWith(child)) {
      if (std::ranges::count(ours, pid) != 0) return pid;
    }
    return -1;
  }
  void KillServer(uint32_t server) {
    const pid_t pid = PidOf(server);
    ASSERT_GT(pid, 0) << launch_->Output();
    kill(pid, SIGKILL);
  }
  // The number of the server that is this process; 0: it has not joined.
  uint32_t IdOf(pid_t pid) const {
    for (const Json& process : Get("/processes", Json::array())) {
      if (process["pid"] == pid) return process["id"];
    }
    return 0;
  }
  bool IsCopyingTo(uint32_t server) const {
    const Json copies = Get("/shards/copies", Json::array());
    return std::ranges::any_of(copies, [&](const Json& copy) { return copy["to"] == server; });
  }
  uint32_t ShardsOf(uint32_t server) const {
    for (const Json& process : Get("/processes", Json::array())) {
      if (process["role"] == "server" && process["id"] == server) return process["shards"];
    }
    return 0;
  }

  void ExpectUndisturbedEnd() {
    const ProgramEnd end = launch_->Wait(seconds(60));
    ASSERT_EQ(end.exit_code, 0) << end.output;
    // A server that was started by hand is not waited for by `launch`.
    EXPECT_TRUE(Eventually([&] { return ProcessesWith(mark_).empty(); }));
    result_ = Json::parse(folder_.Read("r.json"));
    EXPECT_EQ(ChecksumOf(folder_, "r.json"), Undisturbed(model_));
  }
  // The first event of this kind, of this server if it is given; null: none.
  Json EventOf(const std::string& kind, const Json& id = nullptr, const char* of = "id") const {
    for (const Json& event : result_["events"]) {
      if (event["kind"] == kind && (id.is_null() || event.value(of, Json()) == id)) return event;
    }
    return nullptr;
  }

  const TempFolder folder_;
  const std::string job_ = WriteTinyJob(folder_, kOptions);
  std::string name_, mark_;
  Arguments model_;  // Settings that change the result.
  Arguments settings_;
  std::unique_ptr<Program> launch_;
  Json result_;
};

// Whether all threads of a process have ended, so that its parent hears of it.
bool HasEnded(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  const std::string status{std::istreambuf_iterator<char>(file), {}};
  return status.empty() || (status.find("State:\tZ") != std::string::npos &&
                            status.find("Threads:\t1\n") != std::string::npos);
}

// The longest time in which no step was trained.
double LongestGap(const Json& result) {
  double before = 0, longest = 0;
  for (const Json& point : result["curve"]) {
    longest = std::max(longest, point["seconds"].get<double>() - before);
    before = point["seconds"];
  }
  return longest;
}

// ------------------------------------------------------------ servers that are lost

class AnyServer : public Chains, public ::testing::WithParamInterface<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Chains, AnyServer, ::testing::Values(1, 2, 3));

TEST_P(AnyServer, WhichIsKilledIsMissedForLessThanTwoSeconds) {
  Launch("kill", {"cluster.servers=3", "cluster.replicas=2"});
  KillServer(GetParam());
  ExpectUndisturbedEnd();
  EXPECT_FALSE(EventOf("server_lost", GetParam()).is_null()) << result_["events"];
  EXPECT_FALSE(EventOf("chains_complete").is_null()) << result_["events"];
  EXPECT_LT(LongestGap(result_), 2) << result_["curve"];
}

TEST_F(Chains, AServerThatIsKilledWhileItGetsShardsIsReplaced) {
  Launch("receiver", {"cluster.replicas=2", "cluster.move_rate=32KiB"});
  KillServer(2);
  uint32_t receiver = 0;
  ASSERT_TRUE(Eventually([&] {
    receiver = IdOf(PidOf(2));
    return receiver != 0 && IsCopyingTo(receiver);
  })) << launch_->Output();
  KillServer(2);
  ExpectUndisturbedEnd();
  EXPECT_FALSE(EventOf("server_lost", receiver).is_null()) << result_["events"];
}

// ------------------------------------------------------------ servers that join and leave

TEST_F(Chains, AServerJoinsAndTwoAreDrained) {
  Launch("join-drain", {"cluster.move_rate=0"});
  const std::unique_ptr<Program> late = StartServer();
  uint32_t id = 0;
  ASSERT_TRUE(Eventually([&] { return (id = IdOf(late->pid())) != 0 && ShardsOf(id) == 5; }))
      << late->Output();
  EXPECT_EQ(Drain(1).exit_code, 0);
  EXPECT_EQ(Drain(id).exit_code, 0);
  const ProgramEnd end = late->Wait(seconds(30));
  EXPECT_EQ(end.exit_code, 0) << end.output;
  const ProgramEnd last = Drain(2);
  EXPECT_EQ(last.exit_code, 2);
  EXPECT_THAT(last.output, HasSubstr("without server 2 the job would have 0 servers; it needs 1"));
  ExpectUndisturbedEnd();
  EXPECT_FALSE(EventOf("shards_moved", id, "server").is_null()) << result_["events"];
  EXPECT_FALSE(EventOf("server_drained", 1).is_null()) << result_["events"];
  EXPECT_FALSE(EventOf("server_drained", id).is_null()) << result_["events"];
}

TEST_F(Chains, AServerJoinsAJobWithCopies) {
  Launch("join-copies", {"cluster.replicas=2", "cluster.move_rate=0"});
  const ProgramEnd refused = Drain(2);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.output,
              HasSubstr("without server 2 the job would have 1 server; it needs 2"));
  EXPECT_THAT(Drain(9).output, HasSubstr("the job has no server 9"));
  const std::unique_ptr<Program> late = StartServer();
  uint32_t id = 0;
  ASSERT_TRUE(Eventually([&] { return (id = IdOf(late->pid())) != 0 && ShardsOf(id) > 0; }))
      << late->Output();
  ExpectUndisturbedEnd();
  const ProgramEnd end = late->Wait(seconds(10));
  EXPECT_EQ(end.exit_code, 0) << end.output;
  EXPECT_FALSE(EventOf("shards_moved", id, "server").is_null()) << result_["events"];
}

TEST_F(Chains, ASchedulerThatIsKilledWhileShardsMoveGoesOnWithThem) {
  Launch("scheduler", {"cluster.move_rate=32KiB"});
  const std::unique_ptr<Program> late = StartServer();
  uint32_t id = 0;
  ASSERT_TRUE(Eventually([&] { return (id = IdOf(late->pid())) != 0 && IsCopyingTo(id); }))
      << late->Output();
  const std::vector<pid_t> scheduler = ProcessesWith(mark_, "scheduler");
  ASSERT_EQ(scheduler.size(), 1u);
  kill(scheduler[0], SIGKILL);
  ExpectUndisturbedEnd();
  EXPECT_FALSE(EventOf("scheduler_restarted").is_null()) << result_["events"];
  EXPECT_FALSE(EventOf("shards_moved", id, "server").is_null()) << result_["events"];
}

// ------------------------------------------------------------ servers that cannot take their share

// Tables of megabytes, and servers that join with little memory.
class Newcomers : public Chains {
 protected:
  const std::string kLittle = "cluster.server.memory=256KiB";

  void SetUp() override { model_ = {"model.tables.deep.dim=512"}; }
};

TEST_F(Newcomers, OneWithTooLittleMemoryIsRefused) {
  model_.push_back("model.tables.deep.memory=all");
  Launch("memory", {});
  ASSERT_TRUE(Eventually([&] { return Get("/tables/deep/bytes", 0) > 1 << 20; })) << "no report";
  const ProgramEnd end = StartServer({kLittle})->Wait(seconds(20));
  EXPECT_EQ(end.exit_code, 2) << end.output;
  EXPECT_THAT(end.output, AllOf(HasSubstr("of rows that stay in memory; this one may use 256 KiB"),
                                HasSubstr("raise its cluster.server.memory")));
  ExpectUndisturbedEnd();
}

TEST_F(Newcomers, OneWhoseDiskIsFullEnds) {
  const SmallDisk disk(64 << 10);
  if (!disk.made()) GTEST_SKIP() << "only root can make a small disk";
  Launch("disk", {"cluster.replicas=2", "cluster.move_rate=0"});
  const std::unique_ptr<Program> late = StartServer({kLittle, "cluster.server.dir=" + disk.path()});
  const ProgramEnd end = late->Wait(seconds(20));
  EXPECT_EQ(end.exit_code, 1) << end.output;
  EXPECT_THAT(end.output, HasSubstr("the disk is full"));
  ExpectUndisturbedEnd();
  EXPECT_FALSE(EventOf("server_lost").is_null()) << result_["events"];
}

TEST_F(Newcomers, OneThatStandsStillIsSetAway) {
  Launch("pause", {"cluster.replicas=2", "cluster.move_rate=256KiB", "cluster.lease=1s"});
  const std::unique_ptr<Program> late = StartServer();
  uint32_t id = 0;
  ASSERT_TRUE(Eventually([&] { return (id = IdOf(late->pid())) != 0 && IsCopyingTo(id); }));
  late->Signal(SIGSTOP);
  ASSERT_TRUE(Eventually([&] { return IdOf(late->pid()) == 0; })) << launch_->Output();
  late->Signal(SIGCONT);
  const ProgramEnd end = late->Wait(seconds(20));
  EXPECT_EQ(end.exit_code, 1) << end.output;
  ExpectUndisturbedEnd();
  EXPECT_FALSE(EventOf("server_lost", id).is_null()) << result_["events"];
}

// ------------------------------------------------------------ servers that keep a log

class LoggedChains : public Chains {
 protected:
  void SetUp() override { Launch("logged", {"cluster.replicas=2", "checkpoint.durability=log"}); }
  // Kills the servers, of which `launch` learns only after `meanwhile`; it tells the scheduler of
  // the first one first.
  void KillAll(const std::vector<uint32_t>& servers, const std::function<void()>& meanwhile) {
    launch_->Signal(SIGSTOP);
    for (const uint32_t server : servers) {
      const pid_t pid = PidOf(server);
      KillServer(server);
      ASSERT_TRUE(Eventually([&] { return HasEnded(pid); })) << "it does not die";
    }
    meanwhile();
    launch_->Signal(SIGCONT);
  }
  // Changes bytes in the middle of the newest file of the server's log.
  void DamageLogOf(uint32_t server) {
    namespace fs = std::filesystem;
    std::optional<fs::path> newest;
    for (const auto& entry : fs::directory_iterator(
             fmt::format("{}/runs/{}/server-{}", folder_.path(), name_, server))) {
      if (!entry.path().filename().string().starts_with("log-")) continue;
      if (!newest || fs::last_write_time(*newest) < entry.last_write_time()) newest = entry.path();
    }
    ASSERT_TRUE(newest.has_value());
    std::fstream file(*newest, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(*newest) / 2));
    file << "damaged!";
    ASSERT_TRUE(file.good());
  }
};

TEST_F(LoggedChains, BothServersAreKilledAndComeBack) {
  KillAll({1, 2}, [] {});
  ExpectUndisturbedEnd();
  EXPECT_FALSE(EventOf("recovered", 2).is_null()) << result_["events"];
  EXPECT_FALSE(EventOf("chains_complete").is_null()) << result_["events"];
}

// Another has all its shards, so it begins empty.
TEST_F(LoggedChains, AServerIsKilledAndItsLogDamaged) {
  KillAll({2}, [this] { DamageLogOf(2); });
  ExpectUndisturbedEnd();
  EXPECT_FALSE(EventOf("server_lost", 2).is_null()) << result_["events"];
  EXPECT_FALSE(EventOf("chains_complete").is_null()) << result_["events"];
}

TEST_F(LoggedChains, BothServersAreKilledAndTheLogOfOneIsDamaged) {
  KillAll({1, 2}, [this] { DamageLogOf(1); });
  ExpectUndisturbedEnd();
  EXPECT_FALSE(EventOf("recovered", 2).is_null()) << result_["events"];
}

}  // namespace
}  // namespace dt::test
