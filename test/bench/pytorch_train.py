#!/usr/bin/env python3
"""The models of test/bench/train_vs_peers.py in PyTorch, on the processor, as fast as PyTorch does them.

    pytorch_train.py make DIR [--samples 524288]
    pytorch_train.py train DIR dlrm|deepfm [--math fp32|bf16] [--compile] [--sparse library|ours|compiled]

`make` writes the samples: 13 numbers and 26 keys, each of 1 M values by Zipf 1.05, as arrays for PyTorch and as
train.csv for dovetail. Keys of different columns differ, so that one table of 26 M rows stands for 26 of 1 M.
`train` prints samples/s in JSON. The gradient of rows goes

  library   by sparse tensors into torch.optim.Adagrad
  ours      by rows: distinct keys, index_add_, and the formula of Adagrad written out
  compiled  as `ours`, through torch.compile

--math bf16 is torch.autocast: weights stay in fp32.
"""
import argparse
import json
import os
import time

import numpy as np

FIELDS, NUMBERS, KEYS, EXPONENT = 26, 13, 1_000_000, 1.05
DIM, BATCH, RATE = 16, 2048, 0.01


# ------------------------------------------------------------ samples


def zipf_keys(random, samples):
    """[samples, FIELDS]; the most frequent keys lie anywhere in their column's range."""
    mass = np.cumsum(np.arange(1, KEYS + 1, dtype=np.float64) ** -EXPONENT)
    columns = []
    for field in range(FIELDS):
        ranks = np.searchsorted(mass, random.random(samples) * mass[-1])
        columns.append(field * KEYS + random.permutation(KEYS)[np.minimum(ranks, KEYS - 1)])
    return np.stack(columns, axis=1)


def digits(values, width):
    """[..., width] characters."""
    powers = 10 ** np.arange(width - 1, -1, -1, dtype=np.int64)
    return (values[..., None] // powers % 10 + ord("0")).astype(np.uint8)


def write_csv(path, labels, thousandths, keys):
    names = ["click"] + [f"I{i + 1}" for i in range(NUMBERS)] + [f"C{i + 1}" for i in range(FIELDS)]
    with open(path, "wb") as out:
        out.write((",".join(names) + "\n").encode())
        for at in range(0, len(labels), 65536):
            piece = slice(at, at + 65536)
            count = len(labels[piece])
            filled = lambda columns, text: np.broadcast_to(np.frombuffer(text, np.uint8), (count, columns, len(text)))
            numbers = np.concatenate([filled(NUMBERS, b",0."), digits(thousandths[piece], 3)], axis=2)
            cells = np.concatenate([filled(FIELDS, b","), digits(keys[piece], 8)], axis=2)
            line = [digits(labels[piece], 1), numbers.reshape(count, -1), cells.reshape(count, -1),
                    filled(1, b"\n")[:, 0]]
            out.write(np.concatenate(line, axis=1).tobytes())


def make(options):
    os.makedirs(options.folder, exist_ok=True)
    random = np.random.default_rng(1)
    keys = zipf_keys(random, options.samples)
    thousandths = random.integers(0, 1000, (options.samples, NUMBERS))
    score = thousandths[:, :2].sum(axis=1) / 1000 - 1 + (keys[:, :4] % 7 - 3).sum(axis=1) / 6
    labels = (random.random(options.samples) * (1 + np.exp(-score)) < 1).astype(np.int64)
    for name, array in {"keys": keys, "numbers": (thousandths / 1000).astype(np.float32),
                        "labels": labels.astype(np.float32)[:, None]}.items():
        np.save(os.path.join(options.folder, name + ".npy"), array)
    write_csv(os.path.join(options.folder, "train.csv"), labels, thousandths, keys)


# ------------------------------------------------------------ models


def perceptron(torch, units):
    layers = []
    for a, b in zip(units, units[1:]):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1] if units[-1] == 1 else layers)


def dlrm(torch):
    class Dlrm(torch.nn.Module):
        dims = [DIM]

        def __init__(self):
            super().__init__()
            self.bottom = perceptron(torch, [NUMBERS, 512, 256, DIM])
            pairs = (FIELDS + 1) * FIELDS // 2
            self.top = perceptron(torch, [DIM + pairs, 512, 256, 1])
            at = torch.tril_indices(FIELDS + 1, FIELDS + 1, -1)
            self.register_buffer("pairs", at[0] * (FIELDS + 1) + at[1])

        def forward(self, numbers, e):
            x = self.bottom(numbers)
            fields = torch.cat([x.unsqueeze(1), e.to(x.dtype)], 1)
            products = torch.bmm(fields, fields.transpose(1, 2)).flatten(1)
            return self.top(torch.cat([x, products[:, self.pairs]], 1))

    return Dlrm()


