#!/usr/bin/env python3
"""What overlap gains: the same job with parallel.overlap on and off, in turns.

    test/bench/overlap.py BUILD [--runs 3] [--steps 150] [--svg FILE] [CASE …]

BUILD is a build folder with dovetail. A case is a placement and a staleness: cpu-0, cpu-4, gpu-0, gpu-4, or gpu-0x4
(the batch in 4 slices). cpu: a DLRM on two workers and two servers; gpu: the same with its perceptrons on the emulated
accelerator of one worker, beside one server. The accelerator occupies its stream by a timer, so processes on few
processors show what a real one would.

Prints for each case the medians of step time, the ratio off / on of the pairs of runs, and the share of the traced
steps (of the first worker) in which the processor, the accelerator and both were idle, from observe.trace. With
--svg draws a few steps of the last case, on above off.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# The perceptrons take about 5 ms per step on one core, and 13 ms on this accelerator.
SPEED = {"flops": "6.0e10", "link_bandwidth": "2GiB"}
BATCH = 2048
WARM_UP = 30  # Steps that are not measured.
TRACKS = ["train", "reader", "pull", "push", "exchange", "cpu", "gpu", "copy to device", "copy to host"]
COLORS = {"train": "#b0b0b0", "reader": "#8c6bb1", "pull": "#41ab5d", "push": "#238b45", "exchange": "#969696",
          "cpu": "#2171b5", "gpu": "#e6550d", "copy to device": "#fdae6b", "copy to host": "#fdd0a2"}


def settings_of(case, overlap, steps):
    where, rest = case.split("-")
    staleness, _, slices = rest.partition("x")
    chosen = {"parallel.overlap": "true" if overlap else "false",
              "train.staleness": staleness,
              "observe.trace": f"{WARM_UP}-{steps - 20}",
              "observe.http": "off"}
    if slices:
        chosen["train.slices"] = slices
    if where == "cpu":
        chosen |= {"cluster.devices": "cpu", "cluster.workers": "2", "cluster.servers": "2"}
    else:
        chosen |= {"cluster.devices": "emulated", "cluster.workers": "1", "cluster.servers": "1"}
        chosen |= {f"cluster.emulated.{key}": value for key, value in SPEED.items()}
    return chosen


def merged(spans):
    out = []
    for begin, end in sorted(spans):
        if out and begin <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        elif end > begin:
            out.append([begin, end])
    return out


def both(a, b):
    out, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        begin, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if begin < end:
            out.append([begin, end])
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return out


def length(spans):
    return sum(end - begin for begin, end in spans)


class Trace:
    """The first worker's timeline: spans by track, in microseconds."""

    def __init__(self, path):
        events = json.loads(path.read_text())["traceEvents"]
        names = {e["tid"]: e["args"]["name"].rstrip(" 0123456789") for e in events if e["name"] == "thread_name"}
        self.spans = {track: [] for track in TRACKS}
        self.steps = []
        for event in events:
            if event["ph"] != "X":
                continue
            span = [event["ts"], event["ts"] + event["dur"]]
            if event.get("cat") == "step":
                self.steps.append(span)
            elif event.get("cat") != "wait":
                self.spans[names[event["tid"]]].append(span)
        self.steps.sort()
        self.wall = merged(self.steps)

    def step_ms(self):
        """From the begin of one step to that of the next."""
        begins = [begin for begin, _ in self.steps]
        return statistics.median(b - a for a, b in zip(begins, begins[1:])) / 1000

    def idle(self, tracks):
        busy = merged([span for track in tracks for span in self.spans[track]])
        return 1 - length(both(busy, self.wall)) / length(self.wall)


