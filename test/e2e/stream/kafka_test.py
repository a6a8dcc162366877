#!/usr/bin/env python3
"""Goal: a job trains on a Kafka topic, each message exactly once whatever happens to its processes and to the broker;
and ends with one sentence where a topic, a message or a broker is not as it should be. Method: the real program,
librdkafka's mock cluster in a process of its own, and a model whose rows count their samples.

    kafka_test.py DOVETAIL MOCK_KAFKA
"""
import collections
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
import unittest

from counting_job import BATCH, PROGRAM, JobTest, line

MOCK = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "mock_kafka").resolve()
SKIPPED = 77  # What ctest counts as skipped.
PARTITIONS = 4

if not (PROGRAM.parent / "libdovetail_kafka.so").exists():
    print("skipped: this build has no librdkafka; scripts/setup.sh installs it")
    sys.exit(SKIPPED)


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
        self.put_texts("clicks", map(line, keys))

    def close(self):
        self.process.kill()
        self.process.communicate()


class TopicTest(JobTest):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.cluster.do("create", "clicks", str(PARTITIONS))
        self.prepare(f"""format: kafka
  kafka: {{brokers: "{self.cluster.brokers}", topic: clicks, wait: 1h}}""")

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

class KafkaTest(TopicTest):
    def test_all_messages_once(self):
        self.cluster.put(250 * BATCH, self.draw)
        self.cluster.do("flush")
        result = self.run_job("train")
        self.assertEqual(result["samples"], 250 * BATCH)
        self.expect_exact(self.cluster.keys)
        # The next day it goes on where it was.
        self.cluster.put(50 * BATCH, self.draw)
        self.cluster.do("flush")
        result = self.run_job("train", "--resume", "auto")
        self.assertEqual((result["samples"], result["steps"]), (300 * BATCH, 300))
        self.expect_exact(self.cluster.keys)

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
        self.expect_exact(self.cluster.keys)

    def test_killed_processes(self):
        self.killed(draw=random.Random(6))
        self.expect_exact(self.cluster.keys)

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
        self.expect_exact(self.cluster.keys)

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
        self.fails(2, "the topic has 2 partitions, and the job has trained on 4",
                   more=["--resume", "auto", "--set", f"data.kafka.brokers={self.cluster.brokers}"])


class MillionTest(TopicTest):
    def test_a_million_messages_through_ten_kills(self):
        seconds = self.killed(messages=15_625 * BATCH, kills=10, outage=20, draw=random.Random(6))
        self.expect_exact(self.cluster.keys)
        self.assertIn("kafka.waits", self.log())
        print(f"1 million messages, 10 kills, a broker away for 20 s: exact, in {seconds:.0f} s")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
