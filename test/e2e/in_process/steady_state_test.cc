// Goal: once sizes have settled, a step allocates no memory for computation or messages, on worker
// and server. Method: a job of one worker and one server in this process over inproc ZeroMQ; every
// malloc of forty steps in the middle of an epoch is recorded with its stack. Allocations of
// libraries are printed; those that depend on time and not on steps are ignored.
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
// These steps are in the middle of the fourth epoch: sizes have settled, and no order begins or
// ends.
constexpr uint64_t kFirst = 3 * kStepsInEpoch + 40, kSteps = 40;
constexpr uint64_t kBytesMax = 4096;
// Limit for all steps together: now and then more messages are in flight than ever before.
constexpr size_t kOursMax = kSteps / 10;

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
      if (step == kFirst + kSteps) test::EndAllocations();
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
  for (const char* const place : {"ControlLink", "dt::LinkCore", "dt::EventLoop",
                                  "dt::scheduler::", "ServerRole::", "dt::server::SizesOf",
                                  "dt::server::Executor::PassTime"}) {
    if (allocation.Within(place)) return true;
  }
  return false;
}

std::string Text(const Allocation& allocation) {
  std::string text = fmt::format("{} bytes", allocation.bytes);
  for (const std::string& name : allocation.stack) text += "\n    " + name.substr(0, 160);
  return text;
}

class SteadyState : public ::testing::TestWithParam<Asked> {};

TEST_P(SteadyState, AllocatesNothing) {
  const std::vector<Allocation> all = AllocationsOf(GetParam());
  std::map<std::string, uint64_t> foreign;
  std::string ours;
  size_t count_of_ours = 0;
  for (const Allocation& allocation : all) {
    if (IsPeriodic(allocation)) continue;
    EXPECT_LE(allocation.bytes, kBytesMax) << Text(allocation);
    if (allocation.foreign()) {
      ++foreign[allocation.by()];
    } else {
      ours += Text(allocation) + "\n";
      ++count_of_ours;
    }
  }
  EXPECT_LE(count_of_ours, kOursMax) << ours;
  for (const auto& [library, count] : foreign) {
    fmt::print("{}: {:.1f} a step\n", library, static_cast<double>(count) / kSteps);
  }
  fmt::print("ours: {} in {} steps\n", count_of_ours, kSteps);
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
