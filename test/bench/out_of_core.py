#!/usr/bin/env python3
"""DeepFM on Zipf-distributed keys, with a table ten times the memory budget, against all in memory.

    test/bench/out_of_core.py BUILD [--pairs 3] [--samples 1300000] [--keys 1500000] [--json]

BUILD is a build folder with dovetail and zipf_csv. Writes the samples and trains once with all rows in
memory, to learn the size of the tables; then pairs of a run with a tenth of that as the budget and a run
in memory, in turns. Checksums of both must be equal. For the goal "0.60 of samples/s, or misses/s 0.7 x bare
MultiGet on the CPU left" it also runs `dovetail bench disk`: the CPU left is what the processors have
in the time of the run in memory beside that run's own CPU-seconds.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from programs import find

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = os.path.join(HERE, "out_of_core.yaml")
RATIO = 10  # Size of the tables divided by the memory budget.


class Run:
    """One training, and what its result file says."""

    def __init__(self, dovetail, folder, memory):
        result_path = os.path.join(folder, "result.json")
        command = [dovetail, "train", JOB, "--log-level", "error", "--result", result_path, "--set",
                   f"cluster.server.memory={memory}"]
        subprocess.run(command, cwd=folder, check=True, timeout=3600, stdout=subprocess.DEVNULL)
        with open(result_path) as file:
            result = json.load(file)
        tables = result["tables"].values()
        self.checksum = result["checksum"]
        self.samples = result["samples"]
        self.seconds = result["seconds"]
        self.rate = result["samples_per_second"]
        # All roles are in one process, whose figures are reported once.
        scheduler = result["roles"][0]
        self.cpu = scheduler["cpu_seconds"]
        self.rss = scheduler["peak_rss_bytes"]
        self.bytes, self.rows, self.on_disk, self.touched, self.fetched, self.written = (
            sum(table[key] for table in tables)
            for key in ("bytes", "rows", "rows_on_disk", "rows_touched", "rows_fetched", "rows_written"))


def bare_multiget(dovetail):
    """Rows per CPU-second of RocksDB as it comes: sorted MultiGet in one thread."""
    got = subprocess.run([dovetail, "bench", "disk", "--json"], capture_output=True, text=True, check=True,
                         timeout=3600)
    bench = json.loads(got.stdout)
    case = next(c for c in bench["cases"] if c["name"] == "store.fetch_vs_multiget")
    return bench["machine"], case["reference_rows_per_cpu_second"]


def measure(options, dovetail, folder):
    learnt = Run(dovetail, folder, "64GiB")
    budget = learnt.bytes // RATIO
    pairs = []
    for _ in range(options.pairs):
        pairs.append((Run(dovetail, folder, budget), Run(dovetail, folder, "64GiB")))
        below, above = (run.rate for run in pairs[-1])
        print(f"below memory {below:,.0f} samples/s, in memory {above:,.0f}", file=sys.stderr, flush=True)
        if pairs[-1][0].checksum != pairs[-1][1].checksum:
            sys.exit("the checksums differ: rows were lost or changed on their way")
    machine, multiget = bare_multiget(dovetail)
    median = lambda pick: statistics.median(pick(*pair) for pair in pairs)
    rates, references = [below.rate for below, _ in pairs], [above.rate for _, above in pairs]
    cpu_left = median(lambda _, above: max(os.cpu_count() * above.seconds - above.cpu, 0) / above.seconds)
    misses = median(lambda below, _: below.fetched / below.seconds)
    case = {
        "name": "store.out_of_core", "what": f"DeepFM, tables {RATIO} x the memory budget",
        "unit": "samples/s", "median": statistics.median(rates), "min": min(rates), "max": max(rates),
        "runs": len(rates), "reference": "the same, all in memory",
        "reference_median": statistics.median(references),
        "ratio": median(lambda below, above: below.rate / above.rate),
        "table_bytes": learnt.bytes, "budget_bytes": budget,
        "peak_rss_bytes": median(lambda below, _: below.rss),
        "hit_rate": median(lambda below, _: 1 - below.fetched / below.touched),
        "rows_written_per_row_on_disk": median(lambda below, _: below.written / max(below.on_disk, 1)),
        "cpu_seconds": median(lambda below, _: below.cpu),
        "reference_cpu_seconds": median(lambda _, above: above.cpu),
        "misses_per_second": misses, "multiget_rows_per_cpu_second": multiget,
        "cpus_left": cpu_left, "misses_to_multiget_on_the_cpu_left": misses / max(multiget * cpu_left, 1),
    }
    return {"machine": machine, "cases": [case]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=1_300_000)
    parser.add_argument("--keys", type=int, default=1_500_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    dovetail, zipf = find(options.build, "dovetail"), find(options.build, "zipf_csv")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["OUT_OF_CORE_DATA"] = os.path.join(folder, "keys.csv")
        with open(os.environ["OUT_OF_CORE_DATA"], "w") as out:
            subprocess.run([zipf, str(options.samples), "10", str(options.keys), "1.05", "1"], stdout=out, check=True)
        bench = measure(options, dovetail, folder)
    if options.json:
        print(json.dumps(bench, indent=2))
        return
    print(bench["machine"])
    for name, value in bench["cases"][0].items():
        print(f"  {name:<36} {value:,.3f}" if isinstance(value, float) else f"  {name:<36} {value}")


if __name__ == "__main__":
    main()
