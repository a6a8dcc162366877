#include "scheduler/web/status.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "common/cluster/metrics_json.h"
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
    all.push_back({{"epoch", e.epoch},
                   {"step", e.step},
                   {"rate_scale", e.rate_scale},
                   {"train_logloss", OrNull(e.train_logloss)},
                   {"valid", MetricsJson(e.valid)},
                   {"valid_text", SummaryOf(e.valid)}});
  }
  return all;
}

Json EventsJson(const JobStatus& status) {
  Json all = Json::array();
  for (const JobResult::Event& event : status.events) {
    Json json = {{"t", event.t}, {"kind", event.kind}};
    for (const auto& [key, detail] : event.details) {
      std::visit([&json, &name = key](const auto& value) { json[name] = value; }, detail);
    }
    all.push_back(std::move(json));
  }
  return all;
}

// Inside a label's quotes.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

class MetricsText {
 public:
  explicit MetricsText(std::string_view job) : job_(Escaped(job)) {}

  void Gauge(std::string_view name, std::string_view help, double value) {
    Head(name, help);
    Line(name, "", value);
  }
  void Head(std::string_view name, std::string_view help) {
    text_ += fmt::format("# HELP dovetail_{0} {1}\n# TYPE dovetail_{0} gauge\n", name, help);
  }
  void Line(std::string_view name, std::string_view labels, double value) {
    const std::string number = std::isnan(value) ? "NaN" : fmt::format("{}", value);
    text_ += fmt::format("dovetail_{}{{job=\"{}\"{}}} {}\n", name, job_, labels, number);
  }
  std::string Take() { return std::move(text_); }

 private:
  const std::string job_;
  std::string text_;
};

void AddEvaluation(const LossMetrics& valid, MetricsText& text) {
  using Field = std::optional<double> Metrics::*;
  const std::pair<const char*, Field> fields[] = {{"valid_auc", &Metrics::auc},
                                                  {"valid_logloss", &Metrics::logloss},
                                                  {"valid_accuracy", &Metrics::accuracy}};
  for (const auto& [name, field] : fields) {
    text.Head(name, "Of the last evaluation.");
    for (const Metrics& of : valid) {
      const std::string label =
          valid.size() == 1 ? "" : fmt::format(",loss=\"{}\"", Escaped(of.loss));
      text.Line(name, label, (of.*field).value_or(std::nan("")));
    }
  }
}

void AddTables(const JobStatus& s, MetricsText& text) {
  using TableField = uint64_t JobResult::Table::*;
  const std::tuple<const char*, const char*, TableField> table_fields[] = {
      {"table_rows", "Rows of the table.", &JobResult::Table::rows},
      {"table_rows_in_memory", "Rows in memory.", &JobResult::Table::rows_in_memory},
      {"table_rows_on_disk", "Rows on disk.", &JobResult::Table::rows_on_disk},
      {"table_bytes", "Keys, values, optimizer state.", &JobResult::Table::bytes},
      {"table_pushes_refused_total", "Pushes dropped by admission.",
       &JobResult::Table::pushes_refused},
      {"table_rows_expired_total", "Rows that expired.", &JobResult::Table::rows_expired},
      {"table_rows_touched_total", "Keys in pulls.", &JobResult::Table::rows_touched},
      {"table_rows_fetched_total", "Rows read from disk.", &JobResult::Table::rows_fetched},
      {"table_rows_written_total", "Rows written to disk.", &JobResult::Table::rows_written},
  };
  for (const auto& [name, help, field] : table_fields) {
    text.Head(name, help);
    for (const auto& [table, its] : s.tables) {
      text.Line(name, fmt::format(",table=\"{}\"", Escaped(table)),
                static_cast<double>(its.*field));
    }
  }
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
                     {"samples_per_second", s.samples_per_second},
                     {"loss", s.loss},
                     {"seconds_left", s.seconds_left},
                     {"rate_scale", s.rate_scale},
                     {"places", s.places},
                     {"checkpoint", s.checkpoint},
                     {"malformed", s.malformed},
                     {"processes", std::move(processes)},
                     {"tables", TablesJson(s)},
                     {"history", HistoryJson(s)},
                     {"events", EventsJson(s)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string StatusMetrics(const JobStatus& s) {
  MetricsText text(s.job);
  text.Gauge("step", "Steps done.", static_cast<double>(s.step));
  text.Gauge("steps", "Steps of the whole job.", static_cast<double>(s.steps));
  text.Gauge("epoch", "The epoch under way, from 1.", static_cast<double>(s.epoch));
  text.Gauge("samples_total", "Samples trained.", static_cast<double>(s.samples));
  text.Gauge("samples_per_second", "Of all workers.", s.samples_per_second);
  text.Gauge("loss", "Of a recent step.", s.loss);
  text.Gauge("rate_scale", "Factor on the learning rate.", s.rate_scale);
  text.Gauge("malformed_messages_total", "Messages refused.", static_cast<double>(s.malformed));
  if (!s.history.empty()) {
    AddEvaluation(s.history.back().valid, text);
  }
  using Field = double (*)(const JobStatus::Process&);
  const std::tuple<const char*, const char*, Field> fields[] = {
      {"process_heartbeat_age_seconds", "Since the last sign of life.",
       [](const auto& p) { return p.heartbeat_age; }},
      {"process_cpu_seconds", "CPU time.", [](const auto& p) { return p.cpu_seconds; }},
      {"process_peak_rss_bytes", "Most resident memory.",
       [](const auto& p) { return static_cast<double>(p.peak_rss_bytes); }},
      {"process_sent_bytes", "Put on the network.",
       [](const auto& p) { return static_cast<double>(p.bytes_sent); }},
      {"process_received_bytes", "From the network.",
       [](const auto& p) { return static_cast<double>(p.bytes_received); }},
  };
  for (const auto& [name, help, field] : fields) {
    text.Head(name, help);
    for (const JobStatus::Process& p : s.processes) {
      text.Line(name, fmt::format(",role=\"{}\",id=\"{}\"", p.role, p.id), field(p));
    }
  }
  AddTables(s, text);
  return text.Take();
}

}  // namespace dt::scheduler
