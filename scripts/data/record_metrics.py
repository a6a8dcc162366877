#!/usr/bin/env python3
"""Records what scikit-learn's metrics give, for test/unit/scheduler/results/sklearn_metrics_test.cc.

    record_metrics.py > test/unit/scheduler/results/data/sklearn_metrics.txt
    record_metrics.py 280 > many.txt    # 280 times as many; the test reads the file that DT_SKLEARN_METRICS names

Needs scikit-learn (pip install scikit-learn, in an environment of its own). Each block: a line `case <name>`, lines
`top_k`, `groups`, `scores` and `labels`, then a line for each metric. With ties scikit-learn has no recall, hit rate
and MRR like ours, which are means over the orders of tied samples: those are recorded for the cases without ties in
which every group has one positive sample, where they are its top_k_accuracy_score (recall and hit rate alike) and
label_ranking_average_precision_score.
"""
import sys

import numpy as np
import sklearn
from sklearn import metrics


def each_group(case):
    for group in sorted(set(case["groups"])):
        own = case["groups"] == group
        yield case["labels"][own], case["scores"][own]


def mean(values):
    return None if len(values) == 0 else float(np.mean(values))


def gauc(case):
    both = [(y, s) for y, s in each_group(case) if 0 < y.sum() < len(y)]
    if not both:
        return None
    return float(np.average([metrics.roc_auc_score(y, s) for y, s in both], weights=[len(y) for y, _ in both]))


def ndcg(case):
    """scikit-learn refuses a group of one sample, whose NDCG is 1; a second one without gain is put behind it."""
    values = []
    for y, s in each_group(case):
        if y.sum() == 0:
            continue
        if len(y) == 1:
            y, s = np.append(y, 0), np.append(s, s[0] - 1)
        values.append(metrics.ndcg_score([y], [s], k=case["top_k"]))
    return mean(values)


def one_positive(case, of):
    return mean([of(y, s) for y, s in each_group(case)])


def results(case):
    y, s = case["labels"], case["scores"]
    found = {"auc": metrics.roc_auc_score(y, s) if 0 < y.sum() < len(y) else None,
             "pr_auc": metrics.average_precision_score(y, s) if y.sum() > 0 else None,
             "rmse": metrics.mean_squared_error(y, s.astype(float)) ** 0.5, "gauc": gauc(case), "ndcg": ndcg(case)}
    if case["kind"] == "one positive":
        k = case["top_k"]
        found["hit_rate"] = found["recall"] = one_positive(case, lambda y, s: metrics.top_k_accuracy_score(
            [int(np.argmax(y))], [s], k=k, labels=range(len(y))) if len(y) > max(k, 2) else 1.0)
        found["mrr"] = one_positive(case, lambda y, s: metrics.label_ranking_average_precision_score([y], [s]))
    return found


def draw(random, kind, groups):
    """Groups of 1 to 12 samples, or of 4 to 12 with one positive sample. Scores are float32."""
    case = {"kind": kind, "top_k": int(random.integers(1, 9))}
    sizes = random.integers(4 if kind == "one positive" else 1, 13, groups)
    case["groups"] = np.repeat(random.permutation(10 * groups)[:groups], sizes)
    count = int(sizes.sum())
    if kind == "one positive":
        case["labels"] = np.concatenate([random.permutation(np.eye(1, n, dtype=int)[0]) for n in sizes])
        case["scores"] = random.permutation(count).astype(np.float32) / 8 - 2
        return case
    shares = np.repeat(random.choice([0, 0.2, 0.6, 1], groups), sizes)
    case["labels"] = (random.random(count) < shares).astype(int)
    distinct = {"few scores": 4, "one score": 1, "many scores": 10000}[kind]
    case["scores"] = random.integers(0, distinct, count).astype(np.float32) / 16 - 1
    order = random.permutation(count)
    return {**case, **{key: case[key][order] for key in ("groups", "labels", "scores")}}


def show(case, name):
    print("case", name)
    print("top_k", case["top_k"])
    for word in ("groups", "scores", "labels"):
        print(word, *(f"{x:.9g}" for x in case[word]))
    for name, value in results(case).items():
        print(name, "-" if value is None else f"{value:.17g}")


def main():
    print("# scikit-learn", sklearn.__version__)
    random = np.random.default_rng(41)
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 1):
        for kind in ("few scores", "many scores", "one score", "one positive"):
            for groups in (1, 2, 3, 5, 8, 12, 16, 20, 25):
                show(draw(random, kind, groups), f"{kind}, {groups} groups")


if __name__ == "__main__":
    main()
