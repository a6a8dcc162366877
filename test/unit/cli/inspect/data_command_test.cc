// Goal: what the commands that need no running job print of data and keys is what is there. Method:
// the commands' functions on a handful of rows whose figures are known by hand.
#include <filesystem>
#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.h"
#include "common/storage/files.h"
#include "common/storage/json_file.h"
#include "test/support/program.h"

namespace dt::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kJob[] = R"(job: few
data:
  format: csv
  train: [train.csv]
  valid: [valid.csv]
  columns:
    - {name: click, role: label}
    - {name: user, type: id}
    - {name: age, type: float}
    - {name: tags, type: ids}
model:
  tables: {t: {dim: 2}}
  graph:
    - {name: e, op: lookup, table: t, inputs: [user]}
    - {name: logit, op: dense, inputs: [e, age], units: 1}
  loss: [{type: binary_cross_entropy, input: logit, label: click}]
)";

struct Ended {
  int code = 0;
  std::string output, errors;
};

class DataCommandTest : public ::testing::Test {
 protected:
  DataCommandTest() {
    before_ = fs::current_path();
    fs::current_path(folder_.path());
    folder_.Write("train.csv",
                  "click,user,age,tags\n1,10,20,1|2\n0,11,30,\n0,10,40,2\n1,12,10,3|3|3\n");
    folder_.Write("valid.csv", "click,user,age,tags\n1,10,5,7\n");
    line_.job_path = folder_.Write("job.yaml", kJob);
  }
  ~DataCommandTest() override { fs::current_path(before_); }

  Ended Run(const std::string& command) {
    line_.command = command;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Ended end;
    end.code = command.starts_with("data") ? RunData(line_)
               : command == "keygen"       ? RunKeygen(line_)
                                           : RunSchema(line_);
    end.output = testing::internal::GetCapturedStdout();
    end.errors = testing::internal::GetCapturedStderr();
    return end;
  }

  const test::TempFolder folder_;
  fs::path before_;
  CommandLine line_;
};

TEST_F(DataCommandTest, StatsAreThoseOfEveryColumnOfEverySplitThatThereIs) {
  line_.json = true;
  const Ended end = Run("data stats");
  ASSERT_EQ(end.code, 0) << end.errors;
  const Result<Json> stats = ParseJson(end.output, "stats");
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_FALSE(stats->contains("test")) << "there is none";
  EXPECT_EQ(stats->at("valid").at("rows"), 1);
  const Json& train = stats->at("train");
  EXPECT_EQ(train.at("rows"), 4);
  ASSERT_EQ(train.at("columns").size(), 4u);
  EXPECT_EQ(train.at("columns")[1],
            Json({{"name", "user"}, {"keys", 4}, {"distinct", 3}, {"per_row", 1.0}}));
  const Json& age = train.at("columns")[2];
  EXPECT_EQ(age.at("numbers"), "age");
  EXPECT_EQ(age.at("mean"), 25.0);
  EXPECT_EQ(age.at("max"), 40.0);
}

TEST_F(DataCommandTest, StatsForPeopleSayTheSame) {
  const Ended end = Run("data stats");
  ASSERT_EQ(end.code, 0) << end.errors;
  EXPECT_THAT(end.output, HasSubstr("train: 4 rows\n"));
  EXPECT_THAT(end.output, HasSubstr("valid: 1 row\n"));
  EXPECT_THAT(end.output, HasSubstr("  column                   missing    distinct     per_row"
                                    "         min         max        mean   deviation\n"));
  EXPECT_THAT(end.output, HasSubstr("  age                            0           4            "
                                    "          10          40          25     11.1803\n"));
  EXPECT_THAT(end.output,
              HasSubstr("  tags                           1           3         1.5\n"));
}

// The shell has emptied the file already when its new content is computed.
TEST_F(DataCommandTest, StatsNeedNoConstants) {
  folder_.Write("stats.json", "");
  line_.overrides = {"data.stats=stats.json", "data.columns.age.standardise=true"};
  EXPECT_EQ(Run("data convert").code, 2);
  EXPECT_EQ(Run("data stats").code, 0);
  line_.json = true;
  folder_.Write("stats.json", Run("data stats").output);
  line_.json = false;
  EXPECT_EQ(Run("data convert").code, 0);
}

