// The page that shows a job, live or ended: one HTML file that needs nothing from elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace dt::scheduler {

// The page of a live job: it fetches StatusJson from /status every second.
std::string StatusPage();
// The page of an ended job, with `result` inside it: a result file's JSON object.
std::string ReportPage(std::string_view result);

}  // namespace dt::scheduler
