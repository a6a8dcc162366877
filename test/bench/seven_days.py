#!/usr/bin/env python3
"""A model that is trained day by day: each day is scored before it is trained on.

    test/bench/seven_days.py DOVETAIL [--data FOLDER] [--seeds 1 2 3] [--epochs 3] [--out FILE.json]

Cuts the ratings of MovieLens-100K by time into seven days of equal size and trains the model of configs/ml100k.yaml in three ways:
  goes on     day N begins with the model of day N - 1 (--init) and trains on day N alone
  cold        day N begins with nothing and trains on day N alone
  everything  day N begins with nothing and trains on the days 1 … N
Prints the AUC of each day under the model of the day before (progressive validation), per seed and on average.
"""
import argparse
import collections
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "data"))
from ml100k import HISTORY_MAX, read_table  # noqa: E402

DAYS = 7
HEADER = ["label", "user_id", "item_id", "history", "age", "gender", "occupation", "release_year"]
WAYS = ("goes on", "cold", "everything")


def write_days(source, folder):
    users, items = ({row[f"{kind}_id"]: row for row in read_table(source / f"ml-100k.{kind}")} for kind in ("user", "item"))
    ratings = sorted(read_table(source / "ml-100k.inter"), key=lambda r: (float(r["timestamp"]), int(r["user_id"]), int(r["item_id"])))
    seen = collections.defaultdict(list)
    for day in range(1, DAYS + 1):
        with open(folder / f"day{day}.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(HEADER)
            for rating in ratings[(day - 1) * len(ratings) // DAYS:day * len(ratings) // DAYS]:
                user, item = users[rating["user_id"]], items[rating["item_id"]]
                history = seen[rating["user_id"]]
                writer.writerow([int(float(rating["rating"]) >= 4), rating["user_id"], rating["item_id"], "|".join(history[-HISTORY_MAX:]),
                                 user["age"], user["gender"], user["occupation"], item["release_year"]])
                history.append(rating["item_id"])


class Runs:
    def __init__(self, options, folder, seed):
        self.options, self.folder, self.seed = options, folder, seed

    def run(self, command, job, days, more):
        files = ", ".join(str(self.folder / f"day{day}.csv") for day in days)
        told = self.folder / "result.json"
        settings = [f"job={job}", f"seed={self.seed}", f"data.train=[{files}]", "data.valid=null", f"data.test={f'[{files}]' if command == 'eval' else 'null'}",
                    "optimizer={name: adam, lr: 0.001, clip_norm: 10}", f"train={{batch_size: 256, epochs: {self.options.epochs}}}"]
        words = [self.options.dovetail, command, ROOT / "configs" / "ml100k.yaml", "--result", told, *more]
        ended = subprocess.run(words + [word for each in settings for word in ("--set", each)], cwd=self.folder, capture_output=True, text=True,
                               check=False)
        if ended.returncode != 0:
            sys.exit(f"{job}: {ended.stdout}{ended.stderr}")
        return json.loads(told.read_text())

    def auc(self, job, day, more=()):
        """Of this day, by the model that the job has at its end."""
        folder = max((self.folder / "runs" / job / "checkpoints").glob("step-*"))
        return self.run("eval", f"{job}-score", [day], ["--checkpoint", folder, *more])["metrics"]["test"]["auc"]

    def curves(self):
        curves = {way: [] for way in WAYS}
        for day in range(1, DAYS):
            jobs = {way: f"{way.replace(' ', '-')}-{self.seed}-{day}" for way in WAYS}
            before = [] if day == 1 else ["--init", f"goes-on-{self.seed}-{day - 1}"]
            self.run("train", jobs["goes on"], [day], before)
            self.run("train", jobs["cold"], [day], [])
            self.run("train", jobs["everything"], range(1, day + 1), [])
            for way, job in jobs.items():
                curves[way].append(self.auc(job, day + 1))
        return curves


def show(name, curve):
    print(f"{name:20}" + "".join(f"{auc:9.4f}" for auc in curve) + f"{statistics.mean(curve):9.4f}", flush=True)


def parser_of(text):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dovetail", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(os.environ.get("DOVETAIL_DATA") or "../shared/data") / "ml100k")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    return parser


def parse(parser):
    options = parser.parse_args()
    if not (options.data / "ml-100k.inter").is_file():
        sys.exit(f"{options.data} holds no ml-100k.inter: give the directory of MovieLens-100K with --data")
    return options


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path)
    options = parse(parser)
    print(f"{'AUC of day':20}" + "".join(f"{day:9}" for day in range(2, DAYS + 1)) + "     mean")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        write_days(options.data, pathlib.Path(folder))
        for seed in options.seeds:
            found[seed] = Runs(options, pathlib.Path(folder), seed).curves()
            for way in WAYS:
                show(f"{way}, seed {seed}", found[seed][way])
    for way in WAYS:
        show(f"{way}, all seeds", [statistics.mean(aucs) for aucs in zip(*(curves[way] for curves in found.values()))])
    if options.out:
        options.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
