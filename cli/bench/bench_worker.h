// The worker's side of `dovetail bench transport`: pulls rows from one executor, pushes gradients
// to it with the messages of a job, and checks the replies. One thread.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "cli/bench/bench_peer.h"
#include "common/wire/data.h"

namespace dt::cli {

inline constexpr size_t kBenchPartRows = 4096;  // PsClient uses the same limit.

// Microseconds from sending each request to having its reply.
using Latencies = std::vector<float>;

// `requests` requests of `rows` rows, with at most `in_flight` unanswered at a time. Each is sent
// as messages of at most kBenchPartRows rows, so that the server reads rows for one message while
// the network transports another.
struct BenchLoad {
  size_t rows = 0;
  size_t in_flight = 1;
  size_t requests = 0;
};

class BenchWorker {
 public:
  BenchWorker(Network& network, const std::string& endpoint);

  // Gives every row its own value.
  void PushAllRows();
  // Keys are distinct within a request and uniform over all rows. Every row of a reply is compared
  // with the value pushed to it, and every cache line of it is read. REQUIRES: BringUpToDate since
  // the last Push.
  void Pull(const BenchLoad& load, Latencies& latencies);
  void Push(const BenchLoad& load, Latencies& latencies);
  // Computes the current values of the rows in requests for `rows` rows.
  void BringUpToDate(size_t rows);
  // Switches to another network; server, rows and state stay.
  void Reconnect(Network& network);

  // Bytes of one request or of its reply, over all messages.
  size_t RequestBytes(size_t rows, bool push);
  size_t AnswerBytes(size_t rows, bool push);

 private:
  // One message of a request.
  struct Part {
    size_t first = 0;  // Position of its first row in the batch.
    size_t rows = 0;
    KeyGroups groups;
    ShardPieces pieces;  // All parts of a batch together name every shard.
    Frame keys;
  };
  // One request: its keys in wire order, and the values of their rows as of the last BringUpToDate.
  struct Batch {
    std::vector<uint64_t> row_numbers;
    std::vector<float> values;
    std::vector<Part> parts;
    uint32_t pushed = 0;  // Number of pushes that are not in values_ yet.
  };

  std::vector<Batch>& BatchesOf(size_t rows);
  Batch MakeBatch(std::vector<uint64_t> row_numbers);
  Part MakePart(std::span<const uint64_t> row_numbers, size_t first);
  static void NamePieces(std::vector<Part>& parts);
  void SendPull(const Batch& batch);
  void SendPush(const Batch& batch, std::span<const Frame> gradients);
  Frame GradientsOf(size_t rows);
  DataReply NextReply();
  static void Check(std::span<const float> expected, const Frame& values);
  template <class SendOne, class TakeOne>
  void Loop(const BenchLoad& load, Latencies& latencies, SendOne send, TakeOne take);

  const std::string endpoint_;
  std::unique_ptr<ClientSocket> socket_;
  FramePool* frames_ = nullptr;                   // The network's pool.
  std::vector<float> values_;                     // By row: the value of all its columns.
  std::map<size_t, std::vector<Batch>> batches_;  // By rows per request.
  uint64_t sent_ = 0, answered_ = 0;              // Requests; replies arrive in order.
  Step step_ = 0;
};

}  // namespace dt::cli
