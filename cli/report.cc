#include "cli/report.h"

#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/outcome.h"
#include "cli/report_page.h"

namespace dt::cli {
namespace {

// "test AUC 0.79812, best possible 0.80001"; nothing where either is not known.
void PrintComparison(const std::string& result_json, const std::string& truth_json) {
  const auto result = nlohmann::json::parse(result_json, nullptr, false);
  const auto truth = nlohmann::json::parse(truth_json, nullptr, false);
  const nlohmann::json::json_pointer reached("/metrics/test/auc"), best("/test/auc");
  if (!result.contains(reached) || !result[reached].is_number() || !truth.contains(best)) return;
  std::printf("test AUC %.5f, best possible %.5f\n", result[reached].get<double>(),
              truth[best].get<double>());
}

}  // namespace

Result<std::string> RenderReport(const std::string& result_json, const std::string& truth_json) {
  auto json = nlohmann::json::parse(result_json, nullptr, false);
  if (!json.is_object() || !json.contains("job")) {
    return Malformed("not a result file: it needs one JSON object with a \"job\"");
  }
  const auto truth = nlohmann::json::parse(truth_json, nullptr, false);
  if (truth.is_object() && truth.contains("test")) json["best_possible"] = truth["test"];
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
  Result<std::string> truth = std::string();
  if (!line.truth_path.empty()) truth = ReadWholeFile(line.truth_path);
  if (!truth.ok()) return EndWithError(no_result, "", truth.status());
  const Result<std::string> page = RenderReport(*text, *truth);
  if (!page.ok()) return EndWithError(no_result, "", WithWhere(page.status(), line.result_path));
  if (Status s = WriteWholeFile(line.out_path, *page); !s.ok()) {
    return EndWithError(no_result, "", s);
  }
  PrintComparison(*text, *truth);
  std::printf("report: %s\n", line.out_path.c_str());
  return 0;
}

}  // namespace dt::cli
