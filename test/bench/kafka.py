#!/usr/bin/env python3
"""Training on a topic of Kafka against training on the same rows in CSV: samples a second, and how long a message takes
from when it is written until its step is applied. The broker is librdkafka's mock, and it, its producer and the job
share this machine's processors; so the numbers are lower bounds.

    kafka.py build/release/dovetail build/release/test/e2e/stream/mock_kafka [ROWS]
"""
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

PROGRAM, MOCK = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
ROWS = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
PARTITIONS = 32  # The mock keeps a few MB of each.
JOB = """
job: JOB
data:
  SOURCE
  columns:
    - {name: click, role: label}
    - {name: user, type: id}
    - {name: item, type: id}
    - {name: price}
model:
  tables: {users: {dim: 8}, items: {dim: 8}}
  graph:
    - {name: u, op: bag, table: users, inputs: [user]}
    - {name: i, op: bag, table: items, inputs: [item]}
    - {name: logit, op: mlp, inputs: [u, i, price], units: [16, 1]}
  loss: [{type: binary_cross_entropy, input: logit, label: click}]
train: {batch_size: 1024, slices: 2}
observe: {http: off}
"""


def made_rows():
    draw = random.Random(7)
    return [f"{draw.randrange(2)},{draw.randrange(100_000)},{draw.randrange(10_000)},{draw.randrange(1000) / 8}"
            for _ in range(ROWS)]


class Bench:
    def __init__(self, folder):
        self.folder = folder
        self.mock = subprocess.Popen([MOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.brokers = self.mock.stdout.readline().split()[1]

    def do(self, *words):
        self.mock.stdin.write("\t".join(words) + "\n")
        self.mock.stdin.flush()
        assert self.mock.stdout.readline().startswith("done")

    def put(self, topic, rows):
        self.mock.stdin.write("".join(f"put\t{topic}\t{i % PARTITIONS}\t{row}\n" for i, row in enumerate(rows)))
        self.do("flush")

    def start(self, job, source, *more):
        (self.folder / f"{job}.yaml").write_text(JOB.replace("JOB", job).replace("SOURCE", source))
        log = open(self.folder / f"{job}.log", "w")
        return subprocess.Popen([PROGRAM, "train", f"{job}.yaml", "--result", f"{job}.json", "--no-progress", *more],
                                cwd=self.folder, stdout=log, stderr=log)

    def stream(self, topic, until, *more):
        return self.start(topic, f'format: kafka\n  kafka: {{brokers: "{self.brokers}", topic: {topic}, wait: 100ms}}',
                          "--set", f"train.until={until}", *more)


def main():
    rows = made_rows()
    with tempfile.TemporaryDirectory(prefix="dt_bench_") as name:
        bench = Bench(pathlib.Path(name))
        (bench.folder / "rows.csv").write_text("click,user,item,price\n" + "\n".join(rows) + "\n")
        begin = time.monotonic()
        assert bench.start("csv", "format: csv\n  train: rows.csv").wait() == 0
        csv = ROWS / (time.monotonic() - begin)
        print(f"CSV: {csv:,.0f} samples/s, with reading and the last checkpoint", flush=True)

        bench.do("create", "fast", str(PARTITIONS))
        for at in range(0, ROWS, 20_000):
            bench.put("fast", rows[at:at + 20_000])
        begin = time.monotonic()
        assert bench.stream("fast", "drained").wait() == 0
        kafka = ROWS / (time.monotonic() - begin)
        assert json.loads((bench.folder / "fast.json").read_text())["samples"] == ROWS
        print(f"Kafka: {kafka:,.0f} samples/s, {kafka / csv:.2f} of CSV", flush=True)

        bench.do("create", "slow", str(PARTITIONS))
        run = bench.stream("slow", "forever", "--log-level", "info")
        for at in range(0, 200_000, 500):  # 10,000 rows a second.
            next_at = time.monotonic() + 0.05
            bench.put("slow", rows[at:at + 500])
            time.sleep(max(0, next_at - time.monotonic()))
        run.terminate()
        run.wait()
        delays = re.search(r"stream\.delays.*", (bench.folder / "slow.log").read_text())
        print(f"10,000 rows a second: {delays.group(0) if delays else 'no delays logged'}")
        bench.mock.kill()


if __name__ == "__main__":
    main()
