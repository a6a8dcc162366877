#!/usr/bin/env python3
"""Records what PyTorch's optimizers do, for test/ops/update_test.cc.

    record_optimizers.py > test/ops/data/optimizer_trajectories.txt

Needs PyTorch (Debian: python3-torch). Each block: a line `case <name> <key value ...>`, then for each of 12
steps a line `grad …` (empty of numbers for a step at which the row is not touched) and a line `value …`.
"""
import torch

DIM, STEPS = 6, 12


def gradients():
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(DIM, generator=generator) * (0.1 if step % 3 else 3.0) for step in range(STEPS)]


def start():
    return torch.linspace(-1.0, 1.0, DIM)


def show(word, tensor):
    print(word, *(f"{x:.9g}" for x in tensor.tolist()))


def record(name, settings, make):
    print(f"case {name}", *(f"{key} {value}" for key, value in settings.items()))
    values = torch.nn.Parameter(start())
    optimizer = make([values])
    for gradient in gradients():
        values.grad = gradient.clone()
        optimizer.step()
        show("grad", gradient)
        show("value", values.detach())


def record_rows(name, settings, make, touched):
    """Row 0 of two; the other one is touched at every step, since SparseAdam refuses an empty gradient."""
    print(f"case {name}", *(f"{key} {value}" for key, value in settings.items()))
    rows = torch.nn.Parameter(torch.stack([start(), start()]))
    optimizer = make([rows])
    for step, gradient in enumerate(gradients()):
        which = [0, 1] if step in touched else [1]
        rows.grad = torch.sparse_coo_tensor([which], torch.stack([gradient] * len(which)), (2, DIM))
        optimizer.step()
        show("grad", gradient if step in touched else torch.empty(0))
        show("value", rows.detach()[0])


def main():
    print("# PyTorch", torch.__version__)
    optim = torch.optim
    record("sgd", {"lr": 0.1}, lambda p: optim.SGD(p, lr=0.1))
    record("sgd", {"lr": 0.1, "l2": 0.05}, lambda p: optim.SGD(p, lr=0.1, weight_decay=0.05))
    record("momentum", {"lr": 0.05, "momentum": 0.9}, lambda p: optim.SGD(p, lr=0.05, momentum=0.9))
    record("adagrad", {"lr": 0.1, "epsilon": 1e-8, "initial_accumulator": 0.1},
           lambda p: optim.Adagrad(p, lr=0.1, eps=1e-8, initial_accumulator_value=0.1))
    record("adam", {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-6},
           lambda p: optim.Adam(p, lr=0.01, betas=(0.9, 0.99), eps=1e-6))
    record("adam", {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-6, "l2": 0.1},
           lambda p: optim.Adam(p, lr=0.01, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.1))
    record("adamw", {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-6, "weight_decay": 0.2},
           lambda p: optim.AdamW(p, lr=0.01, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.2))
    settings = {"lr": 0.02, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-3}
    make = lambda p: optim.SparseAdam(p, lr=0.02, betas=(0.9, 0.99), eps=1e-3)
    record_rows("lazy_adam", settings, make, range(STEPS))
    record_rows("lazy_adam", settings, make, (0, 1, 4, 9, 11))
    # A dense Adam with gradient 0 in steps in which a row is not touched: the moments of the row decay, which Dovetail's
    # Adam does for all skipped steps at the next push. The dense value also moves in these steps, so the values are equal
    # only for beta1 = 0, which keeps no momentum.
    print("case adam", "lr 0.01 beta1 0 beta2 0.99 epsilon 1e-06 gaps 1")
    rows = torch.nn.Parameter(start())
    optimizer = optim.Adam([rows], lr=0.01, betas=(0.0, 0.99), eps=1e-6)
    for step, gradient in enumerate(gradients()):
        touched = step in (0, 1, 4, 9, 11)
        rows.grad = gradient.clone() if touched else torch.zeros(DIM)
        optimizer.step()
        show("grad", gradient if touched else torch.empty(0))
        show("value", rows.detach())


if __name__ == "__main__":
    main()
