#include "cli/report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/outcome.h"
#include "cli/report_page.h"

namespace dt::cli {

Result<std::string> RenderReport(const std::string& result_json) {
  const auto json = nlohmann::json::parse(result_json, nullptr, false);
  if (!json.is_object() || !json.contains("job")) {
    return Malformed("not a result file: it needs one JSON object with a \"job\"");
  }
  // "<" is written as an escape, so that no text of the job can end the script element.
  std::string data;
  for (const char c : json.dump()) {
    if (c == '<') {
      data += "\\u003c";
    } else {
      data += c;
    }
  }
  std::string page(kReportPage);
  constexpr std::string_view kMark = "%RESULT%";
  page.replace(page.find(kMark), kMark.size(), data);
  return page;
}

int RunReport(const CommandLine& line) {
  CommandLine no_result = line;  // Here --result is an input.
  no_result.result_path.clear();
  const Result<std::string> text = ReadWholeFile(line.result_path);
  if (!text.ok()) return EndWithError(no_result, "", text.status());
  const Result<std::string> page = RenderReport(*text);
  if (!page.ok()) return EndWithError(no_result, "", WithWhere(page.status(), line.result_path));
  if (Status s = WriteWholeFile(line.out_path, *page); !s.ok()) {
    return EndWithError(no_result, "", s);
  }
  std::printf("%s\n", line.out_path.c_str());
  return 0;
}

}  // namespace dt::cli
