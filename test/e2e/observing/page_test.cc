// Goal: every link on the page of a real job leads to something. Method: a job that would take
// hours, asked over HTTP, then stopped.
#include <chrono>
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/http_get.h"
#include "test/support/program.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr std::chrono::seconds kTimeout(60);

class PageTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PageTest, ItsLinksWorkAndItSeesTheEnd) {
  TempFolder folder;
  const std::string name = JobNameOfOurs("page");
  const std::string job = WriteTinyJob(folder, {.job = name, .epochs = 100000});
  Program program(folder.path(), {GetParam(), job, "--set", "observe.trace=2-3"});
  const std::string run_file = "runs/" + name + "/run.json";
  const auto address = [&] {
    const Json run = Json::parse(folder.Read(run_file), nullptr, false);
    return run.is_object() ? run.value("http", "") : "";
  };
  ASSERT_TRUE(Eventually(kTimeout, [&] { return !address().empty(); })) << program.Output();
  const std::string page = address();
  EXPECT_THAT(HttpGet(page).body, HasSubstr("</html>"));
  const auto shows = [&](const std::string& path, const std::string& text) {
    return Eventually(kTimeout,
                      [&] { return HttpGet(page + path).body.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(shows("plan", "<!doctype html>")) << program.Output();
  EXPECT_TRUE(shows("plan", "seconds_per_step")) << program.Output();
  EXPECT_TRUE(shows("timeline", "timeline/worker-")) << program.Output();
  const std::string list = HttpGet(page + "timeline").body;
  const size_t link = list.find("timeline/worker-");
  ASSERT_NE(link, std::string::npos) << list;
  const std::string trace = HttpGet(page + list.substr(link, list.find('"', link) - link)).body;
  EXPECT_TRUE(Json::parse(trace, nullptr, false).is_object()) << trace.substr(0, 200);

  program.Signal(SIGINT);
  EXPECT_TRUE(shows("status", R"("outcome":{"status":"interrupted")")) << program.Output();
  EXPECT_EQ(program.Wait(kTimeout).exit_code, 130);
}

INSTANTIATE_TEST_SUITE_P(Commands, PageTest, ::testing::Values("train", "launch"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace dt::test
