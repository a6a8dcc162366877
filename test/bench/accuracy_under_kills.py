#!/usr/bin/env python3
"""The validation AUC of an asynchronous job, undisturbed and while its servers and workers are killed.

    DOVETAIL_DATA=… test/bench/accuracy_under_kills.py DOVETAIL [--seeds 5] [--staleness 2 unbounded] [--epochs 10]

Trains configs/frappe_deepfm.yaml with three servers, two copies and three workers, with each seed twice: once undisturbed, once with
a SIGKILL of a random server or worker every second or two, of which `launch` starts another. Prints the best AUC of each.
"""
import argparse
import json
import pathlib
import random
import subprocess
import tempfile
import time

CONFIG = pathlib.Path(__file__).resolve().parents[2] / "configs" / "frappe_deepfm.yaml"


def processes(name, role):
    found = subprocess.run(["pgrep", "-f", f"dovetail {role} .*job={name}( |$)"], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def run(options, folder, staleness, seed, kills):
    name = f"{'killed' if kills else 'calm'}-{staleness}-{seed}"
    settings = [f"job={name}", f"seed={seed}", f"train.staleness={staleness}", f"train.epochs={options.epochs}", "cluster.servers=3",
                "cluster.replicas=2", "cluster.workers=3", "cluster.lease=1s", "cluster.restarts=100000", "checkpoint.every=500"]
    result = folder / f"{name}.json"
    command = [options.dovetail, "launch", CONFIG, "--no-progress", "--result", result]
    launch = subprocess.Popen(command + [word for each in settings for word in ("--set", each)], cwd=folder,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    chance, killed = random.Random(seed), {"server": 0, "worker": 0}
    while launch.poll() is None:
        time.sleep(1 + chance.random())
        role = chance.choice(["server", "worker"])
        found = processes(name, role)
        if kills and len(found) == 3:
            subprocess.run(["kill", "-9", str(chance.choice(found))], check=False)
            killed[role] += 1
    assert launch.returncode == 0, f"{name} ended with {launch.returncode}"
    told = json.loads(result.read_text())
    returned = sum(event["kind"] == "returned" for event in told["events"])
    print(f"staleness {staleness}, seed {seed}: AUC {told['best']['valid']['auc']:.4f}, {killed['server']} servers and "
          f"{killed['worker']} workers killed in {told['seconds']:.0f} s, {returned} returns", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dovetail", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--staleness", nargs="+", default=["2", "unbounded"])
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for staleness in options.staleness:
            for seed in range(1, options.seeds + 1):
                for kills in (False, True):
                    run(options, pathlib.Path(folder), staleness, seed, kills)


if __name__ == "__main__":
    main()
