#!/usr/bin/env python3
"""The models of test/bench/train_vs_peers.py in TorchRec on the processor: tables of FBGEMM, whose backward pass updates
the rows by Adagrad in the same pass over them. Everything else is that of pytorch_train.py.

    torchrec_train.py DIR dlrm|deepfm [--math fp32|bf16] [--compile]

Rows of FBGEMM have a multiple of 4 values on the processor, so the first-order weights of DeepFM stand in rows of 4.
Prints samples/s in JSON.
"""
import argparse

import torch
from torchrec import EmbeddingBagConfig, KeyedJaggedTensor
from torchrec.modules.fused_embedding_modules import FusedEmbeddingBagCollection

from pytorch_train import BATCH, FIELDS, KEYS, RATE, add_training, load_samples, model_of, time_steps

NARROWEST = 4


def tables_of(dim):
    configs = [EmbeddingBagConfig(name=f"t{field}", embedding_dim=max(dim, NARROWEST), num_embeddings=KEYS,
                                  feature_names=[f"C{field}"]) for field in range(FIELDS)]
    tables = FusedEmbeddingBagCollection(tables=configs, optimizer_type=torch.optim.Adagrad,
                                         optimizer_kwargs={"lr": RATE, "eps": 1e-10}, device=torch.device("cpu"))
    with torch.no_grad():
        for rows in tables.state_dict().values():
            rows.normal_(std=0.01)
    return tables


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_training(parser)
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    all_keys, all_numbers, all_labels = load_samples(torch, options.folder)
    all_keys = all_keys - KEYS * torch.arange(FIELDS)
    model = model_of(torch, options.model)
    collections = [tables_of(dim) for dim in model.dims]
    dense = torch.optim.Adagrad(model.parameters(), lr=RATE, fused=True)
    forward = torch.compile(model) if options.compile else model
    names, ones = [f"C{field}" for field in range(FIELDS)], torch.ones(FIELDS * BATCH, dtype=torch.int32)

    def step(at):
        piece = slice(at * BATCH, (at + 1) * BATCH)
        bags = KeyedJaggedTensor(keys=names, values=all_keys[piece].t().flatten(), lengths=ones)
        rows = [tables(bags).values().view(BATCH, FIELDS, -1)[:, :, :dim]
                for tables, dim in zip(collections, model.dims)]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.math == "bf16"):
            logits = forward(all_numbers[piece], *rows)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits.float(), all_labels[piece])
        loss.backward()
        dense.step()
        dense.zero_grad()
        return loss.detach()

    time_steps(torch, options, step, len(all_keys) // BATCH)


if __name__ == "__main__":
    main()
