// Measures what automatic placement needs to know of a server: a process with one executor and real
// rows gets the messages of a job, compared with plain ZeroMQ that transports as many bytes.
#include <algorithm>

#include "cli/bench/bench.h"
#include "cli/bench/bench_worker.h"
#include "common/base/check.h"
#include "common/net/zmq_bare.h"

namespace dt::cli {
namespace {

constexpr int kRepeats = 5;
constexpr BenchLoad kOneRow{.rows = 1, .requests = 1000};
constexpr BenchLoad kManyRows{.rows = 4096, .in_flight = 8, .requests = 256};
constexpr double kMillionRows = static_cast<double>(kManyRows.rows * kManyRows.requests) / 1e6;

BenchCase BenchRows(BenchWorker& worker, bool push) {
  BenchCase bench{.name = push ? "server: rows pushed" : "server: rows pulled",
                  .what = "4096 rows of 64 floats a request, 8 in flight, one executor",
                  .unit = "M rows/s"};
  for (int run = 0; run <= kRepeats; ++run) {
    Latencies latencies;
    worker.BringUpToDate(kManyRows.rows);
    const TimePoint begin = SystemClock().Now();
    push ? worker.Push(kManyRows, latencies) : worker.Pull(kManyRows, latencies);
    const double rate = kMillionRows / SecondsBetween(begin, SystemClock().Now());
    if (run > 0) bench.runs.push_back(rate);  // The first run is the warm-up.
  }
  return bench;
}

BenchCase BenchBytes(BareRequester& bare, size_t request_bytes, size_t answer_bytes) {
  const double bytes = static_cast<double>(answer_bytes * kManyRows.requests);
  return {.name = "plain ZeroMQ: bytes",
          .what = "answers as long as those to pulls, 8 in flight",
          .unit = "GB/s",
          .runs = MeasureRate(bytes / 1e9, kRepeats, [&] {
            for (size_t sent = 0, taken = 0; taken < kManyRows.requests; ++taken) {
              for (; sent < kManyRows.requests && sent - taken < kManyRows.in_flight; ++sent) {
                bare.Ask(request_bytes, answer_bytes);
              }
              DT_CHECK(bare.Receive() == answer_bytes);
            }
          })};
}

BenchCase BenchLatency(BenchWorker& worker) {
  BenchCase bench{.name = "server: one row", .unit = "requests/ms"};
  for (int run = 0; run < kRepeats; ++run) {
    Latencies latencies;
    worker.BringUpToDate(kOneRow.rows);
    worker.Pull(kOneRow, latencies);
    std::ranges::nth_element(latencies, latencies.begin() + kOneRow.requests / 2);
    bench.runs.push_back(1e3 / double{latencies[kOneRow.requests / 2]});
  }
  return bench;
}

}  // namespace

void BenchServer(std::vector<BenchCase>& cases, DeviceProfile& profile) {
  BenchPeer executor("executor"), plain("bare");
  const std::unique_ptr<Network> network = MakeZmqNetwork(kBenchSockets);
  BenchWorker worker(*network, executor.endpoint());
  worker.PushAllRows();
  const auto bare = MakeBareRequester(plain.endpoint(), kBenchBytesMax);
  const BenchCase one = BenchLatency(worker);
  const BenchCase pulled = BenchRows(worker, false), pushed = BenchRows(worker, true);
  const BenchCase bytes = BenchBytes(*bare, worker.RequestBytes(kManyRows.rows, false),
                                     worker.AnswerBytes(kManyRows.rows, false));
  ServerRates& rates = profile.server;
  rates.latency_seconds = 1e-3 / Median(one.runs);
  rates.bytes = 1e9 * Median(bytes.runs);
  const double row = 1e-6 / Median(pulled.runs) + 1e-6 / Median(pushed.runs);
  rates.row_seconds = std::max(0.0, row - 2 * kBenchDim * sizeof(float) / rates.bytes);
  rates.source = "measured " + WallTimeText().substr(0, 10);
  cases.insert(cases.end(), {one, pulled, pushed, bytes});
}

}  // namespace dt::cli
