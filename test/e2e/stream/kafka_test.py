#!/usr/bin/env python3
"""Goal: a job trains on a Kafka topic, each message exactly once whatever happens to its processes and to the broker;
and ends with one sentence where a topic, a message or a broker is not as it should be. Method: the real program,
librdkafka's mock cluster in a process of its own, and a model whose rows count their samples: the gradient of a sample
is the same power of two whatever the rows are, so that a row with SGD is exactly the number of its samples.

    kafka_test.py DOVETAIL MOCK_KAFKA
"""
import array
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zipfile

PROGRAM = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "dovetail").resolve()
MOCK = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "mock_kafka").resolve()
SKIPPED = 77  # What ctest counts as skipped.
PARTITIONS = 4
BATCH = 64

if not (PROGRAM.parent / "libdovetail_kafka.so").exists():
    print("skipped: this build has no librdkafka; scripts/setup.sh installs it")
    sys.exit(SKIPPED)

# A prediction is row * 2^-40, which a float does not notice beside a label of -2^39 * BATCH. So the gradient of the mean
# of (prediction - label)^2 is 2 * 2^39 * BATCH * 2^-40 / BATCH = 1 a sample, and -1 is added with lr: 1.
TINY, LABEL = 2.0**-40, -(2.0**39) * BATCH
JOB = f"""
job: JOB
seed: 3
data:
  format: kafka
  kafka: {{brokers: "BROKERS", topic: clicks, wait: 1h}}
  columns:
    - {{name: value, role: label}}
    - {{name: key, type: id}}
    - {{name: tiny}}
model:
  tables: {{count: {{dim: 1, init: zeros, optimizer: {{name: sgd, lr: 1.0}}}}}}
  graph:
    - {{name: row, op: bag, table: count, inputs: [key]}}
    - {{name: product, op: mul, inputs: [row, tiny]}}
  loss: [{{type: mse, input: product, label: value}}]
optimizer: {{name: sgd, lr: 1.0}}
train: {{batch_size: {BATCH}, slices: 4}}
cluster: {{lease: 1s}}
observe: {{http: off}}
"""


