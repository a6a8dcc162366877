#!/usr/bin/env python3
"""Goal: the status page and the report page say what they should and fit their window, narrow and wide, light
and dark. Method: a browser without a window renders made-up jobs; what it shows is read back, and a picture
of each page is kept for a person to look at.

    look_test.py PAGE [FOLDER]    PAGE: the page.html that the build made. Exit 77: there is no chromium.
"""
import html
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import fixtures

WIDTHS = {390: 3600, 1280: 2400}  # Width of the page: height of the picture.
SCHEMES = {"light": 1, "dark": 0}
# Chromium's window is never narrower than 500 pixels, so the page is in a frame. The script around
# it waits for the first answers, moves the pointer to the first chart, and reports what the page
# shows.
FRAME = """<!doctype html><style>body {{ margin: 0; }} iframe {{ border: 0; display: block; }}</style>
<iframe id="frame" src="/" width="{width}" height="{height}"></iframe><pre id="seen" hidden></pre>
<script>
setTimeout(() => {{
  const page = frame.contentDocument, root = page.documentElement;
  const seen = {{ text: page.body.innerText,
    overflow: root.scrollWidth - frame.contentWindow.innerWidth, height: Math.ceil(page.body.getBoundingClientRect().bottom),
    hacked: page.body.dataset.hacked ?? '',
    cut: [...page.querySelectorAll('svg text')].filter(t => {{
      const [inner, outer] = [t.getBoundingClientRect(), t.ownerSVGElement.getBoundingClientRect()];
      return inner.left < outer.left - 1 || inner.right > outer.right + 1; }}).map(t => t.textContent) }};
  const svg = page.querySelector('figure svg');
  if (svg) {{
    const room = svg.getBoundingClientRect();
    svg.dispatchEvent(new PointerEvent('pointermove', {{ clientX: room.left + room.width * 0.7 }}));
    seen.tip = page.querySelector('.tip').innerText;
  }}
  document.getElementById('seen').textContent = JSON.stringify(seen);
}}, {wait});
</script>"""


class Site:
    """Serves a page, its frame, and to a live page its status; `answers` times, then nothing."""

    def __init__(self):
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                body = site.body_of(self.path)
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write((body or "").encode())

            def log_message(self, *_):
                pass

        self.page, self.frame, self.status, self.answers = "", "", None, 0
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def body_of(self, path):
        if path == "/status":
            self.answers -= 1
            return self.status if self.answers >= 0 else None
        return {"/": self.page, "/frame": self.frame, "/plan": "a plan"}.get(path)


def render(browser, site, picture, width, scheme):
    """What the page shows, as the script in FRAME tells it."""
    height = WIDTHS[width]
    site.frame = FRAME.format(width=width, height=height, wait=2500)
    run = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=6000",
         f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", f"--window-size={width},{height}",
         f"--screenshot={picture}", "--dump-dom", f"{site.url}/frame"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120, check=True, encoding="utf-8")
    return json.loads(html.unescape(re.search(r'<pre id="seen"[^>]*>(.*?)</pre>', run.stdout, re.DOTALL)[1]))


