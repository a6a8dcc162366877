#!/usr/bin/env python3
"""How long a job does no steps when its workers change, when it returns to a checkpoint, and when it makes one.

    test/bench/recovery.py BUILD [--rows 200000]

BUILD is a build folder with dovetail. Prints, by the timeline of a worker that was there all the time, the longest time between two
steps while the workers of a synchronous job become four, then two, and while one of them is killed; by its events and its status,
how long a job without copies takes from the loss of a server to its next step; and what checkpoints cost while it trains.
"""
import argparse
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

from launched import Job, longest_gap, servers
from programs import find

MODELS = pathlib.Path(__file__).resolve().parents[2] / "configs" / "models"
JOB = """job: recovery
seed: 3
data: {format: criteo, train: [data/train.tsv]}
model: {use: MODELS/fm.yaml, with: {ids: [C*], dim: 16}}
train: {batch_size: 8192, epochs: 100000, slices: 4}
cluster: {servers: 2, workers: 1, lease: 2s, restarts: 100}
checkpoint: {every: end, keep: 4}
"""
# Of a table with as many rows as the samples meet.
TABLE = """job: checkpoints
seed: 1
data:
  format: pipe
  command: COMMAND
  shuffle: {window: 0}
  columns: [{name: click, role: label}, {name: c0, type: id}, {name: c1, type: id}, {name: c2, type: id}, {name: c3, type: id},
            {name: c4, type: id}, {name: c5, type: id}, {name: c6, type: id}, {name: c7, type: id}]
model:
  tables: {key: {dim: 32, optimizer: {name: rowwise_adagrad, lr: 0.02}}}
  graph:
    - {name: e, op: lookup, table: key, inputs: [c*]}
    - {name: logit, op: fm, inputs: [e]}
  loss: [{type: binary_cross_entropy, input: logit, label: click}]
train: {batch_size: 4096, epochs: 100000}
cluster: {servers: 2, workers: 2}
checkpoint: {keep: 2}
"""
FM = "op: fm, inputs: [e]"
MLP = "op: mlp, inputs: [e], units: [4096, 4096, 1]"
TRACE = "observe.trace=40-1000000"


def training(status):
    return status["phase"] == "running" and status["step"] > 60


def stopped(job):
    job.rest(2)
    job.launch.send_signal(signal.SIGTERM)
    job.launch.wait(timeout=60)
    starts = job.step_starts()
    return starts, statistics.median(b - a for steps in starts for a, b in zip(steps, steps[1:]))


def busy_workers(count):
    def done(status):
        mine = [p for p in status["processes"] if p["role"] == "worker" and not p["waits"]]
        return len(mine) == count and not status["recovers"]
    return done


def scale(job, workers):
    subprocess.run([job.dovetail, "scale", "workers", str(workers), "job.yaml", *job.flags], cwd=job.folder, check=True,
                   stdout=subprocess.DEVNULL)


def workers_change(dovetail, folder):
    job, changes = Job(dovetail, folder, "workers", [TRACE]), []
    status = job.until(training)
    for workers in (4, 2):
        changes.append((f"to {workers} workers", time.monotonic()))
        scale(job, workers)
        status = job.until(busy_workers(workers))
        changes[-1] += (time.monotonic(),)
        job.rest(1)
    last = max((p for p in status["processes"] if p["role"] == "worker"), key=lambda p: p["id"])
    changes.append(("one of 2 workers is killed", time.monotonic()))
    os.kill(last["pid"], signal.SIGKILL)
    job.rest(1)
    job.until(busy_workers(2))
    changes[-1] += (time.monotonic(),)
    starts, usual = stopped(job)
    print(f"workers change: a step takes {usual * 1000:.0f} ms")
    for what, begin, end in changes:
        gap = longest_gap(starts[:1], begin, end)
        print(f"  {what}: {gap * 1000:.0f} ms between two steps at most; all in {end - begin:.1f} s")


