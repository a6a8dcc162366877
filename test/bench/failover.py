#!/usr/bin/env python3
"""How long two workers stand still when a server of three is killed, or the scheduler is away.

    test/bench/failover.py BUILD [--rows 200000] [--outage 20]

BUILD is a build folder with dovetail. With two copies of each shard, each server is killed by SIGKILL, one after the other; `launch`
starts another in its place. In a second job `launch` stands still and the scheduler is killed. Prints the longest time between two
steps of a worker then, and how long a step usually takes, by the workers' timelines.
"""
import argparse
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

from launched import Job, longest_gap, servers, whole
from programs import find

MODELS = pathlib.Path(__file__).resolve().parents[2] / "configs" / "models"
JOB = """job: failover
seed: 3
data: {format: criteo, train: [data/train.tsv]}
model: {use: MODELS/fm.yaml, with: {ids: [C*], dim: 16}}
train: {batch_size: 8192, epochs: 100000}
cluster: {servers: 3, workers: 2, replicas: 2, lease: 3s, restarts: 100}
observe: {trace: 40-1000000}
"""


def launched(dovetail, folder, name, settings=()):
    job = Job(dovetail, folder, name, settings)
    job.until(whole(3))
    job.until(lambda status: status["step"] > 60)
    return job


def stopped(job):
    job.rest(3)
    job.launch.send_signal(signal.SIGTERM)
    job.launch.wait(timeout=60)
    starts = job.step_starts()
    usual = statistics.median(b - a for steps in starts for a, b in zip(steps, steps[1:]))
    print(f"{job.name}: a step takes {usual * 1000:.0f} ms")
    return starts, usual


def kill_servers(dovetail, folder):
    job, kills = launched(dovetail, folder, "servers"), []
    for server in sorted(servers(job.look()), key=lambda process: process["id"])[:3]:
        kills.append((server["id"], time.monotonic()))
        os.kill(server["pid"], signal.SIGKILL)
        job.rest(3)
        job.until(whole(3))
        job.rest(2)
    starts, usual = stopped(job)
    for server, at in kills:
        gap = longest_gap(starts, at, at + 5)
        print(f"  server {server} is killed: {gap * 1000:.0f} ms between two steps, {gap / usual:.1f} steps")


def scheduler_away(dovetail, folder, seconds):
    # Longer steps: a timeline has room for some two thousand.
    job = launched(dovetail, folder, "scheduler", ["train.batch_size=32768"])
    scheduler = job.run_file()["pid"]
    begin = time.monotonic()
    job.launch.send_signal(signal.SIGSTOP)
    os.kill(scheduler, signal.SIGKILL)
    time.sleep(seconds)
    job.launch.send_signal(signal.SIGCONT)
    end = time.monotonic()
    job.until(lambda status: status["phase"] == "running")
    starts, usual = stopped(job)
    assert starts[0][-1] > end, "the timeline is too short"
    gap = longest_gap(starts, begin, end + 2)
    print(f"  the scheduler is away for {end - begin:.0f} s: {gap * 1000:.0f} ms between two steps, {gap / usual:.1f} steps")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--outage", type=float, default=20)
    options = parser.parse_args()
    dovetail = find(options.build, "dovetail")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "job.yaml").write_text(JOB.replace("MODELS", str(MODELS)))
        subprocess.run([dovetail, "data", "generate", "--rows", str(options.rows), "--out", folder / "data"], check=True,
                       stdout=subprocess.DEVNULL)
        kill_servers(dovetail, folder)
        scheduler_away(dovetail, folder, options.outage)


if __name__ == "__main__":
    main()
