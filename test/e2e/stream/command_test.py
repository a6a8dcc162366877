#!/usr/bin/env python3
"""Goal: a job trains on what commands print, without end, each line exactly once whatever happens to its processes; and
ends with one sentence if a command ends. Method: the real program, commands that follow files to which this test writes,
and a model whose rows count their samples.

    command_test.py DOVETAIL
"""
import collections
import os
import pathlib
import signal
import sys
import time
import unittest

from counting_job import BATCH, JobTest, line

PARTITIONS = 4
TAIL = "tail -n +$((DOVETAIL_OFFSET + 1)) -f rows-$DOVETAIL_PARTITION"
FOREVER = ["--set", "train.until=forever", "--set", "checkpoint.interval=1s"]


class CommandTest(JobTest):
    def setUp(self):
        self.prepare(f'format: pipe\n  command: "{TAIL}"\n  partitions: {PARTITIONS}')
        self.keys = collections.Counter()
        self.put(0)

    def put(self, count):
        keys = [int(300 * self.draw.random() ** 2) for _ in range(count)]
        self.keys.update(keys)
        for p in range(PARTITIONS):
            with open(pathlib.Path(self.folder.name) / f"rows-{p}", "a") as rows:
                rows.write("".join(line(key) + "\n" for key in keys[p::PARTITIONS]))

    def stop(self, run):
        run.send_signal(signal.SIGTERM)
        run.wait(timeout=60)
        self.assertEqual(self.processes(), [])

    def test_each_line_once_through_kills_and_the_next_day(self):
        self.put(20 * BATCH)
        run = self.start("launch", "--set", "cluster={servers: 2, workers: 2, replicas: 2, lease: 1s, restarts: 100}",
                         *FOREVER)
        self.wait_for(20 * BATCH, run)
        for number, role in enumerate(["worker", "server", "scheduler", "worker"]):
            self.put(10 * BATCH)
            time.sleep(1)
            self.put(10 * BATCH)
            os.kill(self.draw.choice(self.processes(role)), signal.SIGKILL)
            self.wait_for((40 + 20 * number) * BATCH, run)
        self.stop(run)
        self.expect_exact(self.keys)
        self.put(30 * BATCH)
        run = self.start("train", "--resume", "auto", *FOREVER)
        self.wait_for(130 * BATCH, run)
        self.stop(run)
        self.expect_exact(self.keys)

    def test_a_command_that_ends(self):
        self.fails(2, "of partition", "has ended, before message", "train.until: forever",
                   more=["--set", "data.command=echo 1,2,3", *FOREVER])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
