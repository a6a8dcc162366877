#include "scheduler/report/timeline_files.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class TimelineFilesTest : public ::testing::Test {
 public:
  TimelineFilesTest()
      : folder_(fs::path(::testing::TempDir()) /
                ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
  }
  ~TimelineFilesTest() override { fs::remove_all(folder_); }

 protected:
  void Write(const std::string& name, const std::string& text) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / name) << text;
  }
  std::optional<HttpReply> Get(std::string_view path) {
    return TimelineReply(folder_.string(), path);
  }
  const fs::path folder_;
};

TEST_F(TimelineFilesTest, BeforeAnyIsWrittenThereIsNoPage) {
  EXPECT_FALSE(Get("/timeline").has_value());
  Write("notes.txt", "not of a worker");
  Write("worker-3.json.part", "not complete");
  EXPECT_FALSE(Get("/timeline").has_value());
}

TEST_F(TimelineFilesTest, EachFileHasALinkThatWorks) {
  Write("worker-3.json", "[1]");
  Write("worker-3.txt", "busy");
  const std::optional<HttpReply> list = Get("/timeline");
  ASSERT_TRUE(list.has_value());
  EXPECT_THAT(list->body, HasSubstr(R"(href="timeline/worker-3.json")"));
  EXPECT_THAT(list->body, HasSubstr(R"(href="timeline/worker-3.txt")"));
  const std::optional<HttpReply> json = Get("/timeline/worker-3.json");
  ASSERT_TRUE(json.has_value());
  EXPECT_EQ(json->type, "application/json");
  EXPECT_EQ(json->body, "[1]");
  EXPECT_EQ(Get("/timeline/worker-3.txt")->body, "busy");
}

TEST_F(TimelineFilesTest, NothingElseIsServed) {
  Write("worker-3.json", "[1]");
  Write("secret.json", "[2]");
  Write("worker-<b>.json", "[3]");
  EXPECT_THAT(Get("/timeline")->body, Not(HasSubstr("<b>")));
  for (const char* path :
       {"/", "/status", "/timeline/", "/timeline/secret.json", "/timeline/../worker-3.json",
        "/timeline/worker-4.json", "/timelineworker-3.json", "/timeline/worker-<b>.json"}) {
    EXPECT_FALSE(Get(path).has_value()) << path;
  }
}

}  // namespace
}  // namespace dt::scheduler
