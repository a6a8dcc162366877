// Goal: a server finds its own directory again, and no other server's. Method: real folders and
// locks.
#include "server/log/server_dir.h"

#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/base/host_name.h"
#include "test/support/scratch_folder.h"

namespace dt::server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class ServerDirTest : public ::testing::Test {
 protected:
  ServerDirTest() {
    job_.cluster.server.dir = job_.run_dir = folder_ / "run";
    job_.fingerprint = 12;
  }
  Result<ServerDir> Open(uint32_t id = 0) const { return ServerDir::Open(job_, ProcessId(id)); }
  ServerIdentity Identity() const { return {7, 12, HostName(), "tcp://a:0", {"tcp://a:1"}}; }

  const test::ScratchFolder folder_;
  JobConfig job_;
};

TEST_F(ServerDirTest, EachLivingServerHasItsOwnAndADeadOnesIsTakenAgain) {
  std::optional<ServerDir> first = *Open();
  const auto second = Open();
  ASSERT_TRUE(second.ok());
  EXPECT_THAT(first->path(), EndsWith("run/server-1"));
  EXPECT_THAT(second->path(), EndsWith("run/server-2"));
  ASSERT_TRUE(first->SetIdentity(Identity()).ok());
  first.reset();
  const auto again = Open();
  EXPECT_THAT(again->path(), EndsWith("run/server-1"));
  const auto identity = again->ReadIdentity(job_);
  ASSERT_TRUE(identity.has_value());
  EXPECT_EQ(identity->server_token, 7u);
  EXPECT_EQ(identity->endpoints, std::vector<std::string>{"tcp://a:1"});
}

TEST_F(ServerDirTest, AnotherJobsIdentityIsNone) {
  const auto dir = Open();
  EXPECT_FALSE(dir->ReadIdentity(job_).has_value());
  ASSERT_TRUE(dir->SetIdentity(Identity()).ok());
  EXPECT_TRUE(dir->ReadIdentity(job_).has_value());
  job_.fingerprint = 13;
  EXPECT_FALSE(dir->ReadIdentity(job_).has_value());
}

TEST_F(ServerDirTest, AnotherMachinesDirectoryIsLeftAlone) {
  {
    const auto dir = Open();
    ServerIdentity identity = Identity();
    identity.host = "elsewhere";
    ASSERT_TRUE(dir->SetIdentity(identity).ok());
  }
  EXPECT_THAT(Open()->path(), EndsWith("run/server-2"));
}

TEST_F(ServerDirTest, AServerHasTheDirectoryOfItsNumber) {
  const auto third = Open(3);
  EXPECT_THAT(third->path(), EndsWith("run/server-3"));
  EXPECT_EQ(third->id(), ProcessId(3));
  EXPECT_EQ(Open(3)->id(), ProcessId(4)) << "a living process has the third";
}

TEST_F(ServerDirTest, AnotherJobsDirectoryIsLeftAlone) {
  { ASSERT_TRUE(Open()->SetIdentity(Identity()).ok()); }
  job_.run_dir = folder_ / "another";
  ServerDir::RemoveFormer(job_);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/server-1"));
  EXPECT_THAT(Open()->path(), EndsWith("run/server-2"));
}

TEST_F(ServerDirTest, WhatFormerServersLeftIsRemovedAndNothingElse) {
  for (const uint32_t id : {1, 2, 3}) ASSERT_TRUE(Open(id)->SetIdentity(Identity()).ok());
  std::filesystem::create_directories(folder_ / "run/server-4");
  std::filesystem::create_directories(folder_ / "run/server-side");
  const auto living = Open(2);
  ServerDir::RemoveFormer(job_);
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "run")) {
    left.insert(entry.path().filename());
  }
  EXPECT_EQ(left, (std::set<std::string>{"server-2", "server-4", "server-side"}));
}

TEST_F(ServerDirTest, TheDirectoryOfAJobThatIsOverGoes) {
  {
    auto dir = Open();
    ASSERT_TRUE(dir->SetIdentity(Identity()).ok());
    dir->RemoveAll();
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/server-1"));
}

TEST_F(ServerDirTest, AnIdentityOfAnyShapeIsNone) {
  const std::string odd[] = {"[]", "7", "", R"({"content": [], "check": 1})",
                             fmt::format(R"({{"content": [], "check": {}}})", HashString("[]"))};
  for (const std::string& text : odd) {
    std::filesystem::create_directories(folder_ / "run/server-1");
    std::ofstream(folder_ / "run/server-1/identity.json") << text;
    const auto dir = Open();
    ASSERT_TRUE(dir.ok()) << text;
    EXPECT_THAT(dir->path(), EndsWith("run/server-1"));
    EXPECT_FALSE(dir->ReadIdentity(job_).has_value()) << text;
  }
}

TEST_F(ServerDirTest, APathThatIsNoUtf8IsKeptAsFarAsJsonCan) {
  const auto dir = Open();
  ASSERT_TRUE(dir->SetBase({Generation(2), 40, "/c\xff/step-40", {3}}).ok());
  const auto base = dir->ReadBase();
  ASSERT_TRUE(base.ok() && base->has_value()) << base.status();
  EXPECT_EQ((*base)->step, 40u);
}

TEST_F(ServerDirTest, OtherAccountsAreShutOut) {
  namespace fs = std::filesystem;
  const auto dir = Open();
  ASSERT_TRUE(dir->SetIdentity(Identity()).ok());
  EXPECT_EQ(fs::status(dir->path()).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(dir->path() + "/identity.json").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(ServerDirTest, TheBaseIsWholeOrDamaged) {
  auto dir = Open();
  EXPECT_FALSE(dir->ReadBase()->has_value());
  ASSERT_TRUE(dir->SetBase({Generation(2), 40, "/c/step-40", {3, 4}}).ok());
  const auto base = dir->ReadBase();
  ASSERT_TRUE(base.ok() && base->has_value());
  EXPECT_EQ((*base)->generation, Generation(2));
  EXPECT_EQ((*base)->step, 40u);
  EXPECT_EQ((*base)->folder, "/c/step-40");
  EXPECT_EQ((*base)->first_segments, (std::vector<uint64_t>{3, 4}));
  std::ofstream(dir->path() + "/base.json") << R"({"content": {"step": 41}, "check": 1})";
  EXPECT_EQ(dir->ReadBase().status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(ToText(dir->ReadBase().status()), HasSubstr("base.json is damaged"));
  dir->RemoveAll();
  EXPECT_FALSE(dir->ReadBase()->has_value());
}

TEST_F(ServerDirTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder_ / "file") << "x";
  job_.cluster.server.dir = folder_ / "file";
  EXPECT_THAT(ToText(Open().status()), HasSubstr("file/server-1 cannot be made"));
}

}  // namespace
}  // namespace dt::server
