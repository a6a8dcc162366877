#!/usr/bin/env python3
"""How fast a job is when one worker gets half of its processor: staleness 0, 4 and unbounded.

    slow_worker.py DOVETAIL JOB.yaml [--staleness 0,4,unbounded] [--share 0.5] [--runs 3] [-- --set a.b=c …]

Runs the job with `dovetail launch` in a temporary folder, once for each staleness in turn. From the moment all
workers train, the first of them is stopped and continued in turns (SIGSTOP, SIGCONT), so that it runs `share` of the
time; share 1 leaves it alone. Prints the result file's samples per second, runs in turns, and their median.
"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading

PERIOD = 0.1  # Seconds of one stop and one go: far below a lease, above a few steps.


def workers_of(log):
    """Process ids of workers, as `launch` logs them: "launch.started name="worker 0" pid=123"."""
    found = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if "launch.started" not in line or "worker" not in line or "pid=" not in line:
            continue
        found.append(int(line.split("pid=")[1].split()[0]))
    return found


def slow_down(log, share, done):
    """Until `done`. A worker is slowed once it says that it has started."""
    while not done.wait(0.05):
        if log.exists() and log.read_text(encoding="utf-8", errors="replace").count("worker.started"):
            break
    pids = workers_of(log)
    while pids and not done.is_set():
        try:
            os.kill(pids[0], signal.SIGSTOP)
            done.wait(PERIOD * (1 - share))
            os.kill(pids[0], signal.SIGCONT)
        except ProcessLookupError:
            return
        done.wait(PERIOD * share)


def run(arguments, staleness, share, extra):
    with tempfile.TemporaryDirectory() as folder:
        result, log = pathlib.Path(folder, "result.json"), pathlib.Path(folder, "log")
        command = [arguments.dovetail, "launch", arguments.job, "--result", str(result), "--no-progress",
                   "--set", f"train.staleness={staleness}", *extra]
        done = threading.Event()
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out)
        slower = threading.Thread(target=slow_down, args=(log, share, done)) if share < 1 else None
        if slower:
            slower.start()
        try:
            code = process.wait(arguments.timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            code = process.wait(30)
        done.set()
        if slower:
            slower.join()
        if code != 0:
            sys.exit(f"staleness {staleness}: exit {code}\n" + log.read_text(errors="replace")[-3000:])
        return json.loads(result.read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dovetail")
    parser.add_argument("job")
    parser.add_argument("--staleness", default="0,4,unbounded")
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=600)
    own = sys.argv[1:]
    extra = own[own.index("--") + 1:] if "--" in own else []
    arguments = parser.parse_args(own[:own.index("--")] if "--" in own else own)
    arguments.dovetail = str(pathlib.Path(arguments.dovetail).resolve())
    arguments.job = str(pathlib.Path(arguments.job).resolve())
    rates = {}
    for number in range(arguments.runs):
        for staleness in arguments.staleness.split(","):
            rate = run(arguments, staleness, arguments.share, extra)["samples_per_second"]
            rates.setdefault(staleness, []).append(rate)
            print(f"run {number + 1} staleness {staleness}: {rate:.0f} samples/s", flush=True)
    for staleness, all_rates in rates.items():
        print(f"staleness {staleness}: median {statistics.median(all_rates):.0f} samples/s")


if __name__ == "__main__":
    main()
