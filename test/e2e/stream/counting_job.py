"""A job on a stream whose rows count their samples: the gradient of a sample is the same power of two whatever the rows
are, so that a row with SGD is exactly the number of its samples."""
import array
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

PROGRAM = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "dovetail").resolve()
BATCH = 64

# A prediction is row * 2^-40, which a float does not notice beside a label of -2^39 * BATCH. So the gradient of the mean
# of (prediction - label)^2 is 2 * 2^39 * BATCH * 2^-40 / BATCH = 1 a sample, and -1 is added with lr: 1.
TINY, LABEL = 2.0**-40, -(2.0**39) * BATCH
JOB = f"""
job: JOB
seed: 3
data:
  SOURCE
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


def line(key):
    return f"{LABEL!r},{key},{TINY!r}"


def numbers(npy, kind):
    """The numbers of a file of numpy, whose header is as long as its bytes 8 and 9 say."""
    return list(array.array(kind, npy[10 + int.from_bytes(npy[8:10], "little"):]))


class JobTest(unittest.TestCase):
    def prepare(self, source):
        """Makes the folder and the job, with `source` in its data section."""
        self.folder = tempfile.TemporaryDirectory(prefix="dt_test_")
        self.addCleanup(self.folder.cleanup)
        self.draw = random.Random(5)
        self.job = f"stream-{os.getpid()}-{self._testMethodName.replace('_', '-')}"
        text = JOB.replace("JOB", self.job).replace("SOURCE", source)
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

    def fails(self, code, *texts, more=()):
        result = self.run_job("train", *more, code=code)
        for text in texts:
            self.assertIn(text, result["error"]["what"] + result["error"].get("hint", ""))

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

    def expect_exact(self, keys):
        """The rows have counted these keys, a Counter."""
        self.assertEqual(self.counts(), {key: -float(count) for key, count in keys.items()})
