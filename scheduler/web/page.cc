#include "scheduler/web/status.h"

namespace dt::scheduler {
namespace {

constexpr std::string_view kPage = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Dovetail</title>
<style>
:root { color-scheme: light dark; --line: #8884; --ink: #2a6fdb; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 1rem; }
h1 { font-size: 1.3rem; }
h2 { font-size: 1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
td, th { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid var(--line); }
td:first-child, th:first-child { text-align: left; }
progress { width: 100%; height: .7rem; }
svg { width: 100%; height: 9rem; border: 1px solid var(--line); }
polyline { fill: none; stroke: var(--ink); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
#facts span { margin-right: 1.6rem; white-space: nowrap; }
</style>
</head>
<body>
<h1 id="title">Dovetail</h1>
<progress id="bar" max="1" value="0"></progress>
<p id="facts"></p>
<h2>Validation AUC</h2>
<svg viewBox="0 0 100 100" preserveAspectRatio="none"><polyline id="auc"/></svg>
<h2>Loss</h2>
<svg viewBox="0 0 100 100" preserveAspectRatio="none"><polyline id="loss"/></svg>
<h2>Processes</h2><table id="processes"></table>
<h2>Tables</h2><table id="tables"></table>
<h2>Evaluations</h2><table id="history"></table>
<h2>Events</h2><table id="events"></table>
<script>
const losses = [];
const at = id => document.getElementById(id);
const number = (x, digits) => x === null || x === undefined ? "–" :
  Number(x).toLocaleString("en", {maximumFractionDigits: digits});
const mib = x => number(x / 2 ** 20, 1);

function table(id, head, rows) {
  at(id).replaceChildren();
  [head, ...rows].forEach((row, i) => {
    const tr = at(id).insertRow();
    for (const text of row) {
      const cell = document.createElement(i ? "td" : "th");
      cell.textContent = text;
      tr.append(cell);
    }
  });
}

function curve(id, values) {
  const v = values.filter(x => x !== null);
  const low = Math.min(...v), high = Math.max(...v);
  const x = i => v.length > 1 ? 100 * i / (v.length - 1) : 50;
  const y = value => high > low ? 95 - 90 * (value - low) / (high - low) : 50;
  at(id).setAttribute("points", v.map((value, i) => `${x(i)},${y(value)}`).join(" "));
}

// Of one loss the metrics themselves, of several those of the first.
function first(metrics) {
  return "calibration" in metrics ? metrics : Object.values(metrics)[0];
}

function show(s) {
  at("title").textContent = `${s.job}: ${s.phase}`;
  at("bar").value = s.steps ? s.step / s.steps : 0;
  const facts = {
    "epoch": `${s.epoch}/${s.epochs}`,
    "step": `${number(s.step, 0)}/${number(s.steps, 0)}`,
    "samples/s": number(s.samples_per_second, 0),
    "loss": number(s.loss, 5),
    "rate ×": number(s.rate_scale, 6),
    "seconds left": number(s.seconds_left, 0),
  };
  at("facts").replaceChildren(...Object.entries(facts).map(([key, value]) => {
    const span = document.createElement("span");
    span.textContent = `${key} ${value}`;
    return span;
  }));
  if (s.loss !== null && s.step > 0) losses.push(s.loss);
  if (losses.length > 600) losses.shift();
  curve("loss", losses);
  curve("auc", s.history.map(h => first(h.valid).auc));
  table("processes",
    ["role", "id", "host", "pid", "step", "shards", "cpu s", "rss MiB", "sent MiB", "silent s",
      "accelerator"],
    s.processes.map(p => [p.role, p.id, p.host, p.pid, number(p.step, 0), p.shards,
      number(p.cpu_seconds, 1), mib(p.peak_rss_bytes), mib(p.bytes_sent),
      number(p.heartbeat_age, 1),
      p.accelerator ? `${p.accelerator.name}, ${mib(p.accelerator.memory_bytes)} MiB` : "–"]));
  table("tables",
    ["table", "rows", "in memory", "on disk", "MiB", "refused pushes", "expired rows",
      "pulled", "from disk", "to disk"],
    Object.entries(s.tables).map(([name, t]) => [name, number(t.rows, 0),
      number(t.rows_in_memory, 0), number(t.rows_on_disk, 0), mib(t.bytes),
      number(t.pushes_refused, 0), number(t.rows_expired, 0), number(t.rows_touched, 0),
      number(t.rows_fetched, 0), number(t.rows_written, 0)]));
  table("history",
    ["epoch", "step", "train loss", "valid", "valid logloss", "rate ×"],
    s.history.map(h => [h.epoch, number(h.step, 0), number(h.train_logloss, 5),
      h.valid_text, number(first(h.valid).logloss, 5), number(h.rate_scale, 6)]));
  table("events", ["kind", "t", "what"], s.events.slice(-30).reverse().map(
    ({kind, t, ...rest}) => [kind, number(t, 1), JSON.stringify(rest)]));
}

async function refresh() {
  try {
    show(await (await fetch("status")).json());
  } catch (error) {
    at("title").textContent = "the scheduler does not answer";
  }
  setTimeout(refresh, 1000);
}
refresh();
</script>
</body>
</html>
)html";

}  // namespace

std::string_view StatusPage() { return kPage; }

}  // namespace dt::scheduler
