#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sys/utsname.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/bench/bench.h"
#include "common/base/clock.h"

namespace dt::cli {
namespace {

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string MachineText() {
  std::string model = "unknown processor";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  }
  utsname name{};
  uname(&name);
  return model + ", " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " processors, " +
         name.sysname + " " + name.release;
}

nlohmann::ordered_json JsonOf(const BenchCase& c) {
  const auto [low, high] = std::ranges::minmax(c.runs);
  nlohmann::ordered_json json = {{"name", c.name},
                                 {"unit", c.unit},
                                 {"median", Median(c.runs)},
                                 {"min", low},
                                 {"max", high},
                                 {"runs", c.runs.size()},
                                 {"reference", nullptr},
                                 {"reference_median", nullptr},
                                 {"ratio", nullptr}};
  if (!c.reference.empty()) {
    json["reference"] = c.reference;
    json["reference_median"] = Median(c.reference_runs);
    json["ratio"] = Median(c.runs) / Median(c.reference_runs);
  }
  return json;
}

}  // namespace

std::vector<double> MeasureRate(double work, int repeats, const std::function<void()>& body) {
  std::vector<double> rates;
  for (int run = -1; run < repeats; ++run) {
    const TimePoint begin = SystemClock().Now();
    body();
    const double seconds = SecondsBetween(begin, SystemClock().Now());
    if (run >= 0) rates.push_back(work / std::max(seconds, 1e-9));
  }
  return rates;
}

void PrintBench(const std::vector<BenchCase>& cases, bool json) {
  nlohmann::ordered_json all = {{"machine", MachineText()},
                                {"cases", nlohmann::ordered_json::array()}};
  for (const BenchCase& c : cases) all["cases"].push_back(JsonOf(c));
  if (json) {
    std::printf("%s\n", all.dump(2).c_str());
    return;
  }
  std::printf("%s\n", MachineText().c_str());
  for (const auto& c : all["cases"]) {
    std::printf("%-44s %10.3f %-12s (%.3f to %.3f, %d runs)", c["name"].get<std::string>().c_str(),
                c["median"].get<double>(), c["unit"].get<std::string>().c_str(),
                c["min"].get<double>(), c["max"].get<double>(), c["runs"].get<int>());
    if (!c["reference"].is_null()) {
      std::printf("  %.2f x %s (%.3f)", c["ratio"].get<double>(),
                  c["reference"].get<std::string>().c_str(), c["reference_median"].get<double>());
    }
    std::printf("\n");
  }
}

}  // namespace dt::cli
