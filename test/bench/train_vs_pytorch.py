#!/usr/bin/env python3
"""Training speed against PyTorch's, in turns on this machine's processors, two threads each.

    test/bench/train_vs_pytorch.py BUILD --venv DIR --data DIR [--models dlrm,deepfm] [--math fp32,bf16] [--pairs 3]

BUILD is a build folder with dovetail. PyTorch is installed into DIR where it is absent. The samples are made
once; both sides read them prepared (ours from the job's cache, PyTorch's from mapped arrays), in order, in
batches of 2,048. PyTorch first runs once in every way that pytorch_train.py knows, and goes on in the fastest
for that model; so the reference is its best. Ours is `dovetail train`: reading, distinct keys, pulls and pushes
to the server, and its updates are in its time. Its rate is that of steps of the second epoch, when the server
knows most keys, as PyTorch's tables are there before the clock starts.

Prints the medians, their ratio, and where the time of our steps goes, in ms a step. With --beside 0,10,25,50 it
measures beside processes that compute so many percent of the time on each processor, and prints what each side
keeps of its speed beside the first of these (not with --pairs 0).
"""
import argparse
import collections
import contextlib
import glob
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

from programs import find

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES, BATCH = 1 << 19, 2048
FIRST_STEP, LAST_STEP = 300, 499  # The run has 512 steps, 256 in each epoch.
WAYS = [["--sparse", sparse] + compiled for sparse, compiled in
        itertools.product(["library", "ours", "compiled"], [[], ["--compile"]])]
# Multiply-adds per sample in the products of all layers. All layers except the first need them
# three times.
LAYERS = {"dlrm": [[13, 512, 256, 16], [367, 512, 256, 1]], "deepfm": [[416, 400, 400, 400, 1]]}


def flop(model):
    """Of one sample, forward and backward. The first layer of DLRM's bottom has no gradient of its input."""
    widths = [pair for layers in LAYERS[model] for pair in zip(layers, layers[1:])]
    return sum(6 * a * b for a, b in widths) - (2 * 13 * 512 if model == "dlrm" else 0)


def python_of(venv):
    python = os.path.join(os.path.abspath(venv), "bin", "python3")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    if subprocess.run([python, "-c", "import torch, numpy"], capture_output=True).returncode != 0:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "torch", "numpy"], check=True)
    return python


class Torch:
    def __init__(self, python, data):
        self.command = [python, os.path.join(HERE, "pytorch_train.py")]
        self.data = data
        if not os.path.exists(os.path.join(data, "train.csv")):
            subprocess.run(self.command + ["make", data, "--samples", str(SAMPLES)], check=True)

    def run(self, model, math, way):
        got = subprocess.run(self.command + ["train", self.data, model, "--math", math] + way, check=True,
                             capture_output=True, text=True)
        return json.loads(got.stdout.splitlines()[-1])

    def best_way(self, model, math):
        rates = {tuple(way): self.run(model, math, way)["samples_per_second"] for way in WAYS}
        for way, rate in rates.items():
            print(f"  PyTorch {' '.join(way):<30} {rate:10,.0f} samples/s", flush=True)
        return list(max(rates, key=rates.get))


class Ours:
    def __init__(self, dovetail, data):
        self.dovetail, self.data = dovetail, data
        os.environ["TRAIN_BENCH_DATA"] = os.path.join(data, "train.csv")

    def run(self, model, settings):
        command = [self.dovetail, "train", os.path.join(HERE, f"train_{model}.yaml"), "--log-level", "error",
                   "--no-progress", "--result", "result.json"]
        for setting in settings + [f"observe.trace={FIRST_STEP}-{LAST_STEP}"]:
            command += ["--set", setting]
        traces = os.path.join(self.data, "runs", f"train_{model}", "trace")
        shutil.rmtree(traces, ignore_errors=True)
        subprocess.run(command, cwd=self.data, check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(self.data, "result.json")) as file:
            result = json.load(file)
        trace, = glob.glob(os.path.join(traces, "worker-*.json"))
        with open(trace) as file:
            spans = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
        steps = [e for e in spans if e["cat"] == "step"]
        seconds = (max(e["ts"] + e["dur"] for e in steps) - min(e["ts"] for e in steps)) / 1e6
        return {"samples_per_second": len(steps) * BATCH / seconds, "spans": spans, "steps": len(steps),
                "whole_samples_per_second": result["samples_per_second"],
                "loss": result["metrics"]["train"]["logloss"]}


