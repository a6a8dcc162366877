// Goal: the metrics of an evaluation are scikit-learn's, and 1, 2 and 3 workers give the same
// digits. Method: data/sklearn_metrics.txt, recorded by scripts/data/record_metrics.py, is merged
// as the reports of so many workers; or the file that DT_SKLEARN_METRICS names, with more cases.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/results/merge_results.h"

namespace dt::scheduler {
namespace {

struct RecordedCase {
  std::string name;
  uint32_t top_k = 0;
  std::vector<Key> groups;
  std::vector<float> scores;
  std::vector<uint8_t> labels;
  std::map<std::string, std::optional<double>> want;  // By the metric's name.
};

template <class T>
std::vector<T> Numbers(std::istringstream& in) {
  std::vector<T> all;
  for (double number = 0; in >> number;) all.push_back(static_cast<T>(number));
  return all;
}

std::vector<RecordedCase> ReadCases() {
  const char* const root = std::getenv("DT_SOURCE_DIR");
  const char* const other = std::getenv("DT_SKLEARN_METRICS");
  std::ifstream file(other != nullptr
                         ? other
                         : std::string(root == nullptr ? "." : root) +
                               "/test/unit/scheduler/results/data/sklearn_metrics.txt");
  std::vector<RecordedCase> all;
  for (std::string line, word; std::getline(file, line);) {
    std::istringstream in(line);
    in >> word;
    if (word == "#") continue;
    if (word == "case") {
      all.push_back({.name = line});
    } else if (word == "top_k") {
      in >> all.back().top_k;
    } else if (word == "groups") {
      all.back().groups = Numbers<Key>(in);
    } else if (word == "scores") {
      all.back().scores = Numbers<float>(in);
    } else if (word == "labels") {
      all.back().labels = Numbers<uint8_t>(in);
    } else {
      const std::vector<double> value = Numbers<double>(in);
      all.back().want[word] = value.empty() ? std::nullopt : std::optional(value[0]);
    }
  }
  return all;
}

// The report of one worker, which has the batches rank, rank + workers and so on, each of 5
// samples. Its two losses take the labels as classes and as numbers.
EvaluateDone ReportOf(const RecordedCase& c, size_t rank, size_t workers) {
  constexpr size_t kBatch = 5;
  EvaluateDone done;
  done.losses.resize(2);
  std::vector<size_t> own;
  for (size_t batch = rank; batch * kBatch < c.labels.size(); batch += workers) {
    EvaluatePart part{.batch = batch};
    for (size_t i = batch * kBatch; i < std::min((batch + 1) * kBatch, c.labels.size()); ++i) {
      const double error = double{c.scores[i]} - static_cast<double>(c.labels[i]);
      part.samples += 1;
      part.loss_sum += error * error;
      own.push_back(i);
    }
    for (LossScores& loss : done.losses) loss.parts.push_back(part);
  }
  std::ranges::sort(own, {}, [&](size_t i) { return c.scores[i]; });
  for (const size_t i : own) {
    done.losses[0].scores.push_back(c.scores[i]);
    done.losses[0].labels.push_back(c.labels[i]);
    done.losses[0].groups.push_back(c.groups[i]);
  }
  return done;
}

Result<LossMetrics> MergedOf(const RecordedCase& c, size_t workers) {
  std::map<ProcessId, EvaluateDone> reports;
  for (size_t rank = 0; rank < workers; ++rank) {
    reports[ProcessId(static_cast<uint32_t>(rank + 1))] = ReportOf(c, rank, workers);
  }
  std::vector<LossConfig> losses(2);
  losses[0].type = "binary_cross_entropy", losses[0].name = "click";
  losses[0].group = "user", losses[0].top_k = c.top_k;
  losses[1].type = "mse", losses[1].name = "value";
  return MergeEvaluation(reports, losses);
}

TEST(SklearnMetrics, AreOursForAnyNumberOfWorkers) {
  const std::vector<RecordedCase> cases = ReadCases();
  ASSERT_GE(cases.size(), 30u);
  std::map<std::string, size_t> compared;
  for (const RecordedCase& c : cases) {
    SCOPED_TRACE(c.name);
    const Result<LossMetrics> one = MergedOf(c, 1);
    ASSERT_TRUE(one.ok()) << one.status();
    for (const auto& [name, want] : c.want) {
      const Metrics& of = one->at(name == "rmse" ? 1 : 0);
      const auto metric = std::ranges::find(AllMetrics(), name, &MetricInfo::name);
      const std::optional<double> value = of.*metric->value;
      ASSERT_EQ(value.has_value(), want.has_value()) << name;
      if (!want.has_value()) continue;
      EXPECT_NEAR(*value, *want, 1e-12) << name;
      compared[name] += 1;
    }
    for (const size_t workers : {2, 3}) EXPECT_EQ(*MergedOf(c, workers), *one) << "other digits";
  }
  EXPECT_EQ(compared.size(), 8u);
  for (const auto& [name, times] : compared) EXPECT_GE(times, 9u) << name;
}

}  // namespace
}  // namespace dt::scheduler
