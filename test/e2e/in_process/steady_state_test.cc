// Goal: once sizes have settled, a step allocates no memory for computation or messages, on worker
// and server. Method: a job of one worker and one server in this process over inproc ZeroMQ; every
// malloc of two epochs is recorded with its stack. An order to train, which takes .4 s, allocates
// when it begins and ends, and so do more messages or plans in flight than ever before; both come
// more often on a busy machine. Therefore the steps are looked at in windows of eight, of which at
// least one must be free of our allocations: an allocation of each step would be in all of them.
// Allocations of libraries are printed; those that depend on time and not on steps are ignored.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "test/e2e/in_process/in_process_job.h"
#include "test/support/allocations.h"

namespace dt {
namespace {

using test::Allocation;

constexpr uint32_t kStepsInEpoch = 100;
constexpr uint64_t kFirst = 3 * kStepsInEpoch;  // Sizes have settled by then.
constexpr uint64_t kStepsInWindow = 8;
constexpr size_t kWindows = 2 * kStepsInEpoch / kStepsInWindow;
constexpr uint64_t kBytesMax = 4096;  // Largest allocation of a library.

// Counts the steps of a worker: each ends with one message of one part to each executor.
class StepCounter : public Network {
 public:
  explicit StepCounter(Network& under) : under_(under) {}
  Result<std::unique_ptr<ServerSocket>> Bind(const std::string& endpoint) override {
    return under_.Bind(endpoint);
  }
  Result<std::unique_ptr<ClientSocket>> Connect(const std::string& endpoint) override {
    DT_TRY(auto socket, under_.Connect(endpoint));
    return std::make_unique<Socket>(std::move(socket), steps_);
  }
  uint64_t bytes_sent() const override { return under_.bytes_sent(); }
  uint64_t bytes_received() const override { return under_.bytes_received(); }

 private:
  class Socket : public ClientSocket {
   public:
    Socket(std::unique_ptr<ClientSocket> under, std::atomic<uint64_t>& steps)
        : under_(std::move(under)), steps_(steps) {}
    Status Send(Frames message) override {
      if (message.size() == 1) OnStep(++steps_);
      return under_->Send(std::move(message));
    }
    Result<Frames> Receive(Duration timeout) override { return under_->Receive(timeout); }

   private:
    static void OnStep(uint64_t step) {
      if (step == kFirst) test::BeginAllocations();
      if (step == kFirst + kWindows * kStepsInWindow) test::EndAllocations();
      if (step > kFirst && (step - kFirst) % kStepsInWindow == 0) {
        test::BeginSection(static_cast<uint32_t>((step - kFirst) / kStepsInWindow));
      }
    }
    const std::unique_ptr<ClientSocket> under_;
    std::atomic<uint64_t>& steps_;
  };

  Network& under_;
  std::atomic<uint64_t> steps_{0};
};

// Options of the tiny job.
struct Asked {
  const char* more = "";      // Further YAML at the top level.
  const char* deep = "auto";  // Device of the table "deep".
  uint32_t slices = 1;
  const char* graph = nullptr;  // Null: the tiny job's graph.
  const char* math = "fp32";
  uint32_t batch = 30;  // With more than 64 rows the forward pass has several tiles.
};

// Operators of the models in configs/models that the tiny job does not use.
constexpr const char* kManyOperators = R"([
  {name: e, op: lookup, table: deep, inputs: [features]},
  {name: first, op: linear, table: wide, inputs: [features]},
  {name: pairs, op: dot, inputs: [e]},
  {name: crosses, op: cross_v2, inputs: [e], layers: 2},
  {name: maps, op: cin, inputs: [e], units: [4, 4]},
  {name: fields, op: transformer, inputs: [e], layers: 1, heads: 2, hidden: 16, dropout: 0.1},
  {name: mixed, op: moe, inputs: [e], experts: 3, k: 2, units: [8]},
  {name: tasks, op: mmoe, inputs: [e], experts: 2, tasks: 2, units: [8]},
  {name: both, op: add, inputs: [tasks.0, tasks.1]},
  {name: hidden, op: mlp, inputs: [pairs, crosses, maps, fields, mixed, both], units: [16, 8]},
  {name: last, op: dense, inputs: [hidden], units: 1},
  {name: logit, op: sum, inputs: [first, last]}])";

