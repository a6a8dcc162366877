// Where the time of a training step goes: for each kind of work its share of the processors, and
// the least that its bytes or operations would take.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>

#include "cli/bench/bench.h"
#include "cli/bench/budget_jobs.h"
#include "cli/local_job.h"
#include "common/config/load_job.h"
#include "common/runtime/work_profile.h"
#include "common/storage/scratch_dir.h"

namespace dt::cli {
namespace {

constexpr Duration kWarmUp = seconds(8), kMeasured = seconds(15);
// Kinds of work that take less of a step are left out.
constexpr double kShareMin = 0.0025;

// A job in training, of which some seconds are measured.
class Measured {
 public:
  // Called after each step, on the thread that trains.
  void OnStep(Step step) {
    const TimePoint now = SystemClock().Now();
    if (!first_.has_value()) first_ = now;
    if (profile_ == nullptr && !shares_.has_value() && now - *first_ >= kWarmUp) {
      Result<std::unique_ptr<WorkProfile>> begun = WorkProfile::Begin();
      status_ = begun.status();
      if (!status_.ok()) return enough_.request_stop(), void();
      profile_ = *std::move(begun);
      begin_ = {step, now};
    }
    if (profile_ == nullptr) return;
    end_ = {step, now};
    if (now - begin_.at >= kMeasured) Finish();
  }
  std::stop_source& enough() { return enough_; }

  // Errors: those of the profile; Invalid, if the job ended too early.
  Result<WorkShares> Shares() {
    DT_TRY_STATUS(status_);
    if (!shares_.has_value()) {
      return WithHint(Invalid("the job ended before {} s of steps were measured",
                              std::chrono::duration_cast<seconds>(kWarmUp + kMeasured).count()),
                      "set train.epochs to more");
    }
    return *std::move(shares_);
  }
  double steps() const { return static_cast<double>(end_.step - begin_.step); }

 private:
  struct Mark {
    Step step = 0;
    TimePoint at{};
  };
  void Finish() {
    shares_ = profile_->Finish();
    profile_.reset();
    enough_.request_stop();
  }

