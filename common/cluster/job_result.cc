#include "common/cluster/job_result.h"

#include <nlohmann/json.hpp>

#include "common/cluster/metrics_json.h"
#include "common/cluster/table_json.h"

namespace dt {
namespace {

using Json = nlohmann::ordered_json;

Json ErrorJson(const JobResult& result) {
  if (result.status.ok()) return nullptr;
  const Problem problem = ProblemOf(result.status);
  return {{"what", problem.what}, {"where", problem.where}, {"hint", problem.hint}};
}

Json RolesJson(const JobResult& result) {
  Json roles = Json::array();
  for (const JobResult::RoleReport& r : result.roles) {
    roles.push_back({{"role", r.role},
                     {"id", r.id},
                     {"pid", r.pid},
                     {"cpu_seconds", r.cpu_seconds},
                     {"peak_rss_bytes", r.peak_rss_bytes},
                     {"bytes_sent", r.bytes_sent},
                     {"bytes_received", r.bytes_received}});
  }
  return roles;
}

Json EventsJson(const JobResult& result) {
  Json events = Json::array();
  for (const JobResult::Event& event : result.events) {
    Json json = {{"t", event.t}, {"kind", event.kind}};
    for (const auto& [key, detail] : event.details) {
      std::visit([&json, &name = key](const auto& value) { json[name] = value; }, detail);
    }
    events.push_back(std::move(json));
  }
  return events;
}

Json HistoryJson(const JobResult& result) {
  Json history = Json::array();
  for (const JobResult::Evaluation& e : result.history) {
    history.push_back({{"epoch", e.epoch},
                       {"step", e.step},
                       {"rate_scale", e.rate_scale},
                       {"train", {{"logloss", OrNull(e.train_logloss)}}},
                       {"valid", MetricsJson(e.valid)}});
  }
  return history;
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

std::string_view OutcomeOf(const JobResult& result) {
  if (result.status.ok()) return "completed";
  return result.status.code() == StatusCode::kCancelled ? "interrupted" : "failed";
}

std::string ToJson(const JobResult& result) {
  Json json = {{"job", result.job},          {"status", OutcomeOf(result)},
               {"error", ErrorJson(result)}, {"samples", result.samples},
               {"steps", result.steps},      {"epochs", result.epochs},
               {"seconds", result.seconds},  {"seconds_total", result.seconds_total}};
  json["samples_per_second"] = result.seconds > 0
                                   ? Json(static_cast<double>(result.samples) / result.seconds)
                                   : Json(nullptr);
  json["metrics"] = {{"train", {{"logloss", OrNull(result.train_logloss)}}},
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
  json["events"] = EventsJson(result);
  json["history"] = HistoryJson(result);
  // Names and messages come from outside: what is not UTF-8 is replaced, never an exception.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dt
