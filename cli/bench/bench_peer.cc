#include "cli/bench/bench_peer.h"

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <unistd.h>

#include "cli/bench/bench.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/control/read_process_stats.h"
#include "common/net/shm/shm_network.h"
#include "common/net/zmq_bare.h"
#include "server/service/executor.h"

namespace dt::cli {
namespace {

constexpr Duration kStart = seconds(20);
constexpr Duration kPoll = milliseconds(50);  // Longest time until a peer answers its parent.

Frames TextMessage(const std::string& text) {
  Frames frames;
  frames.push_back(Frame::CopyOf(std::as_bytes(std::span(text))));
  return frames;
}

std::string TextOf(const Frames& frames) {
  if (frames.empty()) return "";
  const auto text = frames[0].as<char>();
  return {text.begin(), text.end()};
}

// The child's connection to its parent: sends the child's endpoint, then answers each message with
// the CPU seconds used.
class Control {
 public:
  Control(Network& network, const std::string& parent, const std::string& endpoint) {
    auto socket = network.Connect(parent);
    DT_CHECK_MSG(socket.ok(), "{}", ToText(socket.status()));
    socket_ = *std::move(socket);
    socket_->Send(TextMessage(endpoint)).IgnoreError();
  }
  void Answer(Duration timeout) {
    if (!socket_->Receive(timeout).ok()) return;
    const double cpu_seconds = ReadProcessStats(nullptr).cpu_seconds;
    socket_->Send(TextMessage(fmt::format("{}", cpu_seconds))).IgnoreError();
  }

 private:
  std::unique_ptr<ClientSocket> socket_;
};

server::ShardSetOptions BenchShards(FramePool& frames) {
  server::TableSpec table;
  table.name = "bench";
  table.id = TableIdOf(table.name);
  table.dim = kBenchDim;
  table.init = {InitKind::kZeros, 0};
  table.optimizer.kind = OptimizerKind::kSgd;
  table.optimizer.lr = 1;
  table.optimizer.l2 = 0;
  server::ShardSetOptions options;
  options.tables = {table};
  options.self = ProcessId(1);
  options.view = {Generation(1),
                  ViewNumber(1),
                  MakeShardMap(MapVersion(1), kBenchShards, {{options.self, {""}}}),
                  {}};
  options.frames = &frames;
  return options;
}

void ServeRows(Network& network, const std::string& parent, std::stop_token stop) {
  const std::unique_ptr<Network> data_network = MakeShmNetwork(network);
  auto socket = data_network->Bind("tcp://127.0.0.1:0");
  DT_CHECK_MSG(socket.ok(), "{}", ToText(socket.status()));
  std::atomic<uint64_t> memory_bytes = 0;
  server::ExecutorOptions options;
  options.tables = {{.dim = kBenchDim}};
  options.memory_bytes_max = uint64_t{8} << 30;
  options.memory_bytes = &memory_bytes;
  server::Executor executor(options, *std::move(socket), *data_network);
  // All rows fit into memory, so the folder is not created.
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("dovetail-bench-{}", getpid());
  executor.Post(server::BeginCommand(BenchShards(data_network->frames()),
                                     {folder, options.memory_bytes_max}));
  const auto begun = executor.Await(kStart);
  DT_CHECK(begun.has_value() && begun->status.ok());
  Control control(network, parent, executor.endpoint());
  while (!stop.stop_requested()) control.Answer(kPoll);
}

// As many rows as the executor has, accessed by number, without index and headers. The order of
// access is drawn in advance.
class NumberedRows {
 public:
  NumberedRows() : rows_(kBenchRows), numbers_(kBenchRows) {
    std::iota(numbers_.begin(), numbers_.end(), 0u);
    for (uint64_t i = kBenchRows; i > 1; --i) std::swap(numbers_[i - 1], numbers_[MixBits(i) % i]);
  }
  // Whichever is larger contains the rows: the answer of a pull, or the gradients of a push.
  void Work(std::span<const std::byte> request, std::span<std::byte> answer) {
    if (answer.size() >= request.size()) {
      for (; answer.size() >= sizeof(Row); answer = answer.subspan(sizeof(Row))) {
        const Row& row = Next();
        std::memcpy(answer.data(), row.data(), sizeof(Row));
      }
      return;
    }
    for (; request.size() >= sizeof(Row); request = request.subspan(sizeof(Row))) {
      Row gradient, &row = Next();
      std::memcpy(gradient.data(), request.data(), sizeof(Row));
      for (size_t d = 0; d < kBenchDim; ++d) row[d] += gradient[d];
    }
  }

 private:
  using Row = std::array<float, kBenchDim>;
  static constexpr uint64_t kAhead = 16;

  Row& At(uint64_t i) { return rows_[numbers_[i % kBenchRows]]; }
  Row& Next() {
    const auto* const ahead = reinterpret_cast<const char*>(&At(next_ + kAhead));
    for (size_t at = 0; at < sizeof(Row); at += 64) __builtin_prefetch(ahead + at);
    return At(next_++);
  }

  std::vector<Row> rows_;
  std::vector<uint32_t> numbers_;
  uint64_t next_ = 0;
};

void ServeBytes(Network& network, const std::string& parent, bool with_rows, std::stop_token stop) {
  BareWork work;
  if (with_rows) {
    work = [rows = std::make_shared<NumberedRows>()](std::span<const std::byte> request,
                                                     std::span<std::byte> answer) {
      rows->Work(request, answer);
    };
  }
  const auto replier = MakeBareReplier(kBenchBytesMax, kPoll, std::move(work));
  Control control(network, parent, replier->endpoint());
  while (!stop.stop_requested()) {
    if (!replier->AnswerOne()) control.Answer(Duration::zero());
  }
}

}  // namespace

int RunBenchPeer(const CommandLine& line, StopSignals& signals) {
  const std::unique_ptr<Network> network = MakeZmqNetwork(kBenchSockets);
  if (line.format == "executor") {
    ServeRows(*network, line.scheduler, signals.token());
  } else {
    ServeBytes(*network, line.scheduler, line.format == "rows", signals.token());
  }
  return 0;
}

BenchPeer::BenchPeer(const std::string& kind) : network_(MakeZmqNetwork(kBenchSockets)) {
  auto control = network_->Bind("tcp://127.0.0.1:0");
  DT_CHECK_MSG(control.ok(), "{}", ToText(control.status()));
  control_ = *std::move(control);
  auto child =
      ChildProcess::Start("the bench's server", "/proc/self/exe",
                          {"bench", "peer", "--scheduler", control_->endpoint(), "--format", kind});
  DT_CHECK_MSG(child.ok(), "{}", ToText(child.status()));
  child_.push_back(*std::move(child));
  auto hello = control_->Receive(kStart);
  DT_CHECK_MSG(hello.ok(), "the bench's server does not start: {}", ToText(hello.status()));
  peer_ = hello->peer;
  endpoint_ = TextOf(hello->frames);
}

BenchPeer::~BenchPeer() { StopAll(child_, seconds(3)); }

double BenchPeer::CpuSeconds() {
  control_->Send(peer_, TextMessage("cpu")).IgnoreError();
  const auto answer = control_->Receive(kStart);
  DT_CHECK_MSG(answer.ok(), "the bench's server is silent: {}", ToText(answer.status()));
  return std::stod(TextOf(answer->frames));
}

}  // namespace dt::cli
