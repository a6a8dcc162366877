#!/usr/bin/env python3
"""The checksums of every job in configs/ after a few steps, with one slice and with two.

Two programs that compute the same print the same: run it before and after a change that is not meant
to change results, and compare the two files. Checksums depend on the processor's instruction set, so
both runs belong on one machine. A job whose data is absent is listed as such.

    python3 test/bench/config_checksums.py --dovetail build/release/dovetail --data DIR --out before.json
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(program, config, slices, options, folder, environment):
    result = os.path.join(folder, "result.json")
    command = [program, "train", str(config), "--result", result]
    for setting in (f"train.slices={slices}", f"train.max_steps={options.steps}"):
        command += ["--set", setting]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    if ended.returncode != 0:
        return (ended.stderr.strip().splitlines() or ["?"])[0]
    with open(result) as file:
        return json.load(file)["checksum"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dovetail", required=True)
    parser.add_argument("--data", default=str(ROOT / "../shared/data"), help="sets DOVETAIL_DATA")
    parser.add_argument("--ml100k", default=str(ROOT / "runs/ml100k"), help="sets DOVETAIL_ML100K")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--out", help="a file for the checksums; default: standard output")
    options = parser.parse_args()
    program = os.path.abspath(options.dovetail)
    environment = dict(os.environ, DOVETAIL_DATA=os.path.abspath(options.data),
                       DOVETAIL_ML100K=os.path.abspath(options.ml100k))
    found = {}
    for config in sorted((ROOT / "configs").glob("*.yaml")):
        with tempfile.TemporaryDirectory() as folder:
            found[config.stem] = {
                slices: run(program, config, slices, options, folder, environment) for slices in (1, 2)}
        print(config.stem, file=sys.stderr)
    text = json.dumps(found, indent=1, sort_keys=True) + "\n"
    if options.out is None:
        print(text, end="")
    else:
        pathlib.Path(options.out).write_text(text)


if __name__ == "__main__":
    main()
