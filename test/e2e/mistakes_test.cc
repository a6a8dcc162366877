// Goal: a mistake in a job gets one clear sentence, the right exit code and a result file, and no
// process is started. Method: the real program on jobs with one thing wrong.
#include <cstdlib>
#include <filesystem>
#include <sys/resource.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

struct Mistake {
  const char* name;
  std::vector<std::string> arguments;  // Arguments after JOB.yaml.
  int exit_code;
  const char* sentence;  // Part of the output.
};

const Mistake kMistakes[] = {
    {"unknown key", {"--set", "train.batchsize=8"}, 2, "did you mean \"batch_size\"?"},
    {"wrong type", {"--set", "train.epochs=many"}, 2, "train.epochs"},
    {"unknown operator", {"--set", "model.graph.hidden.op=mpl"}, 2, "did you mean \"mlp\"?"},
    {"unknown input",
     {"--set", "model.loss=[{type: binary_cross_entropy, input: logits, label: label}]"},
     2,
     "did you mean \"logit\"?"},
    {"unknown label",
     {"--set", "model.loss=[{type: binary_cross_entropy, input: logit, label: labl}]"},
     2,
     "labl"},
    {"missing data", {"--set", "data.train=[nowhere.libsvm]"}, 2, "nowhere.libsvm"},
    {"a key taken for a flag", {"--epochs", "3"}, 2, "--set train.epochs=3"},
    {"a key taken for a flag with =", {"--batch-size=8"}, 2, "--set train.batch_size=8"},
    {"a rate taken for a flag", {"--lr", "0.1"}, 2, "--set optimizer.lr=0.1"},
    {"a key of the top taken for a flag", {"--seed", "3"}, 2, "--set seed=3"},
    {"mechanism of later", {"--set", "parallel.stages=2"}, 2, "not available yet"},
    {"wrong format", {"--set", "data.format=criteo"}, 2, "features"},
    {"a folder as data", {"--set", "data.train=[.]"}, 2, ". is a folder, not a file"},
    {"a text that needs quotes", {"--set", "data.train=[${X}/a]"}, 2, "needs quotes"},
    {"no folder of checkpoints", {"--set", "checkpoint.dir=train.libsvm/x"}, 1, "checkpoint.dir"},
    {"no such checkpoint", {"--resume", "nowhere"}, 2, "there is no folder nowhere"},
    {"two problems at once",
     {"--set", "train.epochs=-1", "--set", "cluster.shards=3"},
     2,
     "2 problems"},
};

TEST(Mistakes, GetOneClearAnswerAndAResultFile) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {});
  for (const Mistake& mistake : kMistakes) {
    SCOPED_TRACE(mistake.name);
    std::vector<std::string> arguments = {"train", job, "--result", "r.json"};
    arguments.insert(arguments.end(), mistake.arguments.begin(), mistake.arguments.end());
    const ProgramEnd end = RunProgram(folder.path(), arguments);
    EXPECT_EQ(end.exit_code, mistake.exit_code) << end.output;
    EXPECT_NE(end.output.find(mistake.sentence), std::string::npos) << end.output;
    EXPECT_EQ(TextAt(folder, "r.json", "/status"), "failed");
    EXPECT_NE(TextAt(folder, "r.json", "/error/what"), "");
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // They need more than that.
// The aliases expand to 60 MB; the limit is 32 MB.
TEST(Mistakes, TooLittleMemoryIsASentence) {
  TempFolder folder;
  std::string text = "a: &a " + std::string(1'000'000, 'x') + "\nb: [*a";
  for (int i = 1; i < 60; ++i) text += ", *a";
  const std::string job = folder.Write("job.yaml", text + "]\n");
  rlimit limit{};
  getrlimit(RLIMIT_DATA, &limit);
  const rlimit little{32 << 20, limit.rlim_max};
  setrlimit(RLIMIT_DATA, &little);
  const ProgramEnd end = RunProgram(folder.path(), {"plan", job});
  setrlimit(RLIMIT_DATA, &limit);
  EXPECT_EQ(end.exit_code, 1) << end.output;
  EXPECT_EQ(end.output.find("dovetail: out of memory"), 0u) << end.output;
}
#endif

TEST(Mistakes, CudaWithoutACardEndsTheJobWithTheReason) {
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "a card may be here";
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {});
  for (const char* command : {"train", "launch"}) {
    SCOPED_TRACE(command);
    const ProgramEnd end = RunProgram(
        folder.path(), {command, job, "--set", "cluster.devices=cuda", "--result", "r.json"});
    EXPECT_EQ(end.exit_code, 1) << end.output;
    EXPECT_NE(end.output.find("set cluster.devices to"), std::string::npos) << end.output;
    EXPECT_EQ(TextAt(folder, "r.json", "/status"), "failed");
  }
}

