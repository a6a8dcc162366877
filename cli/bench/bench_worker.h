// The worker's side of `dovetail bench transport`: asks one executor for rows and pushes gradients
// to it in the messages of a job, and checks what comes back. One thread.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "cli/bench/bench_peer.h"
#include "common/wire/data.h"

namespace dt::cli {

inline constexpr size_t kBenchPartRows = 4096;  // As PsClient cuts them.

// How long each request took, in microseconds, from sending it to having its answer.
using Latencies = std::vector<float>;

// `requests` requests of `rows` rows, at most `in_flight` of them unanswered at a time. Each
// travels in messages of at most kBenchPartRows rows, so that the server reads rows for one while
// the network carries another.
struct BenchLoad {
  size_t rows = 0;
  size_t in_flight = 1;
  size_t requests = 0;
};

class BenchWorker {
 public:
  BenchWorker(Network& network, const std::string& endpoint);

  // Gives every row a value of its own.
  void PushAllRows();
  // Keys are distinct within a request and uniform over all rows. Every row of an answer is
  // compared with what was pushed to it, and every cache line of it is read.
  // REQUIRES: BringUpToDate since the last Push.
  void Pull(const BenchLoad& load, Latencies& latencies);
  void Push(const BenchLoad& load, Latencies& latencies);
  // What the rows of requests for so many are now.
  void BringUpToDate(size_t rows);
  // From now on over this network: the same server, rows and state.
  void Reconnect(Network& network);

  // Of one request and its answer, all messages together.
  size_t RequestBytes(size_t rows, bool push);
  size_t AnswerBytes(size_t rows, bool push);

 private:
  // A message's share of a request.
  struct Part {
    size_t first = 0;  // Its rows in the batch.
    size_t rows = 0;
    KeyGroups groups;
    ShardPieces pieces;  // The parts of a batch together name every shard.
    Frame keys;
  };
  // One request: its keys in wire order, and the values of their rows as far as up to date.
  struct Batch {
    std::vector<uint64_t> row_numbers;
    std::vector<float> values;
    std::vector<Part> parts;
    uint32_t pushed = 0;  // Times, not yet in values_.
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
  FramePool* frames_ = nullptr;                   // Of the network.
  std::vector<float> values_;                     // By row: all its columns.
  std::map<size_t, std::vector<Batch>> batches_;  // By rows of a request.
  uint64_t sent_ = 0, answered_ = 0;              // Requests; answers come in the same order.
  Step step_ = 0;
};

}  // namespace dt::cli
