// What `dovetail bench` measures. A case is repeated; what counts is its median and its ratio to a
// reference measured in the same run.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace dt::cli {

struct BenchCase {
  std::string name;
  std::string unit;  // Larger is better: "M rows/s", "GB/s", …
  std::vector<double> runs;
  std::string reference;  // "" if there is none.
  std::vector<double> reference_runs;
};

// `work` units done by one call of `body`, per second of it; one warm-up, then `repeats` runs.
std::vector<double> MeasureRate(double work, int repeats, const std::function<void()>& body);

// As people read it, or as one JSON object {"machine", "cases": […]}.
void PrintBench(const std::vector<BenchCase>& cases, bool json);

std::vector<BenchCase> BenchStore();
std::vector<BenchCase> BenchTransport();
std::vector<BenchCase> BenchPlan();
std::vector<BenchCase> BenchDevices();

}  // namespace dt::cli
