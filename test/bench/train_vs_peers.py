#!/usr/bin/env python3
"""Training speed against that of other systems, in turns on this machine's processors, two threads each.

    test/bench/train_vs_peers.py BUILD --venv DIR --data DIR [--models dlrm,deepfm] [--math fp32,bf16] [--pairs 3]
                                 [--peers pytorch,torchrec,tensorflow]

BUILD is a build folder with dovetail. Peers are installed into folders of DIR where they are absent: PyTorch, TorchRec
with FBGEMM's tables, TensorFlow with its ParameterServerStrategy. The samples are made once; every side reads them
prepared (ours from the job's cache, the others from arrays), in order, in batches of 2,048. Each peer first runs once in
every way that its script knows, and the fastest of all goes on; so the reference is the best for that model. Ours is
`dovetail train`: reading, distinct keys, pulls and pushes to the server, and its updates are in its time. Its rate is
that of steps of the second epoch, when the server knows most keys, as the peers' tables are there before the clock
starts.

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
PYTORCH_WAYS = [["--sparse", sparse] + compiled for sparse, compiled in
                itertools.product(["library", "ours", "compiled"], [[], ["--compile"]])]
# Multiply-adds per sample in the products of all layers. All layers except the first need them
# three times.
LAYERS = {"dlrm": [[13, 512, 256, 16], [367, 512, 256, 1]], "deepfm": [[416, 400, 400, 400, 1]]}


def flop(model):
    """Of one sample, forward and backward. The first layer of DLRM's bottom has no gradient of its input."""
    widths = [pair for layers in LAYERS[model] for pair in zip(layers, layers[1:])]
    return sum(6 * a * b for a, b in widths) - (2 * 13 * 512 if model == "dlrm" else 0)


# Calls of pip, one after the other; what shows that all is there; the script, and the ways in which it runs.
Peer = collections.namedtuple("Peer", ["installs", "imports", "script", "ways"])
PEERS = {
    "pytorch": Peer([["install", "torch", "numpy"]], "torch, numpy", ["pytorch_train.py", "train"], PYTORCH_WAYS),
    # FBGEMM is there for a processor or for CUDA, under one name; TorchRec asks for CUDA's.
    "torchrec": Peer([["install", "torch==2.14.1", "numpy", "torchrec"], ["uninstall", "-y", "fbgemm-gpu"],
                      ["install", "--no-deps", "fbgemm-gpu-cpu==1.9.0"]],
                     "fbgemm_gpu, torchrec", ["torchrec_train.py"], [[], ["--compile"]]),
    "tensorflow": Peer([["install", "tensorflow-cpu"]], "tensorflow", ["tensorflow_train.py"], [[]]),
}


def python_of(venv, peer):
    python = os.path.join(venv, "bin", "python3")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    if subprocess.run([python, "-c", f"import {peer.imports}"], capture_output=True).returncode != 0:
        for arguments in peer.installs:
            subprocess.run([python, "-m", "pip", "--quiet", *arguments], check=True)
    return python


class Peers:
    def __init__(self, names, venv, data):
        self.data = data
        self.commands = {}
        for name in names:
            python = python_of(os.path.join(os.path.abspath(venv), name), PEERS[name])
            script, *arguments = PEERS[name].script
            self.commands[name] = [python, os.path.join(HERE, script), *arguments]
            if not os.path.exists(os.path.join(data, "train.csv")):
                maker = os.path.join(HERE, "pytorch_train.py")
                subprocess.run([python, maker, "make", data, "--samples", str(SAMPLES)], check=True)

    def run(self, model, math, way):
        """`way`: the peer's name, then options."""
        command = [*self.commands[way[0]], self.data, model, "--math", math, *way[1:]]
        got = subprocess.run(command, check=False, capture_output=True, text=True)
        if got.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {got.returncode}\n{got.stderr[-3000:]}")
        return json.loads(got.stdout.splitlines()[-1])

    def best_way(self, model, math):
        rates = {}
        for name in self.commands:
            for options in PEERS[name].ways:
                way = (name, *options)
                rates[way] = self.run(model, math, way)["samples_per_second"]
                print(f"  {' '.join(way):<38} {rates[way]:10,.0f} samples/s", flush=True)
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


def compare(options, peers, ours, model, math):
    settings = options.set + ([f"train.math={math}"] if math != "fp32" else [])
    print(f"{model}, {math}: {flop(model) / 1e6:.2f} MFLOP a sample in products", flush=True)
    if options.pairs == 0:
        return show_where(ours.run(model, settings))
    way = options.way.split() if options.way is not None else peers.best_way(model, math)
    kept = []
    for percent in options.beside:
        with neighbour(percent):
            kept.append((percent, measure(options, peers, ours, model, math, way, settings)))
    for percent, rates in kept[1:]:
        shares = [rate / first for rate, first in zip(rates, kept[0][1])]
        print(f"  beside {percent} %, of the speed beside {kept[0][0]} %: ours {shares[0]:.2f}, {way[0]} {shares[1]:.2f}")


def measure(options, peers, ours, model, math, way, settings):
    """Medians of samples/s: ours, the peer's."""
    pairs = [(ours.run(model, settings), peers.run(model, math, way)) for _ in range(options.pairs)]
    mine, theirs = ([side["samples_per_second"] for side in sides] for sides in zip(*pairs))
    print(f"  samples/s: ours {statistics.median(mine):,.0f} ({min(mine):,.0f} to {max(mine):,.0f}), "
          f"{way[0]} {statistics.median(theirs):,.0f} ({min(theirs):,.0f} to {max(theirs):,.0f}), "
          f"ratio {statistics.median(mine) / statistics.median(theirs):.2f}")
    print(f"  {' '.join(way)}, version {pairs[0][1]['version']}; loss {pairs[0][1]['loss']:.4f} over its steps, "
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
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--way", help='a peer and how it runs, such as "pytorch --sparse ours --compile", instead of trying all')
    parser.add_argument("--pairs", type=int, default=3, help="0: only ours, once")
    parser.add_argument("--set", action="append", default=[], metavar="a.b.c=value", help="a key of our job")
    parser.add_argument("--beside", default="0", help="percentages of the processors that others take")
    options = parser.parse_args()
    options.beside = [int(percent) for percent in options.beside.split(",")]
    options.data = os.path.abspath(options.data)
    peers = Peers(options.peers.split(","), options.venv, options.data)
    ours = Ours(find(options.build, "dovetail"), options.data)
    for model in options.models.split(","):
        for math in options.math.split(","):
            compare(options, peers, ours, model, math)


if __name__ == "__main__":
    main()
