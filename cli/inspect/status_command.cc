// `dovetail status`: shows the status of a running scheduler.
#include <algorithm>
#include <cstdlib>

#include <fmt/ranges.h>

#include "cli/commands.h"
#include "cli/inspect/running_job.h"
#include "cli/outcome.h"
#include "common/base/text.h"
#include "common/config/load_job.h"
#include "common/control/control_link.h"
#include "common/control/key_files.h"
#include "common/metrics/metrics.h"
#include "common/storage/json_file.h"

namespace dt::cli {
namespace {

std::string BytesAt(const Json& object, std::string_view key) {
  return BytesText(CountOf(object, key));
}

void PrintAccelerators(const Json& status) {
  for (const Json& p : MemberOf(status, "processes")) {
    const Json& device = MemberOf(p, "accelerator");
    if (!device.is_object()) continue;
    Print("  {} {:.0f} has an accelerator: {} ({}, {})\n", TextOf(p, "role", "?"),
          NumberOf(p, "id"), TextOf(device, "name", "?"), TextOf(device, "kind", "?"),
          BytesAt(device, "memory_bytes"));
  }
}

// "loss 0.55100", or "loss click 0.55100, rating 1.25000".
std::string LossText(const Json& train) {
  LossMeans means;
  for (const auto& [key, value] : train.items()) {
    means.push_back({key, value.is_object() ? NumberOf(value, "logloss") : NumberOf(train, key)});
  }
  return "loss " + SummaryOf(means);
}

// Speed and quality of the training as text; empty before the first values are known.
std::string FiguresOf(const Json& status) {
  std::vector<std::string> known;
  const auto has = [&](std::string_view key) { return MemberOf(status, key).is_number(); };
  if (has("samples_per_second")) {
    known.push_back(fmt::format("{:.0f} samples/s", NumberOf(status, "samples_per_second")));
  }
  const Json& train = MemberOf(status, "train");
  if (train.is_object() && !train.empty()) known.push_back(LossText(train));
  if (has("seconds_left")) {
    known.push_back(fmt::format("about {:.0f} s left", NumberOf(status, "seconds_left")));
  }
  return fmt::format("{}", fmt::join(known, ", "));
}

// "12 of 32 shards have 1 of 2 members", for each number of members that is too small.
std::string ShortText(const Json& shards) {
  std::vector<std::string> parts;
  for (const auto& [members, count] : MemberOf(shards, "by_members").items()) {
    if (!count.is_number() || std::atof(members.c_str()) >= NumberOf(shards, "replicas")) continue;
    parts.push_back(fmt::format("{:.0f} of {:.0f} shards have {} of {:.0f} members",
                                count.get<double>(), NumberOf(shards, "count"), members,
                                NumberOf(shards, "replicas")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void PrintCopies(const Json& shards) {
  constexpr int kMost = 8;
  int shown = 0;
  for (const Json& copy : MemberOf(shards, "copies")) {
    if (++shown > kMost) continue;
    Print("  copying shard {:.0f} from server {:.0f} to server {:.0f}: ", NumberOf(copy, "shard"),
          NumberOf(copy, "from"), NumberOf(copy, "to"));
    if (NumberOf(copy, "rows_of_shard") == 0 && NumberOf(copy, "rows") == 0) {
      Print("waits for its turn\n");
    } else {
      Print("{:.0f} of {:.0f} rows, {}\n",
            std::min(NumberOf(copy, "rows"), NumberOf(copy, "rows_of_shard")),
            NumberOf(copy, "rows_of_shard"), BytesAt(copy, "bytes"));
    }
  }
  if (shown > kMost) Print("  and {} more\n", shown - kMost);
  if (NumberOf(shards, "copies_left") == 0) return;
  Print("  shards left to copy: {:.0f}, about {}", NumberOf(shards, "copies_left"),
        BytesAt(shards, "bytes_left"));
  if (MemberOf(shards, "bytes_per_second").is_number()) {
    Print(", {}/s", BytesAt(shards, "bytes_per_second"));
  }
  if (MemberOf(shards, "seconds_left").is_number()) {
    Print(", about {:.0f} s left", NumberOf(shards, "seconds_left"));
  }
  Print("\n");
}

void PrintShards(const Json& status) {
  const Json& shards = MemberOf(status, "shards");
  if (!shards.is_object()) return;
  const std::string are_short = ShortText(shards);
  Print("  {:.0f} shards with {:.0f} cop{} each, version {:.0f} of the map{}{}\n",
        NumberOf(shards, "count"), NumberOf(shards, "replicas"),
        NumberOf(shards, "replicas") == 1 ? "y" : "ies", NumberOf(shards, "map_version"),
        are_short.empty() ? "" : "; ", are_short);
  for (const Json& p : MemberOf(status, "processes")) {
    const Json& draining = MemberOf(p, "draining");
    if (!draining.is_boolean() || !draining.get<bool>()) continue;
    Print("  server {:.0f} drains: {:.0f} shards left\n", NumberOf(p, "id"), NumberOf(p, "shards"));
  }
  PrintCopies(shards);
  for (const Json& p : MemberOf(status, "processes")) {
    const std::string waits = TextOf(p, "waits");
    if (!waits.empty()) Print("  worker {:.0f} waits: {}\n", NumberOf(p, "id"), waits);
  }
  for (const Json& lost : MemberOf(shards, "lost")) {
    if (lost.is_string()) Print("  lost: {}\n", lost.get<std::string>());
  }
}

// Threads that have been at one thing for long.
void PrintThreads(const Json& status) {
  constexpr double kLong = 5;  // Seconds.
  for (const Json& p : MemberOf(status, "processes")) {
    for (const Json& thread : MemberOf(p, "threads")) {
      const double seconds = NumberOf(thread, "seconds");
      if (seconds < kLong) continue;
      Print("  {} {:.0f}, {}: {} for {:.0f} s\n", TextOf(p, "role", "?"), NumberOf(p, "id"),
            TextOf(thread, "name", "?"), TextOf(thread, "doing", "has made no turn"), seconds);
    }
  }
  const double turn = NumberOf(status, "longest_turn");
  if (turn >= 1) Print("  scheduler: its loop stood still for {:.1f} s, of late\n", turn);
}

void PrintStatus(const Json& status) {
  Print("job {}: {}, epoch {:.0f} of {:.0f}, step {:.0f} of {:.0f}\n", TextOf(status, "job", "?"),
        TextOf(status, "phase", "?"), NumberOf(status, "epoch"), NumberOf(status, "epochs"),
        NumberOf(status, "step"), NumberOf(status, "steps"));
  for (const Json& what : MemberOf(status, "recovers")) {
    if (what.is_string()) Print("  {}\n", what.get<std::string>());
  }
  PrintThreads(status);
  const std::string figures = FiguresOf(status);
  if (!figures.empty()) Print("  {}\n", figures);
  const Json& history = MemberOf(status, "history");
  if (history.is_array() && !history.empty()) {
    Print("  valid {} after epoch {:.0f}\n", TextOf(history.back(), "valid_text", "-"),
          NumberOf(history.back(), "epoch"));
  }
  Print("  {:<9} {:>3} {:>8} {:<12} {:>9} {:>6} {:>8} {:>10} {:>10} {:>10} {:>7}\n", "role", "id",
        "pid", "host", "step", "shards", "CPU s", "memory", "sent", "received", "heard");
  for (const Json& p : MemberOf(status, "processes")) {
    Print("  {:<9} {:>3.0f} {:>8.0f} {:<12} {:>9.0f} {:>6.0f} {:>8.1f} {:>10} {:>10} {:>10}",
          TextOf(p, "role", "?"), NumberOf(p, "id"), NumberOf(p, "pid"), TextOf(p, "host", "?"),
          NumberOf(p, "step"), NumberOf(p, "shards"), NumberOf(p, "cpu_seconds"),
          BytesAt(p, "peak_rss_bytes"), BytesAt(p, "bytes_sent"), BytesAt(p, "bytes_received"));
    Print(" {:>5.1f} s\n", NumberOf(p, "heartbeat_age"));
  }
  const std::string places = TextOf(status, "places");
  if (!places.empty()) Print("  the plan has {}\n", places);
  PrintAccelerators(status);
  PrintShards(status);
  const Json& tables = MemberOf(status, "tables");
  if (!tables.is_object() || tables.empty()) return;
  Print("  {:<16} {:>13} {:>13} {:>13} {:>10} {:>15} {:>13} {:>13} {:>13}\n", "table", "rows",
        "in memory", "on disk", "size", "refused pushes", "expired rows", "pulled", "from disk");
  for (const auto& [name, t] : tables.items()) {
    Print("  {:<16} {:>13.0f} {:>13.0f} {:>13.0f} {:>10} {:>15.0f} {:>13.0f} {:>13.0f} {:>13.0f}\n",
          name, NumberOf(t, "rows"), NumberOf(t, "rows_in_memory"), NumberOf(t, "rows_on_disk"),
          BytesAt(t, "bytes"), NumberOf(t, "pushes_refused"), NumberOf(t, "rows_expired"),
          NumberOf(t, "rows_touched"), NumberOf(t, "rows_fetched"));
  }
}

}  // namespace

int RunStatus(const CommandLine& line) {
  const Result<std::string> scheduler = SchedulerOf(line);
  if (!scheduler.ok()) return EndWithError(line, "", scheduler.status());
  const Result<ZmqOptions> sockets = SocketsOf(line);
  if (!sockets.ok()) return EndWithError(line, "", sockets.status());
  const std::unique_ptr<Network> network = MakeZmqNetwork(*sockets);
  const Result<std::string> text = RequestStatus(*network, *scheduler, seconds(5));
  if (!text.ok()) return EndWithError(line, "", text.status());
  const Result<Json> status = ParseJson(*text, *scheduler);
  if (!status.ok() || !status->is_object()) {
    return EndWithError(line, "", Malformed("{} answers, but not as a scheduler does", *scheduler));
  }
  if (line.json) {
    Print("{}\n", PrintableJson(*status));
  } else {
    PrintStatus(*status);
  }
  return 0;
}

}  // namespace dt::cli
