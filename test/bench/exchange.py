#!/usr/bin/env python3
"""How much of the exchange of gradients is hidden behind the backward pass, on accelerators of a fixed speed.

    test/bench/exchange.py BUILD [--runs 3] [--steps 60] [--flops 2e10]

BUILD is a build folder with dovetail. Two workers with an emulated accelerator each train a perceptron of 10 MB, once
on numbers alone, once also on embeddings of a server, whose gradients come first. The exchange of a step is hidden
where the accelerator, the processor or a copy is busy at the same time, by the trace of the first worker. Each run is
repeated with parallel.overlap off, where nothing is hidden, and with a single bucket; the checksums must be equal.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from overlap import Trace, both, length, merged

HERE = pathlib.Path(__file__).resolve().parent
BATCH, WARM_UP = 256, 10
CASES = {"numbers": ["model.tables={}",
                     "model.graph=[{name: deep, op: mlp, inputs: [I*], units: [1024, 1024, 1024]}, "
                     "{name: logit, op: dense, inputs: [deep], units: 1}]"],
         "embeddings": []}
RUNS = {"overlap": [], "one bucket": ["parallel.fusion=1GiB"], "no overlap": ["parallel.overlap=false"]}


def run(dovetail, data, settings, options):
    with tempfile.TemporaryDirectory() as folder:
        command = [dovetail, "launch", str(HERE / "exchange.yaml"), "--result", "result.json", "--no-progress",
                   "--resume", "never", "--set", f"observe.trace={WARM_UP}-{options.steps - 5}",
                   "--set", f"cluster.emulated.flops={options.flops}", "--set", "observe.http=off"]
        for setting in settings:
            command += ["--set", setting]
        done = subprocess.run(command, cwd=folder, env={**os.environ, "EXCHANGE_DATA": data}, capture_output=True,
                              text=True, timeout=300, check=False)
        if done.returncode != 0:
            sys.exit(f"exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        traces = sorted(pathlib.Path(folder, "runs/exchange/trace").glob("worker-*.json"))
        checksum = json.loads(pathlib.Path(folder, "result.json").read_text())["checksum"]
        return Trace(traces[0]), checksum


def hidden(trace):
    """Milliseconds of exchange in a step, and the share of it beside other work."""
    exchange = both(merged(trace.spans["exchange"]), trace.wall)
    busy = merged([span for track in ("cpu", "gpu", "copy to device", "copy to host") for span in trace.spans[track]])
    return length(exchange) / len(trace.steps) / 1000, length(both(exchange, busy)) / length(exchange)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--flops", default="2e10")
    options = parser.parse_args()
    dovetail = str(pathlib.Path(options.build, "dovetail").resolve())
    print("| case | run | step | exchange | hidden |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as data:
        rows = options.steps * BATCH * 10 // 8 + BATCH  # 80 % of the generated samples are for training.
        subprocess.run([dovetail, "data", "generate", "--rows", str(rows), "--seed", "1", "--out", data], check=True,
                       stdout=subprocess.DEVNULL)
        for case, settings in CASES.items():
            results = {name: [] for name in RUNS}
            for _ in range(options.runs):
                for name, more in RUNS.items():
                    results[name].append(run(dovetail, data, settings + more, options))
            if len({checksum["dense"] for all_runs in results.values() for _, checksum in all_runs}) != 1:
                sys.exit(f"{case}: the checksums differ")
            for name, all_runs in results.items():
                figures = [(trace.step_ms(), *hidden(trace)) for trace, _ in all_runs]
                step, exchange, share = (statistics.median(column) for column in zip(*figures))
                print(f"| {case} | {name} | {step:.1f} ms | {exchange:.1f} ms | {100 * share:.0f} % |", flush=True)


if __name__ == "__main__":
    main()
