#include "scheduler/report/dump_plan.h"
#include "scheduler/report/plan_page.h"

namespace dt::scheduler {
namespace {

// Writes every "<" as an escape, so that no text of the job can end an element.
std::string WithoutTags(std::string_view text, std::string_view escape) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += escape;
    } else {
      out += c;
    }
  }
  return out;
}

void ReplaceAll(std::string_view mark, std::string_view text, std::string& page) {
  for (size_t at = page.find(mark); at != page.npos; at = page.find(mark, at + text.size())) {
    page.replace(at, mark.size(), text);
  }
}

}  // namespace

std::string PlanPage(std::string_view title, std::string_view json) {
  std::string page(kPlanPage);
  ReplaceAll("%TITLE%", WithoutTags(title, "&lt;"), page);
  page.replace(page.find("%PLAN%"), 6, WithoutTags(json, "\\u003c"));
  return page;
}

}  // namespace dt::scheduler
