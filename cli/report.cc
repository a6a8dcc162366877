#include "cli/report.h"

#include "cli/commands.h"
#include "cli/outcome.h"
#include "common/storage/files.h"
#include "scheduler/report/page.h"

namespace dt::cli {
namespace {

// Prints "test AUC 0.79812, best possible 0.80001" if both are known.
void PrintComparison(const Json& result, const Json& truth) {
  const double reached = NumberOf(MemberOf(MemberOf(result, "metrics"), "test"), "auc");
  const double best = NumberOf(MemberOf(truth, "test"), "auc");
  if (reached > 0 && best > 0) Print("test AUC {:.5f}, best possible {:.5f}\n", reached, best);
}

}  // namespace

Result<std::string> RenderReport(Json result, const Json& truth) {
  if (!result.is_object() || !result.contains("job")) {
    return Malformed("not a result file: it needs one JSON object with a \"job\"");
  }
  if (const Json& best = MemberOf(truth, "test"); !best.is_null()) result["best_possible"] = best;
  return scheduler::ReportPage(result.dump());
}

int RunReport(const CommandLine& line) {
  CommandLine no_result = line;  // Here --result is an input.
  no_result.result_path.clear();
  const Result<Json> json = ReadJsonFile(line.result_path);
  if (!json.ok()) return EndWithError(no_result, "", json.status());
  Result<Json> truth = Json();
  if (!line.truth_path.empty()) truth = ReadJsonFile(line.truth_path);
  if (!truth.ok()) return EndWithError(no_result, "", truth.status());
  const Result<std::string> page = RenderReport(*json, *truth);
  if (!page.ok()) return EndWithError(no_result, "", WithWhere(page.status(), line.result_path));
  if (Status s = WriteWholeFile(line.out_path, *page); !s.ok()) {
    return EndWithError(no_result, "", s);
  }
  PrintComparison(*json, *truth);
  Print("report: {}\n", line.out_path);
  return 0;
}

}  // namespace dt::cli
