#include "common/cluster/job_result.h"

#include <nlohmann/json.hpp>

#include "common/cluster/history_json.h"
#include "common/cluster/table_json.h"

namespace dt {
namespace {

using Json = nlohmann::ordered_json;

Json RolesJson(const JobResult& result) {
  Json roles = Json::array();
  for (const JobResult::RoleReport& r : result.roles) {
    using Usage = JobResult::Usage;
    const auto figure = [&r](auto Usage::*field) {
      return r.usage.has_value() ? Json((*r.usage).*field) : Json(nullptr);
    };
    roles.push_back({{"role", r.role},
                     {"id", r.id},
                     {"pid", r.pid},
                     {"cpu_seconds", figure(&Usage::cpu_seconds)},
                     {"peak_rss_bytes", figure(&Usage::peak_rss_bytes)},
                     {"bytes_sent", figure(&Usage::bytes_sent)},
                     {"bytes_received", figure(&Usage::bytes_received)}});
  }
  return roles;
}

void AddTables(const JobResult& result, Json& to) {
  Json tables = Json::object(), checksums = Json::object();
  for (const auto& [name, table] : result.tables) {
    tables[name] = TableJson(table);
    checksums[name] = table.checksum;
  }
  to["tables"] = std::move(tables);
  to["checksum"] = {{"tables", std::move(checksums)}, {"dense", nullptr}};
  if (!result.dense_checksum.empty()) to["checksum"]["dense"] = result.dense_checksum;
}

}  // namespace

std::string_view OutcomeOf(const Status& status) {
  if (status.ok()) return "completed";
  return status.code() == StatusCode::kCancelled ? "interrupted" : "failed";
}

std::string ToJson(const JobResult& result) {
  Json json = {{"job", result.job},
               {"status", OutcomeOf(result.status)},
               {"error", ErrorJson(result.status)},
               {"samples", result.samples},
               {"steps", result.steps},
               {"epochs", result.epochs},
               {"seconds", result.seconds},
               {"seconds_total", result.seconds_total}};
  json["samples_per_second"] = result.seconds > 0
                                   ? Json(static_cast<double>(result.samples) / result.seconds)
                                   : Json(nullptr);
  Json train = MeansJson(result.train);
  if (train.is_null()) train = {{"logloss", nullptr}};
  json["metrics"] = {{"train", std::move(train)},
                     {"valid", MetricsJson(result.valid)},
                     {"test", MetricsJson(result.test)}};
  json["best"] = nullptr;
  if (result.best.has_value()) {
    json["best"] = {{"epoch", result.best->epoch}, {"valid", MetricsJson(result.best->valid)}};
  }
  json["plan"] = nullptr;
  if (result.plan.has_value()) {
    json["plan"] = {{"predicted_seconds_per_step", result.plan->predicted},
                    {"measured_seconds_per_step", result.plan->measured}};
  }
  json["checkpoint"] = result.checkpoint.empty() ? Json(nullptr) : Json(result.checkpoint);
  json["roles"] = RolesJson(result);
  AddTables(result, json);
  json["events"] = EventsJson(result.events);
  json["history"] = Json::array();
  for (const JobResult::Evaluation& e : result.history)
    json["history"].push_back(EvaluationJson(e));
  json["curve"] = CurveJson(result.curve);
  // Names and messages come from outside; bytes that are not UTF-8 are replaced instead of causing
  // an exception.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dt
