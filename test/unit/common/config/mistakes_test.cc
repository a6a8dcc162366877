// The whole sentences that a user reads after mistakes in a job file.
#include <gtest/gtest.h>

#include "test/unit/common/config/temp_job.h"

namespace dt {
namespace {

struct Mistake {
  const char* name;
  const char* from;
  const char* to;
  const char* sentence;  // The message about job.yaml.
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class Mistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreToldInOneSentence) {
  const Mistake& m = GetParam();
  EXPECT_EQ(ProblemsAfter(m.from, m.to),
            std::string("job.yaml:") + m.sentence + "\n1 problem, nothing started");
}

constexpr Mistake kMistakes[] = {
    {"MisspelledSection", "seed: 7", "sead: 7", "2: sead: unknown key; did you mean \"seed\"?"},
    {"MisspelledKey", "batch_size: 4096", "batchsize: 4096",
     "20: train.batchsize: unknown key; did you mean \"batch_size\"?"},
    {"InventedKey", "seed: 7", "verbosity_of_output: 7",
     "2: verbosity_of_output: unknown key; known here: job, seed, data, model, optimizer, init, "
     "train, parallel, cluster, checkpoint, observe, security"},
    {"LetterInNumber", "4096", "4O96",
     "20: train.batch_size: found \"4O96\", expected a whole number (1 to 16777216)"},
    {"NegativeCount", "epochs: 10", "epochs: -1",
     "20: train.epochs: found \"-1\", expected a whole number (1 to 1000000)"},
    {"FractionalCount", "servers: 2", "servers: 1.5",
     "21: cluster.servers: found \"1.5\", expected a whole number (1 to 4096)"},
    {"ZeroWorkers", "workers: 2", "workers: 0",
     "21: cluster.workers: found \"0\", expected a whole number (1 to 4096)"},
    {"WordForRate", "lr: 0.001", "lr: fast",
     "19: optimizer.lr: found \"fast\", expected a number (0 to 1000000)"},
    {"UnknownFormat", "format: csv", "format: cvs",
     "4: data.format: found \"cvs\", expected one of criteo, libsvm, libffm, csv, "
     "parquet, binary, pipe, kafka; did you mean \"csv\"?"},
    {"UnknownOptimizer", "name: adam,", "name: adem,",
     "19: optimizer.name: found \"adem\", expected one of sgd, momentum, adagrad, "
     "rowwise_adagrad, adam, lazy_adam, adamw, ftrl; did you mean \"adam\"?"},
    {"ScalarForMap", "{servers: 2, workers: 2}", "2",
     "21: cluster: found \"2\", expected a map with servers, workers, replicas, move_rate, shards, "
     "scheduler, devices, emulated, lease, restarts, scheduler_outage, wait_for_server, "
     "start_timeout, store, "
     "worker, server"},
    {"WordForBuckets", "seed: 7", "seed: 7\nparallel: {fusion: many}",
     "3: parallel.fusion: found \"many\", expected auto, a size such as 4MiB, or a list of numbers "
     "of gradients such as [4, 9]"},
    {"BucketsOfWords", "seed: 7", "seed: 7\nparallel: {fusion: [4, x]}",
     "3: parallel.fusion: found a list, expected auto, a size such as 4MiB, or a list of numbers "
     "of "
     "gradients such as [4, 9]"},
    {"ListForText", "job: ads", "job: [ads]", "1: job: found a list, expected a text"},
    {"NoName", "job: ads\n", "", "1: job: missing, expected a text"},
    {"NameWithBlank", "job: ads", "job: my ads",
     "1: job: found \"my ads\", expected letters, digits, '_', '-' or '.'"},
    {"NoTrainingFiles", "  train: [train.csv]\n", "",
     "3: data.train: missing, expected a text or a list of texts"},
    {"EmptyFileList", "[train.csv]", "[]", "5: data.train: found an empty list, expected files"},
    {"DuplicateKey", "seed: 7", "job: ad", "2: job: duplicate key, already written in line 1"},
    {"MoreReplicasThanServers", "servers: 2", "servers: 2, replicas: 3",
     "21: cluster.replicas: found 3, expected at most the number of servers, 2"},
    {"ManyReplicas", "servers: 2", "servers: 20, replicas: 17",
     "21: cluster.replicas: found \"17\", expected a whole number (1 to 16)"},
    {"RateWithoutUnit", "servers: 2", "move_rate: fast",
     "21: cluster.move_rate: found \"fast\", expected a size such as 512MiB or 8GiB"},
    {"ShardsNoPowerOfTwo", "servers: 2", "shards: 48",
     "21: cluster.shards: found 48, expected a power of two, such as 32 or 64"},
    {"TimeWithoutUnit", "servers: 2", "lease: 3",
     "21: cluster.lease: found \"3\", expected a time with its unit, such as 3s or 500ms (0.1 s to "
     "3600 s)"},
    {"SizeWithoutUnit", "servers: 2", "server: {memory: 8Gig}",
     "21: cluster.server.memory: found \"8Gig\", expected a size such as 512MiB or 8GiB"},
    {"TinyMemory", "servers: 2", "server: {memory: 8}",
     "21: cluster.server.memory: found 8 B, expected 64 KiB or more"},
    {"UnknownDevices", "servers: 2", "devices: gpu",
     "21: cluster.devices: found \"gpu\", expected one of auto, cpu, cuda, emulated; did you "
     "mean \"cpu\"?"},
    {"TinyAccelerator", "servers: 2", "emulated: {memory: 4KiB}",
     "21: cluster.emulated.memory: found 4 KiB, expected 1 MiB to 16 TiB"},
    {"HugeAccelerator", "servers: 2", "emulated: {memory: 17TiB}",
     "21: cluster.emulated.memory: found 17 TiB, expected 1 MiB to 16 TiB"},
    {"NegativeSpeed", "servers: 2", "emulated: {flops: -1}",
     "21: cluster.emulated.flops: found \"-1\", expected a number (0 or more)"},
    {"SchedulerWithoutScheme", "servers: 2", "scheduler: localhost",
     "21: cluster.scheduler: found \"localhost\", expected tcp://HOST:PORT"},
    {"PortTooLarge", "seed: 7", "observe: {http: 127.0.0.1:99999}",
     "2: observe.http: found \"127.0.0.1:99999\", expected HOST:PORT or off"},
    {"TraceOfUnnamedSteps", "seed: 7", "observe: {trace: on}",
     "2: observe.trace: found \"on\", expected off, or the first and the last step to record, such "
     "as 100-109"},
    {"TraceBackwards", "seed: 7", "observe: {trace: 9-5}",
     "2: observe.trace: found \"9-5\", expected off, or the first and the last step to record, "
     "such "
     "as 100-109"},
    {"TraceOfOneStepOnly", "seed: 7", "observe: {trace: 5}",
     "2: observe.trace: found \"5\", expected off, or the first and the last step to record, such "
     "as 100-109"},
    {"MoreSlicesThanSamples", "batch_size: 4096", "batch_size: 4, slices: 8",
     "20: train.slices: found 8, expected at most the batch_size of 4"},
    {"TestMetric", "{patience: 2}", "{metric: test.auc}",
     "20: train.early_stop.metric: found \"test.auc\", expected one of valid.auc, valid.logloss, "
     "valid.pr_auc"},
    {"DecayWithoutAdamW", "clip_norm: 10", "weight_decay: 0.1",
     "19: optimizer.weight_decay: is for adamw only, the optimizer is adam; use l2"},
    {"LabelThatIsText", "{name: click, role: label}", "{name: click, type: string, role: label}",
     "8: data.columns.click.role: a label or weight is a number, expected type float"},
    {"FillOfIds", "max_len: 50", "fill: 0",
     "10: data.columns.history.fill: is for type float only"},
    {"LabelOfSeveral", "{name: click, role: label}", "{name: click, role: label, length: 2}",
     "8: data.columns.click.length: is for ids, strings and features of type float only"},
    {"SeparatorOfOne", "{name: price, fill: 0}", "{name: price, separator: \";\"}",
     "11: data.columns.price.separator: is for ids, strings and vectors of floats only"},
    {"LongSeparator", "separator: \"|\"", "separator: \", \"",
     "10: data.columns.history.separator: found \", \", expected one character"},
    {"ColumnTwice", "{name: price, fill: 0}\n", "{name: price}\n    - {name: price}\n",
     "12: data.columns.price.name: \"price\" is written twice, expected a name of its own"},
    {"ColumnThatIsNoMap", "{name: price, fill: 0}", "price",
     "11: data.columns.3: found \"price\", expected a map with name, from, type, role, "
     "separator, length, max_len, fill, weighted, weights, hash, clip, standardise, edges, "
     "quantiles, transform, of"},
    {"LogOfText", "{name: item, type: string}", "{name: item, type: string, transform: log}",
     "9: data.columns.item.transform: found \"log\", which is for type float only"},
    {"CrossedText", "{name: item, type: string}", "{name: item, type: string, transform: crossed}",
     "9: data.columns.item.transform: found \"crossed\", which is for type id only"},
    {"CrossedOfOne", "- {name: price, fill: 0}",
     "- {name: price, fill: 0}\n    - {name: x, type: id, transform: crossed, of: item}",
     "12: data.columns.x.of: found 1 columns, expected the two or more that are crossed"},
    {"CrossedOfNobody", "- {name: price, fill: 0}",
     "- {name: price, fill: 0}\n    - {name: x, type: id, transform: crossed, of: [itme, item]}",
     "12: data.columns.x.of: there is no column \"itme\"; did you mean \"item\"?"},
    {"CrossedOfLists", "- {name: price, fill: 0}",
     "- {name: price, fill: 0}\n    - {name: x, type: id, transform: crossed, of: [item, history]}",
     "12: data.columns.x.of: \"history\" holds lists, expected columns of type id or string"},
    {"NamedNumber", "{name: price, fill: 0}", "{name: price, transform: named}",
     "11: data.columns.price.transform: found \"named\", which is for types id, ids, string and "
     "strings only"},
    {"OfWithoutCrossed", "{name: item, type: string}", "{name: item, type: string, of: [a, b]}",
     "9: data.columns.item.of: is for transforms crossed, sampled_uniform, sampled_unigram "
     "and log_frequency only"},
    {"SampledKey", "{name: item, type: string}",
     "{name: item, type: string, transform: sampled_uniform}",
     "9: data.columns.item.transform: found \"sampled_uniform\", which is for type ids with a "
     "length only"},
    {"SampledFromNothing", "- {name: price, fill: 0}",
     "- {name: price, fill: 0}\n    - {name: x, type: ids, length: 2, transform: sampled_unigram}",
     "12: data.columns.x.of: found 0 columns, expected the one from which it is computed"},
    {"FrequencyOfNothing", "- {name: price, fill: 0}",
     "- {name: price, fill: 0}\n    - {name: x, transform: log_frequency, of: itm}",
     "12: data.columns.x.of: there is no column \"itm\"; did you mean \"item\"?"},
    {"FrequencyAsKeys", "- {name: price, fill: 0}",
     "- {name: price, fill: 0}\n    - {name: x, type: id, transform: log_frequency, of: item}",
     "12: data.columns.x.transform: found \"log_frequency\", which is for type float and role "
     "feature only"},
    {"FrequencyWithAFill", "- {name: price, fill: 0}",
     "- {name: price, fill: 0}\n    - {name: x, transform: log_frequency, of: item, fill: 1}",
     "12: data.columns.x.fill: is for columns in files only"},
    {"SampledWithWeights", "- {name: price, fill: 0}",
     "- {name: price, fill: 0}\n    - {name: x, type: ids, length: 2, transform: sampled_unigram, "
     "of: item, weighted: true}",
     "12: data.columns.x.weighted: is for columns in files only"},
    {"SampledFromLists", "- {name: price, fill: 0}",
     "- {name: price, fill: 0}\n    - {name: x, type: ids, length: 2, transform: sampled_unigram, "
     "of: history}",
     "12: data.columns.x.of: \"history\" holds lists, expected columns of type id or string"},
    {"HourOfText", "{name: item, type: string}", "{name: item, type: string, transform: hour}",
     "9: data.columns.item.transform: found \"hour\", which is for type id only"},
    {"WeightsOfOne", "{name: price, fill: 0}", "{name: price, weights: w}",
     "11: data.columns.price.weights: is for ids and strings only"},
    {"WeightsTwice", "max_len: 50", "weights: w, weighted: true",
     "10: data.columns.history.weights: found beside weighted, which is for libsvm and libffm"},
    {"HashOfNumbers", "{name: price, fill: 0}", "{name: price, hash: 9}",
     "11: data.columns.price.hash: is for keys in files only"},
    {"HashToNothing", "type: string}", "type: string, hash: 0}",
     "9: data.columns.item.hash: found \"0\", expected a whole number (1 or more)"},
    {"ClipOfKeys", "type: string}", "type: string, clip: [0, 1]}",
     "9: data.columns.item.clip: is for features of type float in files only"},
    {"ClipOfOne", "{name: price, fill: 0}", "{name: price, clip: [1]}",
     "11: data.columns.price.clip: expected two numbers, the least and the greatest, such as "
     "[0, 100]"},
    {"ClipUpsideDown", "{name: price, fill: 0}", "{name: price, clip: [9, 1]}",
     "11: data.columns.price.clip: expected two numbers, the least and the greatest, such as "
     "[0, 100]"},
    {"ClipOfWords", "{name: price, fill: 0}", "{name: price, clip: [low, 1]}",
     "11: data.columns.price.clip: found a list, expected a list of numbers"},
    {"StandardLabel", "{name: click, role: label}", "{name: click, role: label, standardise: true}",
     "8: data.columns.click.standardise: is for features of type float in files only"},
    {"EdgesOfText", "type: string}", "type: string, edges: [1]}",
     "9: data.columns.item.edges: is for type id without a transform only"},
    {"EdgesOfBuckets", "{name: price, fill: 0}",
     "{name: price, type: id, transform: bucket, edges: [1]}",
     "11: data.columns.price.edges: is for type id without a transform only"},
    {"EdgesThatFall", "{name: price, fill: 0}", "{name: price, type: id, edges: [1, 3, 2]}",
     "11: data.columns.price.edges: expected 1 to 1000 numbers that ascend, such as [0, 10, 100]"},
    {"NoEdge", "{name: price, fill: 0}", "{name: price, type: id, edges: []}",
     "11: data.columns.price.edges: expected 1 to 1000 numbers that ascend, such as [0, 10, 100]"},
    {"EdgesTwice", "{name: price, fill: 0}", "{name: price, type: id, edges: [1], quantiles: 4}",
     "11: data.columns.price.quantiles: found beside edges, expected one of them"},
    {"OneQuantile", "{name: price, fill: 0}", "{name: price, type: id, quantiles: 1}",
     "11: data.columns.price.quantiles: found \"1\", expected a whole number (2 to 1000)"},
    {"StandardWithoutStats", "{name: price, fill: 0}", "{name: price, standardise: true}",
     "11: data.columns.price.standardise: needs data.stats, the file that this makes: dovetail "
     "data "
     "stats JOB.yaml --json > FILE"},
    {"CrossedFrom", "- {name: price, fill: 0}",
     "- {name: price, fill: 0}\n    - {name: x, type: id, transform: crossed, of: [item, item], "
     "from: item}",
     "12: data.columns.x.from: is for columns in files only"},
    {"FromInLibffm",
     "csv\n  train: [train.csv]\n  valid: [valid.csv]\n  columns:\n    - {name: click, role: "
     "label}",
     "libffm\n  train: [train.csv]\n  valid: [valid.csv]\n  columns:\n    - {name: click, role: "
     "label, from: c}",
     "8: data.columns.click.from: is for formats csv and parquet and pipe and kafka only"},
};

INSTANTIATE_TEST_SUITE_P(Job, Mistakes, ::testing::ValuesIn(kMistakes),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(MistakesTogether, AreAllToldAtOnceInOrder) {
  std::string text = Replaced(kGoodJob, "epochs: 10", "epochs: none");
  text = Replaced(text, "seed: 7", "sead: 7");
  text = Replaced(text, "dim: 16", "dims: 16");
  EXPECT_EQ(ProblemsOf(text),
            "job.yaml:2: sead: unknown key; did you mean \"seed\"?\n"
            "job.yaml:14: model.tables.item.dims: unknown key; did you mean \"dim\"?\n"
            "job.yaml:14: model.tables.item.dim: missing, expected a whole number (1 to 4096)\n"
            "job.yaml:20: train.epochs: found \"none\", expected a whole number (1 to 1000000)\n"
            "4 problems, nothing started");
}

TEST(MistakesTogether, WithoutValidationNothingCanImprove) {
  EXPECT_EQ(ProblemsAfter("  valid: [valid.csv]\n", ""),
            "job.yaml:18: optimizer.schedule: needs data.valid, which names no files\n"
            "job.yaml:19: train.early_stop: needs data.valid, which names no files\n"
            "2 problems, nothing started");
}

TEST(MistakesTogether, FormatsTakeTheirOwnKeys) {
  EXPECT_EQ(ProblemsAfter("format: csv", "format: criteo\n  delimiter: \";\"\n  command: cat"),
            "job.yaml:5: data.delimiter: is for formats csv and pipe and kafka only\n"
            "job.yaml:6: data.command: is for format pipe only\n"
            "job.yaml:9: data.columns: format criteo has its own: label, I1..I13, C1..C26\n"
            "3 problems, nothing started");
}

TEST(MistakesTogether, AStreamHasNoEnd) {
  const std::string text = Replaced(kGoodJob, "format: csv\n  train: [train.csv]\n",
                                    "format: kafka\n  kafka: {topic: t, settings: [a]}\n");
  EXPECT_EQ(ProblemsOf(text),
            "job.yaml:5: data.kafka.brokers: missing, expected a text\n"
            "job.yaml:5: data.kafka.settings: found \"a\", expected name=value\n"
            "job.yaml:20: train.epochs: is for files: a stream is trained once, see train.until\n"
            "3 problems, nothing started");
  EXPECT_EQ(
      ProblemsAfter("format: csv", "format: kafka"),
      "job.yaml:3: data.kafka: missing, format kafka needs brokers and topic\n"
      "job.yaml:5: data.train: is for formats other than kafka, which gives the samples only\n"
      "2 problems, nothing started");
  EXPECT_EQ(ProblemsAfter("epochs: 10", "epochs: 10, until: forever"),
            "job.yaml:20: train.until: is for formats kafka and pipe only\n"
            "1 problem, nothing started");
}

TEST(MistakesTogether, ACommandThatIsAStream) {
  const auto problems_of = [](const char* data, const char* train) {
    std::string text = Replaced(kGoodJob, "format: csv\n  train: [train.csv]\n", data);
    return ProblemsOf(Replaced(text, "epochs: 10", train));
  };
  EXPECT_EQ(problems_of("format: pipe\n  command: tail\n", "until: drained"),
            "job.yaml:20: train.until: found \"drained\", which is for format kafka: without it a "
            "pipe is read to its end\n1 problem, nothing started");
  EXPECT_EQ(problems_of("format: pipe\n  partitions: 2\n", "until: forever"),
            "job.yaml:3: data.command: missing, format pipe runs it to read CSV\n"
            "job.yaml:5: data.partitions: is for format pipe with train.until: forever only\n"
            "job.yaml:20: train.until: is for formats kafka and pipe only\n"
            "3 problems, nothing started");
}

TEST(MistakesInFiles, AbsentEmptyAndOther) {
  EXPECT_EQ(ProblemsOf(""), "job.yaml: is empty, expected a YAML file\n1 problem, nothing started");
  EXPECT_EQ(ProblemsOf("- a\n"),
            "job.yaml:1: found a list, expected a map of keys\n1 problem, nothing started");
  const Result<JobConfig> absent = LoadJob("no/such.yaml", {});
  EXPECT_EQ(MessageOf(absent.status()), "no/such.yaml: no such file\n1 problem, nothing started");
  EXPECT_EQ(ExitCodeOf(absent.status()), 2);
  EXPECT_EQ(MessageOf(LoadJob("/", {}).status()),
            "/: is not a file, expected a YAML file\n1 problem, nothing started");
}

}  // namespace
}  // namespace dt