TEST(Mistakes, ABadLineStopsBeforeAnyStepWithItsPlace) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {});
  folder.Write("train.libsvm", folder.Read("train.libsvm") + "1 12:1 thirteen:1\n");
  for (const char* command : {"train", "launch"}) {
    SCOPED_TRACE(command);
    const ProgramEnd end = RunProgram(folder.path(), {command, job, "--result", "r.json"});
    EXPECT_EQ(end.exit_code, 3) << end.output;
    EXPECT_NE(end.output.find("train.libsvm:3001"), std::string::npos) << end.output;
    EXPECT_NE(end.output.find("thirteen"), std::string::npos) << end.output;
    EXPECT_EQ(NumberAt(folder, "r.json", "/steps"), 0);
  }
}

TEST(Mistakes, LabelsThatAreNotZeroOrOneAreNamed) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {});
  folder.Write("train.libsvm", "7" + folder.Read("train.libsvm").substr(1));
  const ProgramEnd end = RunProgram(folder.path(), {"train", job});
  EXPECT_NE(end.exit_code, 0);
  EXPECT_NE(end.output.find("label"), std::string::npos) << end.output;
  EXPECT_NE(end.output.find('7'), std::string::npos) << end.output;
}

TEST(Mistakes, ResumingAnotherJobNamesTheDifference) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1});
  ASSERT_EQ(RunProgram(folder.path(), {"train", job}).exit_code, 0);
  const ProgramEnd end = RunProgram(
      folder.path(), {"train", job, "--resume", "auto", "--set", "train.batch_size=128"});
  EXPECT_EQ(end.exit_code, 2) << end.output;
  EXPECT_NE(end.output.find("batch_size"), std::string::npos) << end.output;
}

TEST(Mistakes, NoSchedulerThereIsSaidWithinTheDeadline) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {});
  ASSERT_EQ(RunProgram(folder.path(), {"keygen", "runs/tiny/keys/job"}).exit_code, 0);
  const ProgramEnd end = RunProgram(
      folder.path(), {"worker", job, "--scheduler", "tcp://127.0.0.1:9"}, std::chrono::seconds(45));
  EXPECT_FALSE(end.timed_out);
  EXPECT_EQ(end.exit_code, 1) << end.output;
  EXPECT_NE(end.output.find("tcp://127.0.0.1:9"), std::string::npos) << end.output;
}

TEST(Mistakes, AKeyThatOthersMayReadIsRefused) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {});
  ASSERT_EQ(RunProgram(folder.path(), {"keygen", "runs/tiny/keys/job"}).exit_code, 0);
  const std::string key = folder.path() + "/runs/tiny/keys/job.key";
  using enum std::filesystem::perms;
  std::filesystem::permissions(key, owner_read | owner_write | others_read);
  const ProgramEnd end = RunProgram(folder.path(), {"scheduler", job}, std::chrono::seconds(20));
  EXPECT_EQ(end.exit_code, 2) << end.output;
  EXPECT_NE(end.output.find("chmod 600 runs/tiny/keys/job.key"), std::string::npos) << end.output;
}

TEST(Mistakes, KeysAndNoKeysAreNotAskedForAtOnce) {
  TempFolder folder;
  const std::string job =
      WriteTinyJob(folder, {.more = "security: {insecure: true, curve: {key: job.key}}\n"});
  const ProgramEnd end = RunProgram(folder.path(), {"scheduler", job}, std::chrono::seconds(20));
  EXPECT_EQ(end.exit_code, 2) << end.output;
  EXPECT_NE(end.output.find("security.insecure"), std::string::npos) << end.output;
}

