// Goal: whatever befalls the processes of a job, one after the other, every sample is trained once
// in every epoch, a synchronous job ends with the bits of an undisturbed one, and nothing waits
// longer than its deadlines. Method: real processes under `launch`, killed and paused in any role;
// a table that counts how often each sample was trained.
#include <random>
#include <signal.h>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/clock.h"
#include "test/e2e/launched_job.h"
#include "test/e2e/views/counted_job.h"
#include "test/support/http_get.h"

namespace dt::test {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kNoticed(300);  // Until the job notices that a process was killed.
constexpr double kLong = 10;           // Seconds; longer than this is worth a look.

struct Course {
  const char* name;
  const char* staleness;
  int faults = 5;
  int epochs = 25;
};

class Misfortunes : public LaunchedJob, public ::testing::WithParamInterface<Course> {
 protected:
  // Steps that are done; nothing while no scheduler answers.
  std::optional<uint64_t> Steps() const {
    const std::string page = TextAt(folder_, "runs/" + name_ + "/run.json", "/http");
    const HttpAnswer answer = HttpGet(page + "status");
    if (answer.status != 200) return std::nullopt;
    const Json status = Json::parse(answer.body, nullptr, false);
    if (!status.is_object() || status["phase"] != "running") return std::nullopt;
    return status["step"].get<uint64_t>();
  }
  // For people, when the job does not go on.
  std::string StatusPage() const {
    return HttpGet(TextAt(folder_, "runs/" + name_ + "/run.json", "/http") + "status").body;
  }
  // Waits until the job trains: it has done steps while this looked on.
  bool GoesOn() {
    std::optional<uint64_t> before;
    return Eventually(seconds(60), [&] {
      if (launch_->HasEnded()) return true;
      const std::optional<uint64_t> now = Steps();
      if (now.has_value() && before.has_value() && *now > *before + 5) return true;
      if (now.has_value() && (!before.has_value() || *now < *before)) before = now;
      return false;
    });
  }
  // Something befalls a process.
  void Befall() {
    const char* const roles[] = {"server", "server", "worker", "worker", "scheduler"};
    const std::string role = roles[random_() % 5];
    const std::vector<pid_t> found = ProcessesWith(mark_, role);
    if (found.empty()) return;
    const pid_t pid = found[random_() % found.size()];
    if (random_() % 3 > 0) {
      text_ += "kill " + role + "; ";
      kill(pid, SIGKILL);
      Eventually(kNoticed, [] { return false; });
      return;
    }
    const milliseconds pause(100 + random_() % 3000);
    text_ += fmt::format("pause {} {} ms; ", role, pause.count());
    kill(pid, SIGSTOP);
    Eventually(pause, [] { return false; });
    kill(pid, SIGCONT);
  }

  std::mt19937 random_{static_cast<uint32_t>(GetParam().faults) + GetParam().staleness[0]};
  std::string text_;  // The misfortunes so far, for people.
};

TEST_P(Misfortunes, LoseNothing) {
  const Course course = GetParam();
  job_ = WriteCountedJob(folder_,
                         {.staleness = course.staleness,
                          .epochs = course.epochs,
                          .cluster = "{servers: 3, replicas: 2, workers: 3, shards: 16, lease: 1s, "
                                     "restarts: 100000}",
                          .checkpoint = "{every: 100}"});
  Launch(course.name);
  int faults = 0;
  double longest = 0;
  for (; faults < course.faults; ++faults) {
    const TimePoint begun = SystemClock().Now();
    ASSERT_TRUE(GoesOn()) << text_ << launch_->Output() << StatusPage();
    const double waited = SecondsBetween(begun, SystemClock().Now());
    if (waited > kLong) {
      std::printf("%.1f s without steps after %s\n%s\n", waited, text_.c_str(),
                  launch_->Output().c_str());
    }
    longest = std::max(longest, waited);
    if (launch_->HasEnded()) break;
    Befall();
  }
  const ProgramEnd end = launch_->Wait(seconds(900));
  ASSERT_EQ(end.exit_code, 0) << text_ << end.output;
  EXPECT_EQ(faults, course.faults) << "the job was too short";
  std::printf("%d faults, %zu returns to checkpoints, at most %.1f s to the next steps: %s\n",
              faults, EventsOf("returned"), longest, text_.c_str());
  ExpectCounts(folder_, name_, course.epochs, text_);
  if (std::string_view(course.staleness) != "0") return;
  EXPECT_EQ(ChecksumOf(folder_, "launched.json"), Undisturbed());
}

std::string NameOfCourse(const ::testing::TestParamInfo<Course>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Five, Misfortunes,
                         ::testing::Values(Course{"synchronous", "0"}, Course{"bounded", "2"},
                                           Course{"unbounded", "unbounded"}),
                         NameOfCourse);
INSTANTIATE_TEST_SUITE_P(Hundred, Misfortunes,
                         ::testing::Values(Course{"synchronous", "0", 100, 400},
                                           Course{"bounded", "2", 50, 200},
                                           Course{"unbounded", "unbounded", 50, 200}),
                         NameOfCourse);

}  // namespace
}  // namespace dt::test
