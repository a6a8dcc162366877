#!/usr/bin/env python3
"""Records what PyTorch's dense optimizers make of rows that most steps give no gradient, in float64, for
test/unit/server/table/missed_updates_test.cc.

    record_dense_rows.py > test/unit/server/table/dense_rows.txt

Needs PyTorch (Debian: python3-torch). Each block: a line `case <optimizer> <key value ...>`, then lines
`row <step> <key> <values>`: a row before this step.
"""
import torch

KEYS_LOG2, DIM, STEPS, DRAWS = 10, 4, 1000, 8
SHOWN = [0] + [2 ** i for i in range(KEYS_LOG2)] + [2 ** KEYS_LOG2 - 1]


class Draws:
    """A linear congruential generator, which the test has, too."""

    def __init__(self):
        self.state = 1

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2 ** 64
        return (self.state >> 40) / 2 ** 24


def step_gradients(draws, step):
    """The keys of a step, and their gradients. Step 0 has all keys; later ones come by Zipf with exponent 1."""
    drawn = range(2 ** KEYS_LOG2) if step == 0 else (int(2 ** (KEYS_LOG2 * draws.next())) - 1 for _ in range(DRAWS))
    keys = dict.fromkeys(drawn)
    return {key: [(draws.next() - 0.5) * 0.01 for _ in range(DIM)] for key in keys}


def start():
    keys = torch.arange(2 ** KEYS_LOG2, dtype=torch.float64).unsqueeze(1)
    return 0.1 * torch.cos(keys + torch.arange(DIM, dtype=torch.float64)).float().double()


def record(name, settings, make):
    print(f"case {name}", *(f"{key} {value}" for key, value in settings.items()))
    rows = torch.nn.Parameter(start())
    optimizer = make([rows])
    draws = Draws()
    for step in range(STEPS + 1):
        if step in (100, STEPS):
            for key in SHOWN:
                print("row", step, key, *(f"{x:.12g}" for x in rows.detach()[key].tolist()))
        rows.grad = torch.zeros_like(rows)
        for key, gradient in step_gradients(draws, step).items():
            rows.grad[key] = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()


def adamw_with_l2(parameters):
    """AdamW whose gradients have l2 added, as Dovetail does where both are asked for."""
    class WithL2(torch.optim.AdamW):
        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                p.grad += 1e-3 * p.detach()
            return super().step(closure)

    return WithL2(parameters, lr=0.001, weight_decay=0.2)


def main():
    print("# PyTorch", torch.__version__)
    optim = torch.optim
    adam = {"lr": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    record("adam", adam, lambda p: optim.Adam(p, lr=0.001))
    record("adam", adam | {"l2": 1e-4}, lambda p: optim.Adam(p, lr=0.001, weight_decay=1e-4))
    record("adam", adam | {"l2": 1e-2}, lambda p: optim.Adam(p, lr=0.001, weight_decay=1e-2))
    record("adam", {"lr": 0.01, "beta1": 0.95, "beta2": 0.99, "epsilon": 1e-4},
           lambda p: optim.Adam(p, lr=0.01, betas=(0.95, 0.99), eps=1e-4))
    record("adamw", adam | {"weight_decay": 0.2}, lambda p: optim.AdamW(p, lr=0.001, weight_decay=0.2))
    record("adamw", adam | {"weight_decay": 0.2, "l2": 1e-3}, adamw_with_l2)
    record("momentum", {"lr": 0.1, "momentum": 0.9}, lambda p: optim.SGD(p, lr=0.1, momentum=0.9))
    record("momentum", {"lr": 0.1, "momentum": 0.9, "l2": 0.01},
           lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01))
    record("sgd", {"lr": 0.1, "l2": 0.01}, lambda p: optim.SGD(p, lr=0.1, weight_decay=0.01))
    record("adagrad", {"lr": 0.01, "epsilon": 1e-8, "l2": 1e-3},
           lambda p: optim.Adagrad(p, lr=0.01, eps=1e-8, weight_decay=1e-3))


if __name__ == "__main__":
    main()
