// Mistakes in tables, graph and loss, and valid settings that are not available yet.
#include <gtest/gtest.h>

#include "test/unit/common/config/temp_job.h"

namespace dt {
namespace {

struct Case {
  const char* name;
  const char* from;
  const char* to;
  const char* sentence;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class ModelMistakes : public ::testing::TestWithParam<Case> {};

TEST_P(ModelMistakes, AreToldInOneSentence) {
  const Case& c = GetParam();
  EXPECT_EQ(ProblemsAfter(c.from, c.to),
            std::string("job.yaml:") + c.sentence + "\n1 problem, nothing started");
}

constexpr Case kModelMistakes[] = {
    {"ZeroDim", "dim: 16", "dim: 0",
     "14: model.tables.item.dim: found \"0\", expected a whole number (1 to 4096)"},
    {"UnknownInit", "dim: 16", "dim: 16, init: {gauss: 1}",
     "14: model.tables.item.init: found a map, expected zeros, or one of {constant: x}, {normal: "
     "stddev}, {uniform: half width}, {file: path}"},
    {"ClipOfTable", "l2: 0.05", "clip_norm: 1",
     "14: model.tables.item.clip_norm: unknown key; known here: dim, init, optimizer, l2, "
     "l2_scope, clip_row_norm, device, dtype, wire, memory, eval_default, rows, expected_rows, "
     "admission, expiry, "
     "freeze"},
    {"NegativeL2", "l2: 0.05", "l2: -1",
     "14: model.tables.item.l2: found \"-1\", expected a number (0 or more)"},
    {"RowsOfTwoKinds", "l2: 0.05", "rows: 9, expected_rows: 9",
     "14: model.tables.item.expected_rows: is for open tables; rows says how many there are"},
    {"AdmissionOfNone", "l2: 0.05", "admission: {pushes: 0}",
     "14: model.tables.item.admission.pushes: found \"0\", expected a whole number (1 to 256)"},
    {"ExpiryWithoutRule", "l2: 0.05", "expiry: {}",
     "14: model.tables.item.expiry: expected {steps: t} or {hours: h}"},
    {"ExpiryOfTwoRules", "l2: 0.05", "expiry: {steps: 5, hours: 1}",
     "14: model.tables.item.expiry: expected {steps: t} or {hours: h}"},
    {"ExpiryAtOnce", "l2: 0.05", "expiry: {hours: 0}",
     "14: model.tables.item.expiry.hours: found \"0\", expected a number above 0"},
    {"TableRuleMisspelled", "name: adagrad", "name: adagard",
     "14: model.tables.item.optimizer.name: found \"adagard\", expected one of sgd, momentum, "
     "adagrad, rowwise_adagrad, adam, lazy_adam, adamw, ftrl; did you mean \"adagrad\"?"},
    {"DenseScopeOfLazyAdam", "name: adagrad", "name: lazy_adam, scope: dense",
     "14: model.tables.item.optimizer.scope: found dense, which lazy_adam does not have; use "
     "touched, or adam"},
    {"DenseScopeWithTooMuchMomentum", "name: adagrad", "name: adam, scope: dense, beta2: 0.8",
     "14: model.tables.item.optimizer.scope: found dense, which needs beta1 * beta1 below beta2; "
     "they are 0.9 and 0.8"},
    {"DenseScopeAndL2Scope", "optimizer: {name: adagrad, lr: 0.02}, l2: 0.05",
     "optimizer: {scope: dense}, l2: 0.05, l2_scope: gap",
     "14: model.tables.item.l2_scope: is for optimizer.scope: touched; with dense, l2 is applied "
     "at each step"},
    {"DenseScopeFrozen", "optimizer: {name: adagrad, lr: 0.02}, l2: 0.05",
     "optimizer: {scope: dense}, freeze: true",
     "14: model.tables.item.freeze: is for optimizer.scope: touched; with dense, rows change at "
     "each step"},
    {"DenseScopeOnWorker", "optimizer: {name: adagrad, lr: 0.02}, l2: 0.05",
     "optimizer: {scope: dense}, device: cpu",
     "14: model.tables.item.optimizer: found scope: dense, which is not available yet with device: "
     "cpu; use device: ps"},
    {"UnknownTable", "table: item", "table: itme",
     "16: model.graph.e.table: \"itme\" is no table of model.tables; did you mean \"item\"?"},
    {"LookupWithoutTable", "table: item, ", "",
     "16: model.graph.e.table: missing, expected a table's name"},
    {"UnknownInput", "[e, price]", "[e, prize]",
     "17: model.graph.deep.inputs: \"prize\" is neither a column nor an earlier node; did you mean "
     "\"price\"?"},
    {"Cycle", "inputs: [item]", "inputs: [item, deep.0]",
     "16: model.graph.e.inputs: \"deep.0\" is below it and reads \"e\": a cycle"},
    {"CycleOfOne", "[e, price]", "[e, deep]",
     "17: model.graph.deep.inputs: \"deep\" is the node itself: a cycle"},
    {"LaterNode", "- {name: e,", "- {name: first, op: relu, inputs: [e]}\n    - {name: e,",
     "16: model.graph.first.inputs: \"e\" is below it, expected a node above; change their order"},
    {"NodeWithoutReader", "- {name: deep,",
     "- {name: lost, op: relu, inputs: [e]}\n    - {name: deep,",
     "17: model.graph.lost: no node and no loss reads its output; connect it, or take it out"},
    {"TableWithoutReader", "  graph:", "    lost: {dim: 4}\n  graph:",
     "15: model.tables.lost: no node looks it up; name it in a node's `table`, or take it out"},
    {"LabelAsInput", "[e, price]", "[e, click]",
     "17: model.graph.deep.inputs: \"click\" is a label, expected a feature or node"},
    {"PatternWithoutMatch", "[e, price]", "[e, \"I*\"]",
     "17: model.graph.deep.inputs: \"I*\" matches no feature column of the files"},
    {"NodeTwice", "    - {name: deep,",
     "    - {name: e, op: lookup, table: item, inputs: [item]}\n"
     "    - {name: deep,",
     "17: model.graph.e.name: \"e\" is already the name of a node"},
    {"NodeNamedAsColumn", "- {name: e,",
     "- {name: item, op: relu, inputs: [price]}\n    - {name: e,",
     "16: model.graph.item.name: \"item\" is already the name of a column"},
    {"NodeOnServers", "op: mlp, ", "op: mlp, device: ps, ",
     "17: model.graph.deep.device: found ps, which is for train.staleness above 0: with 0 every "
     "worker has all weights and updates them"},
    {"NodeWithoutOp", "op: mlp, ", "", "17: model.graph.deep.op: missing, expected a text"},
    {"MixedList", "[400, 400]", "[400, big]",
     "17: model.graph.deep.units: found a mixed list, expected a number, true or false, a text, or "
     "a list of one of them"},
    {"MapAsAttribute", "dropout: 0.2", "dropout: {rate: 0.2}",
     "17: model.graph.deep.dropout: found a map, expected a number, true or false, a text, or a "
     "list of one of them"},
    {"UnknownLoss", "binary_cross_entropy", "cross_entropy",
     "18: model.loss.0.type: found \"cross_entropy\", expected one of binary_cross_entropy, mse, "
     "softmax_cross_entropy, in_batch_softmax, focal, bpr, sampled_softmax"},
    {"LossOfNothing", "input: deep", "input: dep",
     "18: model.loss.0.input: \"dep\" is no node of the graph; did you mean \"deep\"?"},
    {"LabelMisspelled", "label: click", "label: clicks",
     "18: model.loss.0.label: \"clicks\" is no column with role label; did you mean \"click\"?"},
    {"PairsWithoutItems", "type: binary_cross_entropy, input: deep, label: click",
     "type: in_batch_softmax, input: deep",
     "18: model.loss.0.item: missing, expected the node of the item vectors"},
    {"PairsOfNothing", "type: binary_cross_entropy, input: deep, label: click",
     "type: in_batch_softmax, input: deep, item: dep",
     "18: model.loss.0.item: \"dep\" is no node of the graph; did you mean \"deep\"?"},
    {"PairsWithoutIds", "type: binary_cross_entropy, input: deep, label: click",
     "type: in_batch_softmax, input: deep, item: deep, item_id: itme",
     "18: model.loss.0.item_id: \"itme\" is no feature column; did you mean \"item\"?"},
    {"PairsWithoutLogQ", "type: binary_cross_entropy, input: deep, label: click",
     "type: in_batch_softmax, input: deep, item: deep, log_q: prize",
     "18: model.loss.0.log_q: \"prize\" is neither a column nor a node; did you mean \"price\"?"},
    {"TemperatureOfAnother", "label: click}]", "label: click, temperature: 0.1}]",
     "18: model.loss.0.temperature: is for type: in_batch_softmax only"},
    {"TopKWithoutAGroup", "label: click}]", "label: click, top_k: 5}]",
     "18: model.loss.0.top_k: is for a loss with `group` only"},
    {"GroupOfNothing", "label: click}]", "label: click, group: itme}]",
     "18: model.loss.0.group: \"itme\" is no feature column; did you mean \"item\"?"},
    {"GroupOfAnotherLoss", "type: binary_cross_entropy, input: deep, label: click",
     "type: mse, input: deep, label: click, group: item",
     "18: model.loss.0.group: is for type: binary_cross_entropy or focal only"},
    {"PosWeightOfAnother", "type: binary_cross_entropy, input: deep, label: click",
     "type: mse, input: deep, label: click, pos_weight: 2",
     "18: model.loss.0.pos_weight: is for type: binary_cross_entropy only"},
    {"GammaOfAnother", "label: click}]", "label: click, gamma: 2}]",
     "18: model.loss.0.gamma: is for type: focal only"},
    {"AlphaAboveOne", "type: binary_cross_entropy, input: deep, label: click",
     "type: focal, input: deep, label: click, alpha: 1.5",
     "18: model.loss.0.alpha: found \"1.5\", expected a number (0 to 1)"},
    {"NegativesOfAnother", "label: click}]", "label: click, negatives: deep}]",
     "18: model.loss.0.negatives: is for type: bpr or sampled_softmax only"},
    {"NoNegatives", "type: binary_cross_entropy, input: deep, label: click",
     "type: bpr, input: deep",
     "18: model.loss.0.negatives: missing, expected the node of the negative items' scores"},
    {"NegativesOfNothing", "type: binary_cross_entropy, input: deep, label: click",
     "type: sampled_softmax, input: deep, negatives: dep",
     "18: model.loss.0.negatives: \"dep\" is no node of the graph; did you mean \"deep\"?"},
    {"LossTwice", "label: click}]", "label: click}, {type: mse, input: deep, label: click}]",
     "18: model.loss.1.name: \"click\" is the name of another loss, expected one of its own"},
    {"NoLoss", "  loss: [{type: binary_cross_entropy, input: deep, label: click}]\n", "",
     "12: model.loss: missing, expected a list of maps, or a template in model.use"},
    {"WithWithoutUse",
     "  tables:", "  with: {dim: 4}\n  tables:", "13: model.with: is for a model with `use` only"},
};

INSTANTIATE_TEST_SUITE_P(Model, ModelMistakes, ::testing::ValuesIn(kModelMistakes),
                         [](const auto& test) { return std::string(test.param.name); });

// A valid setting that is not implemented is refused, never ignored.
class NotAvailable : public ::testing::TestWithParam<const char*> {};

TEST_P(NotAvailable, IsRefusedAsSuch) {
  const TempDir dir;
  const Result<JobConfig> job =
      LoadJob(dir.Write("job.yaml", kGoodJob), {.overrides = {GetParam()}, .auto_slices = 0});
  ASSERT_EQ(job.status().code(), StatusCode::kUnimplemented) << job.status();
  EXPECT_EQ(ExitCodeOf(job.status()), 2);
  const std::string message(MessageOf(job.status()));
  const std::string flag = GetParam();
  EXPECT_TRUE(message.starts_with("--set " + flag.substr(0, flag.find('=')) + ": found "))
      << message;
  EXPECT_NE(message.find("not available yet"), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(Keys, NotAvailable,
                         ::testing::Values("cluster.store=memory", "parallel.stages=2",
                                           "parallel.micro_batches=4", "parallel.strategy=dynamic",
                                           "model.graph.deep.stage=1",
                                           "model.graph.deep.recompute=true",
                                           "observe.tensorboard=logs", "data.split=full_batch",
                                           "data.format=binary"));

TEST(NotAvailableValues, DefaultsMayBeWrittenOut) {
  const char* const flags[] = {"train.staleness=0",         "cluster.replicas=1",
                               "parallel.stages=01",        "model.graph.deep.device=cpu",
                               "model.tables.item.rows=~",  "model.tables.item.device=ps",
                               "checkpoint.log.sync=False", "checkpoint.log.max_bytes=4096MiB",
                               "observe.trace=off"};
  LoadOptions options;
  for (const char* flag : flags) options.overrides.emplace_back(flag);
  EXPECT_EQ(ProblemsOf(kGoodJob, options), "");
}

TEST(StalenessValues, WhatItCannotGoWithIsRefused) {
  const auto with = [](const char* staleness, const char* flag) {
    LoadOptions options;
    options.overrides = {std::string("train.staleness=") + staleness, flag};
    return ProblemsOf(kGoodJob, options);
  };
  EXPECT_EQ(with("4", "train.cached_rows=1000"), "");
  EXPECT_EQ(with("unbounded", "train.slices=1"), "");
  EXPECT_NE(with("4", "train.slices=2").find("train.slices"), std::string::npos);
  EXPECT_NE(with("4", "optimizer.device=gpu").find("optimizer.device"), std::string::npos);
  EXPECT_EQ(with("4", "optimizer.device=ps"), "");
  EXPECT_NE(with("0", "optimizer.device=ps").find("optimizer.device: found ps, which is for train"),
            std::string::npos);
  EXPECT_EQ(with("4", "parallel.place=[{weights: '*', device: ps}]"), "");
  EXPECT_NE(with("0", "parallel.place=[{weights: '*', device: ps}]")
                .find("parallel.place.0.device: found ps, which is for train.staleness above 0"),
            std::string::npos);
  EXPECT_NE(with("0", "train.cached_rows=9").find("train.cached_rows"), std::string::npos);
  EXPECT_NE(with("unbounded", "train.cached_rows=9").find("train.cached_rows"), std::string::npos);
}

TEST(PlaceRules, PlaceTablesThatHaveNoTag) {
  const auto device = [](const std::vector<std::string>& flags) {
    const TempDir dir;
    const auto job = LoadJob(dir.Write("job.yaml", kGoodJob), {.overrides = flags});
    return job.ok() ? NameOf(job->model.tables[0].device) : "none";
  };
  const std::string rules =
      "parallel.place=[{match: '*', device: cpu}, {table: 'it*', device: gpu}, "
      "{table: item, device: cpu}]";
  EXPECT_EQ(device({rules}), "gpu");
  EXPECT_EQ(device({rules, "model.tables.item.device=ps"}), "ps");
  EXPECT_EQ(device({"parallel.place=[{table: item, device: ps}]"}), "ps");
  EXPECT_EQ(device({"parallel.place=[{match: item, device: gpu}]"}), "auto");
}

TEST(PlaceRules, ATableKeepsTheRuleThatPlacesIt) {
  const auto table = [](const std::string& own) {
    const TempDir dir;
    const std::string rules = "parallel:\n  place:\n    - {table: 'it*', device: gpu}\n";
    const auto job = LoadJob(dir.Write("job.yaml", std::string(kGoodJob) + rules),
                             {.overrides = {"model.tables.item.device=" + own}});
    EXPECT_TRUE(job.ok()) << ToText(job.status());
    return job->model.tables[0];
  };
  EXPECT_EQ(table("auto").place_match, "it*");
  EXPECT_GT(table("auto").place_mark.line, table("auto").mark.line);
  EXPECT_EQ(table("ps").place_match, "");
}

TEST(PlaceRules, MistakesAreNamed) {
  const auto with = [](const char* rule, const char* flag = "train.epochs=1") {
    LoadOptions options;
    options.overrides = {fmt::format("parallel.place=[{}]", rule), flag};
    return ProblemsOf(kGoodJob, options);
  };
  const auto says = [](const std::string& problem, const char* part) {
    EXPECT_NE(problem.find(part), std::string::npos) << problem;
    EXPECT_NE(problem.find("1 problem,"), std::string::npos) << problem;
  };
  EXPECT_EQ(with("{weights: deep, device: gpu}"), "");
  says(with("{device: gpu}"), "found 0 of match, table and weights");
  says(with("{match: deep, table: item, device: gpu}"), "found 2 of match, table and weights");
  says(with("{match: deep, device: cpu}, {table: itme, device: gpu}"),
       "parallel.place.1.table: no table matches \"itme\"");
  says(with("{match: deep, device: ps}"), "servers have tables and weights");
  says(with("{table: item, device: gpu}", "model.tables.item.wire=int8"),
       "with device: gpu by parallel.place \"item\" at --set");
  says(with("{weights: deep, device: gpu}", "train.staleness=2"),
       "parallel.place.0.weights: is for train.staleness 0");
}

TEST(TablesOnTheWorker, WhatTheyCannotDoIsRefused) {
  const auto with = [](const char* device, const std::string& flag) {
    LoadOptions options;
    options.overrides = {std::string("model.tables.item.device=") + device, flag};
    return ProblemsOf(kGoodJob, options);
  };
  for (const char* fine : {"model.tables.item.rows=100", "model.tables.item.l2=0.5",
                           "model.tables.item.memory=all", "model.tables.item.freeze=true"}) {
    EXPECT_EQ(with("cpu", fine), "");
    EXPECT_EQ(with("gpu", fine), "");
  }
  for (const char* flag :
       {"model.tables.item.admission.pushes=3", "model.tables.item.expiry.steps=100",
        "model.tables.item.dtype=bf16", "model.tables.item.wire=int8", "train.staleness=2"}) {
    EXPECT_EQ(with("ps", flag), "") << flag;
    const std::string problem = with("gpu", flag);
    EXPECT_NE(problem.find("not available yet with"), std::string::npos) << flag << problem;
    EXPECT_NE(problem.find("use "), std::string::npos) << flag << problem;
  }
  EXPECT_EQ(with("ps", "model.tables.item.rows=4294967296"), "");
  for (const std::string key : {"model.tables.item.rows", "model.tables.item.expected_rows"}) {
    EXPECT_NE(with("cpu", key + "=4294967296")
                  .find(key + ": found 4294967296, expected at most 4294967295 with device: cpu; "
                              "use device: ps"),
              std::string::npos);
  }
}

// The message names the key that is wrong, not another key of a section set by a flag, nor a node's
// line.
TEST(KeysThatAreWrong, AreTheOnesThatAreNamed) {
  const auto with = [](std::vector<std::string> flags) {
    return ProblemsOf(kGoodJob, {.overrides = std::move(flags)});
  };
  EXPECT_EQ(with({"train.epochs=2", "train.slices=9", "train.batch_size=4"}),
            "--set train.slices: found 9, expected at most the batch_size of 4\n"
            "1 problem, nothing started");
  EXPECT_EQ(with({"model.graph.deep.device=ps"}),
            "--set model.graph.deep.device: found ps, which is for train.staleness above 0: with 0 "
            "every worker has all weights and updates them\n1 problem, nothing started");
  EXPECT_EQ(with({"model.tables.item.device=cpu", "train.staleness=4"}),
            "--set model.tables.item.device: found cpu: table item on the worker, which is not "
            "available yet with train.staleness above 0; use ps\n1 problem, nothing started");
  EXPECT_EQ(with({"parallel.place=[{table: item, device: cpu}]", "train.staleness=4"}),
            "--set parallel.place: parallel.place.0.device: found cpu: table item on the worker, "
            "which is not available yet with train.staleness above 0; use ps\n"
            "1 problem, nothing started");
}

TEST(DurabilityValues, ALogGoesWithEveryWayToTrain) {
  for (const char* flag : {"model.tables.item.expiry.steps=100", "model.tables.item.expiry.hours=1",
                           "train.staleness=4", "train.staleness=unbounded"}) {
    LoadOptions options;
    options.overrides = {"checkpoint.durability=log", flag};
    EXPECT_EQ(ProblemsOf(kGoodJob, options), "") << flag;
  }
}

TEST(ReplicaValues, CopiesGoWithEveryWayToTrain) {
  for (const char* flag : {"train.staleness=0", "train.staleness=4", "train.staleness=unbounded",
                           "model.tables.item.expiry.hours=1", "cluster.move_rate=0"}) {
    LoadOptions options;
    options.overrides = {"cluster.replicas=2", flag};
    EXPECT_EQ(ProblemsOf(kGoodJob, options), "") << flag;
  }
}

TEST(NotAvailableValues, CopiesAndALog) {
  LoadOptions options;
  options.overrides = {"cluster.replicas=2", "cluster.servers=2", "checkpoint.durability=log"};
  EXPECT_EQ(ProblemsOf(kGoodJob, options), "");
  options.overrides.push_back("model.tables.item.expiry.hours=1");
  EXPECT_NE(ProblemsOf(kGoodJob, options).find("not available yet with cluster.replicas above 1"),
            std::string::npos);
}

TEST(ReplicaValues, AtMostOneCopyForEachServer) {
  LoadOptions options;
  options.overrides = {"cluster.replicas=3", "cluster.servers=2"};
  EXPECT_NE(
      ProblemsOf(kGoodJob, options).find("found 3, expected at most the number of servers, 2"),
      std::string::npos);
}

TEST(NotAvailableValues, AMistakeBesideItIsAMistake) {
  const TempDir dir;
  const LoadOptions options = {.overrides = {"parallel.stages=2", "train.epochs=x"},
                               .auto_slices = 0};
  const Result<JobConfig> job = LoadJob(dir.Write("job.yaml", kGoodJob), options);
  EXPECT_EQ(job.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace dt
