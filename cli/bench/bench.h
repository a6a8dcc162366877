// The measurements of `dovetail bench`. A case and its reference run alternately, in pairs, so that
// disturbances of the machine affect both. The result is the median of the pairs' ratios.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "common/device/accelerator.h"
#include "common/profile/device_profile.h"
#include "common/runtime/task_pool.h"

namespace dt::cli {

struct BenchCase {
  std::string name;
  std::string what;  // Description in words.
  // Larger is better, unless the unit says otherwise: "M rows/s", "GB/s", …
  std::string unit;
  std::vector<double> runs;
  std::string reference;  // "": there is none.
  // As many as `runs`: pair i is run i and reference run i.
  std::vector<double> reference_runs;
  std::vector<std::pair<std::string, double>> details;  // Further values, by name.
};

// Rate of `body`, which does `work` units per call, in units per second; `repeats` runs after a
// warm-up.
std::vector<double> MeasureRate(double work, int repeats, const std::function<void()>& body);

// Fills in runs and reference_runs: `pairs` pairs after a warm-up of both. The bodies get the
// number of the pair.
void MeasurePairs(BenchCase& bench, double work, int pairs, const std::function<void(int)>& body,
                  const std::function<void(int)>& reference);

double Median(std::vector<double> values);  // 0 if there are no values.

// Prints text for people, or one JSON object {"machine", "cases": […]}.
void PrintBench(const std::vector<BenchCase>& cases, bool json);

struct BudgetOptions {
  std::string job_path;  // Empty: the jobs of budget_jobs.h, in fp32 and in bf16.
  std::vector<std::string> overrides;
  std::stop_token stop;
};
// Errors: those of the jobs; Cancelled.
Result<std::vector<BenchCase>> BenchBudget(const BudgetOptions& options);
BenchCase BenchDedup();  // One of the cases of BenchStore.
std::vector<BenchCase> BenchStore();
std::vector<BenchCase> BenchDisk();  // Cases of BenchStore.
std::vector<BenchCase> BenchTransport();
std::vector<BenchCase> BenchPlan();
// The cost of a node in addition to its work, as the engine runs it: on the accelerator if it is
// not null.
Result<BenchCase> BenchLaunch(TaskPool& pool, Accelerator* accelerator);
// Fills in the measured rates of the CPU and their source.
Status BenchProcessor(std::vector<BenchCase>& cases, DeviceProfile& profile);
// Measures the first card, or the emulated accelerator if there is none. Call it after
// BenchProcessor. After an error the profile is unchanged.
Status BenchAccelerator(std::vector<BenchCase>& cases, DeviceProfile& profile);
// Fills in the rates of a server; starts processes.
void BenchServer(std::vector<BenchCase>& cases, DeviceProfile& profile);

}  // namespace dt::cli