TEST(Mistakes, ADamagedCheckpointIsNamed) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1});
  ASSERT_EQ(RunProgram(folder.path(), {"train", job}).exit_code, 0);
  const std::string checkpoint = "runs/tiny/checkpoints/step-000000000012";
  std::vector<std::string> files = {"dense.bin"};
  const std::filesystem::path root = folder.path() + "/" + checkpoint;
  for (const auto& file : std::filesystem::recursive_directory_iterator(root)) {
    if (file.path().extension() != ".sst") continue;
    files.push_back(std::filesystem::relative(file.path(), root).string());
  }
  ASSERT_GT(files.size(), 1u);
  for (const std::string& file : files) {
    const std::string intact = folder.Read(checkpoint + "/" + file);
    ASSERT_GT(intact.size(), 100u);
    std::string damaged = intact;
    damaged[damaged.size() / 3] = static_cast<char>(damaged[damaged.size() / 3] ^ 1);
    folder.Write(checkpoint + "/" + file, damaged);
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"checkpoint", "verify", checkpoint},
          {"eval", job, "--checkpoint", checkpoint},
          {"train", job, "--resume", checkpoint}}) {
      const ProgramEnd end = RunProgram(folder.path(), arguments);
      EXPECT_EQ(end.exit_code, 1) << end.output;
      EXPECT_NE(end.output.find(file), std::string::npos) << end.output;
    }
    folder.Write(checkpoint + "/" + file, intact);
  }
}

