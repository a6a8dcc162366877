// Point-to-point messages between the ranks of one worker set: what collectives stand on. One
// thread per rank. Every wait has a deadline and ends at once when the job does. After an error a
// mesh is of no more use: it is connected anew under another prefix.
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
  // Sends and receives all of it, in any order, and returns when all is done. The n-th message from
  // rank a to rank b in a call meets the n-th one that b awaits from a in the same call: all ranks
  // make the same calls in the same order. Empty messages are left out on both sides. `operation`
  // is for errors.
  virtual Status Exchange(std::string_view operation, std::span<const Outgoing> send,
                          std::span<const Incoming> receive) = 0;
};

struct MeshLimits {
  Duration timeout = seconds(30);            // For one exchange.
  std::function<Status()> interrupted = {};  // Asked while waiting, on any thread: not OK ends it.
};

// Ranks of one process, through memory; index = rank. Each may go to a thread of its own.
std::vector<std::unique_ptr<Mesh>> MakeMemoryMesh(uint32_t ranks, const MeshLimits& limits);

// Where ranks find each other: set once, waited for. Any thread.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual Status Put(const std::string& key, std::string value) = 0;
  virtual Result<std::string> Get(const std::string& key, Duration timeout) = 0;
};

struct GlooOptions {
  uint32_t rank = 0, size = 1;
  std::string host = "127.0.0.1";  // Address of this rank's interface.
  std::string prefix;              // Prefix of keys in the rendezvous; new for each call.
  MeshLimits limits = {};
};
// Connects to every other rank over TCP, without encryption, listening at `host` only. If a foreign
// connection disturbs it, all ranks try again, up to five times. Errors: Unavailable, naming the
// rank, or the status that interrupted it.
// The process ignores SIGPIPE from then on, if it would have died of it.
Result<std::unique_ptr<Mesh>> ConnectGlooMesh(Rendezvous& rendezvous, const GlooOptions& options);

}  // namespace dt::worker
