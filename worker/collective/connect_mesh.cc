// Ranks of one host find each other's memory through /proc: a rank tells the others its process and
// the descriptor of its memory.
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <optional>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include "common/base/text.h"
#include "worker/collective/mesh.h"
#include "worker/collective/mesh_shm.h"

namespace dt::worker {
namespace {

std::string LinkText(const char* path) {
  char text[256];
  const ssize_t size = readlink(path, text, sizeof text);
  return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
}

// Equal for processes of one user that see each other's /proc and network. Empty: unknown.
std::string HostIdentity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  if (!std::getline(file, boot)) return "";
  const std::string net = LinkText("/proc/self/ns/net"), pid = LinkText("/proc/self/ns/pid");
  if (net.empty() || pid.empty()) return "";
  return fmt::format("{} {} {} {}", boot, net, pid, geteuid());
}

// The facts by which other ranks find a rank.
struct Published {
  std::string host;
  long process = 0, descriptor = 0;
};
std::string TextOf(const Published& rank) {
  return fmt::format("{};{};{}", rank.process, rank.descriptor, rank.host);
}
std::optional<Published> Parse(const std::string& text) {
  Published rank;
  const char* const end = text.data() + text.size();
  const auto process = std::from_chars(text.data(), end, rank.process);
  if (process.ec != std::errc() || process.ptr == end) return std::nullopt;
  const auto descriptor = std::from_chars(process.ptr + 1, end, rank.descriptor);
  if (descriptor.ec != std::errc() || descriptor.ptr == end) return std::nullopt;
  rank.host.assign(descriptor.ptr + 1, end);
  return rank;
}

Result<ShmPeer> PeerOf(const Published& rank, size_t bytes) {
  const std::string path = fmt::format("/proc/{}/fd/{}", rank.process, rank.descriptor);
  OwnedFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return Unavailable("{}: {}", path, std::strerror(errno));
  ShmPeer peer;
  peer.process = OwnedFd(static_cast<int>(syscall(SYS_pidfd_open, rank.process, 0)));
  if (!peer.process.valid()) return Unavailable("pidfd_open: {}", std::strerror(errno));
  DT_TRY(peer.memory, SharedMemory::Open(std::move(fd), bytes, SharedMemory::Access::kReadWrite));
  return peer;
}

// The memory of all ranks, or why it is not shared.
Result<std::vector<ShmPeer>> FindPeers(const std::vector<std::string>& published, size_t bytes) {
  std::vector<ShmPeer> peers;
  std::string host;
  for (const std::string& text : published) {
    const std::optional<Published> rank = Parse(text);
    if (!rank || rank->host.empty()) return Unavailable("a rank shares no memory");
    if (peers.empty()) host = rank->host;
    if (rank->host != host) return Unavailable("ranks are on several hosts");
    DT_TRY(peers.emplace_back(), PeerOf(*rank, bytes));
  }
  return peers;
}

// By rank: what each has put under the key.
Result<std::vector<std::string>> Exchange(Rendezvous& rendezvous, const MeshOptions& options,
                                          std::string_view key, std::string own) {
  const auto name = [&](uint32_t rank) {
    return fmt::format("{}/{}/{}", options.prefix, key, rank);
  };
  DT_TRY_STATUS(rendezvous.Put(name(options.rank), std::move(own)));
  std::vector<std::string> all;
  for (uint32_t r = 0; r < options.size; ++r) {
    DT_TRY(all.emplace_back(), rendezvous.Get(name(r), options.limits.timeout));
  }
  return all;
}

}  // namespace

Result<std::unique_ptr<Mesh>> ConnectMesh(Rendezvous& rendezvous, const MeshOptions& options) {
  const size_t bytes = ShmSegmentBytes(options.size);
  const Result<SharedMemory> own =
      SharedMemory::Create("dovetail-mesh", bytes, SharedMemory::Access::kReadWrite);
  Published published;
  if (own.ok()) published = {HostIdentity(), getpid(), own->fd().get()};
  DT_TRY(const std::vector<std::string> ranks,
         Exchange(rendezvous, options, "memory", TextOf(published)));
  Result<std::vector<ShmPeer>> peers = FindPeers(ranks, bytes);
  // All ranks decide alike, and none closes its memory before all have mapped it.
  DT_TRY(const std::vector<std::string> found,
         Exchange(rendezvous, options, "mapped", peers.ok() ? "yes" : "no"));
  if (std::ranges::count(found, "yes") == std::ssize(found)) {
    return MakeShmMesh(options, *std::move(peers));
  }
  return ConnectGlooMesh(rendezvous, options);
}

}  // namespace dt::worker
