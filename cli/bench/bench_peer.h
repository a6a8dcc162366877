// The other side of `dovetail bench transport`: a separate process that answers until it is
// stopped. It is this program, started with a command that the help does not show.
#pragma once

#include <memory>
#include <string>

#include "cli/command_line.h"
#include "cli/process/child_process.h"
#include "cli/process/signals.h"
#include "common/net/socket.h"

namespace dt::cli {

inline constexpr uint32_t kBenchDim = 64;        // Dimension of "bench", the only table.
inline constexpr uint64_t kBenchRows = 1 << 21;  // 512 MiB
inline constexpr uint32_t kBenchShards = 64;     // All on one executor.
inline constexpr size_t kBenchBytesMax = 16'384 * kBenchDim * sizeof(float) + (1 << 20);

// Not encrypted, like the plain ZeroMQ that they are compared with; the rows are artificial.
inline const ZmqOptions kBenchSockets{.insecure = true};

// Runs the child process. --format selects its work: "executor" is one executor thread of a server,
// with everything between the socket and the rows; "bare" is plain ZeroMQ; "rows" is plain ZeroMQ
// with rows that are read by number.
int RunBenchPeer(const CommandLine& line, StopSignals& signals);

// The parent's handle of a peer. One thread.
class BenchPeer {
 public:
  // Waits until the peer serves. If it cannot be started, this process ends.
  explicit BenchPeer(const std::string& kind);
  ~BenchPeer();
  BenchPeer(const BenchPeer&) = delete;
  BenchPeer& operator=(const BenchPeer&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  // CPU time used so far by all threads of the peer.
  double CpuSeconds();

 private:
  std::unique_ptr<Network> network_;
  std::unique_ptr<ServerSocket> control_;
  std::vector<ChildProcess> child_;
  PeerId peer_;
  std::string endpoint_;
};

}  // namespace dt::cli
