#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/bench/bench.h"
#include "cli/outcome.h"
#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/storage/json_file.h"

namespace dt::cli {
namespace {

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

// The median ratio of the pairs. Runs that were not measured in pairs give the ratio of the
// medians.
double RatioOf(const BenchCase& c) {
  if (c.runs.size() != c.reference_runs.size()) return Median(c.runs) / Median(c.reference_runs);
  std::vector<double> ratios;
  for (size_t i = 0; i < c.runs.size(); ++i) ratios.push_back(c.runs[i] / c.reference_runs[i]);
  return Median(ratios);
}

Json JsonOf(const BenchCase& c) {
  const auto [low, high] = std::ranges::minmax(c.runs);
  Json json = {{"name", c.name},           {"what", c.what},       {"unit", c.unit},
               {"median", Median(c.runs)}, {"min", low},           {"max", high},
               {"runs", c.runs.size()},    {"reference", nullptr}, {"reference_median", nullptr},
               {"ratio", nullptr}};
  if (!c.reference.empty()) {
    json["reference"] = c.reference;
    json["reference_median"] = Median(c.reference_runs);
    json["ratio"] = RatioOf(c);
  }
  for (const auto& [name, value] : c.details) json[name] = value;
  return json;
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

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

void MeasurePairs(BenchCase& bench, double work, int pairs, const std::function<void(int)>& body,
                  const std::function<void(int)>& reference) {
  const auto rate_of = [&](const std::function<void(int)>& what, int pair) {
    const TimePoint begin = SystemClock().Now();
    what(pair);
    return work / std::max(SecondsBetween(begin, SystemClock().Now()), 1e-9);
  };
  for (int pair = 0; pair <= pairs; ++pair) {
    const double rate = rate_of(body, pair), reference_rate = rate_of(reference, pair);
    if (pair == 0) continue;
    bench.runs.push_back(rate);
    bench.reference_runs.push_back(reference_rate);
  }
}

void PrintBench(const std::vector<BenchCase>& cases, bool json) {
  Json all = {{"machine", MachineText()}, {"cases", Json::array()}};
  for (const BenchCase& c : cases) all["cases"].push_back(JsonOf(c));
  if (json) {
    Print("{}\n", PrintableJson(all));
    return;
  }
  Print("{}\n", MachineText());
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& c = all["cases"][i];
    const std::string what = c["what"].get<std::string>();
    const std::string name =
        Printable(c["name"].get<std::string>() + (what.empty() ? "" : ": ") + what);
    std::printf("%-64s %10.3f %-12s (%.3f to %.3f, %d runs)", name.c_str(),
                c["median"].get<double>(), c["unit"].get<std::string>().c_str(),
                c["min"].get<double>(), c["max"].get<double>(), c["runs"].get<int>());
    if (!c["reference"].is_null()) {
      std::printf("  %.2f x %s (%.3f)", c["ratio"].get<double>(),
                  c["reference"].get<std::string>().c_str(), c["reference_median"].get<double>());
    }
    std::printf("\n");
    for (const auto& [detail, value] : cases[i].details) {
      std::printf("  %s %.3g", detail.c_str(), value);
    }
    if (!cases[i].details.empty()) std::printf("\n");
  }
}

}  // namespace dt::cli