// A job whose data and checkpoints are in a folder that only an environment variable names.
class Vault : public ::testing::Test {
 protected:
  Vault() {
    const std::string at = folder_.path() + "/" + kSecret;
    std::filesystem::create_directories(at);
    setenv("DT_TEST_VAULT", at.c_str(), 1);
    WriteTinyJob(folder_, {.epochs = 1, .more = R"(checkpoint: {dir: "${DT_TEST_VAULT}/saved"}
observe: {log: json}
)"});
    std::string text = folder_.Read("tiny.yaml");
    for (const std::string file : {"train.libsvm", "valid.libsvm"}) {
      std::filesystem::rename(folder_.path() + "/" + file, at + "/" + file);
      const std::string named = "[" + file + "]";
      text.replace(text.find(named), named.size(), "[\"${DT_TEST_VAULT}/" + file + "\"]");
    }
    job_ = folder_.Write("tiny.yaml", text);
  }
  ~Vault() override { unsetenv("DT_TEST_VAULT"); }

  // The output contains the job file's own words. The secret is not printed, and is only in files
  // that no other account may read.
  void ExpectKept(std::vector<std::string> arguments, int exit_code, const std::string& sentence) {
    SCOPED_TRACE(arguments.front() + ": " + sentence);
    const ProgramEnd end = RunProgram(folder_.path(), arguments);
    EXPECT_EQ(end.exit_code, exit_code) << end.output;
    EXPECT_NE(end.output.find(sentence), std::string::npos) << end.output;
    EXPECT_EQ(end.output.find(kSecret), std::string::npos) << end.output;
    for (auto at = std::filesystem::recursive_directory_iterator(folder_.path());
         at != std::filesystem::recursive_directory_iterator(); ++at) {
      const std::string path = std::filesystem::relative(at->path(), folder_.path()).string();
      if (at->is_directory()) {
        using enum std::filesystem::perms;
        const auto others = at->status().permissions() & (group_all | others_all);
        if (path == kSecret || others == none) at.disable_recursion_pending();
      } else if (at->is_regular_file()) {
        EXPECT_EQ(folder_.Read(path).find(kSecret), std::string::npos) << path;
      }
    }
  }

  static constexpr const char* kSecret = "of-secret-5ae81";
  const TempFolder folder_;
  std::string job_;
};

TEST_F(Vault, APathOfTheEnvironmentIsPrintedAsItIsWritten) {
  const std::string saved = "${DT_TEST_VAULT}/saved/step-000000000012";
  for (const char* command : {"train", "launch"}) {
    ExpectKept({command, job_, "--result", "r.json", "--log-level", "debug"}, 0, saved);
    EXPECT_NE(folder_.Read("r.json").find(saved), std::string::npos);
  }
  ExpectKept({"plan", job_, "--format", "json"}, 0, "");
  ExpectKept({"data", "stats", job_}, 0, "");
  ExpectKept({"checkpoint", "list", job_}, 0, saved);
  const std::string real = folder_.path() + "/" + kSecret + "/saved/step-000000000012";
  ExpectKept({"eval", job_, "--checkpoint", real, "--log-level", "debug"}, 0, "");
  ExpectKept({"train", job_, "--resume", real, "--log-level", "debug"}, 0, "");
}

TEST_F(Vault, AMistakeNamesThePathAsItIsWritten) {
  const std::string none = "${DT_TEST_VAULT}/none";
  for (const char* key : {"parallel.profile", "data.stats", "data.train"}) {
    ExpectKept({"plan", job_, "--set", std::string(key) + "=" + none}, 2, none);
  }
  ExpectKept({"launch", job_, "--set", "security.curve.key=" + none}, 2, none);
  const std::string vault = std::string(kSecret) + "/";
  folder_.Write(vault + "model.yaml", "tables: 1\nwrong: 2\n");
  ExpectKept({"plan", job_, "--set", "model={use: \"${DT_TEST_VAULT}/model.yaml\"}"}, 2,
             "${DT_TEST_VAULT}/model.yaml:2");
  folder_.Write(vault + "train.libsvm", folder_.Read(vault + "train.libsvm") + "1 thirteen:1\n");
  const std::string bad = "${DT_TEST_VAULT}/train.libsvm:3001";
  for (const char* command : {"train", "launch"}) {
    ExpectKept({command, job_, "--result", "r.json"}, 3, bad);
    EXPECT_NE(TextAt(folder_, "r.json", "/error/what").find(bad), std::string::npos);
    ExpectKept({command, job_, "--set", "data.on_error=skip"}, 0, bad);
    ExpectKept({command, job_, "--set", "data.train=" + none}, 2, none);
    const std::string in_file = "${DT_TEST_VAULT}/valid.libsvm/x";
    ExpectKept({command, job_, "--set", "data.on_error=skip", "--set", "checkpoint.dir=" + in_file},
               1, in_file);
    ExpectKept({command, job_, "--set", "observe.tensorboard=" + none}, 2, "found \"" + none);
  }
}

TEST(Mistakes, WrongUsageExitsWithTwo) {
  TempFolder folder;
  EXPECT_EQ(RunProgram(folder.path(), {}).exit_code, 2);
  const ProgramEnd mistyped = RunProgram(folder.path(), {"tarin", "--result", "r.json"});
  EXPECT_EQ(mistyped.exit_code, 2);
  EXPECT_NE(mistyped.output.find("did you mean \"train\"?"), std::string::npos) << mistyped.output;
  EXPECT_EQ(TextAt(folder, "r.json", "/status"), "failed");
  EXPECT_EQ(RunProgram(folder.path(), {"train"}).exit_code, 2);
  const ProgramEnd absent = RunProgram(folder.path(), {"train", "nowhere.yaml"});
  EXPECT_EQ(absent.exit_code, 2) << absent.output;
  EXPECT_NE(absent.output.find("nowhere.yaml"), std::string::npos) << absent.output;
}

TEST(Mistakes, AResultFileThatCannotBeWrittenIsSaidAtOnce) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {});
  const ProgramEnd end = RunProgram(folder.path(), {"train", job, "--result", "/proc/r.json"});
  EXPECT_EQ(end.exit_code, 2) << end.output;
  EXPECT_NE(end.output.find("/proc/r.json"), std::string::npos) << end.output;
  EXPECT_EQ(end.output.find("samples/s"), std::string::npos) << end.output;
}

TEST(Mistakes, ALookupThatNobodyReadsIsTold) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1});
  const std::string graph =
      "[{name: x, op: lookup, table: deep, inputs: [features]}, "
      "{name: logit, op: linear, table: wide, inputs: [features]}]";
  const ProgramEnd end = RunProgram(folder.path(), {"train", job, "--set", "model.graph=" + graph});
  EXPECT_EQ(end.exit_code, 2) << end.output;
  EXPECT_NE(end.output.find("model.graph.x: no node and no loss reads its output"),
            std::string::npos)
      << end.output;
}