  std::stop_source enough_;
  Status status_;
  std::optional<TimePoint> first_;
  Mark begin_, end_;
  std::unique_ptr<WorkProfile> profile_;
  std::optional<WorkShares> shares_;
};

// One kind of work in all steps.
struct Part {
  double seconds = 0;
  double bytes = 0, flops = 0;
};
std::map<std::string, Part> PartsOf(const WorkShares& shares) {
  std::map<std::string, Part> parts;
  for (const WorkShare& share : shares.shares) {
    const bool named = share.work != &kUnnamedWork;
    const std::string name = named ? std::string(share.work->name) : "thread " + share.thread;
    parts[name].seconds += share.seconds;
  }
  for (const WorkShares::Moved& moved : shares.moved) {
    if (moved.work == &kUnnamedWork) continue;
    Part& part = parts[std::string(moved.work->name)];
    part.bytes = static_cast<double>(moved.bytes);
    part.flops = static_cast<double>(moved.flops);
  }
  return parts;
}

struct Rates {
  double threads = 1, flops = 0, bytes = 0;  // Per second, of all threads.
};

// All times in ms a step, of all processors together.
std::vector<BenchCase> Table(const std::string& title, const WorkShares& shares, double steps,
                             const Rates& rates) {
  const double step_ms = 1e3 * shares.wall_seconds / steps;
  const auto ms = [&](double cpu_seconds) { return 1e3 * cpu_seconds / rates.threads / steps; };
  const auto line = [&](const std::string& name, double time) {
    return BenchCase{.name = title + ": " + name,
                     .unit = "ms",
                     .runs = {time},
                     .details = {{"share", time / step_ms}}};
  };
  std::vector<BenchCase> table;
  double products = 0, named = 0;
  for (const auto& [name, part] : PartsOf(shares)) {
    const double time = ms(part.seconds);
    const double floor = 1e3 * std::max(part.bytes / rates.bytes, part.flops / rates.flops) / steps;
    named += time;
    products += 1e3 * part.flops / rates.flops / steps;
    if (time < kShareMin * step_ms) continue;
    BenchCase& added = table.emplace_back(line(name, time));
    // Bytes of nodes that multiply are moved by another kind of work, the products.
    if (floor == 0 || floor > 2 * time) continue;
    added.details.emplace_back("MB", part.bytes / 1e6 / steps);
    added.reference = "floor";
    added.reference_runs = {floor};
  }
  std::ranges::sort(table, [](const auto& a, const auto& b) { return a.runs[0] > b.runs[0]; });
  const double cpu = ms(shares.cpu_seconds);
  table.push_back(line("not sampled", std::max(0.0, cpu - named)));
  table.push_back(line("idle", std::max(0.0, step_ms - cpu)));
  table.push_back(line("of all: in the kernel", ms(shares.kernel_seconds)));
  BenchCase whole = line("a step", step_ms);
  whole.reference = "its products at their rate";
  whole.reference_runs = {products};
  table.insert(table.begin(), std::move(whole));
  return table;
}

struct BudgetJob {
  std::string path, math;  // The arithmetic; empty: the job's own.
  std::string folder;      // Scratch.
};

// The job must not replace checkpoints of the user's, and leave nothing but its data cache.
JobConfig In(const std::string& folder, JobConfig job) {
  job.run_dir = job.cluster.server.dir = folder;
  job.checkpoint.dir = folder + "/checkpoints";
  return job;
}

Status AddBudget(const BudgetOptions& options, const BudgetJob& of, const DeviceProfile& profile,
                 std::vector<BenchCase>& cases) {
  std::vector<std::string> overrides = options.overrides;
  if (!of.math.empty()) overrides.insert(overrides.begin(), "train.math=" + of.math);
  DT_TRY(const JobConfig job, LoadJob(of.path, {.overrides = overrides, .auto_slices = 1}));
  Measured measured;
  const std::stop_callback stop(options.stop, [&] { measured.enough().request_stop(); });
  const JobResult result =
      RunLocalJob(In(of.folder, job), {.on_step = [&](Step step) { measured.OnStep(step); },
                                       .stop = measured.enough().get_token()});
  if (!measured.enough().stop_requested()) DT_TRY_STATUS(result.status);
  if (options.stop.stop_requested()) return Cancelled("stopped");
  DT_TRY(const WorkShares shares, measured.Shares());
  const bool bf16 = job.train.math == "bf16";
  const Rates rates{
      .threads = static_cast<double>(TaskPool().threads()),
      .flops = profile.cpu.flops[static_cast<size_t>(bf16 ? Arithmetic::kBf16 : Arithmetic::kFp32)],
      .bytes = profile.cpu.memory_bytes};
  const std::string title = fmt::format("{}, {}", job.job, bf16 ? "bf16" : "fp32");
  for (BenchCase& row : Table(title, shares, measured.steps(), rates)) {
    cases.push_back(std::move(row));
  }
  return OkStatus();
}

}  // namespace

Result<std::vector<BenchCase>> BenchBudget(const BudgetOptions& options) {
  std::vector<BenchCase> cases;
  DeviceProfile profile = DefaultEmulatedProfile(TaskPool().threads());
  DT_TRY_STATUS(BenchProcessor(cases, profile));
  DT_TRY(const ScratchDir folder,
         ScratchDir::Make(std::filesystem::temp_directory_path(), "dovetail-budget"));
  if (!options.job_path.empty()) {
    DT_TRY_STATUS(AddBudget(options, {options.job_path, "", folder.path()}, profile, cases));
    return cases;
  }
  DT_TRY(const std::vector<std::string> jobs, WriteBudgetJobs(folder.path()));
  for (const std::string& job : jobs) {
    for (const char* math : {"fp32", "bf16"}) {
      DT_TRY_STATUS(AddBudget(options, {job, math, folder.path()}, profile, cases));
    }
  }
  return cases;
}

}  // namespace dt::cli