# Computes for a part of every 20 ms.
NEIGHBOUR = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[2])})
part = float(sys.argv[1]) * 0.02
while True:
    begun = time.monotonic()
    used = time.thread_time()
    while time.thread_time() - used < part: pass
    time.sleep(max(0, 0.02 - (time.monotonic() - begun)))
"""


@contextlib.contextmanager
def neighbour(percent):
    """Takes so many percent of each processor meanwhile."""
    processes = []
    try:
        for processor in os.sched_getaffinity(0) if percent > 0 else []:
            processes.append(subprocess.Popen([sys.executable, "-c", NEIGHBOUR, str(percent / 100), str(processor)]))
        time.sleep(0.1)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def by_kind(spans):
    """ms by operator, stage or wait."""
    names = collections.Counter()
    for span in spans:
        if span["cat"] != "step":
            stage = span["cat"] in ("work", "wait")
            names[f"{span['name']} ({span['cat']})" if stage else span["cat"]] += span["dur"] / 1000
    return names


def compare(options, torch, ours, model, math):
    settings = options.set + ([f"train.math={math}"] if math != "fp32" else [])
    print(f"{model}, {math}: {flop(model) / 1e6:.2f} MFLOP a sample in products", flush=True)
    if options.pairs == 0:
        return show_where(ours.run(model, settings))
    way = options.way.split() if options.way is not None else torch.best_way(model, math)
    kept = []
    for percent in options.beside:
        with neighbour(percent):
            kept.append((percent, measure(options, torch, ours, model, math, way, settings)))
    for percent, rates in kept[1:]:
        shares = [rate / first for rate, first in zip(rates, kept[0][1])]
        print(f"  beside {percent} %, of the speed beside {kept[0][0]} %: ours {shares[0]:.2f}, PyTorch {shares[1]:.2f}")


def measure(options, torch, ours, model, math, way, settings):
    """Medians of samples/s: ours, PyTorch's."""
    pairs = [(ours.run(model, settings), torch.run(model, math, way)) for _ in range(options.pairs)]
    mine, theirs = ([side["samples_per_second"] for side in sides] for sides in zip(*pairs))
    print(f"  samples/s: ours {statistics.median(mine):,.0f} ({min(mine):,.0f} to {max(mine):,.0f}), "
          f"PyTorch {statistics.median(theirs):,.0f} ({min(theirs):,.0f} to {max(theirs):,.0f}), "
          f"ratio {statistics.median(mine) / statistics.median(theirs):.2f}")
    print(f"  PyTorch {pairs[0][1]['torch']} {' '.join(way)}; loss {pairs[0][1]['loss']:.4f} over its steps, "
          f"ours {pairs[0][0]['loss']:.4f} over the second epoch")
    show_where(pairs[-1][0])
    return statistics.median(mine), statistics.median(theirs)


def show_where(run):
    print(f"  {run['samples_per_second']:,.0f} samples/s in {run['steps']} steps, {run['whole_samples_per_second']:,.0f} "
          f"in all; {BATCH / run['samples_per_second'] * 1000:.2f} ms a step, of which")
    for name, time in by_kind(run["spans"]).most_common(24):
        print(f"    {name:<32} {time / run['steps']:8.3f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--venv", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--models", default="dlrm,deepfm")
    parser.add_argument("--math", default="fp32,bf16")
    parser.add_argument("--way", help='how PyTorch runs, such as "--sparse ours --compile", instead of trying all')
    parser.add_argument("--pairs", type=int, default=3, help="0: only ours, once")
    parser.add_argument("--set", action="append", default=[], metavar="a.b.c=value", help="a key of our job")
    parser.add_argument("--beside", default="0", help="percentages of the processors that others take")
    options = parser.parse_args()
    options.beside = [int(percent) for percent in options.beside.split(",")]
    options.data = os.path.abspath(options.data)
    torch = Torch(python_of(options.venv), options.data)
    ours = Ours(find(options.build, "dovetail"), options.data)
    for model in options.models.split(","):
        for math in options.math.split(","):
            compare(options, torch, ours, model, math)


if __name__ == "__main__":
    main()
