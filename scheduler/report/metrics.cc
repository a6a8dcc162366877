// Prometheus' text format, following its rules for names (`promtool check metrics`).
#include <cmath>

#include <fmt/format.h>

#include "scheduler/report/status.h"

namespace dt::scheduler {
namespace {

// Escapes text for the quotes of a label.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

std::string Label(std::string_view name, std::string_view value) {
  return fmt::format("{}=\"{}\"", name, Escaped(value));
}

class MetricsText {
 public:
  void Gauge(std::string_view name, std::string_view help) { Begin(name, help, "gauge"); }
  void Gauge(std::string_view name, std::string_view help, std::optional<double> value) {
    Gauge(name, help);
    Line("", value);
  }
  // REQUIRES: the name ends in _total, as the names of all counters do.
  void Counter(std::string_view name, std::string_view help) { Begin(name, help, "counter"); }
  void Counter(std::string_view name, std::string_view help, uint64_t value) {
    Counter(name, help);
    Line("", static_cast<double>(value));
  }
  // Adds a value to the metric that was begun last. A value that is unknown or not finite is left
  // out.
  void Line(std::string_view labels, std::optional<double> value) {
    if (!value.has_value() || !std::isfinite(*value)) return;
    text_ += std::exchange(head_, "") + name_;
    if (!labels.empty()) text_ += fmt::format("{{{}}}", labels);
    text_ += fmt::format(" {}\n", *value);
  }
  std::string Take() { return std::move(text_); }

 private:
  void Begin(std::string_view name, std::string_view help, std::string_view type) {
    name_ = fmt::format("dovetail_{}", name);
    head_ = fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name_, help, type);
  }

