// What `dovetail bench` measures. A case and its reference are run in turns, in pairs, so that what
// disturbs the machine disturbs both; what counts is the median of the pairs' ratios.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/device/accelerator.h"
#include "common/profile/device_profile.h"
#include "common/runtime/task_pool.h"

namespace dt::cli {

struct BenchCase {
  std::string name;
  std::string what;  // In words.
  std::string unit;  // Larger is better unless it says otherwise: "M rows/s", "GB/s", …
  std::vector<double> runs;
  std::string reference;               // "" if there is none.
  std::vector<double> reference_runs;  // As many as `runs`: pair i is run i and reference run i.
  std::vector<std::pair<std::string, double>> details;  // Further figures, by name.
};

// `work` units done by one call of `body`, per second of it; one warm-up, then `repeats` runs.
std::vector<double> MeasureRate(double work, int repeats, const std::function<void()>& body);

// Fills in runs and reference_runs: `pairs` pairs after a warm-up of both. The bodies are told the
// number of the pair.
void MeasurePairs(BenchCase& bench, double work, int pairs, const std::function<void(int)>& body,
                  const std::function<void(int)>& reference);

double Median(std::vector<double> values);  // 0 of none.

// As people read it, or as one JSON object {"machine", "cases": […]}.
void PrintBench(const std::vector<BenchCase>& cases, bool json);

BenchCase BenchDedup();  // Of the cases of the store.
std::vector<BenchCase> BenchStore();
std::vector<BenchCase> BenchDisk();  // Likewise.
std::vector<BenchCase> BenchTransport();
std::vector<BenchCase> BenchPlan();
// What a node costs beside its work, as the engine runs it: on the accelerator, if there is one.
Result<BenchCase> BenchLaunch(TaskPool& pool, Accelerator* accelerator);
// Fills in what was measured of the processor, with its source; the rest stays.
Status BenchProcessor(std::vector<BenchCase>& cases, DeviceProfile& profile);
// Of the first card, else the emulated accelerator. After BenchProcessor. On an error the profile
// stays as it is.
Status BenchAccelerator(std::vector<BenchCase>& cases, DeviceProfile& profile);
// Fills in the rates of a server; starts processes.
void BenchServer(std::vector<BenchCase>& cases, DeviceProfile& profile);

}  // namespace dt::cli
