#include "common/control/key_files.h"

#include <fstream>
#include <sys/stat.h>
#include <thread>

#include <gtest/gtest.h>

#include "test/support/scratch_folder.h"

namespace dt {
namespace {

class KeyFiles : public ::testing::Test {
 protected:
  KeyFiles() { job_.run_dir = folder_.path() + "/run"; }
  mode_t ModeOf(const std::string& path) const {
    struct stat about {};
    EXPECT_EQ(stat(path.c_str(), &about), 0) << path;
    return about.st_mode & 0777;
  }
  std::string Write(const std::string& name, const std::string& text, mode_t mode) const {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string Refusal(const SocketNeeds& needs) const {
    const auto options = SocketOptionsOf(job_, needs);
    return options.ok() ? "" : ToText(options.status());
  }

  const test::ScratchFolder folder_;
  JobConfig job_;
};

TEST_F(KeyFiles, APairIsWrittenForItsOwnerAndReadBack) {
  const std::string stem = folder_.path() + "/keys/job";
  const KeyPair pair = MakeKeyPair();
  ASSERT_TRUE(WriteKeyFiles(stem, pair).ok());
  EXPECT_EQ(ModeOf(folder_.path() + "/keys"), 0700u);
  EXPECT_EQ(ModeOf(stem + ".key"), 0600u);
  const auto both = ReadKeyFile(stem + ".key"), half = ReadKeyFile(stem + ".pub");
  ASSERT_TRUE(both.ok() && half.ok()) << both.status() << half.status();
  EXPECT_EQ(both->secret_key, pair.secret_key);
  EXPECT_EQ(both->public_key, pair.public_key);
  EXPECT_EQ(half->public_key, pair.public_key);
  EXPECT_EQ(half->secret_key, "");
  EXPECT_FALSE(WriteKeyFiles(stem, MakeKeyPair()).ok()) << "a key is never replaced";
  EXPECT_EQ(ReadKeyFile(stem + ".key")->secret_key, pair.secret_key);
}

TEST_F(KeyFiles, WhatIsNoKeyIsNamed) {
  const KeyPair a = MakeKeyPair(), b = MakeKeyPair();
  for (const std::string& text :
       {std::string(), std::string("public"), "public " + a.public_key + "x\n",
        "secret " + a.secret_key + "\n",
        "public " + a.public_key + "\nsecret " + b.secret_key + "\n",
        "public " + a.public_key + "\npublic " + b.public_key + "\n", std::string(9000, 'x')}) {
    const auto read = ReadKeyFile(Write("odd.key", text, 0600));
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(ToText(read.status()).find("odd.key"), std::string::npos) << ToText(read.status());
  }
  EXPECT_FALSE(ReadKeyFile(folder_.path() + "/absent.key").ok());
  EXPECT_FALSE(ReadKeyFile(folder_.path()).ok());
  const std::string pipe = folder_.path() + "/pipe.key";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(ReadKeyFile(pipe).ok()) << "and does not wait for somebody to write";
}

TEST_F(KeyFiles, ASecretThatOthersMayReadIsRefused) {
  const KeyPair pair = MakeKeyPair();
  const std::string text = "public " + pair.public_key + "\nsecret " + pair.secret_key + "\n";
  for (const mode_t mode : {0640, 0604, 0620}) {
    const auto read = ReadKeyFile(Write("open.key", text, mode));
    ASSERT_FALSE(read.ok());
    EXPECT_NE(ToText(read.status()).find("chmod 600"), std::string::npos);
  }
}

TEST_F(KeyFiles, TheSchedulerMakesTheJobsPairAndTheOthersWaitForIt) {
  EXPECT_NE(Refusal({.timeout = milliseconds(50)}).find("run/keys/job.key"), std::string::npos);
  std::jthread waiter([&] { EXPECT_EQ(Refusal({.listens = true, .timeout = seconds(20)}), ""); });
  ASSERT_EQ(Refusal({.makes_keys = true, .listens = true}), "");
  waiter.join();
  const auto first = SocketOptionsOf(job_, {.makes_keys = true});
  const auto second = SocketOptionsOf(job_, {});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->curve->job.secret_key, second->curve->job.secret_key) << "it is kept";
}

TEST_F(KeyFiles, ProcessesMayHavePairsOfTheirOwn) {
  const std::string job = folder_.path() + "/job", host = folder_.path() + "/host";
  const KeyPair of_job = MakeKeyPair(), of_host = MakeKeyPair();
  ASSERT_TRUE(WriteKeyFiles(job, of_job).ok() && WriteKeyFiles(host, of_host).ok());
  job_.security.curve = {.key = job + ".key", .allow = {host + ".pub"}};
  const auto server = SocketOptionsOf(job_, {.listens = true});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(server->curve->allowed, std::vector<std::string>{of_host.public_key});
  EXPECT_EQ(server->curve->own.secret_key, of_job.secret_key);

  job_.security.curve = {.key = job + ".pub"};
  EXPECT_NE(Refusal({}).find("security.curve.own"), std::string::npos);
  job_.security.curve.own = host + ".key";
  const auto worker = SocketOptionsOf(job_, {});
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(worker->curve->own.secret_key, of_host.secret_key);
  EXPECT_NE(Refusal({.listens = true}).find("security.curve.key"), std::string::npos);
}

TEST_F(KeyFiles, InTheClearOnlyWhereItIsWritten) {
  job_.security.insecure = true;
  const auto options = SocketOptionsOf(job_, {.makes_keys = true});
  ASSERT_TRUE(options.ok());
  EXPECT_TRUE(options->insecure);
  EXPECT_FALSE(options->curve.has_value());
}

}  // namespace
}  // namespace dt
