// Measures the transport between a worker and a server, two processes with the messages of a job
// and real rows, against plain ZeroMQ that transports as many bytes. To separate the cost of the
// transport from that of reading rows, a second reference is plain ZeroMQ whose answers are read
// from rows by number ("with_rows"). docs/performance.md explains the cases.
#include <algorithm>

#include "cli/bench/bench.h"
#include "cli/bench/bench_worker.h"
#include "common/base/check.h"
#include "common/control/read_process_stats.h"
#include "common/net/shm/shm_network.h"
#include "common/net/zmq_bare.h"

namespace dt::cli {
namespace {

constexpr int kPairs = 12;
constexpr size_t kRowsPerRun = 1 << 21;
constexpr size_t kSmallRequests = 2000;  // Requests of 256 rows in one run.

// The costs of one side of a case, over all its runs.
struct Costs {
  double cpu_seconds = 0;  // Sum of both processes.
  Latencies latencies;
};

template <class Number>
double Percentile(std::vector<Number> values, double part) {
  if (values.empty()) return 0;
  const auto at = static_cast<size_t>(part * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(at));
  return values[at];
}

// Transports as many bytes in both directions as `load` does with the real messages; the bytes are
// prepared.
void AskBare(BareRequester& bare, const BenchLoad& load, std::pair<size_t, size_t> bytes,
             Latencies& latencies) {
  std::vector<TimePoint> begun(load.requests);
  for (size_t sent = 0, taken = 0; taken < load.requests;) {
    while (sent < load.requests && sent - taken < load.in_flight) {
      begun[sent++] = SystemClock().Now();
      bare.Ask(bytes.first, bytes.second);
    }
    DT_CHECK(bare.Receive() == bytes.second);
    const double seconds = SecondsBetween(begun[taken++], SystemClock().Now());
    latencies.push_back(static_cast<float>(seconds * 1e6));
  }
}

class TransportBench {
 public:
  TransportBench()
      : executor_("executor"),
        plain_("bare"),
        numbered_("rows"),
        tcp_(MakeZmqNetwork(kBenchSockets)),
        shm_(MakeShmNetwork(*tcp_)),
        worker_(*tcp_, executor_.endpoint()),
        bare_(MakeBareRequester(plain_.endpoint(), kBenchBytesMax)),
        with_rows_(MakeBareRequester(numbered_.endpoint(), kBenchBytesMax)) {
    worker_.PushAllRows();
  }

  BenchCase Pull(std::string name, std::string what, const BenchLoad& load) {
    return Throughput({.name = std::move(name), .what = std::move(what)}, load, false);
  }
  BenchCase Push(std::string name, std::string what, const BenchLoad& load) {
    return Throughput({.name = std::move(name), .what = std::move(what)}, load, true);
  }
  void UseSharedMemory() { worker_.Reconnect(*shm_); }
  BenchCase SmallP99(std::string name, const std::string& way) {
    const BenchLoad load{.rows = 256, .requests = kSmallRequests};
    BenchCase bench{.name = std::move(name),
                    .what = "99th percentile of pulls of 256 rows, " + way,
                    .unit = "us (less is better)"};
    Measure(bench, load, false, [](const Latencies& run) { return Percentile(run, 0.99); });
    return bench;
  }

 private:
  BenchCase Throughput(BenchCase bench, const BenchLoad& load, bool push) {
    bench.unit = "M rows/s";
    const double rows = static_cast<double>(load.rows * load.requests) / 1e6;
    Measure(bench, load, push, [&](const Latencies&) { return rows / seconds_; });
    return bench;
  }

