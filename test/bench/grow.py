#!/usr/bin/env python3
"""Two servers get a third and a fourth while two workers train, then one of these is drained.

    test/bench/grow.py BUILD [--gib 8] [--rate 16MiB] [--seconds 15] [--hot 0]

BUILD is a build folder with dovetail and bare_move. The table is filled at the beginning of the first epoch (its rows are of 3 KiB).
--hot: so many samples follow, of which half of the keys are one of 0.02 % of the rows and 79 % one of 6 %; without them each epoch
changes every row. The beginnings of later epochs, which do so, are not in the windows then. Then, all under the same training: bytes are copied over the servers'
sockets by two bare processes, and rows inserted into an empty table by one (bare_move.cc); servers join and shards are copied to them,
at most --rate from each server (0: no limit); one server leaves. Prints bytes a second of each, samples a second before, in the
slowest and the mean window of 5 s meanwhile, and after; CPU-seconds; and whether the checksums are those of a job without all that.
"""
import argparse
import pathlib
import random
import signal
import statistics
import subprocess
import tempfile
import time

from launched import Job, cpu_of, servers, whole
from programs import find

MODELS = pathlib.Path(__file__).resolve().parents[2] / "configs" / "models"
IDS, DIM = 10, 256
ROW_BYTES = 3 * 4 * DIM + 8  # Values, two moments of Adam, the key.
JOB = """job: grow
seed: 3
data:
  format: csv
  train: [TRAIN]
  shuffle: {window: 0}
  columns:
    - {name: click, role: label}
COLUMNS
model:
  use: MODELS/fm.yaml
  with: {ids: [c*], label: click, dim: DIM}
train: {batch_size: 512, epochs: EPOCHS}
cluster: {servers: 2, workers: 2, lease: 10s, move_rate: RATE, shards: 64, server: {memory: 12GiB, executors: 1}}
"""


def pids(status):
    return [process["pid"] for process in servers(status)]


def copied_by(status):
    return sum(process["copied_bytes"] for process in servers(status))


def bare_move(job, options, way):
    bare = subprocess.Popen([find(options.build, "bare_move"), way, str(int(options.gib * 256))], stdout=subprocess.PIPE, text=True)
    job.until(lambda _: bare.poll() is not None)
    return float(bare.stdout.read())


def changes(job, options):
    """What is measured; lines for people."""
    rows = int(options.gib * 2**30 / ROW_BYTES)
    job.until(lambda status: status["samples"] * IDS >= rows * 1.1)
    start = time.monotonic()
    job.rest(options.seconds)
    before = statistics.median(rates_of(job, start, time.monotonic(), options))
    yield f"before: {before / 1000:.1f} k samples/s"
    bare = {way: bare_move(job, options, way) for way in ("copy", "insert")}
    yield f"the bytes of {options.gib / 4:.1f} GiB copied on their own {bare['copy'] / 2**20:.0f} MiB/s, inserted {bare['insert'] / 2**20:.0f} MiB/s"
    goal = min(0.5 * bare["copy"], 0.8 * bare["insert"])
    job.rest(5)

    status = job.look()
    cpu, copied = cpu_of(pids(status)), copied_by(status)
    late = [job.server(), job.server()]
    job.until(lambda s: len(servers(s)) == 4)
    begun = time.monotonic()
    status = job.until(whole(4))
    end = time.monotonic()
    moved = copied_by(status) - copied
    seconds = end - begun
    yield (f"two servers join: {moved / 2**30:.2f} GiB in {seconds:.1f} s, {moved / seconds / 2**20:.0f} MiB/s, "
           f"{moved / seconds / goal:.2f} of the goal of {goal / 2**20:.0f}; CPU-seconds of all servers {cpu_of(pids(status)) - cpu:.1f}")
    yield windows(job, begun, end, before, options)
    yield from after(job, end, before, options)

    going = next(p["id"] for p in status["processes"] if p["pid"] == late[1].pid)
    start = time.monotonic()
    job.drain(going)
    job.until(lambda s: len(servers(s)) == 3)
    end = time.monotonic()
    yield f"one is drained in {end - start:.1f} s"
    yield windows(job, start, end, before, options)
    yield from after(job, end, before, options)


def rates_of(job, begin, end, options):
    """Without windows that are, or begin soon after, where every row is changed."""
    if not options.hot:
        return job.rates(begin, end)
    fill = options.gib * 2**30 / ROW_BYTES / IDS

    def counts(first, last):
        return first // (fill + options.hot) == last // (fill + options.hot) and first % (fill + options.hot) > fill * 1.1
    return job.rates(begin, end, counts=counts)


def windows(job, begin, end, before, options):
    rates = rates_of(job, begin, end, options)
    if not rates:
        return "  shorter than 5 s"
    return (f"  meanwhile, of the samples/s before: mean {statistics.mean(rates) / before:.2f}, slowest 5 s {min(rates) / before:.2f}")


def after(job, end, before, options):
    job.rest(max(options.seconds, 10))
    rates = rates_of(job, end, time.monotonic(), options)
    yield f"  after: first 5 s {rates[0] / before:.2f}, median {statistics.median(rates) / before:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--gib", type=float, default=8)
    parser.add_argument("--rate", default="16MiB")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--hot", type=int, default=0)
    parser.add_argument("--no-check", action="store_true", help="without the job that nothing happens to")
    options = parser.parse_args()
    dovetail = find(options.build, "dovetail")
    samples = int(options.gib * 2**30 / ROW_BYTES / IDS)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with open(folder / "keys.csv", "w") as file:
            file.write("click," + ",".join(f"c{c}" for c in range(IDS)) + "\n")
            for i in range(samples):
                file.write(f"{i % 2}," + ",".join(str(i * IDS + c) for c in range(IDS)) + "\n")
        if options.hot:
            with open(folder / "hot.csv", "w") as file:
                file.write("click," + ",".join(f"c{c}" for c in range(IDS)) + "\n")
                draw = random.Random(7).random
                for i in range(options.hot):
                    file.write(f"{i % 2}," + ",".join([str(int(samples * IDS * draw() ** 12)) for _ in range(IDS)]) + "\n")
        columns = "\n".join(f"    - {{name: c{c}, type: id}}" for c in range(IDS))
        (folder / "job.yaml").write_text(JOB.replace("COLUMNS", columns).replace("MODELS", str(MODELS)).replace("DIM", str(DIM))
                                         .replace("TRAIN", "keys.csv, hot.csv" if options.hot else "keys.csv")
                                         .replace("EPOCHS", str(options.epochs)).replace("RATE", options.rate))
        job = Job(dovetail, folder, "changed")
        try:
            for line in changes(job, options):
                print(line, flush=True)
            if options.no_check:
                return
            changed = job.end()
        finally:
            if job.launch.poll() is None:
                job.launch.send_signal(signal.SIGTERM)
                job.launch.wait(timeout=60)
        print(f"{changed['steps']} steps in {changed['seconds']:.0f} s")
        calm = Job(dovetail, folder, "calm").end()
        print("checksums equal" if changed["checksum"] == calm["checksum"] else "CHECKSUMS DIFFER")


if __name__ == "__main__":
    main()
