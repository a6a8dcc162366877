#include "scheduler/report/status.h"

#include <nlohmann/json.hpp>

#include "common/cluster/history_json.h"
#include "common/cluster/table_json.h"

namespace dt::scheduler {
namespace {

using Json = nlohmann::ordered_json;

Json DeviceJson(const std::optional<DeviceInfo>& device) {
  if (!device.has_value()) return nullptr;
  return {{"kind", NameOf(device->kind)},
          {"name", device->name},
          {"memory_bytes", device->memory_bytes}};
}

Json ProcessJson(const JobStatus::Process& p) {
  return {{"role", p.role},
          {"id", p.id},
          {"pid", p.pid},
          {"host", p.host},
          {"heartbeat_age", p.heartbeat_age},
          {"step", p.step},
          {"shards", p.shards},
          {"cpu_seconds", p.cpu_seconds},
          {"peak_rss_bytes", p.peak_rss_bytes},
          {"bytes_sent", p.bytes_sent},
          {"bytes_received", p.bytes_received},
          {"accelerator", DeviceJson(p.accelerator)}};
}

Json TablesJson(const JobStatus& status) {
  Json all = Json::object();
  for (const auto& [name, table] : status.tables) {
    all[name] = TableJson(table);
  }
  return all;
}

Json HistoryJson(const JobStatus& status) {
  Json all = Json::array();
  for (const JobResult::Evaluation& e : status.history) {
    all.push_back(EvaluationJson(e));
    all.back()["valid_text"] = SummaryOf(e.valid);
  }
  return all;
}

Json OutcomeJson(const std::optional<Status>& outcome) {
  if (!outcome.has_value()) return nullptr;
  return {{"status", OutcomeOf(*outcome)}, {"error", ErrorJson(*outcome)}};
}

}  // namespace

std::string StatusJson(const JobStatus& s) {
  Json processes = Json::array();
  for (const JobStatus::Process& p : s.processes) processes.push_back(ProcessJson(p));
  const Json json = {{"job", s.job},
                     {"phase", s.phase},
                     {"seconds", s.seconds},
                     {"epoch", s.epoch},
                     {"epochs", s.epochs},
                     {"step", s.step},
                     {"steps", s.steps},
                     {"samples", s.samples},
                     {"samples_per_second", OrNull(s.samples_per_second)},
                     {"seconds_left", OrNull(s.seconds_left)},
                     {"losses", s.losses},
                     {"train", MeansJson(s.train)},
                     {"learning_rate", s.learning_rate},
                     {"rate_scale", s.lr_scale},
                     {"places", s.places},
                     {"checkpoint", s.checkpoint.empty() ? Json(nullptr) : Json(s.checkpoint)},
                     {"malformed", s.malformed},
                     {"processes", std::move(processes)},
                     {"tables", TablesJson(s)},
                     {"history", HistoryJson(s)},
                     {"curve", CurveJson(s.curve)},
                     {"events", EventsJson(s.events)},
                     {"outcome", OutcomeJson(s.outcome)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace dt::scheduler
