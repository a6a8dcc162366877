#include "scheduler/web/status.h"

namespace dt::scheduler {
namespace {

constexpr std::string_view kPage = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Dovetail</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; --line: #8884; --ink: #2a6fdb; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } td, th { padding: .25rem .6rem; text-align: right;
  border-bottom: 1px solid var(--line); } td:first-child, th:first-child { text-align: left; }
progress { width: 100%; height: .7rem; } svg { width: 100%; height: 9rem; border: 1px solid var(--line); }
polyline { fill: none; stroke: var(--ink); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
#facts span { margin-right: 1.6rem; white-space: nowrap; }
</style></head><body>
<h1 id="title">Dovetail</h1><progress id="bar" max="1" value="0"></progress><p id="facts"></p>
<h2>Validation AUC</h2><svg viewBox="0 0 100 100" preserveAspectRatio="none"><polyline id="auc"/></svg>
<h2>Loss</h2><svg viewBox="0 0 100 100" preserveAspectRatio="none"><polyline id="loss"/></svg>
<h2>Processes</h2><table id="processes"></table>
<h2>Evaluations</h2><table id="history"></table>
<h2>Events</h2><table id="events"></table>
<script>
const losses = [];
const number = (x, digits) => x === null || x === undefined ? "–" : Number(x).toLocaleString("en",
  {maximumFractionDigits: digits});
function table(id, head, rows) {
  const t = document.getElementById(id); t.replaceChildren();
  for (const [i, row] of [head, ...rows].entries()) {
    const tr = t.insertRow();
    for (const cell of row) { const c = document.createElement(i ? "td" : "th"); c.textContent = cell;
      tr.append(c); }
  }
}
function curve(id, values) {
  const v = values.filter(x => x !== null), low = Math.min(...v), high = Math.max(...v);
  document.getElementById(id).setAttribute("points", v.map((x, i) =>
    `${v.length > 1 ? 100 * i / (v.length - 1) : 50},${high > low ? 95 - 90 * (x - low) / (high - low) : 50}`)
    .join(" "));
}
async function refresh() {
  try {
    const s = await (await fetch("status")).json();
    document.getElementById("title").textContent = `${s.job}: ${s.phase}`;
    document.getElementById("bar").value = s.steps ? s.step / s.steps : 0;
    const facts = {epoch: `${s.epoch}/${s.epochs}`, step: `${number(s.step, 0)}/${number(s.steps, 0)}`,
      "samples/s": number(s.samples_per_second, 0), loss: number(s.loss, 5),
      "rate ×": number(s.rate_scale, 6), "seconds left": number(s.seconds_left, 0)};
    const p = document.getElementById("facts"); p.replaceChildren();
    for (const [k, v] of Object.entries(facts)) { const e = document.createElement("span");
      e.textContent = `${k} ${v}`; p.append(e); }
    if (s.loss !== null && s.step > 0) losses.push(s.loss);
    if (losses.length > 600) losses.shift();
    curve("loss", losses); curve("auc", s.history.map(h => h.valid_auc));
    table("processes", ["role", "id", "host", "pid", "step", "shards", "cpu s", "rss MiB", "sent MiB", "silent s"],
      s.processes.map(q => [q.role, q.id, q.host, q.pid, number(q.step, 0), q.shards, number(q.cpu_seconds, 1),
        number(q.peak_rss_bytes / 2 ** 20, 0), number(q.bytes_sent / 2 ** 20, 1), number(q.heartbeat_age, 1)]));
    table("history", ["epoch", "step", "train logloss", "valid AUC", "valid logloss", "rate ×"],
      s.history.map(h => [h.epoch, number(h.step, 0), number(h.train_logloss, 5), number(h.valid_auc, 5),
        number(h.valid_logloss, 5), number(h.rate_scale, 6)]));
    table("events", ["kind", "t", "what"], s.events.slice(-30).reverse().map(({kind, t, ...rest}) =>
      [kind, number(t, 1), JSON.stringify(rest)]));
  } catch (e) { document.getElementById("title").textContent = "the scheduler does not answer"; }
  setTimeout(refresh, 1000);
}
refresh();
</script></body></html>
)html";

}  // namespace

std::string_view StatusPage() { return kPage; }

}  // namespace dt::scheduler
