#include "common/config/load_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "test/unit/common/config/temp_job.h"

namespace dt {
namespace {

using ::testing::ElementsAre;

TEST(LoadJob, ReadsWhatIsWritten) {
  const JobConfig job = Loaded(kGoodJob);
  EXPECT_EQ(job.job, "ads");
  EXPECT_EQ(job.seed, 7u);
  ASSERT_EQ(job.data.columns.size(), 4u);
  EXPECT_EQ(job.data.columns[0].role, ColumnRole::kLabel);
  EXPECT_EQ(job.data.columns[1].type, ColumnType::kString);
  EXPECT_TRUE(job.data.columns[2].is_ragged());
  EXPECT_EQ(job.data.columns[2].max_len, 50u);
  ASSERT_EQ(job.model.tables.size(), 1u);
  EXPECT_EQ(job.model.tables[0].id, TableIdOf("item"));
  EXPECT_EQ(job.model.tables[0].dim, 16u);
  EXPECT_EQ(job.model.tables[0].mark.line, 14);
  ASSERT_EQ(job.model.nodes.size(), 2u);
  EXPECT_THAT(job.model.nodes[1].inputs, ElementsAre("e", "price"));
  EXPECT_EQ(job.model.nodes[1].mark.line, 17);
  EXPECT_EQ(job.model.losses.at(0).name, "click");
  EXPECT_EQ(job.optimizer.clip_norm, 10.0f);
  EXPECT_EQ(job.optimizer.plateau->metric, "valid.auc");
  EXPECT_EQ(job.train.early_stop->patience, 2u);
  EXPECT_EQ(job.cluster.servers, 2u);
}

TEST(LoadJob, DefaultsAreTheDocumentedOnes) {
  const JobConfig job = Loaded(kGoodJob);
  EXPECT_EQ(job.run_dir, "runs/ads");
  EXPECT_EQ(job.checkpoint.dir, "runs/ads/checkpoints");
  EXPECT_EQ(job.data.cache_dir, "runs/ads/cache");
  EXPECT_EQ(job.data.shuffle_window, 65536u);
  EXPECT_EQ(job.cluster.shards, 64u);
  EXPECT_EQ(job.cluster.lease, seconds(3));
  EXPECT_EQ(job.cluster.server.memory_bytes, 8ull << 30);
  EXPECT_EQ(job.checkpoint.every_steps, 0u);
  EXPECT_EQ(job.train.evaluate_every, 0u);
  EXPECT_EQ(job.cluster.restarts, 3u);
  EXPECT_FALSE(job.security.insecure);
}

TEST(LoadJob, MetricsAreOfTheLosses) {
  const std::string mse = Replaced(kGoodJob, "binary_cross_entropy", "mse");
  EXPECT_EQ(Loaded(mse).train.early_stop->metric, "valid.logloss");
  EXPECT_EQ(ProblemsOf(Replaced(mse, "{patience: 2}", "{metric: valid.auc}")),
            "job.yaml:20: train.early_stop.metric: found \"valid.auc\", expected one of "
            "valid.logloss, valid.rmse\n1 problem, nothing started");
  const std::string two = Replaced(
      kGoodJob, "label: click}]",
      "label: click},\n    {type: softmax_cross_entropy, input: deep, label: click, name: next}]");
  const JobConfig job = Loaded(two);
  EXPECT_EQ(job.optimizer.plateau->metric, "valid.click.auc");
  EXPECT_EQ(job.train.early_stop->metric, "valid.click.auc");
  const std::string named = Replaced(two, "{patience: 2}", "{metric: valid.next.accuracy}");
  EXPECT_EQ(Loaded(named).train.early_stop->metric, "valid.next.accuracy");
  EXPECT_EQ(ProblemsOf(Replaced(two, "{patience: 2}", "{metric: valid.auc}")),
            "job.yaml:21: train.early_stop.metric: found \"valid.auc\", expected one of "
            "valid.click.auc, valid.click.logloss, valid.click.pr_auc, valid.next.logloss, "
            "valid.next.accuracy\n1 problem, nothing started");
}

TEST(LoadJob, MetricsOfGroupsNeedAGroup) {
  const std::string gauc = Replaced(kGoodJob, "{patience: 2}", "{metric: valid.gauc}");
  EXPECT_EQ(ProblemsOf(gauc),
            "job.yaml:20: train.early_stop.metric: found \"valid.gauc\", expected one of "
            "valid.auc, valid.logloss, valid.pr_auc; did you mean \"valid.auc\"?\n"
            "1 problem, nothing started");
  const std::string grouped = Replaced(gauc, "label: click}]", "label: click, group: item}]");
  const JobConfig job = Loaded(grouped);
  EXPECT_EQ(job.train.early_stop->metric, "valid.gauc");
  EXPECT_EQ(job.optimizer.plateau->metric, "valid.auc");
  EXPECT_EQ(job.model.losses[0].group, "item");
  EXPECT_EQ(job.model.losses[0].top_k, 10u);
  for (const char* metric : {"ndcg", "recall", "hit_rate", "mrr", "pr_auc"}) {
    const std::string named = std::string("valid.") + metric;
    EXPECT_EQ(Loaded(Replaced(grouped, "valid.gauc", named)).train.early_stop->metric, named);
  }
  EXPECT_EQ(Loaded(Replaced(grouped, "group: item", "group: item, top_k: 3")).model.losses[0].top_k,
            3u);
}

TEST(LoadJob, PairsNeedNoLabel) {
  const JobConfig job = Loaded(
      Replaced(kGoodJob, "type: binary_cross_entropy, input: deep, label: click",
               "type: in_batch_softmax, input: deep, item: e, item_id: item, temperature: 0.5"));
  EXPECT_EQ(job.model.losses[0].label, "");
  EXPECT_EQ(job.model.losses[0].name, "in_batch_softmax");
  EXPECT_EQ(job.model.losses[0].temperature, 0.5f);
}

TEST(LoadJob, LossesOfNegativesNeedNoLabel) {
  const std::string bpr =
      Replaced(Replaced(kGoodJob, "type: binary_cross_entropy, input: deep, label: click",
                        "type: bpr, input: deep, negatives: deep"),
               "- {name: price, fill: 0}",
               "- {name: price, fill: 0}\n    - {name: others, type: ids, length: 4, transform: "
               "sampled_unigram, of: item}");
  const JobConfig job = Loaded(bpr);
  EXPECT_EQ(job.model.losses[0].label, "");
  EXPECT_EQ(job.model.losses[0].name, "bpr");
  EXPECT_EQ(job.train.early_stop->metric, "valid.logloss");
  EXPECT_TRUE(job.data.columns.back().is_sampled());
  const JobConfig focal =
      Loaded(Replaced(kGoodJob, "type: binary_cross_entropy", "type: focal, gamma: 1.5"));
  EXPECT_EQ(focal.model.losses[0].gamma, 1.5f);
  EXPECT_EQ(focal.model.losses[0].alpha, 0.25f);
  EXPECT_EQ(focal.train.early_stop->metric, "valid.auc");
}

TEST(LoadJob, TablesInheritTheRuleButNotRegularisation) {
  const JobConfig job = Loaded(Replaced(
      Replaced(kGoodJob, "optimizer: {name: adagrad, lr: 0.02}, l2: 0.05", "l2_scope: touched"),
      "lr: 0.001", "lr: 0.5, beta1: 0.8, l2: 3"));
  const OptimizerSpec& table = job.model.tables[0].optimizer;
  EXPECT_EQ(table.kind, OptimizerKind::kAdam);
  EXPECT_EQ(table.lr, 0.5f);
  EXPECT_EQ(table.beta1, 0.8f);
  EXPECT_EQ(table.l2, 0.0f);
  EXPECT_EQ(table.l2_scope, L2Scope::kTouched);
  EXPECT_EQ(job.optimizer.spec.l2, 3.0f);
  EXPECT_TRUE(job.model.tables[0].scheduled);
}

TEST(LoadJob, TablesMayDiffer) {
  const JobConfig job =
      Loaded(Replaced(kGoodJob, "lr: 0.02}", "lr: 0.02, schedule: none}, init: {uniform: 0.5}"));
  const TableConfig& table = job.model.tables[0];
  EXPECT_EQ(table.optimizer.kind, OptimizerKind::kAdagrad);
  EXPECT_EQ(table.optimizer.lr, 0.02f);
  EXPECT_EQ(table.optimizer.l2, 0.05f);
  EXPECT_FALSE(table.scheduled);
  EXPECT_EQ(table.init, (InitSpec{InitKind::kUniform, 0.5f}));
}

TEST(LoadJob, AttributesHaveTheirNaturalTypes) {
  const JobConfig job = Loaded(Replaced(
      kGoodJob, "dropout: 0.2",
      "a: 3, b: 1.0e-4, c: true, d: relu, e: \"5\", f: [1, 2.5], g: [x, y], h: [], i: -2"));
  const Attrs& attrs = job.model.nodes[1].attrs;
  EXPECT_EQ(attrs.at("a"), AttrValue(int64_t{3}));
  EXPECT_EQ(attrs.at("b"), AttrValue(1.0e-4));
  EXPECT_EQ(attrs.at("c"), AttrValue(true));
  EXPECT_EQ(attrs.at("d"), AttrValue(std::string("relu")));
  EXPECT_EQ(attrs.at("e"), AttrValue(std::string("5")));
  EXPECT_EQ(attrs.at("f"), AttrValue(std::vector<double>{1.0, 2.5}));
  EXPECT_EQ(attrs.at("g"), AttrValue(std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(attrs.at("h"), AttrValue(std::vector<int64_t>{}));
  EXPECT_EQ(attrs.at("i"), AttrValue(int64_t{-2}));
  EXPECT_EQ(attrs.at("units"), AttrValue(std::vector<int64_t>{400, 400}));
  EXPECT_FALSE(attrs.contains("name") || attrs.contains("op") || attrs.contains("inputs"));
}

TEST(LoadJob, SlicesAreDecidedByTheCommand) {
  EXPECT_EQ(Loaded(kGoodJob).train.slices, 2u);
  EXPECT_EQ(Loaded(kGoodJob, {.overrides = {}, .auto_slices = 1}).train.slices, 1u);
  const LoadOptions fixed = {.overrides = {"train.slices=8"}, .auto_slices = 1};
  EXPECT_EQ(Loaded(kGoodJob, fixed).train.slices, 8u);
}

TEST(LoadJob, RemotePathsStayAsTheyAreWithTheirPatterns) {
  const JobConfig job = Loaded(Replaced(
      kGoodJob, "[train.csv]",
      "[\"s3://${NO_SUCH_VARIABLE:-shop}/day=*/a.csv?region=eu-west-1\", gs://b/c, hdfs://h:1/d]"));
  EXPECT_THAT(job.data.train,
              ElementsAre("s3://shop/day=*/a.csv?region=eu-west-1", "gs://b/c", "hdfs://h:1/d"));
}

TEST(LoadJob, GlobsAreExpandedAndSorted) {
  const TempDir dir;
  for (const char* name : {"d/b.csv", "d/a.csv", "d/c.txt"}) dir.Write(name, "x");
  const std::string text = Replaced(kGoodJob, "[train.csv]", "[\"d/*.csv\", absent.csv, \"no*\"]");
  const Result<JobConfig> job = LoadJob(dir.Write("job.yaml", text), {});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->data.train, ElementsAre(dir.path() + "/d/a.csv", dir.path() + "/d/b.csv",
                                           dir.path() + "/absent.csv", dir.path() + "/no*"));
}

TEST(LoadJob, ColumnsOfCriteoAreKnown) {
  DataConfig data;
  data.format = DataFormat::kCriteo;
  const std::vector<ColumnSpec> columns = ConfiguredColumns(data);
  ASSERT_EQ(columns.size(), 40u);
  EXPECT_EQ(columns[0].role, ColumnRole::kLabel);
  EXPECT_EQ(columns[13].name, "I13");
  EXPECT_EQ(columns[13].transform, "log");
  EXPECT_EQ(columns[39].name, "C26");
  EXPECT_EQ(columns[39].type, ColumnType::kString);
  EXPECT_EQ(OwnColumnsText(InfoOf(DataFormat::kCriteo)), "label, I1..I13, C1..C26");
  data.format = DataFormat::kLibsvm;
  EXPECT_TRUE(ConfiguredColumns(data).empty());
}

TEST(LoadJob, TheDataHasTheJobsSeed) {
  EXPECT_EQ(Loaded(kGoodJob).data.seed, 7u);
  EXPECT_EQ(Loaded(kGoodJob, {.overrides = {"seed=12"}}).data.seed, 12u);
  EXPECT_EQ(Loaded(Replaced(kGoodJob, "seed: 7\n", "")).data.seed, JobConfig().seed);
}

TEST(LoadJob, PatternsMatchNoDerivedColumn) {
  const std::string often =
      Replaced(kGoodJob, "- {name: price, fill: 0}",
               "- {name: price, fill: 0}\n    - {name: often, transform: log_frequency, of: item}");
  EXPECT_EQ(ProblemsOf(Replaced(often, "[e, price]", "[e, \"of*\"]")),
            "job.yaml:18: model.graph.deep.inputs: \"of*\" matches no feature column of the files\n"
            "1 problem, nothing started");
  EXPECT_EQ(Loaded(Replaced(often, "[e, price]", "[e, often]")).model.nodes[1].inputs[1], "often");
}

TEST(LoadJob, DerivedColumnsComeLast) {
  DataConfig data;
  data.format = DataFormat::kCsv;
  data.columns = {{.name = "often", .transform = "log_frequency", .of = {"item"}},
                  {.name = "drawn", .transform = "sampled_uniform", .of = {"item"}},
                  {.name = "item", .type = ColumnType::kId}};
  std::vector<std::string> names;
  for (const ColumnSpec& column : ConfiguredColumns(data)) names.push_back(column.name);
  EXPECT_THAT(names, ElementsAre("item", "often", "drawn"));
}

TEST(LoadJob, NamesOfEnumsAreTheWordsOfTheFile) {
  EXPECT_EQ(NameOf(OptimizerKind::kRowwiseAdagrad), "rowwise_adagrad");
  EXPECT_EQ(NameOf(OptimizerKind::kFtrl), "ftrl");
  EXPECT_EQ(NameOf(DataFormat::kCsv), "csv");
  EXPECT_EQ(NameOf(Device::kPs), "ps");
}

}  // namespace
}  // namespace dt
