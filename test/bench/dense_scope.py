#!/usr/bin/env python3
"""What `optimizer.scope: dense` gains and costs: DeepFM on Frappe with dense Adam in PyTorch, LazyAdam, and Adam whose
missed updates are made up for.

    dense_scope.py DOVETAIL --data FOLDER [--seeds 1 2 3] [--epochs 5] [--torch PYTHON]

FOLDER holds train.libsvm and valid.libsvm. Runs configs/frappe_deepfm.yaml with `dovetail train`, in turns, without its
schedule and early stop; --torch is a Python with PyTorch, which trains the same model at the same settings: every row
of both tables, and their L2, at each step. Prints the validation AUC of each epoch and samples/s of each way.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIELDS, KEYS, DIM, BATCH, RATE, L2 = 10, 5500, 10, 4096, 0.001, 0.1
WAYS = {
    "lazy_adam": [],
    "adam": ["model.with.table_optimizer=adam"],
    "adam, scope dense": ["model.with.table_optimizer=adam", "optimizer.scope=dense"],
}


# ------------------------------------------------------------ PyTorch, in its own process


def read_libsvm(np, path):
    labels, keys = [], []
    with open(path, encoding="ascii") as lines:
        for line in lines:
            words = line.split()
            labels.append(float(words[0]) > 0)
            keys.append([int(word.split(":")[0]) for word in words[1:]])
    return np.array(labels, dtype=np.float32), np.array(keys, dtype=np.int64)


def auc_of(np, labels, scores):
    order = np.argsort(scores, kind="stable")
    values, where, counts = np.unique(scores[order], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[where]
    positive = labels[order] > 0
    hits, misses = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - hits * (hits + 1) / 2) / (hits * misses))


def deepfm(torch):
    class DeepFm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.weight = torch.nn.Embedding(KEYS, DIM), torch.nn.Embedding(KEYS, 1)
            for table in (self.embedding, self.weight):
                torch.nn.init.normal_(table.weight, std=1e-4)
            layers, width = [], FIELDS * DIM
            for units in (400, 400, 400):
                layers += [torch.nn.Linear(width, units), torch.nn.BatchNorm1d(units), torch.nn.ReLU(),
                           torch.nn.Dropout(0.2)]
                width = units
            self.deep = torch.nn.Sequential(*layers, torch.nn.Linear(width, 1))
            self.bias = torch.nn.Parameter(torch.zeros(1))
            for layer in self.deep:
                if isinstance(layer, torch.nn.Linear):
                    torch.nn.init.xavier_normal_(layer.weight)
                    torch.nn.init.zeros_(layer.bias)

        def forward(self, keys):
            e = self.embedding(keys)
            second = 0.5 * (e.sum(1).square() - e.square().sum(1)).sum(1, keepdim=True)
            return (self.deep(e.flatten(1)) + second + self.weight(keys).sum(1) + self.bias).squeeze(1)

    return DeepFm()


def train_torch(options):
    import numpy as np
    import torch

    torch.manual_seed(options.seeds[0])
    labels, keys = (torch.from_numpy(a) for a in read_libsvm(np, options.data / "train.libsvm"))
    valid_labels, valid_keys = read_libsvm(np, options.data / "valid.libsvm")
    model = deepfm(torch)
    tables = [model.embedding.weight, model.weight.weight]
    rest = [p for p in model.parameters() if all(p is not t for t in tables)]
    optimizer = torch.optim.Adam([{"params": tables, "weight_decay": L2}, {"params": rest}], lr=RATE)
    aucs, seconds = [], 0.0
    for _ in range(options.epochs):
        begin = time.monotonic()
        model.train()
        for batch in torch.randperm(len(labels)).split(BATCH):
            optimizer.zero_grad()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(keys[batch]), labels[batch])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(rest, 10)
            optimizer.step()
        seconds += time.monotonic() - begin
        model.eval()
        with torch.no_grad():
            scores = torch.cat([model(torch.from_numpy(part)) for part in np.array_split(valid_keys, 16)])
        aucs.append(auc_of(np, valid_labels, scores.double().numpy()))
    print(json.dumps({"aucs": aucs, "rate": options.epochs * len(labels) / seconds}))


# ------------------------------------------------------------ Dovetail


def train_dovetail(options, settings, seed):
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder, "result.json")
        command = [options.dovetail, "train", str(ROOT / "configs/frappe_deepfm.yaml"), "--result", str(result),
                   "--no-progress"]
        sets = [f"seed={seed}", f"train.epochs={options.epochs}", "train.early_stop=null", "optimizer.schedule=null",
                f"data.train=[{options.data}/train.libsvm]", f"data.valid=[{options.data}/valid.libsvm]", *settings]
        for setting in sets:
            command += ["--set", setting]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        told = json.loads(result.read_text(encoding="utf-8"))
    return {"aucs": [e["valid"]["auc"] for e in told["history"]], "rate": told["samples_per_second"]}


def run_torch(options, seed):
    command = [options.torch, __file__, "-", "--as-torch", "--data", str(options.data), "--seeds", str(seed), "--epochs",
               str(options.epochs)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dovetail")
    parser.add_argument("--data", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--torch", metavar="PYTHON", help="a Python that has PyTorch")
    parser.add_argument("--as-torch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_torch:
        return train_torch(options)
    options.dovetail = str(pathlib.Path(options.dovetail).resolve())
    ways = {name: lambda seed, s=settings: train_dovetail(options, s, seed) for name, settings in WAYS.items()}
    if options.torch:
        ways = {"PyTorch, dense Adam": lambda seed: run_torch(options, seed)} | ways
    runs = {name: [] for name in ways}
    for seed in options.seeds:
        for name, way in ways.items():
            runs[name].append(way(seed))
            aucs = " ".join(f"{auc:.4f}" for auc in runs[name][-1]["aucs"])
            print(f"seed {seed}, {name}: {aucs}; {runs[name][-1]['rate'] / 1000:.1f} k samples/s", flush=True)
    for name, of_way in runs.items():
        means = " ".join(f"{statistics.mean(aucs):.4f}" for aucs in zip(*(run["aucs"] for run in of_way)))
        print(f"mean, {name}: {means}; median {statistics.median(run['rate'] for run in of_way) / 1000:.1f} k samples/s")


if __name__ == "__main__":
    main()
