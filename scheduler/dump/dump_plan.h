// A plan for people and their programs: as text, as JSON, as a drawing for Graphviz, or as a page
// with a drawing of its own. Also of a plan that is not made to its end: the graph alone, or with
// subgraphs and without memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/graph/plan.h"

namespace dt::scheduler {

enum class DumpFormat : uint8_t { kText, kJson, kDot, kHtml };

// `title`: of the page.
std::string DumpPlan(const Plan& plan, DumpFormat format, std::string_view title);
// One page without scripts or files from elsewhere. Time and room follow the edges.
std::string DumpHtml(const Plan& plan, std::string_view title);

}  // namespace dt::scheduler