class Cluster:
    """The mock cluster, and what was written to the topic."""

    def __init__(self):
        self.process = subprocess.Popen([MOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.brokers = self.process.stdout.readline().split()[1]
        self.keys = collections.Counter()
        self.lock = threading.Lock()

    def do(self, *words):
        with self.lock:
            self.process.stdin.write("\t".join(words) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        assert answer.startswith("done"), answer

    def put_texts(self, topic, texts):
        lines = "".join(f"put\t{topic}\t{i % PARTITIONS}\t{text}\n" for i, text in enumerate(texts))
        with self.lock:
            self.process.stdin.write(lines)
            self.process.stdin.flush()

    def put(self, count, draw):
        """Writes samples of random keys, some keys far more often than others; without `draw`, of new keys."""
        new = len(self.keys)
        keys = [int(1000 * draw.random() ** 2) if draw else new + i for i in range(count)]
        self.keys.update(keys)
        self.put_texts("clicks", (f"{LABEL!r},{key},{TINY!r}" for key in keys))

    def close(self):
        self.process.kill()
        self.process.communicate()


def numbers(npy, kind):
    """The numbers of a file of numpy, whose header is as long as its bytes 8 and 9 say."""
    return list(array.array(kind, npy[10 + int.from_bytes(npy[8:10], "little"):]))


class JobTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="dt_test_")
        self.addCleanup(self.folder.cleanup)
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.cluster.do("create", "clicks", str(PARTITIONS))
        self.draw = random.Random(5)
        self.job = f"stream-{os.getpid()}-{self._testMethodName.replace('_', '-')}"
        text = JOB.replace("JOB", self.job).replace("BROKERS", self.cluster.brokers)
        (pathlib.Path(self.folder.name) / "job.yaml").write_text(text)

    def start(self, command, *more, log="log.txt"):
        output = open(pathlib.Path(self.folder.name) / log, "w")
        self.addCleanup(output.close)
        words = [PROGRAM, command, "job.yaml", "--result", "result.json", "--no-progress", *more]
        run = subprocess.Popen(words, cwd=self.folder.name, stdout=output, stderr=output)
        self.addCleanup(self.end, run)
        return run

    def end(self, run):
        if run.poll() is None:
            run.kill()
            for pid in self.processes():
                os.kill(pid, signal.SIGKILL)
        run.wait()

    def log(self, log="log.txt"):
        return (pathlib.Path(self.folder.name) / log).read_text()

    def run_job(self, command, *more, code=0):
        run = self.start(command, *more)
        self.assertEqual(run.wait(timeout=120), code, self.log())
        return json.loads((pathlib.Path(self.folder.name) / "result.json").read_text())

    def processes(self, role=""):
        """The processes of this test's job."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
                here = words and os.readlink(entry / "cwd") == self.folder.name
            except OSError:
                continue
            if here and words[0] == os.fsencode(PROGRAM) and words[1].decode() in (role or "scheduler server worker"):
                found.append(int(entry.name))
        return sorted(found)

    def counts(self):
        """What the rows of the newest checkpoint have counted."""
        folder = pathlib.Path(self.folder.name)
        newest = sorted((folder / "runs" / self.job / "checkpoints").glob("step-*"))[-1]
        subprocess.run([PROGRAM, "export", newest, "--format", "npz", "--out", "rows.npz"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        with zipfile.ZipFile(folder / "rows.npz") as rows:
            keys, values = (numbers(rows.read(f"table.count.{name}.npy"), kind) for name, kind in
                            [("keys", "Q"), ("values", "f")])
        return dict(zip(keys, values))

    def expect_exact(self):
        self.assertEqual(self.counts(), {key: -float(count) for key, count in self.cluster.keys.items()})

    def expect_each_once(self):
        counts = self.counts()
        self.assertEqual(counts.keys(), self.cluster.keys.keys())
        self.assertLess(max(abs(1 + count) for count in counts.values()), 1e-3)

    def killed(self, *more, messages=800 * BATCH, kills=5, outage=0, draw=None):
        """Kills processes of all roles while messages come, until all is trained. Returns the seconds that took."""
        begin = time.monotonic()
        cluster = "cluster={servers: 2, workers: 2, replicas: 2, lease: 1s, restarts: 100}"
        run = self.start("launch", "--set", cluster, "--set",
                         "train.until=forever", "--set", "checkpoint.interval=2s", *more)
        writing = threading.Thread(target=self.write_ahead, args=(messages, run, draw))
        writing.start()
        for kill in range(kills):
            time.sleep(4)
            self.assertIsNone(run.poll(), self.log())
            if pids := self.processes(["worker", "server", "scheduler"][kill % 3]):
                os.kill(self.draw.choice(pids), signal.SIGKILL)
        if outage:
            self.cluster.do("down")
            time.sleep(outage)
            self.cluster.do("up")
        writing.join()
        self.wait_for(messages, run)
        seconds = time.monotonic() - begin
        run.send_signal(signal.SIGTERM)
        run.wait(timeout=60)
        return seconds

    def write_ahead(self, messages, run, draw, ahead=100_000):
        """The cluster keeps a few MB of a partition, so no more is written than `ahead` of what a checkpoint has."""
        for written in range(0, messages, 40 * BATCH):
            while written - self.saved() > ahead and run.poll() is None:
                time.sleep(0.1)
            self.cluster.put(min(40 * BATCH, messages - written), draw)
            time.sleep(0.1)
        self.cluster.do("flush")

    def saved(self):
        """How many samples the newest checkpoint has."""
        found = sorted((pathlib.Path(self.folder.name) / "runs" / self.job / "checkpoints").glob("step-*/manifest.json"))
        try:
            return json.loads(found[-1].read_text())["course"]["samples"] if found else 0
        except OSError:
            return 0  # It was replaced meanwhile.

    def wait_for(self, samples, run, seconds=90):
        deadline = time.monotonic() + seconds
        while self.saved() < samples:
            self.assertIsNone(run.poll(), self.log())
            self.assertLess(time.monotonic(), deadline, self.log())
            time.sleep(0.2)


class KafkaTest(JobTest):
    def test_all_messages_once(self):
        self.cluster.put(250 * BATCH, self.draw)
        self.cluster.do("flush")
        result = self.run_job("train")
        self.assertEqual(result["samples"], 250 * BATCH)
        self.expect_exact()
        # The next day it goes on where it was.
        self.cluster.put(50 * BATCH, self.draw)
        self.cluster.do("flush")
        result = self.run_job("train", "--resume", "auto")
        self.assertEqual((result["samples"], result["steps"]), (300 * BATCH, 300))
        self.expect_exact()

    def test_the_last_messages_are_no_batch(self):
        self.cluster.put(BATCH + 9, self.draw)
        self.cluster.do("flush")
        result = self.run_job("train", "--set", "data.kafka.wait=200ms")
        self.assertEqual(result["samples"], BATCH + 9)

    def test_windows_are_evaluated_first(self):
        self.cluster.put(100 * BATCH, self.draw)
        self.cluster.do("flush")
        result = self.run_job("train", "--set", "train.evaluate_every=20")
        self.assertEqual([each["step"] for each in result["history"]], [20, 40, 60, 80])
        self.expect_exact()

    def test_killed_processes(self):
        self.killed(draw=random.Random(6))
        self.expect_exact()

    # A sample's gradient depends on how many are in its slice, so each key has one sample, and rows are moved by lr
    # in its direction. A second update would move them by 0.7 more.
    def test_killed_asynchronous_processes(self):
        self.killed("--set", "train.staleness=2", "--set", "train.slices=auto", "--set",
                    "model.tables.count.optimizer={name: adagrad, lr: 1.0}")
        self.expect_each_once()

    def test_a_broker_that_is_away_is_waited_for(self):
        self.cluster.put(50 * BATCH, self.draw)
        self.cluster.do("flush")
        run = self.start("train", "--set", "train.until=forever", "--set", "checkpoint.interval=1s")
        time.sleep(2)
        self.cluster.do("down")
        time.sleep(6)
        self.cluster.do("up")
        self.cluster.put(50 * BATCH, self.draw)
        self.cluster.do("flush")
        self.wait_for(100 * BATCH, run)
        run.send_signal(signal.SIGTERM)
        run.wait(timeout=60)
        self.assertIn("kafka.waits", self.log())
        self.expect_exact()

    def fails(self, code, *texts, more=()):
        result = self.run_job("train", *more, code=code)
        for text in texts:
            self.assertIn(text, result["error"]["what"] + result["error"].get("hint", ""))

    def test_mistakes(self):
        self.fails(2, "no.such.setting", more=["--set", "data.kafka.settings=[no.such.setting=1]"])
        self.fails(1, "no answer from the brokers 127.0.0.1:9 for",
                   more=["--set", "data.kafka.brokers=127.0.0.1:9", "--set", "data.kafka.patience=2s"])

    def test_a_message_that_is_no_row(self):
        self.cluster.put(4 * BATCH, self.draw)
        self.cluster.put_texts("clicks", ["1,2,3", "1,2", "1,x,3", "1,2,3\r"])
        self.cluster.do("flush")
        self.fails(3, "topic clicks, partition 1, offset 64: 2 cells found, 3 expected",
                   more=["--set", "data.kafka.wait=1s"])
        result = self.run_job("train", "--set", "data.kafka.wait=1s", "--set", "data.on_error=skip")
        self.assertIn("data.messages_skipped", self.log())
        self.assertEqual(result["status"], "completed")

    def test_fewer_partitions_than_before(self):
        self.cluster.put(4 * BATCH, self.draw)
        self.cluster.do("flush")
        self.run_job("train")
        self.cluster.close()
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.cluster.do("create", "clicks", "2")
        self.fails(2, "the topic has 2 partitions, and 4 when the checkpoint was made",
                   more=["--resume", "auto", "--set", f"data.kafka.brokers={self.cluster.brokers}"])


class MillionTest(JobTest):
    def test_a_million_messages_through_ten_kills(self):
        seconds = self.killed(messages=15_625 * BATCH, kills=10, outage=20, draw=random.Random(6))
        self.expect_exact()
        self.assertIn("kafka.waits", self.log())
        print(f"1 million messages, 10 kills, a broker away for 20 s: exact, in {seconds:.0f} s")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
