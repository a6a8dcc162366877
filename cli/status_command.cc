// `dovetail status`: asks a running scheduler.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/outcome.h"
#include "common/base/text.h"
#include "common/config/load_job.h"
#include "common/control/control_link.h"
#include "common/control/key_files.h"

namespace dt::cli {
namespace {

Result<std::string> SchedulerOf(const CommandLine& line) {
  if (!line.scheduler.empty()) return line.scheduler;
  if (line.job_path.empty()) return Invalid("status needs JOB.yaml or --scheduler tcp://HOST:PORT");
  DT_TRY(const JobConfig job, LoadJob(line.job_path, {.overrides = line.overrides}));
  const std::string path = job.run_dir + "/run.json";
  const Result<std::string> text = ReadWholeFile(path);
  if (!text.ok()) {
    return WithHint(Unavailable("job {} is not running here: there is no {}", job.job, path),
                    "give --scheduler tcp://HOST:PORT for a job on another machine");
  }
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("scheduler")) return Malformed("{} is damaged", path);
  std::string scheduler = json["scheduler"].get<std::string>();
  if (scheduler.starts_with("inproc:")) {
    return WithHint(
        Unavailable("job {} runs in one process, which only its page can be asked", job.job),
        fmt::format("open {}, or {}status for JSON", json.value("http", "its page"),
                    json.value("http", "")));
  }
  return scheduler;
}

// With the key that was named, else the job's.
Result<ZmqOptions> SocketsOf(const CommandLine& line) {
  JobConfig job;
  if (!line.job_path.empty()) {
    DT_TRY(job, LoadJob(line.job_path, {.overrides = line.overrides}));
  } else if (line.key_path.empty()) {
    return WithHint(Invalid("status --scheduler needs the key of the job"),
                    "give --key FILE, or JOB.yaml beside --scheduler");
  }
  if (!line.key_path.empty()) job.security = {.curve = {.key = line.key_path}};
  return SocketOptionsOf(job, {});
}

// The number at `key`; 0 where there is none or it is not known (null).
double NumberAt(const nlohmann::json& object, const char* key) {
  return object.contains(key) && object[key].is_number() ? object[key].get<double>() : 0.0;
}

std::string BytesAt(const nlohmann::json& object, const char* key) {
  return BytesText(static_cast<uint64_t>(NumberAt(object, key)));
}

void PrintAccelerators(const nlohmann::json& status) {
  for (const auto& p : status.value("processes", nlohmann::json::array())) {
    const auto device = p.value("accelerator", nlohmann::json());
    if (!device.is_object()) continue;
    fmt::print("  {} {:.0f} has an accelerator: {} ({}, {})\n", p.value("role", "?"),
               NumberAt(p, "id"), device.value("name", "?"), device.value("kind", "?"),
               BytesAt(device, "memory_bytes"));
  }
}

void PrintText(const nlohmann::json& status) {
  if (!status.is_object()) return;
  fmt::print("job {}: {}, epoch {:.0f} of {:.0f}, step {:.0f} of {:.0f}\n",
             status.value("job", "?"), status.value("phase", "?"), NumberAt(status, "epoch"),
             NumberAt(status, "epochs"), NumberAt(status, "step"), NumberAt(status, "steps"));
  fmt::print("  {:.0f} samples/s, loss {:.5f}, about {:.0f} s left\n",
             NumberAt(status, "samples_per_second"), NumberAt(status, "loss"),
             NumberAt(status, "seconds_left"));
  const auto history = status.value("history", nlohmann::json::array());
  if (!history.empty()) {
    fmt::print("  valid {} after epoch {:.0f}\n", history.back().value("valid_text", "-"),
               NumberAt(history.back(), "epoch"));
  }
  fmt::print("  {:<9} {:>3} {:>8} {:<12} {:>9} {:>6} {:>8} {:>10} {:>10} {:>10} {:>7}\n", "role",
             "id", "pid", "host", "step", "shards", "CPU s", "memory", "sent", "received", "heard");
  for (const auto& p : status.value("processes", nlohmann::json::array())) {
    fmt::print("  {:<9} {:>3.0f} {:>8.0f} {:<12} {:>9.0f} {:>6.0f} {:>8.1f} {:>10} {:>10} {:>10}",
               p.value("role", "?"), NumberAt(p, "id"), NumberAt(p, "pid"), p.value("host", "?"),
               NumberAt(p, "step"), NumberAt(p, "shards"), NumberAt(p, "cpu_seconds"),
               BytesAt(p, "peak_rss_bytes"), BytesAt(p, "bytes_sent"),
               BytesAt(p, "bytes_received"));
    fmt::print(" {:>5.1f} s\n", NumberAt(p, "heartbeat_age"));
  }
  const std::string places = status.value("places", "");
  if (!places.empty()) fmt::print("  the plan has {}\n", places);
  PrintAccelerators(status);
  const auto tables = status.value("tables", nlohmann::json::object());
  if (tables.empty()) return;
  fmt::print("  {:<16} {:>13} {:>13} {:>13} {:>10} {:>15} {:>13} {:>13} {:>13}\n", "table", "rows",
             "in memory", "on disk", "size", "refused pushes", "expired rows", "pulled",
             "from disk");
  for (const auto& [name, t] : tables.items()) {
    fmt::print(
        "  {:<16} {:>13.0f} {:>13.0f} {:>13.0f} {:>10} {:>15.0f} {:>13.0f} {:>13.0f} {:>13.0f}\n",
        name, NumberAt(t, "rows"), NumberAt(t, "rows_in_memory"), NumberAt(t, "rows_on_disk"),
        BytesAt(t, "bytes"), NumberAt(t, "pushes_refused"), NumberAt(t, "rows_expired"),
        NumberAt(t, "rows_touched"), NumberAt(t, "rows_fetched"));
  }
}

}  // namespace

int RunStatus(const CommandLine& line) {
  const Result<std::string> scheduler = SchedulerOf(line);
  if (!scheduler.ok()) return EndWithError(line, "", scheduler.status());
  const Result<ZmqOptions> sockets = SocketsOf(line);
  if (!sockets.ok()) return EndWithError(line, "", sockets.status());
  const std::unique_ptr<Network> network = MakeZmqNetwork(*sockets);
  const Result<std::string> json = RequestStatus(*network, *scheduler, seconds(5));
  if (!json.ok()) return EndWithError(line, "", json.status());
  if (line.json) {
    std::printf("%s\n", json->c_str());
  } else {
    PrintText(nlohmann::json::parse(*json, nullptr, false));
  }
  return 0;
}

}  // namespace dt::cli
