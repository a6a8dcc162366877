#!/usr/bin/env python3
"""What a sample costs as a job grows: in processes, in rows, in nodes of its graph.

    test/bench/growth.py BUILD [--only processes,rows,nodes] [--rows 5,6,7,8] [--nodes 10,100,1000,10000] [--rounds 3]

BUILD is a build folder with dovetail and zipf_csv. Prints samples/s, and CPU-seconds of all roles for a million samples.
processes: `train`, then `launch` with so many workers and servers on this machine's processors, in turns; medians. Its
checksums must be equal. rows: `train` with tables of 10^5 and more rows that all exist when measuring begins; keys are
uniform, so that no row is nearer than another. nodes: layers one after the other, each of 8 values; what a node costs.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from programs import find

COLUMNS, BATCH = 26, 2048
PROCESSES = [None, (1, 1), (2, 1), (4, 1), (1, 2), (1, 4), (2, 2), (4, 4)]  # Workers and servers; None is `train`.
JOB = """job: growth
seed: 1
data:
  format: csv
  train: [TRAIN]
  shuffle: {window: 0}
  columns:
    - {name: click, role: label}
COLUMNS
model:
  tables:
    item: {dim: 16, init: {normal: 0.01}}
  graph:
    - {name: e, op: lookup, table: item, inputs: [c*]}
GRAPH
  loss: [{type: binary_cross_entropy, input: top, label: click}]
optimizer: {name: adagrad, lr: 0.01}
train: {batch_size: BATCH, epochs: EPOCHS, slices: 4}
checkpoint: {every: end}
observe: {http: off}
"""
MLP = ["{name: top, op: mlp, inputs: [e], units: [256, 64, 1]}"]


class Bench:
    def __init__(self, build, folder):
        self.dovetail, self.zipf, self.folder = find(build, "dovetail"), find(build, "zipf_csv"), folder

    def samples(self, count, keys, exponent):
        """A file of samples, made once."""
        path = self.folder / f"{count}-{keys}-{exponent}.csv"
        if not path.exists():
            with open(path, "w") as out:
                subprocess.run([self.zipf, str(count), str(COLUMNS), str(keys), str(exponent), "1"], stdout=out, check=True)
        return path

    def job(self, samples, epochs, graph=MLP, batch=BATCH):
        columns = "\n".join(f"    - {{name: c{i}, type: id}}" for i in range(COLUMNS))
        nodes = "\n".join(f"    - {node}" for node in graph)
        text = JOB
        for name, value in [("TRAIN", samples), ("COLUMNS", columns), ("GRAPH", nodes), ("BATCH", batch), ("EPOCHS", epochs)]:
            text = text.replace(name, str(value))
        (self.folder / "job.yaml").write_text(text)

    def run(self, command, settings, first, last):
        """Steps from `first` to `last` are measured; CPU-seconds are those of the whole run."""
        flags = [word for setting in [*settings, f"observe.trace={first}-{last}"] for word in ("--set", setting)]
        done = subprocess.run([self.dovetail, command, "job.yaml", "--no-progress", "--log-level", "error", "--resume", "never",
                               "--result", "result.json", *flags], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        result = json.loads((self.folder / "result.json").read_text())
        trace = json.loads(next((self.folder / "runs/growth/trace").glob("worker-*.json")).read_text())["traceEvents"]
        steps = [e for e in trace if e["ph"] == "X" and e["cat"] == "step"]
        seconds = (max(e["ts"] + e["dur"] for e in steps) - min(e["ts"] for e in steps)) / 1e6
        return {"rate": len(steps) / seconds, "checksum": result["checksum"], "result": result,
                "cpu": sum(role["cpu_seconds"] or 0 for role in result["roles"]) / result["samples"] * 1e6}


def processes(bench, options):
    bench.job(bench.samples(1 << 19, 1_000_000, 1.05), 2)
    found = {each: [] for each in PROCESSES}
    for _ in range(options.rounds):
        for each in PROCESSES:
            settings = [] if each is None else [f"cluster.workers={each[0]}", f"cluster.servers={each[1]}"]
            found[each].append(bench.run("train" if each is None else "launch", settings, 260, 500))
    first = found[None]
    for each, runs in found.items():
        if any(run["checksum"] != first[0]["checksum"] for run in runs):
            sys.exit(f"{each}: another checksum")
        ratio = statistics.median(run["rate"] / base["rate"] for run, base in zip(runs, first))
        name = "train" if each is None else f"launch, {each[0]} workers, {each[1]} servers"
        print(f"{name:<30} {statistics.median(run['rate'] for run in runs) * BATCH:10,.0f} samples/s ({ratio:.2f})  "
              f"{statistics.median(run['cpu'] for run in runs):7.1f} CPU-s/M", flush=True)


def rows(bench, options):
    for power in options.rows:
        # Each key has been seen 1.5 times on average when the second epoch begins; the output says how many rows there are.
        count = max(1 << 18, 3 * 10**power // (2 * COLUMNS)) // BATCH * BATCH
        bench.job(bench.samples(count, 10**power, 0), 2)
        steps = count // BATCH
        last = steps + min(steps - 5, 220)
        run = bench.run("train", [f"train.max_steps={last + 5}", "cluster.server.memory=16GiB"], steps + 20, last)
        table = run["result"]["tables"]["item"]
        print(f"10^{power} rows ({table['rows']:,} made, {table['bytes'] / 1e9:.2f} GB) {run['rate'] * BATCH:10,.0f} samples/s  "
              f"{run['cpu']:7.1f} CPU-s/M", flush=True)


def nodes(bench, options):
    for count in options.nodes:
        graph, before = ["{name: small, op: mlp, inputs: [e], units: [8]}"], "small"
        for i in range(count - 3):
            graph.append(f"{{name: n{i}, op: {'dense' if i % 2 else 'relu'}, inputs: [{before}]{', units: 8' if i % 2 else ''}}}")
            before = f"n{i}"
        graph.append(f"{{name: top, op: dense, inputs: [{before}], units: 1}}")
        bench.job(bench.samples(1 << 14, 100_000, 1.05), 1, graph, batch=64)
        run = bench.run("train", ["optimizer={name: sgd, lr: 0.001}"], 50, 150)
        print(f"{count:6} nodes {1e3 / run['rate']:9.2f} ms a step, {1e6 / run['rate'] / count:6.2f} us a node", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    numbers = lambda text: [int(each) for each in text.split(",")]
    parser.add_argument("--only", default="processes,rows,nodes", type=lambda text: text.split(","))
    parser.add_argument("--rows", default="5,6,7,8", type=numbers)
    parser.add_argument("--nodes", default="10,100,1000,10000", type=numbers)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.build, pathlib.Path(folder))
        for name, part in [("processes", processes), ("rows", rows), ("nodes", nodes)]:
            if name in options.only:
                part(bench, options)


if __name__ == "__main__":
    main()
