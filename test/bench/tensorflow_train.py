#!/usr/bin/env python3
"""The models of test/bench/train_vs_peers.py in TensorFlow with its ParameterServerStrategy: a chief, a worker and a
parameter server, processes of this machine that talk over gRPC. The samples are those of pytorch_train.py.

    tensorflow_train.py DIR dlrm|deepfm [--math fp32|bf16]

All variables are on the parameter server. The worker looks each distinct key of a batch up once, and sends the sum of
its gradients back; Adagrad is TensorFlow's own operator, which runs where the variable is. --math bf16 computes the
products in bf16; weights stay in fp32. Prints samples/s in JSON.
"""
import argparse
import json
import os
import socket
import subprocess
import sys
import time
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf  # pylint: disable=wrong-import-position

from pytorch_train import BATCH, DIM, FIELDS, KEYS, NUMBERS, RATE, add_training  # pylint: disable=wrong-import-position

HEADER = 128  # Bytes of a .npy file before its numbers.


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def serve(cluster, role, threads):
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name=role, task_index=0).join()


def batches(folder):
    """Of keys, numbers and labels, again and again."""
    def numbers(name, dtype, columns):
        file = tf.data.FixedLengthRecordDataset(os.path.join(folder, name + ".npy"), columns * dtype.size * BATCH, HEADER)
        return file.map(lambda text: tf.reshape(tf.io.decode_raw(text, dtype), [BATCH, columns]))

    parts = numbers("keys", tf.int64, FIELDS), numbers("numbers", tf.float32, NUMBERS), numbers("labels", tf.float32, 1)
    return tf.data.Dataset.zip(parts).repeat().prefetch(2)


class Adagrad:
    """A variable with its sum of squares."""

    def __init__(self, value):
        self.value = tf.Variable(value)
        self.squares = tf.Variable(tf.zeros_like(value), trainable=False)

    def update(self, gradient):
        tf.raw_ops.ResourceApplyAdagradV2(var=self.value.handle, accum=self.squares.handle, lr=RATE, epsilon=1e-10,
                                          grad=gradient)

    def update_rows(self, keys, gradient):
        tf.raw_ops.ResourceSparseApplyAdagradV2(var=self.value.handle, accum=self.squares.handle, lr=RATE,
                                                epsilon=1e-10, grad=gradient, indices=keys)


class Perceptron:
    def __init__(self, units):
        glorot = tf.initializers.GlorotUniform(seed=1)
        self.layers = [(Adagrad(glorot([a, b])), Adagrad(tf.zeros([b]))) for a, b in zip(units, units[1:])]
        self.ends_plain = units[-1] == 1

    def __call__(self, x, math):
        for at, (weight, bias) in enumerate(self.layers):
            x = tf.cast(tf.matmul(tf.cast(x, math), tf.cast(weight.value, math)), tf.float32) + bias.value
            if at + 1 < len(self.layers) or not self.ends_plain:
                x = tf.nn.relu(x)
        return x

    def variables(self):
        return [v for layer in self.layers for v in layer]


class Dlrm:
    dims = [DIM]

    def __init__(self):
        self.bottom = Perceptron([NUMBERS, 512, 256, DIM])
        self.top = Perceptron([DIM + (FIELDS + 1) * FIELDS // 2, 512, 256, 1])
        self.pairs = tf.constant([i * (FIELDS + 1) + j for i in range(FIELDS + 1) for j in range(i)])

    def __call__(self, numbers, rows, math):
        x = self.bottom(numbers, math)
        fields = tf.cast(tf.concat([x[:, None], rows[0]], 1), math)
        products = tf.reshape(tf.matmul(fields, fields, transpose_b=True), [BATCH, -1])
        return self.top(tf.concat([x, tf.cast(tf.gather(products, self.pairs, axis=1), tf.float32)], 1), math)

    def variables(self):
        return self.bottom.variables() + self.top.variables()


class DeepFm:
    dims = [DIM, 1]

    def __init__(self):
        self.deep = Perceptron([FIELDS * DIM, 400, 400, 400, 1])

    def __call__(self, _, rows, math):
        e, wide = rows
        second = 0.5 * tf.reduce_sum(tf.square(tf.reduce_sum(e, 1)) - tf.reduce_sum(tf.square(e), 1), 1, keepdims=True)
        return self.deep(tf.reshape(e, [BATCH, -1]), math) + second + tf.reduce_sum(wide, 1)

    def variables(self):
        return self.deep.variables()


def train(options, cluster):
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec(cluster), rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = {"dlrm": Dlrm, "deepfm": DeepFm}[options.model]()
        tables = [Adagrad(tf.random.normal([FIELDS * KEYS, dim], stddev=0.01)) for dim in model.dims]
    math = tf.bfloat16 if options.math == "bf16" else tf.float32

    @tf.function
    def step(iterator):
        keys, numbers, labels = next(iterator)
        distinct, place = tf.unique(tf.reshape(keys, [-1]))
        found = [tf.gather(table.value, distinct) for table in tables]
        variables = model.variables()
        with tf.GradientTape() as tape:
            tape.watch(found)
            rows = [tf.reshape(tf.gather(f, place), [BATCH, FIELDS, -1]) for f in found]
            logits = model(numbers, rows, math)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        dense, sparse = tape.gradient(loss, ([v.value for v in variables], found))
        for variable, gradient in zip(variables, dense):
            variable.update(gradient)
        for table, gradient in zip(tables, sparse):
            sums = tf.math.unsorted_segment_sum(gradient.values, gradient.indices, tf.size(distinct))
            table.update_rows(distinct, sums)
        return loss

    samples = iter(coordinator.create_per_worker_dataset(lambda: batches(options.folder)))
    for _ in range(options.warm_up):
        coordinator.schedule(step, args=(samples,))
    coordinator.join()
    begun = time.perf_counter()
    losses = [coordinator.schedule(step, args=(samples,)) for _ in range(options.steps)]
    coordinator.join()
    seconds = time.perf_counter() - begun
    loss = sum(float(value.fetch()) for value in losses) / len(losses)
    print(json.dumps({"samples_per_second": options.steps * BATCH / seconds, "version": tf.__version__, "loss": loss}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_training(parser)
    parser.add_argument("--serve", nargs=2, metavar=("ROLE", "CLUSTER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        return serve(json.loads(options.serve[1]), options.serve[0], options.threads)
    roles = ["chief", "worker", "ps"]
    cluster = {role: [f"127.0.0.1:{port}"] for role, port in zip(roles, free_ports(3))}
    servers = [subprocess.Popen([*sys.orig_argv, "--serve", role, json.dumps(cluster)]) for role in roles[1:]]
    code = 1
    try:
        train(options, cluster)
        code = 0
    except Exception:  # pylint: disable=broad-exception-caught
        traceback.print_exc()
    for server in servers:
        server.kill()
        server.wait()
    sys.stdout.flush()
    os._exit(code)  # The coordinator's threads would wait for its servers.


if __name__ == "__main__":
    main()