TEST_F(DataCommandTest, ConvertReadsOnceAndThenFindsItsCache) {
  const Ended first = Run("data convert");
  ASSERT_EQ(first.code, 0) << first.errors;
  EXPECT_THAT(first.output, HasSubstr("train 4 rows, read in "));
  EXPECT_THAT(first.output, HasSubstr("valid 1 row, read in "));
  const Ended second = Run("data convert");
  EXPECT_THAT(second.output, HasSubstr("train 4 rows, cached in "));
  EXPECT_THAT(second.output, Not(HasSubstr("1 row, read")));
  folder_.Write("train.csv", "click,user,age,tags\n1,10,20,1\n");
  EXPECT_THAT(Run("data convert").output, HasSubstr("train 1 row, read in ")) << "it has changed";
}

TEST_F(DataCommandTest, RowsThatAreSkippedAreCounted) {
  folder_.Write("train.csv", "click,user,age,tags\n1,10,20,1\n1,x,20,1\n0,9,old,1\n");
  const Ended stops = Run("data convert");
  EXPECT_EQ(stops.code, 3);
  EXPECT_THAT(stops.errors, HasSubstr("train.csv:3"));
  line_.overrides = {"data.on_error=skip"};
  EXPECT_THAT(Run("data convert").output, HasSubstr("train 1 row, read in "));
  EXPECT_THAT(Run("data convert").output, HasSubstr(", 2 skipped\n"));
}

TEST_F(DataCommandTest, AMistakeInTheJobIsToldBeforeAnyDataIsRead) {
  line_.overrides = {"data.formt=csv"};
  for (const char* command : {"data stats", "data convert"}) {
    const Ended end = Run(command);
    EXPECT_EQ(end.code, 2) << command;
    EXPECT_EQ(end.output, "");
    EXPECT_THAT(end.errors, HasSubstr("did you mean \"format\"?"));
  }
  EXPECT_FALSE(fs::exists("runs"));
}

TEST_F(DataCommandTest, GeneratedRowsAreSplitEightToOneToOne) {
  line_.rows = 1000;
  line_.seed = 3;
  line_.out_path = folder_.path() + "/made";
  const Ended end = Run("data generate");
  ASSERT_EQ(end.code, 0) << end.errors;
  EXPECT_THAT(end.output, HasSubstr("/made: 1000 rows, seed 3\n"));
  for (const char* split :
       {"train       800 rows", "valid       100 rows", "test        100 rows"}) {
    EXPECT_THAT(end.output, HasSubstr(std::string("\n  ") + split + ", best possible AUC 0."));
  }
  line_.out_path = "/proc/nowhere";
  EXPECT_NE(Run("data generate").code, 0);
}

TEST_F(DataCommandTest, KeysAreAPairThatOnlyTheirOwnerMayReadAndAreNotReplaced) {
  line_.key_path = folder_.path() + "/keys/job";
  const Ended end = Run("keygen");
  ASSERT_EQ(end.code, 0) << end.errors;
  EXPECT_THAT(end.output, HasSubstr("/keys/job.key: secret"));
  struct stat status {};
  ASSERT_EQ(stat((line_.key_path + ".key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const std::string secret = folder_.Read("keys/job.key");
  EXPECT_THAT(folder_.Read("keys/job.pub"), Not(HasSubstr(secret.substr(secret.size() / 2))));
  const Ended again = Run("keygen");
  EXPECT_NE(again.code, 0);
  EXPECT_EQ(folder_.Read("keys/job.key"), secret) << "a job may use it";
}

TEST_F(DataCommandTest, EachSchemaIsJsonSchemaOfItsOwn) {
  std::vector<std::string> seen;
  for (const char* schema : {"job", "status", "plan", "manifest"}) {
    line_.schema = schema;
    const Ended end = Run("schema");
    EXPECT_EQ(end.code, 0);
    const Result<Json> json = ParseJson(end.output, schema);
    ASSERT_TRUE(json.ok()) << json.status();
    EXPECT_TRUE(json->contains("$schema")) << schema;
    for (const std::string& other : seen) EXPECT_NE(end.output, other) << schema;
    seen.push_back(end.output);
  }
}

}  // namespace
}  // namespace dt::cli
