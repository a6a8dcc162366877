// The other side of `dovetail bench transport`: a process of its own that answers until it is
// stopped. It is this program, started with a command that the help does not show.
#pragma once

#include <memory>
#include <string>

#include "cli/command_line.h"
#include "cli/process/child_process.h"
#include "cli/process/signals.h"
#include "common/net/socket.h"

namespace dt::cli {

inline constexpr uint32_t kBenchDim = 64;        // Of the only table, "bench".
inline constexpr uint64_t kBenchRows = 1 << 21;  // 512 MiB
inline constexpr uint32_t kBenchShards = 64;     // All on one executor.
inline constexpr size_t kBenchBytesMax = 16'384 * kBenchDim * sizeof(float) + (1 << 20);

// In the clear, as the plain ZeroMQ that they are compared with: there are made-up rows behind.
inline const ZmqOptions kBenchSockets{.insecure = true};

// What the child does with --format: "executor": one executor thread of a server, with all that
// lies between the socket and the rows; "bare": plain ZeroMQ; "rows": that, and rows by number.
int RunBenchPeer(const CommandLine& line, StopSignals& signals);

// A peer, from the side that started it. One thread.
class BenchPeer {
 public:
  // Waits until it serves. A peer that cannot be started ends this process.
  explicit BenchPeer(const std::string& kind);
  ~BenchPeer();
  BenchPeer(const BenchPeer&) = delete;
  BenchPeer& operator=(const BenchPeer&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  // Used so far by all its threads.
  double CpuSeconds();

 private:
  std::unique_ptr<Network> network_;
  std::unique_ptr<ServerSocket> control_;
  std::vector<ChildProcess> child_;
  PeerId peer_;
  std::string endpoint_;
};

}  // namespace dt::cli
