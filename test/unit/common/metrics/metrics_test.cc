#include "common/metrics/metrics.h"

#include <set>

#include <gtest/gtest.h>

namespace dt {
namespace {

TEST(MetricsTable, EveryMemberHasOneRow) {
  std::set<std::string> names;
  Metrics all;
  for (const MetricInfo& metric : AllMetrics()) {
    EXPECT_TRUE(names.insert(std::string(metric.name)).second) << metric.name;
    EXPECT_FALSE((all.*metric.value).has_value()) << metric.name << " is the value of another row";
    all.*metric.value = 0.5;
    // The name is that of the member.
    const std::string fields = ", " + std::string(Metrics::kFieldNames) + ",";
    EXPECT_NE(fields.find(", " + std::string(metric.name) + ","), std::string::npos);
  }
  // Besides, there are the loss's name, the number of samples, and whether the AUC is exact.
  EXPECT_EQ(names.size() + 3, std::tuple_size_v<decltype(all.fields())>);
}

std::vector<std::string> NamesFor(std::string_view loss, bool has_group) {
  std::vector<std::string> names;
  for (const MetricInfo& metric : AllMetrics()) {
    if (metric.IsOf(loss, has_group)) names.emplace_back(metric.name);
  }
  return names;
}

TEST(MetricsTable, LossesHaveTheirMetrics) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(NamesFor("binary_cross_entropy", false),
            (Names{"auc", "logloss", "pr_auc", "calibration"}));
  EXPECT_EQ(NamesFor("binary_cross_entropy", true),
            (Names{"auc", "logloss", "pr_auc", "gauc", "ndcg", "recall", "hit_rate", "mrr",
                   "calibration"}));
  EXPECT_EQ(NamesFor("mse", false), (Names{"logloss", "rmse", "calibration"}));
  for (const char* softmax : {"softmax_cross_entropy", "in_batch_softmax"}) {
    EXPECT_EQ(NamesFor(softmax, false), (Names{"logloss", "accuracy"}));
  }
}

TEST(MetricsTable, ValuesAreFoundByTheirNames) {
  const LossMetrics one = {{.auc = 0.75, .loss = "click", .gauc = 0.5}};
  EXPECT_EQ(ValueOf(one, "valid.auc"), 0.75);
  EXPECT_EQ(ValueOf(one, "valid.gauc"), 0.5);
  EXPECT_EQ(ValueOf(one, "valid.mrr"), std::nullopt);
  EXPECT_EQ(ValueOf(one, "valid.click.auc"), std::nullopt);
  EXPECT_EQ(ValueOf(one, "valid.nothing"), std::nullopt);
  const LossMetrics two = {{.loss = "a.b", .hit_rate = 0.25}, {.loss = "c", .rmse = 2}};
  EXPECT_EQ(ValueOf(two, "valid.a.b.hit_rate"), 0.25);
  EXPECT_EQ(ValueOf(two, "valid.c.rmse"), 2);
  EXPECT_EQ(ValueOf(two, "valid.rmse"), std::nullopt);
}

TEST(MetricsTable, OnlyErrorsAreBetterWhenLower) {
  for (const MetricInfo& metric : AllMetrics()) {
    if (!metric.decides()) continue;
    const bool error = metric.name == "logloss" || metric.name == "rmse";
    EXPECT_EQ(HigherIsBetter("valid." + std::string(metric.name)), !error) << metric.name;
  }
}

TEST(MetricsText, TheFirstThatIsBetterWhenHigherIsMostTelling) {
  const Metrics click{.auc = 0.75, .logloss = 0.5, .calibration = 1, .loss = "click", .mrr = 0.25};
  const Metrics price{.logloss = 4, .loss = "price", .rmse = 2};
  EXPECT_EQ(SummaryOf(LossMetrics{click}), "AUC 0.75000");
  EXPECT_EQ(SummaryOf(LossMetrics{{.logloss = 2, .accuracy = 0.5}}), "accuracy 0.50000");
  EXPECT_EQ(SummaryOf(LossMetrics{click, price}), "click AUC 0.75000, price logloss 4.00000");
  EXPECT_EQ(SummaryOf(LossMetrics{{}}), "-");
  EXPECT_EQ(DetailsOf(click), "AUC 0.75000, MRR 0.25000, logloss 0.50000");
  EXPECT_EQ(DetailsOf(price), "logloss 4.00000, RMSE 2.00000");
  EXPECT_EQ(DetailsOf({}), "-");
}

}  // namespace
}  // namespace dt