// Two columns of ids: the first holds the number of the line, the second twice that.
std::string WritePairJob(const TempFolder& folder, const std::string& transform) {
  std::string text = "click,user,item,price\n";
  for (int i = 0; i < 64; ++i) text += fmt::format("{},{},{},0.5\n", i % 2, i, 2 * i);
  folder.Write("pairs.csv", text);
  return folder.Write("pairs.yaml", fmt::format(R"(job: pairs
data:
  format: csv
  train: [pairs.csv]
  columns:
    - {{name: click, role: label}}
    - {{name: user, type: id{}}}
    - {{name: item, type: id}}
    - {{name: price}}
model:
  tables: {{both: {{dim: 4}}}}
  graph:
    - {{name: e, op: lookup, table: both, inputs: [user, item]}}
    - {{name: logit, op: dense, inputs: [e, price], units: 1}}
  loss: [{{type: binary_cross_entropy, input: logit, label: click}}]
train: {{batch_size: 16}}
)",
                                                transform));
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Mistakes, IdsOfTwoColumnsThatShareRowsAreToldOnce) {
  const std::string shared = "user 5 and item 5 are one row";
  for (const char* command : {"train", "launch", "plan"}) {
    SCOPED_TRACE(command);
    TempFolder folder;
    const ProgramEnd end = RunProgram(folder.path(), {command, WritePairJob(folder, "")});
    EXPECT_EQ(end.exit_code, 0) << end.output;
    EXPECT_EQ(CountOf(end.output, shared), 1u) << end.output;
    EXPECT_NE(end.output.find("transform: named"), std::string::npos) << end.output;
    const ProgramEnd named =
        RunProgram(folder.path(), {command, WritePairJob(folder, ", transform: named")});
    EXPECT_EQ(named.exit_code, 0) << named.output;
    EXPECT_EQ(CountOf(named.output, shared), 0u) << named.output;
  }
}

// Mistakes found by the planner are reported together, each with its line and key.
TEST(Mistakes, OfSeveralNodesAreToldAtOnce) {
  TempFolder folder;
  const std::string job = WritePairJob(folder, "");
  const std::string graph =
      "[{name: e, op: lookup, table: both, inputs: [user, item], wieghted: true},"
      " {name: f, op: lookup, table: both, inputs: [price]},"
      " {name: deep, op: mlp, inputs: [e, price], units: many, dropout: 2},"
      " {name: logit, op: sum, inputs: [deep, f]}]";
  const ProgramEnd end = RunProgram(folder.path(), {"plan", job, "--set", "model.graph=" + graph});
  EXPECT_EQ(end.exit_code, 2) << end.output;
  for (const char* sentence :
       {"model.graph.e.wieghted: is no attribute of lookup; did you mean \"weighted\"?",
        "node \"f\": lookup reads columns of keys, column \"price\" holds numbers",
        "model.graph.deep.units: expected a list of whole numbers",
        "model.graph.deep.dropout: found 2, expected 0 to 0.999", "4 problems, nothing started"}) {
    EXPECT_NE(end.output.find(sentence), std::string::npos) << sentence << end.output;
  }
}

TEST(Mistakes, AFileWithoutAFeatureNamesIt) {
  TempFolder folder;
  const std::string job = WritePairJob(folder, ", transform: named");
  ASSERT_EQ(RunProgram(folder.path(), {"train", job}).exit_code, 0);
  folder.Write("new.csv", "user,item\n1,2\n");
  const ProgramEnd end = RunProgram(
      folder.path(), {"predict", job, "--checkpoint", "runs/pairs/checkpoints/step-000000000004",
                      "--data", "new.csv", "--out", "scores.csv"});
  EXPECT_EQ(end.exit_code, 3) << end.output;
  EXPECT_NE(end.output.find("new.csv:1: column \"price\": no such name found in the header"),
            std::string::npos)
      << end.output;
}

// Rows of the table are pulled, but no gradient is pushed.
TEST(Mistakes, ATableWithoutAGradientIsLegal) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1});
  const std::string graph =
      "[{name: x, op: lookup, table: deep, inputs: [features]}, "
      "{name: still, op: stop_gradient, inputs: [x]}, "
      "{name: d, op: dense, inputs: [still], units: 1}, "
      "{name: first, op: linear, table: wide, inputs: [features]}, "
      "{name: logit, op: sum, inputs: [first, d]}]";
  const ProgramEnd end = RunProgram(folder.path(), {"train", job, "--set", "model.graph=" + graph});
  EXPECT_EQ(end.exit_code, 0) << end.output;
}

}  // namespace
}  // namespace dt::test
