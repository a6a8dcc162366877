// Point-to-point messages between the ranks of one worker set: the base of collectives. One thread
// at a time makes a rank's calls, one after the other. Only ranks that have messages in a call make
// it. Every wait has a deadline and ends at once when the job ends. After an error a mesh is of no
// use any more; a new one must be connected under another prefix.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/status.h"

namespace dt::worker {

// Messages of different channels are counted apart.
struct Outgoing {
  uint32_t rank = 0;
  std::span<const std::byte> bytes;
  uint32_t channel = 0;  // 0 or 1.
};
struct Incoming {
  uint32_t rank = 0;
  std::span<std::byte> bytes;
  uint32_t channel = 0;
};
inline constexpr uint32_t kChannels = 2;

// What the messages of a call belong to. Both ends derive it from the plan, so that a call which
// one of them leaves out, or makes twice, is not mistaken for another: it ends at the deadline.
struct MessageTag {
  uint32_t group = 0;  // Below 2^10.
  uint32_t node = 0;   // Below 2^16.
  uint32_t slice = 0;  // Its last 12 bits count.
  Step step = 0;       // Its last 6 bits count.

  // The n-th message of a channel between two ranks in this call.
  uint64_t SlotOf(uint32_t channel, uint32_t n) const {
    return uint64_t{group} << 54 | uint64_t{node} << 38 | uint64_t{slice & 0xfff} << 26 |
           (step & 0x3f) << 20 | channel << 19 | n;
  }
};
// Between two ranks, in one direction, one call and one channel.
inline constexpr uint32_t kMessagesMax = 1U << 19;

// Counts the messages of a call in one direction, by peer and channel.
class MessageCounts {
 public:
  void Begin(const MessageTag& tag, uint32_t ranks) {
    tag_ = tag;
    counts_.assign(ranks * kChannels, 0);
  }
  // The slot of the next message to or from a rank.
  uint64_t NextSlot(uint32_t rank, uint32_t channel) {
    uint32_t& count = counts_[rank * kChannels + channel];
    DT_CHECK(count < kMessagesMax);
    return tag_.SlotOf(channel, count++);
  }

 private:
  MessageTag tag_;
  std::vector<uint32_t> counts_;
};

class Mesh {
 public:
  virtual ~Mesh() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;

  // Begins a call; `operation` is named in errors. REQUIRES: the call before has ended.
  virtual Status Begin(const MessageTag& tag, std::string_view operation) = 0;
  // Starts messages and returns at once. The n-th message from rank a to rank b on a channel meets
  // the n-th one that b awaits from a on this channel in the call with the same tag. Both may be
  // posted in several parts. Empty messages are left out on both sides. The bytes stay until End.
  virtual Status Post(std::span<const Outgoing> send, std::span<const Incoming> receive) = 0;
  // Waits for one message, counted over all that this call awaits, from 0 on.
  virtual Status WaitFor(size_t received) = 0;
  // Waits for all messages, and ends the call.
  virtual Status End() = 0;
  // Any thread: ends the call under way and all later ones with Cancelled.
  virtual void Cancel() { cancelled_ = true; }
  Status CheckCancelled() const {
    return cancelled_ ? Cancelled("this rank has given up") : OkStatus();
  }

  // A call with these messages.
  Status Exchange(const MessageTag& tag, std::string_view operation, std::span<const Outgoing> send,
                  std::span<const Incoming> receive) {
    DT_TRY_STATUS(Begin(tag, operation));
    DT_TRY_STATUS(Post(send, receive));
    return End();
  }

 private:
  std::atomic<bool> cancelled_ = false;
};

struct MeshLimits {
  Duration timeout = seconds(30);  // Limit for one call.
  // Called while waiting, on any thread; not OK ends the wait.
  std::function<Status()> interrupted = {};
  // Told, again and again, which rank has sent nothing since when, and which one is lost. Any
  // thread.
  std::function<void(uint32_t rank, TimePoint since)> awaits = {};
};

// Limits of waits beside the mesh's own, which end when the mesh is cancelled, too. The mesh
// outlives them.
MeshLimits WithCancel(const Mesh& mesh, MeshLimits limits);

// A mesh in memory for ranks of one process; index = rank. Each may be used by another thread.
std::vector<std::unique_ptr<Mesh>> MakeMemoryMesh(uint32_t ranks, const MeshLimits& limits);

// Where ranks find each other: a value is set once, and others wait for it. Any thread.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  virtual Status Put(const std::string& key, std::string value) = 0;
  virtual Result<std::string> Get(const std::string& key, Duration timeout) = 0;
};

struct MeshOptions {
  uint32_t rank = 0, size = 1;
  std::string host = "127.0.0.1";  // Address of this rank's interface, for TCP.
  std::string prefix;              // Prefix of keys in the rendezvous; another one for each call.
  MeshLimits limits = {};
};
// Connects to every other rank over TCP, without encryption, listening at `host` only. If a foreign
// connection disturbs it, all ranks try again, five times in all. Errors: Unavailable naming the
// rank, or the status that interrupted it.
// If SIGPIPE would end the process, the process ignores it from then on.
Result<std::unique_ptr<Mesh>> ConnectGlooMesh(Rendezvous& rendezvous, const MeshOptions& options);

// Connects through memory if all ranks are on one host, else as ConnectGlooMesh does. Errors: those
// of ConnectGlooMesh.
Result<std::unique_ptr<Mesh>> ConnectMesh(Rendezvous& rendezvous, const MeshOptions& options);

}  // namespace dt::worker
