#include "test/hostile/victim_job.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "common/control/key_files.h"

namespace dt::test {
namespace {

using std::chrono::seconds;

constexpr char kTcpListens[] = "0A";
constexpr char kNamePrefix[] = "@dovetail/";

// Inodes of the sockets that these processes have open.
std::vector<std::string> SocketsOf(const std::vector<pid_t>& pids) {
  std::vector<std::string> inodes;
  std::error_code gone;
  for (const pid_t pid : pids) {
    const std::filesystem::path fds = "/proc/" + std::to_string(pid) + "/fd";
    for (const auto& fd : std::filesystem::directory_iterator(fds, gone)) {
      const std::string what = std::filesystem::read_symlink(fd.path(), gone).string();
      if (what.starts_with("socket:[")) inodes.push_back(what.substr(8, what.size() - 9));
    }
  }
  return inodes;
}

// The fields of each line of a table in /proc/net.
std::vector<std::vector<std::string>> TableOf(const std::string& path) {
  std::vector<std::vector<std::string>> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    lines.emplace_back(std::istream_iterator<std::string>(words),
                       std::istream_iterator<std::string>());
  }
  return lines;
}

Targets TargetsOf(const std::vector<pid_t>& pids) {
  Targets targets;
  const std::vector<std::string> ours = SocketsOf(pids);
  const auto is_ours = [&](const std::string& inode) {
    return std::ranges::count(ours, inode) != 0;
  };
  for (const auto& words : TableOf("/proc/net/tcp")) {
    if (words.size() < 10 || words[3] != kTcpListens || !is_ours(words[9])) continue;
    const std::string& address = words[1];
    const size_t colon = address.find(':') + 1;
    uint16_t port = 0;
    std::from_chars(address.data() + colon, address.data() + address.size(), port, 16);
    targets.ports.push_back(port);
  }
  for (const auto& words : TableOf("/proc/net/unix")) {
    if (words.size() < 8 || !is_ours(words[6]) || !words[7].starts_with(kNamePrefix)) continue;
    const std::string name = words[7].substr(1);
    if (std::ranges::count(targets.names, name) == 0) targets.names.push_back(name);
  }
  return targets;
}

std::string WriteVictim(const TempFolder& folder) {
  return WriteTinyJob(folder,
                      {.epochs = 150, .slices = 2, .servers = 2, .workers = 2, .executors = "2"});
}

}  // namespace

const std::string& ChecksumInPeace() {
  static const std::string checksum = [] {
    const TempFolder folder;
    RunProgram(folder.path(), {"train", WriteVictim(folder), "--result", "r.json"});
    return ChecksumOf(folder, "r.json");
  }();
  return checksum;
}

VictimEnd RunVictim(const std::function<void(const Targets&)>& meanwhile) {
  const TempFolder folder;
  const std::string job = WriteVictim(folder);
  const std::string name = JobNameOfOurs("victim"), mark = "job=" + name;
  Program program(folder.path(),
                  {"launch", job, "--log-level", "info", "--set", mark, "--result", "r.json"});
  // Servers listen for shared memory only when all processes have joined.
  Targets targets;
  const bool begun = Eventually(seconds(30), [&] {
    targets = TargetsOf(ProcessesWith(mark));
    return targets.names.size() >= 4 || !folder.Read("r.json").empty();
  });
  const Result<KeyPair> key = ReadKeyFile(folder.path() + "/runs/" + name + "/keys/job.key");
  std::unique_ptr<Network> network;
  if (key.ok()) network = MakeZmqNetwork({.curve = CurveOptions{.job = *key, .own = *key}});
  targets.network = network.get();
  while (begun && network != nullptr && !targets.names.empty() && folder.Read("r.json").empty())
    meanwhile(targets);
  VictimEnd end;
  end.program = program.Wait(seconds(120));
  end.checksum = ChecksumOf(folder, "r.json");
  return end;
}

}  // namespace dt::test
