#!/usr/bin/env python3
"""Trains a table of 2^33 possible keys in a fixed memory, and draws what it used.

    test/bench/terabyte.py BUILD [--samples 90000000] [--memory 8GiB] [--out DIR]

BUILD is a build folder with dovetail and zipf_csv. Writes DIR/terabyte.csv and DIR/terabyte.svg: samples/s,
resident memory of the server, its files on disk (the most in each interval), rows in memory and on disk, and
the share of pulled keys that needed no row from disk, over time. Then starts the job again from its last
checkpoint, and compares the checksums of all rows.

90 million samples take 20 minutes at 75,000 samples/s; a million needs 0.22 GB of disk.
"""
import argparse
import csv
import json
import os
import subprocess
import sys
import threading
import time

from programs import find

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ["seconds", "samples_per_second", "rss_gib", "disk_gib", "rows_in_memory_m", "rows_on_disk_m",
           "hit_rate"]


def disk_bytes(folder):
    seen, total = set(), 0
    for path, _, files in os.walk(folder):
        for name in files:
            try:
                info = os.lstat(os.path.join(path, name))
            except FileNotFoundError:
                continue
            if info.st_ino not in seen:  # Checkpoints share files, so each file counts once.
                seen.add(info.st_ino)
                total += info.st_blocks * 512
    return total


class DiskWatch(threading.Thread):
    """The most that the folder held since the last call of peak()."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder, self.lock, self.ended = folder, threading.Lock(), threading.Event()
        self.most = self.most_ever = 0

    def run(self):
        while not self.ended.wait(0.25):
            now = disk_bytes(self.folder)
            with self.lock:
                self.most = max(self.most, now)
                self.most_ever = max(self.most_ever, now)

    def peak(self):
        with self.lock:
            most, self.most = self.most, 0
        return most


def rss_bytes(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            for line in status:
                if line.startswith("VmRSS"):
                    return int(line.split()[1]) * 1024
    except FileNotFoundError:
        pass
    return 0


def watch(dovetail, job, rows, begun, disk):
    state = {"samples": 0, "at": time.monotonic(), "touched": 0, "fetched": 0}
    while job.poll() is None:
        time.sleep(5)
        got = subprocess.run([dovetail, "status", "--json", JOB], capture_output=True, text=True, timeout=60)
        if got.returncode != 0:
            continue
        status = json.loads(got.stdout)
        now = time.monotonic()
        server = next((p for p in status["processes"] if p["role"] == "server"), None)
        if server is None or status["samples"] == 0:
            continue
        table = status.get("tables", {}).get("key", {})
        rate = (status["samples"] - state["samples"]) / (now - state["at"])
        touched, fetched = table.get("rows_touched", 0), table.get("rows_fetched", 0)
        missed = (fetched - state["fetched"]) / max(touched - state["touched"], 1)
        state = {"samples": status["samples"], "at": now, "touched": touched, "fetched": fetched}
        rows.append([round(now - begun, 1), round(rate), rss_bytes(server["pid"]) / 2**30,
                     disk.peak() / 2**30, table.get("rows_in_memory", 0) / 1e6,
                     table.get("rows_on_disk", 0) / 1e6, 1 - missed])
        print(" ".join(f"{name}={value:.2f}" for name, value in zip(COLUMNS, rows[-1])), flush=True)


def draw(rows, path):
    width, height, left = 720, 130, 60
    parts = []
    for c, name in enumerate(COLUMNS[1:], 1):
        top = (c - 1) * (height + 30) + 20
        most = max(row[c] for row in rows) or 1
        last = rows[-1][0]
        points = " ".join(f"{left + row[0] / last * (width - left):.1f},{top + height - row[c] / most * height:.1f}"
                          for row in rows)
        parts.append(f'<text x="{left}" y="{top - 6}">{name}: up to {most:,.2f}</text>'
                     f'<path d="M{left} {top}V{top + height}H{width}" stroke="#999" fill="none"/>'
                     f'<polyline points="{points}" stroke="#06c" fill="none" stroke-width="1.5"/>')
    total = (len(COLUMNS) - 1) * (height + 30) + 10
    with open(path, "w") as out:
        out.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 20}" height="{total}" '
                  f'font-family="sans-serif" font-size="12">{"".join(parts)}'
                  f'<text x="{left}" y="{total - 2}">over {rows[-1][0] / 60:.0f} minutes</text></svg>\n')


def main():
    global JOB
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--memory", default="8GiB")
    parser.add_argument("--samples", type=int, default=90_000_000)
    parser.add_argument("--out", default=".")
    options = parser.parse_args()
    dovetail, zipf = find(options.build, "dovetail"), find(options.build, "zipf_csv")
    JOB = os.path.join(HERE, "terabyte.yaml")
    os.makedirs(options.out, exist_ok=True)
    os.environ["ZIPF_COMMAND"] = f"{zipf} {options.samples} 8 8589934592 1.05 1"
    command = [dovetail, "launch", JOB, "--set", f"cluster.server.memory={options.memory}", "--set",
               "checkpoint.every=1000000", "--log-level", "warn"]
    begun = time.monotonic()
    rows = []
    disk = DiskWatch("runs/terabyte")
    disk.start()
    job = subprocess.Popen(command + ["--result", "terabyte.json"])
    watch(dovetail, job, rows, begun, disk)
    disk.ended.set()
    if job.returncode != 0 or not rows:
        sys.exit(f"exit code {job.returncode}")
    first = rows[0][0]
    for row in rows:
        row[0] = round(row[0] - first, 1)
    with open(os.path.join(options.out, "terabyte.csv"), "w", newline="") as out:
        csv.writer(out).writerows([COLUMNS] + [[f"{v:.3f}" for v in row] for row in rows])
    draw(rows, os.path.join(options.out, "terabyte.svg"))
    again = subprocess.run(command + ["--resume", "auto", "--result", "resumed.json"], timeout=3600)
    results = [json.load(open(name)) for name in ("terabyte.json", "resumed.json")]
    print(json.dumps(results[0]["tables"]), json.dumps(results[1]["tables"]))
    kept = disk_bytes("runs/terabyte")
    print(f"{results[0]['seconds']:.0f} s of training; disk: {disk.most_ever / 2**30:.1f} GiB at most, "
          f"{kept / 2**30:.1f} in the end ({disk.most_ever / kept:.2f} x)")
    same = results[0]["checksum"] == results[1]["checksum"] and again.returncode == 0
    print("rows after the restart:", "identical" if same else "DIFFERENT", results[1]["checksum"])
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
