#include "scheduler/report/dump_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/schema/output_schema.h"
#include "test/support/schema_check.h"

namespace dt::scheduler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// y = x · w on the accelerator, then z <= y on the CPU.
Plan Tiny() {
  Plan plan;
  Graph& graph = plan.graph;
  const ValueIndex x =
      graph.AddValue({"x", DType::kF32, {Dim{kBatch, 1}, Const(3)}, ValueKind::kInput, kNone});
  const ValueIndex w =
      graph.AddValue({"w", DType::kF32, {Const(3), Const(1)}, ValueKind::kParameter, kNone});
  Node y;
  y.name = "y";
  y.op = "matmul";
  y.inputs = {x, w};
  y.device = Device::kGpu;
  const ValueIndex of_y = graph.nodes[graph.AddNode(y, 1)].outputs[0];
  Node z;
  z.name = "z<&\">";
  z.op = "square";
  z.inputs = {of_y};
  z.device = Device::kCpu;
  graph.AddNode(z, 1);
  return plan;
}

Plan Cut() {
  Plan plan = Tiny();
  plan.train = {{.name = "gpu.0", .stream = Stream::kGpu, .nodes = {0}},
                {.name = "cpu.0", .stream = Stream::kCpu, .waits = {0}, .nodes = {1}}};
  return plan;
}

Plan Scheduled() {
  Plan plan = Cut();
  plan.slot = {kNone, kNone, 0, 1};
  plan.slot_count = 2;
  return plan;
}

TEST(DumpPlan, BeforePartitionItIsTheGraph) {
  EXPECT_EQ(DumpPlan(Tiny(), DumpFormat::kText, ""), DumpText(Tiny().graph));
  EXPECT_FALSE(nlohmann::json::parse(DumpPlan(Tiny(), DumpFormat::kJson, "")).contains("train"));
}

TEST(DumpPlan, JsonIsAsItsSchemaSays) {
  const test::SchemaCheck schema(OutputSchemaJson("plan"));
  for (const Plan& plan : {Tiny(), Cut(), Scheduled()}) {
    const auto json = nlohmann::json::parse(DumpPlan(plan, DumpFormat::kJson, ""));
    EXPECT_EQ(schema.ProblemsOf(json), std::vector<std::string>{});
  }
}

TEST(DumpPlan, TextTellsWhatWaitsAndTheMemory) {
  EXPECT_EQ(DumpPlan(Cut(), DumpFormat::kText, ""),
            "train gpu.0 on gpu (1 nodes)\n  y\n"
            "train cpu.0 on cpu (1 nodes) after gpu.0\n  z<&\">\n");
  EXPECT_EQ(DumpPlan(Scheduled(), DumpFormat::kText, ""),
            "train gpu.0 on gpu (1 nodes)\n  y $0\n"
            "train cpu.0 on cpu (1 nodes) after gpu.0\n  z<&\"> $1\n");
}

TEST(DumpPlan, JsonHasSubgraphsAndMemory) {
  const auto json = nlohmann::json::parse(DumpPlan(Scheduled(), DumpFormat::kJson, ""));
  EXPECT_EQ(json["train"][1]["stream"], "cpu");
  EXPECT_EQ(json["train"][1]["waits"], nlohmann::json({0}));
  EXPECT_EQ(json["train"][0]["nodes"], nlohmann::json({"y"}));
  EXPECT_EQ(json["evaluate"].size(), 0u);
  EXPECT_EQ(json["slots"], nlohmann::json({nullptr, nullptr, 0, 1}));
  EXPECT_EQ(json["nodes"].size(), 2u);
  EXPECT_EQ(json["nodes"][0]["loops"], "&*k,&kn->*n");
  EXPECT_FALSE(nlohmann::json::parse(DumpPlan(Cut(), DumpFormat::kJson, "")).contains("slots"));
}

TEST(DumpPlan, JsonHasTheExplanation) {
  const std::string text = DumpPlan(Scheduled(), DumpFormat::kJson, "", R"({"lookups": [1]})");
  EXPECT_EQ(nlohmann::json::parse(text)["lookups"], nlohmann::json({1}));
}

TEST(DumpPlan, DotFramesSubgraphs) {
  EXPECT_THAT(DumpPlan(Cut(), DumpFormat::kDot, ""),
              HasSubstr("subgraph cluster_1 { label=\"cpu.0 on cpu\"; n1; }\n}\n"));
}

// The page contains the plan as JSON, which its script draws, and loads nothing from elsewhere. No
// text of the job can close an element of the page.
TEST(DumpPlan, PageHasThePlanAndItsExplanation) {
  const std::string page = DumpPlan(Scheduled(), DumpFormat::kHtml, "a < b",
                                    R"({"prediction": {"seconds_per_step": 0.5}})");
  EXPECT_THAT(page, HasSubstr("<h1>a &lt; b</h1>"));
  const std::string_view mark = "id=\"plan\">";
  const size_t begin = page.find(mark) + mark.size();
  const std::string data = page.substr(begin, page.find("</script>", begin) - begin);
  EXPECT_THAT(data, Not(HasSubstr("<")));
  const auto json = nlohmann::json::parse(data);
  EXPECT_EQ(json["nodes"][1]["name"], "z<&\">");
  EXPECT_EQ(json["prediction"]["seconds_per_step"], 0.5);
  EXPECT_EQ(json["train"].size(), 2u);
  EXPECT_EQ(json["text"], DumpText(Scheduled().graph));
  EXPECT_THAT(page, Not(HasSubstr("http")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("%PLAN%")));
}

}  // namespace
}  // namespace dt::scheduler