# For each case: whether it is live, its job, the number of answers, texts that must be shown and
# texts that must not.
ALWAYS_ABSENT = ["NaN", "undefined", "null", "[object", "–"]
LOST = "worker 4 has not been heard of for 3.1 s"
HINT = "go on with: dovetail launch configs/frappe_deepfm.yaml --resume auto"
CASES = [
    ("status", "gathering", 99, ["gathering", "Server 1 joined from ps-a.cluster.internal."],
     ["epoch", "Learning", "time left", "training loss", "Infinity"]),
    ("status", "one running", 99,
     ["epoch 5 of 10", "step 2,137 of 4,300", "time left", "training loss", "validation AUC", "samples/s",
      "learning rate", "41 nodes on cpu", "2 tables on servers", "Server 2 is back after 2.31 s.",
      "The checkpoint of step 1,000 is complete", "metrics for Prometheus", "status as JSON", "plan"],
     ["click:", "timeline of steps", '{"', "What happened", "Shards"]),
    ("status", "two running", 99, ["click: loss", "rating: loss", "click: AUC", "click: GAUC", "click: hit rate", "rating: RMSE"],
     ["rating: AUC", "click: RMSE"]),
    ("status", "copying", 99,
     ["32 shards, 2 copies each; version 41 of the map.", "12 of 32 shards have 1 of 2 members.",
      "14 shards to copy, about 120 MiB, 12.5 MiB/s, about 9.6 s left.", "was killed by signal 9.", "12,000", "40,000",
      "waits"], []),
    ("status", "one running", 1, ["The scheduler has not answered since", "step 2,137 of 4,300"],
     ["metrics for Prometheus"]),
    ("status", "hostile", 99, ["onerror"], []),
    ("status", "one failed", 99, [LOST, HINT, "The job has ended, at", "Worker 4 was lost."],
     ["metrics for Prometheus", "time left"]),
    ("status", "two finished", 99, ["The job has ended, at", "completed"], ["metrics for Prometheus", "time left"]),
    ("report", "one finished",
     0, ["test AUC", "best possible AUC", "0.81230", "10 epochs", "4,300 steps", "9 (best)", "77aa01c9e2f4b360",
         "Training stopped early after step 4,300", "c2b7704e19d05a3f"], ["What happened", "click"]),
    ("report", "two finished", 0, ["click: loss", "rating: loss", "click: AUC"], ["best possible", "rating: AUC"]),
    ("report", "two failed", 0, ["failed", LOST, HINT, "3 epochs", "Worker 4 was lost."], ["test AUC", "best epoch"]),
    ("report", "failed at once", 0, ["failed", "nothing was trained", LOST, HINT], ["Learning", "Evaluations", "Tables", "training loss"]),
    ("report", "blown up", 0, ["logarithmic", "1,000"], []),
    ("report", "many epochs", 0, ["\n100\t4,300\t", "\n1\t43\t"], []),
    ("report", "old", 0, ["click: loss", "rating: loss", "training", "validation"], ["samples/s, "]),
]


def problems_with(seen, texts, absent):
    text = seen["text"]
    found = [f'does not show "{t}"' for t in texts if t not in text]
    found += [f'shows "{t}"' for t in absent + ALWAYS_ABSENT if t in text]
    if seen["overflow"] > 0:
        found.append(f"is {seen['overflow']} pixels wider than its window")
    if seen["cut"]:
        found.append(f"cuts off the labels {seen['cut']}")
    if "tip" in seen and not re.fullmatch(r"training [\d,.]+, .*\nvalidation [\d,.]+, epoch \d+, step [\d,]+", seen["tip"]):
        found.append(f'says under the pointer "{seen["tip"]}"')
    if seen["hacked"]:
        found.append("ran a script that a text of the job holds")
    return found


def main():
    page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    browser = shutil.which("chromium")
    if browser is None:
        print("look: there is no chromium here, so nothing was rendered (scripts/setup.sh --full installs it)")
        return 77
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp(prefix="dovetail-look-"))
    folder.mkdir(parents=True, exist_ok=True)
    site, failures = Site(), 0
    for kind, name, answers, texts, absent in CASES:
        live = kind == "status"
        job = json.dumps((fixtures.LIVE if live else fixtures.ENDED)[name])
        site.page, site.status = page.replace("%RESULT%", "null" if live else job.replace("<", "\\u003c")), job
        for width in WIDTHS:
            for scheme in SCHEMES:
                site.answers = answers
                silent = "_silent" if answers == 1 else ""
                picture = folder / f"{kind}_{name.replace(' ', '_')}{silent}_{width}_{scheme}.png"
                seen = render(browser, site, picture, width, scheme)
                found = problems_with(seen, texts, absent)
                failures += len(found)
                print("\n".join([f"{picture.name}: {seen['height']} pixels high"] + [f"    {p}" for p in found]))
                if found:
                    print(seen["text"])
    print(f"look: {failures} problems; the pictures are in {folder}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