def run(dovetail, data, case, overlap, steps):
    with tempfile.TemporaryDirectory() as folder:
        command = [dovetail, "launch", str(HERE / "overlap.yaml"), "--result", "result.json", "--no-progress",
                   "--resume", "never"]
        for key, value in settings_of(case, overlap, steps).items():
            command += ["--set", f"{key}={value}"]
        done = subprocess.run(command, cwd=folder, env={**os.environ, "OVERLAP_DATA": data}, capture_output=True,
                              text=True, timeout=300, check=False)
        if done.returncode != 0:
            sys.exit(f"{case}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        traces = sorted(pathlib.Path(folder, "runs/overlap/trace").glob("worker-*.json"))
        result = json.loads(pathlib.Path(folder, "result.json").read_text())
        return Trace(traces[0]), result["checksum"]


def draw(path, case, traces):
    """Three steps from the middle of each trace, one panel above the other, on one scale."""
    picked = []
    for name, trace in traces:
        first = len(trace.steps) // 2
        picked.append((name, trace, trace.steps[first][0], trace.steps[first + 3][0]))
    scale = 900 / max(end - begin for _, _, begin, end in picked)
    row, left, top = 18, 120, 30
    tracks = [t for t in TRACKS if t != "train" and any(trace.spans[t] for _, trace, _, _ in picked)]
    panel = top + row * len(tracks) + 25
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="1050" height="{panel * len(picked) + 10}" '
           'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>']
    for number, (name, trace, begin, end) in enumerate(picked):
        y = number * panel + 20
        out.append(f'<text x="{left}" y="{y}">{case}, overlap {name}: three steps, {(end - begin) / 1000:.1f} ms</text>')
        for line, track in enumerate(tracks):
            at = y + top - 20 + row * line
            out.append(f'<text x="{left - 8}" y="{at + 12}" text-anchor="end">{track}</text>')
            out.append(f'<line x1="{left}" x2="{left + (end - begin) * scale:.1f}" y1="{at + row - 2}" '
                       f'y2="{at + row - 2}" stroke="#dddddd"/>')
            for a, b in both(merged(trace.spans[track]), [[begin, end]]):
                out.append(f'<rect x="{left + (a - begin) * scale:.1f}" y="{at}" '
                           f'width="{max(0.4, (b - a) * scale):.1f}" height="{row - 4}" fill="{COLORS[track]}"/>')
        for a, _ in trace.steps:
            if begin <= a <= end:
                x = left + (a - begin) * scale
                out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y + 6}" y2="{y + top - 20 + row * len(tracks)}" '
                           'stroke="black" stroke-dasharray="3,3"/>')
    out.append("</svg>")
    pathlib.Path(path).write_text("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("cases", nargs="*", metavar="CASE", default=["cpu-0", "cpu-4", "gpu-0", "gpu-0x4", "gpu-4"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--svg")
    options = parser.parse_args()
    dovetail = str(pathlib.Path(options.build, "dovetail").resolve())
    print("| case | step, on | step, off | off / on | idle on: processor, accelerator, both | idle off |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as data:
        # 80 % of the generated samples are for training.
        rows = options.steps * BATCH * 10 // 8 + BATCH
        subprocess.run([dovetail, "data", "generate", "--rows", str(rows), "--seed", "1", "--out", data], check=True,
                       stdout=subprocess.DEVNULL)
        for case in options.cases:
            pairs = []
            for _ in range(options.runs):
                on, sums_on = run(dovetail, data, case, True, options.steps)
                off, sums_off = run(dovetail, data, case, False, options.steps)
                if case.split("-")[1].startswith("0") and sums_on != sums_off:
                    sys.exit(f"{case}: parameters differ with and without overlap")
                pairs.append((on, off))
            shares = []
            for number in (0, 1):
                idle = [statistics.median(pair[number].idle(tracks) for pair in pairs)
                        for tracks in (["cpu"], ["gpu"], ["cpu", "gpu"])]
                shares.append(" ".join(f"{100 * share:.0f} %" for share in idle))
            ratio = statistics.median(off.step_ms() / on.step_ms() for on, off in pairs)
            times = [statistics.median(pair[number].step_ms() for pair in pairs) for number in (0, 1)]
            print(f"| {case} | {times[0]:.1f} ms | {times[1]:.1f} ms | {ratio:.2f} | {shares[0]} | {shares[1]} |",
                  flush=True)
            if options.svg and case == options.cases[-1]:
                draw(options.svg, case, [("on", pairs[0][0]), ("off", pairs[0][1])])


if __name__ == "__main__":
    main()