std::vector<Allocation> AllocationsOf(const Asked& asked) {
  const test::TempFolder folder;
  test::JobShape shape;
  shape.slices = asked.slices;
  shape.set = {fmt::format("model.tables.deep.device={}", asked.deep),
               fmt::format("train.math={}", asked.math)};
  if (asked.graph != nullptr) shape.set.push_back(fmt::format("model.graph={}", asked.graph));
  shape.epochs = 5;
  shape.rows = asked.batch * kStepsInEpoch;
  shape.batch_size = asked.batch;
  shape.executors = "1";
  shape.more = asked.more;
  test::RunOptions options;
  options.data_network = [](Network& under) { return std::make_unique<StepCounter>(under); };
  const test::JobRun run = test::RunJob(folder, "steady", shape, options);
  test::ExpectCompleted(run);
  EXPECT_EQ(test::AllocationsNotKept(), 0);
  return test::TakeAllocations();
}

// Allocations that depend on time: the scheduler, keepalive messages, and the sizes that servers
// report for monitoring.
bool IsPeriodic(const Allocation& allocation) {
  for (const char* const place : {"dt::ControlLink::", "dt::LinkCore", "dt::EventLoop",
                                  "dt::scheduler::", "ServerRole::", "dt::server::SizesOf",
                                  "dt::server::Executor::PassTime"}) {
    if (allocation.Within(place)) return true;
  }
  return false;
}

std::string Text(const Allocation& allocation) {
  std::string text = fmt::format("{} bytes", allocation.bytes);
  for (const std::string& name : allocation.stack) text += "\n    " + name.substr(0, 160);
  return text + "\n";
}

struct Window {
  std::string ours;
  size_t count_of_ours = 0;
  std::map<std::string, uint64_t> of_libraries;
  std::string large;
};

std::array<Window, kWindows> WindowsOf(const std::vector<Allocation>& allocations) {
  std::array<Window, kWindows> windows;
  for (const Allocation& allocation : allocations) {
    if (allocation.section >= kWindows || IsPeriodic(allocation)) continue;
    Window& in = windows[allocation.section];
    if (allocation.bytes > kBytesMax) in.large += Text(allocation);
    if (allocation.foreign()) {
      ++in.of_libraries[allocation.by()];
    } else {
      in.ours += Text(allocation);
      ++in.count_of_ours;
    }
  }
  return windows;
}

class SteadyState : public ::testing::TestWithParam<Asked> {};

TEST_P(SteadyState, AllocatesNothing) {
  const std::array<Window, kWindows> windows = WindowsOf(AllocationsOf(GetParam()));
  const Window& least = *std::ranges::min_element(windows, {}, &Window::count_of_ours);
  EXPECT_EQ(least.count_of_ours, 0) << least.ours;
  EXPECT_EQ(least.large, "");
  for (const auto& [library, count] : least.of_libraries) {
    fmt::print("{}: {:.1f} a step\n", library, static_cast<double>(count) / kStepsInWindow);
  }
  fmt::print("windows without an allocation of ours: {} of {}\n",
             std::ranges::count(windows, size_t{0}, &Window::count_of_ours), kWindows);
}

INSTANTIATE_TEST_SUITE_P(
    Placements, SteadyState,
    ::testing::Values(Asked(),
                      Asked{.more = "parallel: {place: [{match: \"hidden*\", device: gpu}]}\n"},
                      Asked{.deep = "cpu", .slices = 3}, Asked{.graph = kManyOperators},
                      Asked{.graph = kManyOperators, .math = "bf16"},
                      Asked{.graph = kManyOperators, .batch = 200},
                      Asked{.graph = kManyOperators, .math = "bf16", .batch = 200}));

}  // namespace
}  // namespace dt
