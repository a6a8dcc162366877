// A plan for people and programs: as text, as JSON, as a Graphviz drawing, or as a page with a
// drawing. Incomplete plans work, too: the graph alone, or with subgraphs but no memory plan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/plan/plan.h"

namespace dt::scheduler {

enum class DumpFormat : uint8_t { kText, kJson, kDot, kHtml };

// `explanation`: the object of ExplainJson, or an empty one; it is added to JSON and page.
std::string DumpPlan(const Plan& plan, DumpFormat format, std::string_view title,
                     std::string_view explanation = "{}");
// A self-contained page that shows the JSON of a plan.
std::string PlanPage(std::string_view title, std::string_view json);

}  // namespace dt::scheduler
