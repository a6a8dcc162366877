#!/usr/bin/env python3
"""What copies of each shard cost: the same job with one, two and three, on three servers.

    test/bench/replicas.py BUILD [--rows 400000] [--turns 3]

BUILD is a build folder with dovetail. Prints, for each number of copies, samples a second, CPU-seconds of all servers per million keys
of samples, the median of the time from sending a push to its acknowledgement (by the workers' timelines), and the most bytes that
a server has kept for the next member of a chain. Medians of the turns; ratios within a turn. The checksums must all be the same.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

from launched import Job, servers
from programs import find

MODELS = pathlib.Path(__file__).resolve().parents[2] / "configs" / "models"
IDS = 26  # Keys of a sample.
JOB = """job: replicas
seed: 3
data: {format: criteo, train: [data/train.tsv]}
model: {use: MODELS/fm.yaml, with: {ids: [C*], dim: 16}}
train: {batch_size: 4096, epochs: 4}
cluster: {servers: 3, workers: 2}
observe: {trace: 100-139}
"""


def push_seconds(job):
    found = []
    for path in (job.run_folder() / "trace").glob("worker-*.json"):
        spans = json.loads(path.read_text())["traceEvents"]
        found += [span["dur"] / 1e6 for span in spans if span["name"] == "push"]
    return statistics.median(found)


def measure(dovetail, folder, copies, turn):
    job = Job(dovetail, folder, f"copies-{copies}-{turn}", [f"cluster.replicas={copies}"])
    kept = [0]

    def look(status):
        kept[0] = max(kept[0], *(process.get("kept_bytes", 0) for process in servers(status)), 0)
        return False
    while job.launch.poll() is None:
        try:
            look(job.look())
        except OSError:
            pass
        try:
            job.launch.wait(timeout=0.25)
        except subprocess.TimeoutExpired:
            pass
    result = job.end()
    cpu = sum(role["cpu_seconds"] for role in result["roles"] if role["role"] == "server")
    return {"samples/s": result["samples_per_second"], "CPU-s of servers per million keys pushed": cpu / (result["samples"] * IDS) * 1e6,
            "push, ms": push_seconds(job) * 1e3, "kept, MiB": kept[0] / 2**20}, json.dumps(result["checksum"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    dovetail = find(options.build, "dovetail")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "job.yaml").write_text(JOB.replace("MODELS", str(MODELS)))
        subprocess.run([dovetail, "data", "generate", "--rows", str(options.rows), "--out", folder / "data"], check=True,
                       stdout=subprocess.DEVNULL)
        turns, checksums = [], set()
        for turn in range(options.turns):
            turns.append({})
            for copies in (1, 2, 3):
                turns[-1][copies], checksum = measure(dovetail, folder, copies, turn)
                checksums.add(checksum)
        for copies in (1, 2, 3):
            text = []
            for what in turns[0][copies]:
                values = [turn[copies][what] for turn in turns]
                ratios = [turn[copies][what] / turn[1][what] for turn in turns if turn[1][what]]
                ratio = f" ({statistics.median(ratios):.2f})" if ratios and copies > 1 else ""
                text.append(f"{what} {statistics.median(values):.4g}{ratio}")
            print(f"{copies} {'copy' if copies == 1 else 'copies'}: " + "; ".join(text))
    print(f"{len(checksums)} checksum{'' if len(checksums) == 1 else 's'} in all")


if __name__ == "__main__":
    main()