  std::string name_, head_;  // `head_` is written before the first value.
  std::string text_;
};

void AddProgress(const JobStatus& s, MetricsText& text) {
  text.Gauge("job_info", "The job's name, as a label.");
  text.Line(Label("job_name", s.job), 1);
  text.Gauge("step", "Steps done, also by runs before a resumption.", static_cast<double>(s.step));
  text.Gauge("steps", "Steps of the whole job.", static_cast<double>(s.steps));
  text.Gauge("epoch", "The epoch under way, from 1; 0 before training.",
             static_cast<double>(s.epoch));
  text.Counter("samples_total", "Samples trained.", s.samples);
  text.Gauge("samples_per_second", "Samples trained per second by all workers, of late.",
             s.samples_per_second);
  text.Gauge("train_loss", "Mean of a loss over the epoch so far.");
  for (const LossMean& of : s.train) text.Line(Label("loss", of.loss), of.mean);
  text.Gauge("learning_rate", "The optimizer's rate in the steps now.", s.learning_rate);
  text.Gauge("rate_scale", "Factor of the schedule on the learning rate.", double{s.lr_scale});
  text.Gauge("last_step_timestamp_seconds", "When steps were last completed.", s.last_step_time);
  text.Gauge("last_checkpoint_timestamp_seconds", "When a checkpoint was last completed.",
             s.last_checkpoint_time);
  text.Counter("malformed_messages_total", "Messages refused because they were malformed.",
               s.malformed);
  text.Gauge("scheduler_longest_turn_seconds",
             "Longest time between two turns of the scheduler's loop, of late.", s.longest_turn);
}

void AddEvaluation(const LossMetrics& valid, MetricsText& text) {
  for (const MetricInfo& metric : AllMetrics()) {
    text.Gauge(fmt::format("valid_{}", metric.name),
               fmt::format("In the last evaluation: {}.", metric.meaning));
    for (const Metrics& of : valid) text.Line(Label("loss", of.loss), of.*metric.value);
  }
}

void AddProcesses(const JobStatus& s, MetricsText& text) {
  using Process = JobStatus::Process;
  const auto each = [&](double (*field)(const Process&)) {
    for (const Process& p : s.processes) {
      text.Line(Label("role", p.role) + fmt::format(",id=\"{}\"", p.id), field(p));
    }
  };
  text.Gauge("process_heartbeat_age_seconds", "Time since the last sign of life.");
  each([](const Process& p) { return p.heartbeat_age; });
  text.Counter("process_cpu_seconds_total", "CPU time used.");
  each([](const Process& p) { return p.cpu_seconds; });
  text.Gauge("process_peak_rss_bytes", "Most memory that was resident.");
  each([](const Process& p) { return static_cast<double>(p.peak_rss_bytes); });
  text.Counter("process_sent_bytes_total", "Bytes sent to other processes of the job.");
  each([](const Process& p) { return static_cast<double>(p.bytes_sent); });
  text.Counter("process_received_bytes_total", "Bytes received from other processes of the job.");
  each([](const Process& p) { return static_cast<double>(p.bytes_received); });
}

void AddShards(const JobStatus& s, MetricsText& text) {
  using Process = JobStatus::Process;
  if (!s.shards.has_value()) return;
  const JobStatus::Shards& shards = *s.shards;
  const auto each = [&](const auto& field, std::string_view role = "") {
    for (const Process& p : s.processes) {
      if (p.role == "worker") continue;
      const std::string label = fmt::format("server=\"{}\"", p.id);
      text.Line(role.empty() ? label : label + "," + Label("role", role),
                static_cast<double>(p.*field));
    }
  };
  text.Gauge("shard_map_version", "Version of the map of shards.",
             static_cast<double>(shards.map_version));
  text.Gauge("shards",
             "Shards of a server: those of whose chains it is a member, the head, the "
             "tail, and those that are copied to it.");
  each(&Process::shards, "member");
  each(&Process::heads, "head");
  each(&Process::tails, "tail");
  each(&Process::syncing, "syncing");
  text.Gauge("shards_short", "Shards with fewer copies than the job asks for.",
             shards.count_short());
  text.Gauge("shard_copies_left", "Shards to be copied, those under way included.",
             shards.copies_left);
  text.Gauge("shard_copies_left_bytes", "Size of the shards to be copied, about.",
             static_cast<double>(shards.bytes_left));
  text.Counter("shard_copy_bytes_total", "Bytes of shards that were copied from a server.");
  each(&Process::copied_bytes);
  text.Gauge("chain_kept_bytes", "Records in memory until other members have acknowledged them.");
  each(&Process::kept_bytes);
  text.Gauge("server_draining", "1 for a server that gives its shards away.");
  each(&Process::draining);
  text.Counter("servers_lost_total", "Servers without which the job went on.", shards.lost.size());
}

void AddTables(const JobStatus& s, MetricsText& text) {
  const auto each = [&](uint64_t JobResult::Table::*field) {
    for (const auto& [name, table] : s.tables) {
      text.Line(Label("table", name), static_cast<double>(table.*field));
    }
  };
  text.Gauge("table_rows", "Rows of the table.");
  each(&JobResult::Table::rows);
  text.Gauge("table_rows_in_memory", "Rows of the table in memory.");
  each(&JobResult::Table::rows_in_memory);
  text.Gauge("table_rows_on_disk", "Rows of the table on disk.");
  each(&JobResult::Table::rows_on_disk);
  text.Gauge("table_bytes", "Size of keys, values and optimizer state.");
  each(&JobResult::Table::bytes);
  text.Counter("table_pushes_refused_total", "Pushes dropped by admission.");
  each(&JobResult::Table::pushes_refused);
  text.Counter("table_rows_expired_total", "Rows that expired.");
  each(&JobResult::Table::rows_expired);
  text.Counter("table_rows_touched_total", "Keys in pulls.");
  each(&JobResult::Table::rows_touched);
  text.Counter("table_rows_fetched_total", "Rows read from disk.");
  each(&JobResult::Table::rows_fetched);
  text.Counter("table_rows_written_total", "Rows written to disk.");
  each(&JobResult::Table::rows_written);
}

}  // namespace

std::string StatusMetrics(const JobStatus& s) {
  MetricsText text;
  AddProgress(s, text);
  if (!s.history.empty()) AddEvaluation(s.history.back().valid, text);
  AddProcesses(s, text);
  AddShards(s, text);
  AddTables(s, text);
  return text.Take();
}

}  // namespace dt::scheduler
