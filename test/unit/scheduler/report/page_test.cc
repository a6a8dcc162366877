#include "scheduler/report/page.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/metrics/metrics.h"

namespace dt::scheduler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The JSON that the page's script reads.
std::string DataOf(const std::string& page) {
  constexpr std::string_view kBegin = R"(<script id="data" type="application/json">)";
  const size_t begin = page.find(kBegin) + kBegin.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

TEST(Page, NeedsNothingFromElsewhere) {
  for (const std::string& page : {StatusPage(), ReportPage("{}")}) {
    EXPECT_THAT(page, StartsWith("<!doctype html>"));
    EXPECT_TRUE(page.ends_with("</html>\n"));
    for (const char* from : {"https:", " src=", "<link", "@import", "url(", "import("}) {
      EXPECT_THAT(page, Not(HasSubstr(from)));
    }
    // The namespace of SVG is not an address that is fetched.
    const size_t svg = page.find("http:");
    EXPECT_EQ(page.substr(svg, 26), "http://www.w3.org/2000/svg");
    EXPECT_EQ(page.find("http:", svg + 1), std::string::npos);
  }
}

TEST(Page, NoTextBecomesHtml) {
  for (const char* way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write"}) {
    EXPECT_THAT(StatusPage(), Not(HasSubstr(way)));
  }
}

TEST(Page, WithoutAResultItIsLive) {
  EXPECT_EQ(DataOf(StatusPage()), "null");
  EXPECT_THAT(StatusPage(), Not(HasSubstr("%RESULT%")));
}

TEST(Page, NoTextOfTheJobEndsTheScript) {
  const nlohmann::json job = {{"job", "</script><script>alert(1)</script>%RESULT%"}};
  const std::string data = DataOf(ReportPage(job.dump()));
  EXPECT_THAT(data, Not(HasSubstr("<")));
  EXPECT_EQ(nlohmann::json::parse(data), job);
}

// The script names what it shows of an evaluation once, in its table METRICS.
TEST(Page, ShowsEveryMetricUnderItsTitle) {
  for (const MetricInfo& metric : AllMetrics()) {
    // Losses have a chart of training and validation; ratios of about 1 have none.
    if (metric.name == "logloss" || metric.name == "calibration") continue;
    EXPECT_THAT(StatusPage(),
                HasSubstr(fmt::format("key: '{}', title: '{}'", metric.name, metric.title)));
  }
}

}  // namespace
}  // namespace dt::scheduler
