#!/usr/bin/env python3
"""What a model gains from the one before it, whose graph is another one.

    test/bench/day_two.py DOVETAIL [--data FOLDER] [--seeds 1 2 3] [--epochs 1]

The ratings of MovieLens-100K, cut into seven days (see seven_days.py). The first job trains on the days 1 to 3; it does not read the
film's year. The second one trains on the days 4 to 6, reads the year, and has a wider perceptron: once it begins with nothing, once
with the first job's model (--init). Prints the AUC of day 7 under both.
"""
import pathlib
import statistics
import tempfile

from seven_days import Runs, parse, parser_of, write_days

FIRST = ["--set", "model.graph.sides.inputs=[gender, occupation]"]
SECOND = ["--set", "model.graph.deep.units=[96, 48]"]


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--epochs", type=int, default=1)
    options = parse(parser)
    gains = []
    with tempfile.TemporaryDirectory() as folder:
        write_days(options.data, pathlib.Path(folder))
        for seed in options.seeds:
            runs = Runs(options, pathlib.Path(folder), seed)
            runs.run("train", f"first-{seed}", [1, 2, 3], FIRST)
            runs.run("train", f"cold-{seed}", [4, 5, 6], SECOND)
            runs.run("train", f"second-{seed}", [4, 5, 6], ["--init", f"first-{seed}", *SECOND])
            cold, second = (runs.auc(f"{job}-{seed}", 7, SECOND) for job in ("cold", "second"))
            gains.append(second - cold)
            print(f"seed {seed}: AUC of day 7 {cold:.4f} cold, {second:.4f} after the first job, gain {second - cold:.4f}", flush=True)
    print(f"gain on average {statistics.mean(gains):.4f}")


if __name__ == "__main__":
    main()
