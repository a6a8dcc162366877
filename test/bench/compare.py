#!/usr/bin/env python3
"""How fast a job is in several variants: runs them in turns, and compares each with the first.

    compare.py DOVETAIL JOB.yaml VARIANT … [--before PROGRAM] [--runs 3] [--slow-worker SHARE] [-- --set a.b=c …]

A variant is a list of settings: checkpoint.durability=log,checkpoint.log.sync=true; what stands behind -- holds for
all. With --before each variant runs with that program too, such as the last release, which then is the first one.
Runs the job with `dovetail launch` in a temporary folder. With --slow-worker each worker gets a processor of its
own, and the first one is stopped and continued in turns (SIGSTOP, SIGCONT) from the moment it trains, so that it runs
that share of the time. Prints samples per second, the median of the runs' ratios, CPU-seconds of servers and workers,
and whether all rows of all variants are the same.
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

# Seconds for which a job is stopped, and then runs: much less than a lease, more than a few steps.
PERIOD = 0.1


def workers_of(log):
    """Process ids of workers, as `launch` logs them: "launch.started name="worker 0" pid=123"."""
    found = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if "launch.started" not in line or "worker" not in line or "pid=" not in line:
            continue
        found.append(int(line.split("pid=")[1].split()[0]))
    return found


def pin(pids):
    """A processor for each, as far as there are."""
    for number, pid in enumerate(pids):
        for task in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(task), {number % os.cpu_count()})


def slow_down(log, share, done, slowed):
    """Until `done`. A worker is slowed once it says that it has started."""
    while "worker.started" not in log.read_text(encoding="utf-8", errors="replace"):
        if done.wait(0.05):
            return
    pids = workers_of(log)
    pin(pids)
    while not done.is_set():
        try:
            os.kill(pids[0], signal.SIGSTOP)
            slowed.set()
            done.wait(PERIOD * (1 - share))
            os.kill(pids[0], signal.SIGCONT)
        except ProcessLookupError:
            return
        done.wait(PERIOD * share)


def run(options, name, variant):
    """The result file of one run. A variant: a program, settings."""
    program, settings = variant
    with tempfile.TemporaryDirectory() as folder:
        result, log = pathlib.Path(folder, "result.json"), pathlib.Path(folder, "log")
        command = [program, "launch", options.job, "--result", str(result), "--no-progress",
                   "--log-level", "info", *options.extra]
        for setting in settings.split(","):
            command += ["--set", setting]
        done = threading.Event()
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out)
        slower, slowed = None, threading.Event()
        if options.slow_worker is not None:
            slower = threading.Thread(target=slow_down, args=(log, options.slow_worker, done, slowed))
            slower.start()
        try:
            code = process.wait(options.timeout)
        except subprocess.TimeoutExpired:
            process.terminate()
            code = process.wait(30)
        done.set()
        if slower:
            slower.join()
        if code != 0:
            sys.exit(f"{name}: exit code {code}\n" + log.read_text(errors="replace")[-3000:])
        if slower and not slowed.is_set():
            sys.exit(f"{name}: no worker said that it has started, none was slowed")
        return json.loads(result.read_text(encoding="utf-8"))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dovetail")
    parser.add_argument("job")
    parser.add_argument("variants", nargs="+")
    parser.add_argument("--before", metavar="PROGRAM")
    parser.add_argument("--slow-worker", type=float, metavar="SHARE")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=1200, help="seconds a run may take")
    own = sys.argv[1:]
    cut = own.index("--") if "--" in own else len(own)
    options = parser.parse_args(own[:cut])
    options.extra = own[cut + 1:]
    options.dovetail = str(pathlib.Path(options.dovetail).resolve())
    options.job = str(pathlib.Path(options.job).resolve())
    return options


def main():
    options = parse()
    variants = {}
    for settings in options.variants:
        if options.before:
            variants[f"before, {settings}"] = (str(pathlib.Path(options.before).resolve()), settings)
        variants[settings] = (options.dovetail, settings)
    results = {name: [] for name in variants}
    for number in range(options.runs):
        for name, runs in results.items():
            runs.append(run(options, name, variants[name]))
            print(f"run {number + 1}, {name}: {runs[-1]['samples_per_second']:.0f} samples/s", flush=True)
    first = [run["samples_per_second"] for run in next(iter(results.values()))]
    for variant, runs in results.items():
        rates = [run["samples_per_second"] for run in runs]
        ratio = statistics.median(rate / base for rate, base in zip(rates, first))
        cpu = {role: statistics.median(sum(r["cpu_seconds"] for r in run["roles"] if r["role"] == role) for run in runs)
               for role in ("server", "worker")}
        print(f"{variant}: median {statistics.median(rates):.0f} samples/s, {ratio:.2f} of the first; CPU-seconds of "
              f"servers {cpu['server']:.1f}, of workers {cpu['worker']:.1f}")
    checksums = {json.dumps(run["checksum"]) for runs in results.values() for run in runs}
    print("rows after all runs:", "the same" if len(checksums) == 1 else "different")


if __name__ == "__main__":
    main()
