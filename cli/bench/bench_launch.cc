// The cost of a node in addition to its work, as the engine runs it: evaluates a long and a short
// chain of nodes on one number, and takes the difference.
#include "cli/bench/bench.h"
#include "common/base/clock.h"
#include "scheduler/plan/plan.h"
#include "worker/engine/engine.h"

namespace dt::cli {
namespace {

constexpr int kShort = 16, kLong = 528;
constexpr int kRuns = 40;
constexpr int kRepeats = 7;

std::vector<ColumnSpec> Columns() {
  return {{.name = "label", .role = ColumnRole::kLabel}, {.name = "x"}};
}

JobConfig ChainJob(int length, Device device) {
  JobConfig job;
  job.job = "bench";
  job.train.batch_size = 1;
  std::string last = "x";
  for (int i = 0; i < length; ++i) {
    NodeConfig node{.name = "n" + std::to_string(i), .op = "relu", .inputs = {last}};
    node.device = device;
    last = node.name;
    job.model.nodes.push_back(std::move(node));
  }
  job.model.losses.push_back(
      {.type = "binary_cross_entropy", .input = last, .label = "label", .name = "label"});
  return job;
}

class Chain {
 public:
  static Result<Chain> Make(int length, TaskPool& pool, Accelerator* accelerator) {
    Chain chain;
    const JobConfig job = ChainJob(length, accelerator == nullptr ? Device::kCpu : Device::kGpu);
    scheduler::PlanRequest request{job, Columns(), 1};
    if (accelerator != nullptr) request.accelerator = accelerator->info();
    DT_TRY(Plan plan, scheduler::MakePlan(request));
    DT_TRY(chain.engine_,
           worker::Engine::Create(std::move(plan), {.pool = pool, .accelerator = accelerator}));
    chain.slice_.batch.samples = chain.slice_.batch.step_samples = 1;
    chain.slice_.batch.columns.resize(Columns().size());
    for (worker::BatchColumn& column : chain.slice_.batch.columns) column.floats = {1.0f};
    DT_TRY_STATUS(chain.Run());
    return chain;
  }

  Status Run() {
    RunInfo run;
    run.step_samples = 1;
    run.training = false;
    return engine_->Evaluate({slice_, {}}, run).status();
  }

  // Time of `kRuns` evaluations.
  Result<double> Seconds() {
    const TimePoint begun = SystemClock().Now();
    for (int i = 0; i < kRuns; ++i) DT_TRY_STATUS(Run());
    return SecondsBetween(begun, SystemClock().Now());
  }

 private:
  std::unique_ptr<worker::Engine> engine_;
  worker::LookupPlan slice_;
};

}  // namespace

Result<BenchCase> BenchLaunch(TaskPool& pool, Accelerator* accelerator) {
  DT_TRY(Chain short_chain, Chain::Make(kShort, pool, accelerator));
  DT_TRY(Chain long_chain, Chain::Make(kLong, pool, accelerator));
  BenchCase bench{.name = fmt::format("node on one number, on the {}",
                                      accelerator == nullptr ? "processor" : "accelerator"),
                  .unit = "k nodes/s"};
  for (int i = 0; i < kRepeats; ++i) {
    DT_TRY(const double less, short_chain.Seconds());
    DT_TRY(const double more, long_chain.Seconds());
    const double seconds = std::max(more - less, 1e-9);
    bench.runs.push_back(kRuns * (kLong - kShort) / 1e3 / seconds);
  }
  return bench;
}

}  // namespace dt::cli