def job_returns(dovetail, folder):
    job = Job(dovetail, folder, "returns", ["checkpoint.every=50"])
    job.until(lambda status: training(status) and status["checkpoint"])
    victim = servers(job.look())[0]
    before = job.look()["seconds"], time.monotonic()
    os.kill(victim["pid"], signal.SIGKILL)
    killed = time.monotonic()
    returned = job.until(lambda status: any(e["kind"] == "returned" for e in status["events"]))
    first = returned["step"]
    job.until(lambda status: status["step"] > first)
    stepped = time.monotonic()
    job.launch.send_signal(signal.SIGTERM)
    job.launch.wait(timeout=60)
    at = {event["kind"]: event["t"] - before[0] - (killed - before[1]) for event in returned["events"]}
    print(f"a server without copies is killed: {stepped - killed:.1f} s to a step that was seen (looked at every 0.25 s)")
    print("  seconds after the kill: " + ", ".join(f"{kind} {at[kind]:.2f}" for kind in ("server_lost", "returns", "started", "returned")))


def new_bytes(folders):
    """Bytes of the last folder's files, and of those that no folder before it has."""
    seen, sizes = set(), (0, 0)
    for folder in folders:
        files = [path.stat() for path in folder.rglob("*") if path.is_file()]
        sizes = sum(f.st_size for f in files), sum(f.st_size for f in files if f.st_ino not in seen)
        seen |= {f.st_ino for f in files}
    return sizes


def checkpoint_cost(dovetail, folder, settings, what, steps=400):
    """Two jobs of the same table, one after the other: without checkpoints, and with one every so many steps."""
    rates = []
    for every in ("end", str(steps)):
        job = Job(dovetail, folder, f"cost-{len(settings)}-{every}", [f"checkpoint.every={every}", TRACE, *settings])
        job.until(lambda status: status["epoch"] > 1 or status["step"] > 60 and steps < 60)
        status, begin = job.look(), time.monotonic()
        job.rest(25)
        rates.append(statistics.median(job.rates(begin, time.monotonic(), 5)))
        sizes = new_bytes(sorted((job.run_folder() / "checkpoints").glob("step-*")))
        starts, usual = stopped(job)
    gaps = sorted((b - a for a, b in zip(starts[0], starts[0][1:])), reverse=True)
    made = (int(starts[0][-1] > 0) and len(starts[0])) // steps
    print(f"{what}, {status['tables']['key']['rows'] / 1e6:.1f} M rows: {rates[1] / rates[0]:.3f} of the speed without checkpoints; "
          f"{sizes[0] >> 20} MiB each, {sizes[1] >> 20} MiB of the last one written anew")
    print(f"  a step takes {usual * 1000:.0f} ms; the longest times between two, about {made} checkpoints in all: "
          + ", ".join(f"{gap * 1000:.0f}" for gap in gaps[:made]) + " ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--samples", type=int, default=1_000_000, help="of the job that makes checkpoints")
    options = parser.parse_args()
    dovetail = find(options.build, "dovetail")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "job.yaml").write_text(JOB.replace("MODELS", str(MODELS)))
        subprocess.run([dovetail, "data", "generate", "--rows", str(options.rows), "--out", folder / "data"], check=True,
                       stdout=subprocess.DEVNULL)
        workers_change(dovetail, folder)
        job_returns(dovetail, folder)
        table = folder / "table"
        table.mkdir()
        command = f"{find(options.build, 'zipf_csv')} {options.samples} 8 8589934592 1.05 1"
        (table / "job.yaml").write_text(TABLE.replace("COMMAND", command))
        checkpoint_cost(dovetail, table, ["train.slices=2"], "synchronous")
        checkpoint_cost(dovetail, table, ["train.staleness=2", "train.slices=auto"], "staleness 2")
        dense = folder / "dense"
        dense.mkdir()
        (dense / "job.yaml").write_text(TABLE.replace(FM, MLP).replace("COMMAND", command))
        checkpoint_cost(dovetail, dense, ["train.slices=2", "train.batch_size=256"], "17 M dense parameters", 20)


if __name__ == "__main__":
    main()
