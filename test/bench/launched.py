"""A job under `dovetail launch`, looked at from outside while it runs; for the scripts beside this file."""
import json
import os
import subprocess
import time
import urllib.request


class Job:
    """A launched job, looked at from outside."""

    def __init__(self, dovetail, folder, name, settings=()):
        """Of folder/job.yaml, under a name of its own."""
        self.dovetail, self.folder, self.name = dovetail, folder, name
        self.flags = [word for setting in (f"job={name}", *settings) for word in ("--set", setting)]
        self.result = folder / f"{name}.json"
        self.launch = subprocess.Popen([dovetail, "launch", "job.yaml", "--no-progress", "--result", self.result, *self.flags],
                                       cwd=folder, stdout=subprocess.DEVNULL)
        self.seen = []  # (time, samples)

    def run_file(self):
        return json.loads((self.run_folder() / "run.json").read_text())

    def run_folder(self):
        return self.folder / "runs" / self.name

    def look(self):
        with urllib.request.urlopen(self.run_file()["http"] + "status", timeout=10) as answer:
            status = json.load(answer)
        self.seen.append((time.monotonic(), status["samples"]))
        return status

    def until(self, done, seconds=600):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                status = self.look()
                if done(status):
                    return status
            except OSError:
                pass
            assert self.launch.poll() is None, "the job has ended"
            time.sleep(0.25)
        raise SystemExit("it takes too long")

    def rest(self, seconds):
        begin = time.monotonic()
        self.until(lambda _: time.monotonic() - begin > seconds)

    def rates(self, begin, end, window=5, counts=lambda first, last: True):
        """Samples a second in windows between two times, if these numbers of samples count."""
        found = []
        while begin + window <= end:
            inside = [s for s in self.seen if begin <= s[0] <= begin + window]
            if len(inside) > 1 and counts(inside[0][1], inside[-1][1]):
                found.append((inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0]))
            begin += window
        return found

    def server(self):
        """Starts one more."""
        return subprocess.Popen([self.dovetail, "server", "job.yaml", "--scheduler", self.run_file()["scheduler"], *self.flags],
                                cwd=self.folder)

    def drain(self, server):
        subprocess.run([self.dovetail, "drain", str(server), "job.yaml", *self.flags], cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL)

    def step_starts(self):
        """By worker, after the end, with observe.trace: when it began its steps, in seconds."""
        found = []
        for path in sorted((self.run_folder() / "trace").glob("worker-*.json")):
            spans = json.loads(path.read_text())["traceEvents"]
            found.append(sorted(span["ts"] / 1e6 for span in spans if span["name"].startswith("step ")))
        return found

    def end(self):
        assert self.launch.wait(timeout=1800) == 0
        return json.loads(self.result.read_text())


def cpu_of(pids):
    total = 0
    for pid in pids:
        try:
            fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            pass
    return total


def servers(status):
    return [process for process in status["processes"] if process["role"] == "server"]


def whole(count):
    """Whether so many servers have shards, and no shard has a copy too few, or is being moved."""
    def done(status):
        mine, shards = servers(status), status["shards"]
        return (len(mine) == count and min(p["shards"] for p in mine) > 0 and not shards["copies"] and shards["short"] == 0
                and shards["copies_left"] == 0)
    return done


def longest_gap(starts, begin, end):
    """The longest time between two steps of a worker, of which one is between these times."""
    return max(b - a for steps in starts for a, b in zip(steps, steps[1:]) if a < end and b > begin)
