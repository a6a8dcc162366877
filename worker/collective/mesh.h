// Point-to-point messages between the ranks of one worker set: the base of collectives. One thread
// per rank. Every wait has a deadline and ends at once when the job ends. After an error a mesh is
// of no use any more; a new one must be connected under another prefix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace dt::worker {

struct Outgoing {
  uint32_t rank = 0;
  std::span<const std::byte> bytes;
};
struct Incoming {
  uint32_t rank = 0;
  std::span<std::byte> bytes;
};

class Mesh {
 public:
  virtual ~Mesh() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  // Sends and receives all messages, in any order, and returns when all are done. All ranks make
  // the same calls in the same order: the n-th message from rank a to rank b in a call meets the
  // n-th one that b awaits from a in the same call. Empty messages are left out on both sides.
  // `operation` is named in errors.
  virtual Status Exchange(std::string_view operation, std::span<const Outgoing> send,
                          std::span<const Incoming> receive) = 0;
};

struct MeshLimits {
  Duration timeout = seconds(30);  // Limit for one exchange.
  // Called while waiting, on any thread; not OK ends the wait.
  std::function<Status()> interrupted = {};
};

// A mesh in memory for ranks of one process; index = rank. Each may be used by another thread.
std::vector<std::unique_ptr<Mesh>> MakeMemoryMesh(uint32_t ranks, const MeshLimits& limits);

// Where ranks find each other: a value is set once, and others wait for it. Any thread.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual Status Put(const std::string& key, std::string value) = 0;
  virtual Result<std::string> Get(const std::string& key, Duration timeout) = 0;
};

struct GlooOptions {
  uint32_t rank = 0, size = 1;
  std::string host = "127.0.0.1";  // Address of this rank's interface.
  std::string prefix;              // Prefix of keys in the rendezvous; another one for each call.
  MeshLimits limits = {};
};
// Connects to every other rank over TCP, without encryption, listening at `host` only. If a foreign
// connection disturbs it, all ranks try again, five times in all. Errors: Unavailable naming the
// rank, or the status that interrupted it.
// If SIGPIPE would end the process, the process ignores it from then on.
Result<std::unique_ptr<Mesh>> ConnectGlooMesh(Rendezvous& rendezvous, const GlooOptions& options);

}  // namespace dt::worker
