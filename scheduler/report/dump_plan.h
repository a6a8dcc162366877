// A plan for people and their programs: as text, as JSON, as a drawing for Graphviz, or as a page
// with a drawing of its own. Also of a plan that is not made to its end: the graph alone, or with
// subgraphs and without memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/plan/plan.h"

namespace dt::scheduler {

enum class DumpFormat : uint8_t { kText, kJson, kDot, kHtml };

// JSON and page also have what `explanation` has: the object of ExplainJson, or nothing.
std::string DumpPlan(const Plan& plan, DumpFormat format, std::string_view title,
                     std::string_view explanation = "{}");
// One page that needs no file from elsewhere, for the JSON of a plan.
std::string PlanPage(std::string_view title, std::string_view json);

}  // namespace dt::scheduler
