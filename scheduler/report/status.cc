#include "scheduler/report/status.h"

#include <algorithm>
#include <iterator>
#include <numeric>

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

Json ThreadsJson(const std::vector<ThreadReport>& threads) {
  Json all = Json::array();
  for (const ThreadReport& thread : threads) {
    all.push_back({{"name", thread.name},
                   {"doing", thread.doing.empty() ? Json(nullptr) : Json(thread.doing)},
                   {"seconds", thread.seconds}});
  }
  return all;
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
          {"accelerator", DeviceJson(p.accelerator)},
          {"heads", p.heads},
          {"tails", p.tails},
          {"syncing", p.syncing},
          {"draining", p.draining},
          {"kept_bytes", p.kept_bytes},
          {"copied_bytes", p.copied_bytes},
          {"waits", p.waits.empty() ? Json(nullptr) : Json(p.waits)},
          {"threads", ThreadsJson(p.threads)}};
}

Json ShardsJson(const std::optional<JobStatus::Shards>& shards) {
  if (!shards.has_value()) return nullptr;
  Json by_members = Json::object(), copies = Json::array();
  for (size_t n = 0; n < shards->by_members.size(); ++n) {
    if (shards->by_members[n] != 0) by_members[std::to_string(n)] = shards->by_members[n];
  }
  for (const JobStatus::Shards::Copy& copy : shards->copies) {
    copies.push_back({{"shard", copy.shard},
                      {"from", copy.from},
                      {"to", copy.to},
                      {"bytes", copy.bytes},
                      {"rows", copy.rows},
                      {"rows_of_shard", copy.rows_of_shard}});
  }
  return {{"map_version", shards->map_version},
          {"count", shards->count()},
          {"replicas", shards->replicas},
          {"by_members", std::move(by_members)},
          {"short", shards->count_short()},
          {"copies", std::move(copies)},
          {"copies_left", shards->copies_left},
          {"bytes_left", shards->bytes_left},
          {"bytes_per_second", OrNull(shards->bytes_per_second)},
          {"seconds_left", OrNull(shards->seconds_left)},
          {"lost", shards->lost}};
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

uint32_t JobStatus::Shards::count() const {
  return std::accumulate(by_members.begin(), by_members.end(), 0u);
}

uint32_t JobStatus::Shards::count_short() const {
  const auto full = by_members.begin() + std::min<ptrdiff_t>(replicas, std::ssize(by_members));
  return std::accumulate(by_members.begin(), full, 0u);
}

std::string StatusJson(const JobStatus& s) {
  Json processes = Json::array();
  for (const JobStatus::Process& p : s.processes) processes.push_back(ProcessJson(p));
  const Json json = {{"job", s.job},
                     {"phase", s.phase},
                     {"seconds", s.seconds},
                     {"longest_turn", s.longest_turn},
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
                     {"recovers", s.recovers},
                     {"processes", std::move(processes)},
                     {"shards", ShardsJson(s.shards)},
                     {"tables", TablesJson(s)},
                     {"history", HistoryJson(s)},
                     {"curve", CurveJson(s.curve)},
                     {"events", EventsJson(s.events)},
                     {"outcome", OutcomeJson(s.outcome)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace dt::scheduler