  // Runs our transport and the references alternately and compares `figure` of the latencies of
  // each run.
  template <class Figure>
  void Measure(BenchCase& bench, const BenchLoad& load, bool push, Figure figure) {
    bench.reference = "plain ZeroMQ over tcp, as many bytes";
    const std::pair bytes(worker_.RequestBytes(load.rows, push),
                          worker_.AnswerBytes(load.rows, push));
    Costs ours, reference, with_rows;
    std::vector<double> with_rows_runs;
    for (int pair = 0; pair <= kPairs; ++pair) {
      worker_.BringUpToDate(load.rows);
      const Latencies run = Timed(executor_, ours, [&](Latencies& latencies) {
        push ? worker_.Push(load, latencies) : worker_.Pull(load, latencies);
      });
      const double value = figure(run);
      const Latencies reference_run = Timed(plain_, reference, [&](Latencies& latencies) {
        AskBare(*bare_, load, bytes, latencies);
      });
      const double reference_value = figure(reference_run);
      const Latencies with_rows_run = Timed(numbered_, with_rows, [&](Latencies& latencies) {
        AskBare(*with_rows_, load, bytes, latencies);
      });
      if (pair == 0) {  // The first pair is the warm-up.
        ours = reference = with_rows = {};
        continue;
      }
      bench.runs.push_back(value);
      bench.reference_runs.push_back(reference_value);
      with_rows_runs.push_back(figure(with_rows_run));
    }
    const double million_rows = static_cast<double>(load.rows * load.requests) * kPairs / 1e6;
    bench.details = {
        {"p50_us", Percentile(ours.latencies, 0.5)},
        {"p99_us", Percentile(ours.latencies, 0.99)},
        {"cpu_s_per_M_rows", ours.cpu_seconds / million_rows},
        {"reference_p50_us", Percentile(reference.latencies, 0.5)},
        {"reference_p99_us", Percentile(reference.latencies, 0.99)},
        {"reference_cpu_s_per_M_rows", reference.cpu_seconds / million_rows},
        {"with_rows_median", Percentile(with_rows_runs, 0.5)},
        {"with_rows_cpu_s_per_M_rows", with_rows.cpu_seconds / million_rows},
    };
  }

  // Runs the body, adds its costs to `costs`, and stores its duration in seconds_.
  template <class Body>
  Latencies Timed(BenchPeer& peer, Costs& costs, Body body) {
    const auto cpu_now = [&] { return peer.CpuSeconds() + ReadProcessStats(nullptr).cpu_seconds; };
    const double cpu_before = cpu_now();
    Latencies run;
    const TimePoint begin = SystemClock().Now();
    body(run);
    seconds_ = SecondsBetween(begin, SystemClock().Now());
    costs.cpu_seconds += cpu_now() - cpu_before;
    costs.latencies.insert(costs.latencies.end(), run.begin(), run.end());
    return run;
  }

  BenchPeer executor_, plain_, numbered_;
  const std::unique_ptr<Network> tcp_, shm_;
  BenchWorker worker_;
  const std::unique_ptr<BareRequester> bare_, with_rows_;
  double seconds_ = 0;  // Duration of the last run.
};

}  // namespace

std::vector<BenchCase> BenchTransport() {
  TransportBench bench;
  std::vector<BenchCase> cases;
  for (const size_t rows : {4096, 16'384}) {
    for (const size_t in_flight : {1, 8}) {
      const BenchLoad load{rows, in_flight, kRowsPerRun / rows};
      const std::string suffix = fmt::format("{}_d{}", rows, in_flight);
      const std::string what = fmt::format("of {} rows, {} in flight, tcp", rows, in_flight);
      cases.push_back(bench.Pull("transport.pull_" + suffix, "pulls " + what, load));
      cases.push_back(bench.Push("transport.push_" + suffix, "pushes " + what, load));
    }
  }
  cases.push_back(bench.SmallP99("transport.p99_256", "tcp"));
  bench.UseSharedMemory();
  cases.push_back(bench.Pull("transport.shm_vs_tcp_4096_d1",
                             "pulls of 4096 rows, 1 in flight, shared memory",
                             {4096, 1, kRowsPerRun / 4096}));
  cases.push_back(bench.SmallP99("transport.p99_256_shm", "shared memory"));
  return cases;
}

}  // namespace dt::cli
