#!/usr/bin/env python3
"""Joins MovieLens-100K (ml-100k.inter, .item, .user) into the CSV files that configs/ml100k*.yaml read.

    scripts/data/ml100k.py [SOURCE] [TARGET]

SOURCE  the directory of the three files (default: ${DOVETAIL_DATA:-../shared/data}/ml100k)
TARGET  where train.csv, valid.csv and test.csv go (default: runs/ml100k)

One line per rating: label (rating 4 or 5), ids, side features, the user's earlier films, oldest first,
joined by '|', the rating, and the logarithm of the film's share of the training ratings (each counted once
more than it is there). The last tenth of each user's ratings is for test, the tenth before it for validation.
"""
import collections
import csv
import math
import os
import pathlib
import sys

HISTORY_MAX = 50
HEADER = ["label", "user_id", "item_id", "history", "age", "gender", "occupation", "release_year",
          "rating", "item_log_q"]


def read_table(path):
    """Rows of a tab-separated file whose header is name:type …, as dicts by name."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        names = [cell.split(":")[0] for cell in next(rows)]
        for row in rows:
            if len(row) != len(names):
                sys.exit(f"{path}:{rows.line_num}: found {len(row)} cells, expected {len(names)}")
            yield dict(zip(names, row))


def split_of(position, count):
    """Earlier ratings train, later ones are predicted."""
    if position < count - 2 * (count // 10):
        return "train"
    return "valid" if position < count - count // 10 else "test"


def lines_of_user(ratings, user, items):
    """(split, cells) of each rating of one user, in order of time."""
    ratings = sorted(ratings, key=lambda r: (float(r["timestamp"]), int(r["item_id"])))
    seen = []
    for position, rating in enumerate(ratings):
        item = rating["item_id"]
        yield split_of(position, len(ratings)), [
            int(float(rating["rating"]) >= 4), rating["user_id"], item, "|".join(seen[-HISTORY_MAX:]),
            user["age"], user["gender"], user["occupation"], items[item]["release_year"], rating["rating"]]
        seen.append(item)


def main():
    if any(arg in ("-h", "--help") for arg in sys.argv) or len(sys.argv) > 3:
        sys.exit(__doc__)
    default = pathlib.Path(os.environ.get("DOVETAIL_DATA") or "../shared/data") / "ml100k"
    source = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    target = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "runs/ml100k")
    files = {name: source / f"ml-100k.{name}" for name in ("inter", "item", "user")}
    absent = [str(path) for path in files.values() if not path.is_file()]
    if absent:
        sys.exit(f"no such file: {', '.join(absent)}; give the directory of MovieLens-100K")

    users = {row["user_id"]: row for row in read_table(files["user"])}
    items = {row["item_id"]: row for row in read_table(files["item"])}
    ratings = collections.defaultdict(list)
    for row in read_table(files["inter"]):
        ratings[row["user_id"]].append(row)

    lines = {"train": [], "valid": [], "test": []}
    for user_id in sorted(ratings, key=int):
        for split, cells in lines_of_user(ratings[user_id], users[user_id], items):
            lines[split].append(cells)
    item_at = HEADER.index("item_id")
    counts = collections.Counter(cells[item_at] for cells in lines["train"])
    total = len(lines["train"]) + len(items)
    for cells in (cells for rows in lines.values() for cells in rows):
        cells.append(f"{math.log((counts[cells[item_at]] + 1) / total):.6f}")
    target.mkdir(parents=True, exist_ok=True)
    for split, rows in lines.items():
        partial = target / f"{split}.csv.partial"
        with open(partial, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(HEADER)
            writer.writerows(rows)
        partial.replace(target / f"{split}.csv")
        print(f"{target / f'{split}.csv'}: {len(rows)} rows")


if __name__ == "__main__":
    main()
