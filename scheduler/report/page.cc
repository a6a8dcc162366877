#include "scheduler/report/page.h"

#include "scheduler/report/page_html.h"

namespace dt::scheduler {
namespace {

std::string PageWith(std::string_view data) {
  constexpr std::string_view kMark = "%RESULT%";
  std::string page(kPage);
  page.replace(page.find(kMark), kMark.size(), data);
  return page;
}

}  // namespace

std::string StatusPage() { return PageWith("null"); }

std::string ReportPage(std::string_view result) {
  // Writes every "<" as an escape, so that no text of the job can end the script element.
  std::string data;
  for (const char c : result) {
    if (c == '<') {
      data += "\\u003c";
    } else {
      data += c;
    }
  }
  return PageWith(data);
}

}  // namespace dt::scheduler
