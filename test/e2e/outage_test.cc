// Goal: workers do not notice that the scheduler is away for 20 s, and though a minute's training
// is ordered ahead for that, a stop request is soon obeyed. Method: real processes under `launch`,
// which is stopped meanwhile so that it starts no other scheduler; the timelines of the workers.
#include <algorithm>
#include <signal.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/pause.h"
#include "test/support/http_get.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using std::chrono::seconds;
using Seconds = std::chrono::duration<double>;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// Steps of many milliseconds: hitches of the machine are short beside them. It does not end.
const TinyJobOptions kOptions = {
    .rows = 600'000, .epochs = 100'000, .batch_size = 100'000, .slices = 2, .workers = 2};
constexpr Duration kOutage = seconds(20);

// When the worker began its steps, in seconds; in order.
std::vector<double> StepsOf(const std::string& trace) {
  const Json parsed = Json::parse(trace);
  std::vector<double> steps;
  for (const Json& span : parsed["traceEvents"]) {
    if (span["name"].get<std::string>().starts_with("step ")) {
      steps.push_back(span["ts"].get<double>() / 1e6);
    }
  }
  std::ranges::sort(steps);
  return steps;
}

TEST(Outage, TheSchedulersStopsNobody) {
  const TempFolder folder;
  const std::string name = JobNameOfOurs("outage"), mark = "job=" + name;
  const auto step = [&] {
    const std::string page = TextAt(folder, "runs/" + name + "/run.json", "/http");
    const HttpAnswer answer = HttpGet(page + "status");
    return answer.status == 200 ? Json::parse(answer.body)["step"].get<uint64_t>() : 0;
  };
  Program launch(
      folder.path(),
      {"launch", WriteTinyJob(folder, kOptions), "--result", "r.json", "--no-progress", "--set",
       mark, "--set", "train.evaluate_every=1000000", "--set", "observe.trace=40-1000000"});
  ASSERT_TRUE(Eventually(seconds(60), [&] { return step() >= 60; })) << launch.Output();

  const std::vector<pid_t> scheduler = ProcessesWith(mark, "scheduler");
  ASSERT_EQ(scheduler.size(), 1u);
  launch.Signal(SIGSTOP);
  kill(scheduler[0], SIGKILL);
  Pause(kOutage);
  launch.Signal(SIGCONT);
  ASSERT_TRUE(Eventually(seconds(10), [&] { return step() > 60; })) << launch.Output();
  launch.Signal(SIGTERM);
  const ProgramEnd end = launch.Wait(seconds(10));
  EXPECT_THAT(end.output, HasSubstr("the job was stopped at step"));
  for (const int worker : {2, 3}) {
    const std::vector<double> steps =
        StepsOf(folder.Read(fmt::format("runs/{}/trace/worker-{}.json", name, worker)));
    ASSERT_GT(steps.size(), 50u);
    std::vector<double> gaps;
    for (size_t i = 1; i < steps.size(); ++i) gaps.push_back(steps[i] - steps[i - 1]);
    std::ranges::sort(gaps);
    const double median = gaps[gaps.size() / 2], longest = gaps.back();
    fmt::print("worker {}: {} steps in {:.1f} s, median {:.1f} ms, longest {:.1f} ms\n", worker,
               steps.size(), steps.back() - steps.front(), 1000 * median, 1000 * longest);
    EXPECT_GT(Seconds(steps.back() - steps.front()), kOutage);
    // It is below twice the median on an idle machine.
    EXPECT_LT(longest, 4 * median);
  }
}

}  // namespace
}  // namespace dt::test
