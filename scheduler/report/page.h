// The page that shows a running or ended job: one self-contained HTML file.
#pragma once

#include <string>
#include <string_view>

namespace dt::scheduler {

// The page of a live job: it fetches StatusJson from /status every second.
std::string StatusPage();
// The page of an ended job. `result`: the JSON object of its result file, which the page contains.
std::string ReportPage(std::string_view result);

}  // namespace dt::scheduler