def deepfm(torch):
    class DeepFm(torch.nn.Module):
        dims = [DIM, 1]

        def __init__(self):
            super().__init__()
            self.deep = perceptron(torch, [FIELDS * DIM, 400, 400, 400, 1])
            self.bias = torch.nn.Parameter(torch.zeros(1))

        def forward(self, numbers, e, wide):
            second = 0.5 * (e.sum(1).square() - e.square().sum(1)).sum(1, keepdim=True)
            return self.deep(e.flatten(1)) + second + wide.sum(1) + self.bias

    return DeepFm()


# ------------------------------------------------------------ training


class Library:
    """Sparse gradients and torch.optim.Adagrad."""

    def __init__(self, torch, tables):
        self.torch = torch
        self.optimizer = torch.optim.Adagrad(tables, lr=RATE)

    def rows(self, table, keys):
        return self.torch.nn.functional.embedding(keys, table, sparse=True)

    def update(self, keys, rows):
        self.optimizer.step()
        self.optimizer.zero_grad()


class ByRows:
    """Distinct keys, sums by key, and Adagrad's formula on those rows."""

    def __init__(self, torch, tables, compiled):
        self.torch = torch
        self.tables = {id(t): (t, torch.zeros_like(t)) for t in tables}
        self.used = []
        self.step = torch.compile(self.adagrad, dynamic=True) if compiled else self.adagrad
        for t in tables:
            t.requires_grad_(False)

    def rows(self, table, keys):
        rows = table[keys].requires_grad_(True)
        self.used.append((table, rows))
        return rows

    @staticmethod
    def adagrad(rows, state, grad):
        state = state + grad * grad
        return rows - RATE * grad / (state.sqrt() + 1e-10), state

    def update(self, keys, rows):
        torch = self.torch
        with torch.no_grad():
            distinct, place = torch.unique(keys, return_inverse=True)
            for table, rows in self.used:
                state = self.tables[id(table)][1]
                dim = table.shape[1]
                grad = torch.zeros(len(distinct), dim).index_add_(0, place.flatten(), rows.grad.view(-1, dim))
                values, squares = self.step(table[distinct], state[distinct], grad)
                table.index_copy_(0, distinct, values)
                state.index_copy_(0, distinct, squares)
        self.used.clear()


def load_samples(torch, folder):
    """Keys, numbers, labels."""
    load = lambda name: np.load(os.path.join(folder, name + ".npy"), mmap_mode="r+")
    return [torch.from_numpy(load(name)) for name in ("keys", "numbers", "labels")]


def model_of(torch, name):
    return {"dlrm": dlrm, "deepfm": deepfm}[name](torch)


def time_steps(torch, options, step, steps):
    """Prints the rate of step(number), which returns the loss."""
    for at in range(options.warm_up):
        step(at % steps)
    begun = time.perf_counter()
    losses = [step((options.warm_up + at) % steps) for at in range(options.steps)]
    seconds = time.perf_counter() - begun
    print(json.dumps({"samples_per_second": options.steps * BATCH / seconds, "version": torch.__version__,
                      "loss": float(torch.stack(losses).mean())}))


def train(options):
    import torch
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    all_keys, all_numbers, all_labels = load_samples(torch, options.folder)
    model = model_of(torch, options.model)
    tables = [torch.nn.Parameter(torch.empty(FIELDS * KEYS, dim).normal_(std=0.01)) for dim in model.dims]
    sparse = Library(torch, tables) if options.sparse == "library" else ByRows(torch, tables,
                                                                             options.sparse == "compiled")
    dense = torch.optim.Adagrad(model.parameters(), lr=RATE, fused=True)
    forward = torch.compile(model) if options.compile else model
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits
    bf16 = options.math == "bf16"

    def step(at):
        piece = slice(at * BATCH, (at + 1) * BATCH)
        keys = all_keys[piece]
        rows = [sparse.rows(table, keys) for table in tables]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            logits = forward(all_numbers[piece], *rows)
        loss = loss_of(logits.float(), all_labels[piece])
        loss.backward()
        sparse.update(keys, rows)
        dense.step()
        dense.zero_grad()
        return loss.detach()

    time_steps(torch, options, step, len(all_keys) // BATCH)


def add_training(parser):
    parser.add_argument("folder")
    parser.add_argument("model", choices=["dlrm", "deepfm"])
    parser.add_argument("--math", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warm-up", type=int, default=30)
    parser.add_argument("--steps", type=int, default=200)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make")
    maker.add_argument("folder")
    maker.add_argument("--samples", type=int, default=1 << 19)
    trainer = commands.add_parser("train")
    add_training(trainer)
    trainer.add_argument("--sparse", choices=["library", "ours", "compiled"], default="library")
    options = parser.parse_args()
    make(options) if options.command == "make" else train(options)


if __name__ == "__main__":
    main()
