// Messages about a checkpoint that does not fit the job.
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "scheduler/checkpoint/manifest.h"

namespace dt::scheduler {
namespace {

constexpr std::string_view kSaved =
    "job: j\nseed: 1\ntrain.staleness: above 0\n"
    "model.tables.user: table\nmodel.tables.user.dim: 24\nmodel.tables.user.init: {normal: 0.01}\n"
    "model.tables.user.eval_default: initial\nmodel.tables.user.l2: 0\n"
    "model.tables.user.optimizer.name: adam\nmodel.tables.user.optimizer.lr: 0.1\n"
    "model.graph.deep: node\nmodel.graph.deep.op: mlp\nmodel.graph.deep.dropout: 0.5\n";

std::string With(std::string_view from, std::string_view to) {
  std::string text(kSaved);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

class SameJobTest : public ::testing::Test {
 protected:
  SameJobTest() {
    saved_.resume_text = kSaved;
    saved_.resume_fingerprint = HashString(kSaved);
    job_.model.tables = {{.name = "user"}};
  }
  // Returns the message; "" if the checkpoint fits.
  std::string Resumed(const std::string& text) {
    job_.resume_text = text;
    job_.resume_fingerprint = HashString(text);
    return TextOf(CheckSameJob(saved_, job_, "folder"));
  }
  std::string Evaluated(const std::string& text) {
    job_.resume_text = text;
    return TextOf(CheckSameModel(saved_, job_, "folder"));
  }
  static std::string TextOf(const Status& status) {
    if (status.ok()) return "";
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    const std::string message(MessageOf(status));
    constexpr std::string_view kBefore = "the checkpoint is of a job with other keys: ";
    EXPECT_TRUE(message.starts_with(kBefore)) << message;
    return message.substr(std::min(kBefore.size(), message.size()));
  }

  Manifest saved_;
  JobConfig job_;
};

TEST_F(SameJobTest, KeysThatDifferAreCalledAsTheUserWritesThem) {
  EXPECT_EQ(Resumed(std::string(kSaved)), "");
  EXPECT_EQ(Resumed(With("dim: 24", "dim: 8")), "model.tables.user.dim: 24 there, 8 here");
  EXPECT_EQ(Resumed(With("model.graph.deep.dropout: 0.5\n", "")),
            "model.graph.deep.dropout: 0.5 there, not set here");
  EXPECT_EQ(Resumed(With("staleness: above 0", "staleness: 0")),
            "train.staleness: above 0 there, 0 here");
}

TEST_F(SameJobTest, AllKeysThatDifferAreNamed) {
  std::string text = With("dim: 24", "dim: 8");
  text.replace(text.find("seed: 1"), 7, "seed: 2");
  EXPECT_EQ(Resumed(text), "seed: 1 there, 2 here; model.tables.user.dim: 24 there, 8 here");
  saved_.resume_text.clear();
  text.clear();
  for (int i = 0; i < 11; ++i) {
    saved_.resume_text += fmt::format("k{}: a\n", i);
    text += fmt::format("k{}: b\n", i);
  }
  const std::string many = Resumed(text);
  EXPECT_TRUE(many.starts_with("k0: a there, b here; k1: ")) << many;
  EXPECT_TRUE(many.ends_with("; k7: a there, b here; and 3 more")) << many;
}

TEST_F(SameJobTest, ATableOrNodeOfOneSideIsOneDifference) {
  EXPECT_EQ(Resumed(With("model.graph.deep: node\nmodel.graph.deep.op: mlp\n"
                         "model.graph.deep.dropout: 0.5\n",
                         "model.graph.wide: node\nmodel.graph.wide.op: linear\n")),
            "model.graph.wide: only here; model.graph.deep: only there");
}

TEST_F(SameJobTest, AnotherOrderIsAnotherJob) {
  EXPECT_EQ(Resumed(With("job: j\nseed: 1\n", "seed: 1\njob: j\n")),
            "the order of tables, nodes or losses");
}

TEST_F(SameJobTest, NumbersThatTheOptimizerDoesNotReadMayDiffer) {
  const std::string lr = "optimizer.lr: 0.1\n";
  EXPECT_EQ(Resumed(With(lr, lr + "model.tables.user.optimizer.momentum: 0.9\n")), "");
  EXPECT_EQ(Resumed(With(lr, lr + "model.tables.user.optimizer.beta1: 0.9\n")),
            "model.tables.user.optimizer.beta1: not set there, 0.9 here");
  const std::string dropout = "model.graph.deep.dropout: 0.5\n";
  EXPECT_EQ(Resumed(With(dropout, dropout + "model.graph.deep.momentum: 0.9\n")),
            "model.graph.deep.momentum: not set there, 0.9 here")
      << "a node is no optimizer";
}

TEST_F(SameJobTest, AnEvaluationComparesWhatItReads) {
  for (const auto& [from, to] : {std::pair{"job: j", "job: k"},
                                 {"staleness: above 0", "staleness: 0"},
                                 {"eval_default: initial", "eval_default: zeros"},
                                 {"l2: 0", "l2: 1"},
                                 {"optimizer.lr: 0.1", "optimizer.lr: 0.2"},
                                 {"dropout: 0.5", "dropout: 0"}}) {
    EXPECT_EQ(Evaluated(With(from, to)), "") << from;
  }
  EXPECT_EQ(Evaluated(With("dim: 24", "dim: 8")), "model.tables.user.dim: 24 there, 8 here");
  EXPECT_EQ(Evaluated(With("name: adam", "name: sgd")),
            "model.tables.user.optimizer.name: adam there, sgd here");
}

// Keys that were never trained get first values from seed and init.
TEST_F(SameJobTest, AnEvaluationReadsFirstValuesUnlessTheyAreZeros) {
  const std::string seed = With("seed: 1", "seed: 2"), init = With("0.01", "0.02");
  EXPECT_EQ(Evaluated(seed), "seed: 1 there, 2 here");
  EXPECT_EQ(Evaluated(init), "model.tables.user.init: {normal: 0.01} there, {normal: 0.02} here");
  job_.model.tables[0].eval_default = EvalDefault::kZeros;
  EXPECT_EQ(Evaluated(seed), "");
  EXPECT_EQ(Evaluated(init), "");
}

TEST_F(SameJobTest, AnotherFormatIsTold) {
  std::string text = ManifestToJson(saved_);
  const std::string format = fmt::format("\"format\": {}", kManifestFormat);
  text.replace(text.find(format), format.size(), "\"format\": 1");
  const Status status = ManifestFromJson(text, "m").status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_NE(ToText(status).find("was written by an earlier version of this program"),
            std::string::npos)
      << ToText(status);
}

// An evaluation needs columns that are read alike, but for constants, which it takes from the
// checkpoint.
TEST_F(SameJobTest, ConstantsOfColumnsAreThoseOfTheCheckpoint) {
  const std::string columns =
      std::string(kSaved) + "data.columns.a.hash: 9\ndata.columns.a.constants: mean 2.5\n";
  saved_.resume_text = columns;
  saved_.resume_fingerprint = HashString(columns);
  EXPECT_EQ(
      Evaluated(std::string(kSaved) + "data.columns.a.hash: 9\ndata.columns.a.constants: mean 0\n"),
      "");
  EXPECT_EQ(Evaluated(std::string(kSaved) + "data.columns.a.hash: 8\n"),
            "data.columns.a.hash: 9 there, 8 here");
  EXPECT_EQ(
      Resumed(std::string(kSaved) + "data.columns.a.hash: 9\ndata.columns.a.constants: mean 0\n"),
      "data.columns.a.constants: mean 2.5 there, mean 0 here");
}

}  // namespace
}  // namespace dt::scheduler
