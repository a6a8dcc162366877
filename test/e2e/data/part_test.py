#!/usr/bin/env python3
"""Goal: with data.read: part, the workers of a job together read each byte of the data once, and end with the bits of a
job in which each reads all. Method: the real program with one, two and three worker processes; what each of them has
read is what the kernel counts (rchar in /proc/PID/io).

    part_test.py DOVETAIL
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "dovetail").resolve()
ROWS = 400_000
JOB = """
job: part
seed: 3
data:
  format: csv
  train: [a.csv, b.csv]
  columns:
    - {name: click, role: label}
    - {name: user, type: id}
    - {name: text, type: string}
model:
  tables: {t: {dim: 4}}
  graph:
    - {name: e, op: bag, table: t, inputs: [user, text]}
    - {name: logit, op: mlp, inputs: [e], units: [4, 1]}
  loss: [{type: binary_cross_entropy, input: logit, label: click}]
train: {batch_size: 4096, slices: 6}
observe: {http: off}
"""


class PartTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="dt_test_")
        self.addCleanup(self.folder.cleanup)
        folder = pathlib.Path(self.folder.name)
        (folder / "job.yaml").write_text(JOB)
        draw = random.Random(1)
        self.bytes = 0
        for name, rows in (("a.csv", ROWS * 3 // 4), ("b.csv", ROWS // 4)):
            lines = (f"{draw.randrange(2)},{draw.randrange(10_000)},{'x' * draw.randrange(40)}\n" for _ in range(rows))
            (folder / name).write_text("click,user,text\n" + "".join(lines))
            self.bytes += (folder / name).stat().st_size

    def read_by_workers(self, job):
        """What each worker has read so far. They are the children of launch."""
        read = {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or f"PPid:\t{job.pid}\n" not in (entry / "status").read_text():
                    continue
                if (entry / "cmdline").read_bytes().split(b"\0")[1] == b"worker":
                    read[entry.name] = int((entry / "io").read_text().split()[1])
            except (OSError, IndexError):
                pass  # It has ended.
        return read

    def run_job(self, workers, *more):
        """The bytes that each worker has read, and the job's checksums."""
        words = [PROGRAM, "launch", "job.yaml", "--result", "result.json", "--no-progress", "--set",
                 f"cluster.workers={workers}", "--set", f"data.cache_dir=cache-{workers}-{len(more)}", *more]
        with open(pathlib.Path(self.folder.name) / "log.txt", "w") as log:
            job = subprocess.Popen(words, cwd=self.folder.name, stdout=log, stderr=log)
            read = {}
            while job.poll() is None:
                read.update(self.read_by_workers(job))
                time.sleep(0.01)
        folder = pathlib.Path(self.folder.name)
        self.assertEqual(job.returncode, 0, (folder / "log.txt").read_text())
        result = json.loads((folder / "result.json").read_text())
        return list(read.values()), result["checksum"]

    def test_each_byte_is_read_once(self):
        _, expected = self.run_job(1, "--set", "data.shuffle.by=slices")
        for workers in 2, 3:
            read, checksums = self.run_job(workers, "--set", "data.read=part")
            print(f"{workers} workers read {read} bytes of {self.bytes}", flush=True)
            self.assertEqual(len(read), workers)
            self.assertEqual(checksums, expected)
            self.assertGreaterEqual(sum(read), self.bytes)
            self.assertLess(sum(read), 1.02 * self.bytes + workers * 1_000_000)  # Libraries, headers, the job file.
            for each in read:
                self.assertLess(each, 1.1 * self.bytes / workers + 1_000_000)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
