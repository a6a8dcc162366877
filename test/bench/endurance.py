#!/usr/bin/env python3
"""Misfortunes, many times: jobs of separate processes that must end right each time.

disk        The disk is filled at a random instant. The job must end with a sentence and exit code 1; with room again and
            --resume auto it must end with the checksums of a job that nothing disturbed. Needs root, to mount a small disk.
files       `ulimit -n 1024`, the hard limit too, 16 executors, rows on disk, a checkpoint every 100 steps.
namespaces  From another network namespace and another account, without a key: every listening port of a training job is
            asked for status, rows, a place, its end. All must be refused, the checksums undisturbed. Needs root and ip.

    test/bench/endurance.py disk --build build/release --times 40
"""
import argparse
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import programs

JOB = """job: endurance
seed: 3
data: {format: criteo, train: [DATA/train.tsv], test: [DATA/test.tsv]}
model:
  use: MODELS/fm.yaml
  with: {ids: [C*], dim: 8, l2: 0}
optimizer: {name: adam, lr: 0.001}
train: {batch_size: 1024, epochs: 3}
cluster: {servers: 2, workers: 2, shards: 32, restarts: 0, server: {memory: 2MiB, executors: 2}}
checkpoint: {every: 100, keep: 2, durability: log}
"""
SENTENCES = ("the disk is full", "No space left on device")
TIMEOUT_S = 300


class Scene:
    """A folder with data, the job file, and the checksums of an undisturbed job."""

    def __init__(self, folder, dovetail, rows):
        self.folder, self.dovetail = pathlib.Path(folder), dovetail
        models = pathlib.Path(__file__).resolve().parents[2] / "configs" / "models"
        data = self.folder / "data"
        subprocess.run([dovetail, "data", "generate", "--rows", str(rows), "--out", data], check=True,
                       stdout=subprocess.DEVNULL)
        (self.folder / "job.yaml").write_text(JOB.replace("DATA", str(data)).replace("MODELS", str(models)))
        begin = time.monotonic()
        self.finish(self.launch("calm"))
        self.seconds = time.monotonic() - begin
        self.calm = self.checksum("calm")
        print(f"undisturbed: {self.seconds:.1f} s, {self.result('calm')['steps']} steps", flush=True)

    def launch(self, name, *flags, before=None):
        return subprocess.Popen([self.dovetail, "launch", "job.yaml", "--set", f"job={name}", "--result", f"{name}.json", *flags],
                                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=before)

    def finish(self, process, expected=0):
        output, _ = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == expected, f"exit {process.returncode}, not {expected}:\n{output}"
        return output

    def result(self, name):
        return json.loads((self.folder / f"{name}.json").read_text())

    def checksum(self, name):
        return json.dumps(self.result(name)["checksum"])


def disk(scene, chance, _):
    """Returns what the job said. A job that ends before the disk is full is tried again."""
    mount = scene.folder / "runs"
    shutil.rmtree(mount, ignore_errors=True)
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", mount], check=True)
    try:
        for _ in range(10):
            job = scene.launch("full")
            # The disk becomes full at a random instant.
            time.sleep(chance.uniform(0.3, 0.9 * scene.seconds))
            filler = mount / "filler"
            try:
                with open(filler, "wb", buffering=0) as out:
                    while out.write(bytes(1 << 16)):
                        pass
            except OSError:
                pass  # The disk is full now.
            output, _ = job.communicate(timeout=TIMEOUT_S)
            filler.unlink(missing_ok=True)
            if job.returncode == 0:
                continue  # The job ended without needing more space.
            assert job.returncode == 1 and any(s in output for s in SENTENCES), f"exit {job.returncode}:\n{output}"
            scene.finish(scene.launch("full", "--resume", "auto"))
            assert scene.checksum("full") == scene.calm, "other checksums"
            return next(line for line in output.splitlines() if any(s in line for s in SENTENCES))
        raise AssertionError("ten jobs in a row ended before the disk was full")
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


def files(scene, _, times):
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    name = f"files{times}"
    scene.finish(scene.launch(name, "--set", "cluster.server.executors=16", "--set", "cluster.shards=64", before=limit))
    assert scene.checksum(name) == scene.calm, "other checksums"
    shutil.rmtree(scene.folder / "runs" / name)
    return "the same checksums"


class Hosts:
    """Namespaces dovetail-a (10.78.0.1), where the job is, and dovetail-b, where the stranger is."""

    def __enter__(self):
        self.__exit__()
        for host in "ab":
            subprocess.run(["ip", "netns", "add", f"dovetail-{host}"], check=True)
        subprocess.run("ip link add dovetail-a netns dovetail-a type veth peer name dovetail-b netns dovetail-b".split(), check=True)
        for i, host in enumerate("ab", 1):
            for what in (f"addr add 10.78.0.{i}/24 dev dovetail-{host}", f"link set dovetail-{host} up", "link set lo up"):
                subprocess.run(["ip", "-n", f"dovetail-{host}", *what.split()], check=True)

    def __exit__(self, *_):
        for host in "ab":
            subprocess.run(["ip", "netns", "del", f"dovetail-{host}"], stderr=subprocess.DEVNULL)


def ports_of(namespace):
    text = subprocess.run(["ip", "netns", "exec", namespace, "ss", "-Hltn"], capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r"10\.78\.0\.1:(\d+)", text)))


def namespaces(scene, _, times):
    """Strangers ask until the job ends; returns how many there were, all refused."""
    inside = ["ip", "netns", "exec", "dovetail-a", scene.dovetail]
    name = f"spaces{times}"
    shared = ["job.yaml", "--set", f"job={name}", "--set", "checkpoint.durability=checkpoint"]
    start = lambda *command: subprocess.Popen([*inside, *command], cwd=scene.folder, stdout=subprocess.DEVNULL)
    address = "tcp://10.78.0.1:4701"
    roles = [start("scheduler", *shared, "--listen", address, "--result", f"{name}.json")]
    for role in ("server", "server", "worker", "worker"):
        roles.append(start(role, *shared, "--scheduler", address, "--listen", "tcp://10.78.0.1:0"))
    test = programs.find(scene.build, "hostile_network_test")
    strangers = 0
    while roles[0].poll() is None:
        ports = ports_of("dovetail-a")
        if len(ports) < 3:
            time.sleep(0.1)  # The servers are not listening yet.
            continue
        stranger = subprocess.run(
            ["ip", "netns", "exec", "dovetail-b", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", test,
             "--gtest_also_run_disabled_tests", "--gtest_filter=Stranger.*"], capture_output=True, text=True, timeout=TIMEOUT_S,
            env={**os.environ, "DT_STRANGER_PORTS": " ".join(f"tcp://10.78.0.1:{port}" for port in ports)})
        assert stranger.returncode == 0, stranger.stdout
        strangers += 1
    for role in roles:
        assert role.wait(timeout=TIMEOUT_S) == 0, role.args
    assert scene.checksum(name) == scene.calm, "other checksums"
    assert strangers > 0, "the job ended before anybody asked"
    return f"{strangers} strangers refused everything"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = {"disk": disk, "files": files, "namespaces": namespaces}
    parser.add_argument("way", choices=ways)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--seed", type=int, default=1, help="of the random instants")
    args = parser.parse_args()
    chance = random.Random(args.seed)
    right = 0
    with tempfile.TemporaryDirectory() as folder, Hosts() if args.way == "namespaces" else open(os.devnull):
        scene = Scene(folder, programs.find(args.build, "dovetail"), args.rows)
        scene.build = args.build
        for i in range(args.times):
            try:
                print(f"{i + 1}: {ways[args.way](scene, chance, i)}", flush=True)
                right += 1
            except (AssertionError, subprocess.TimeoutExpired) as error:
                print(f"{i + 1}: WRONG: {error}", flush=True)
    print(f"{args.way}: {right} of {args.times} right")
    return 0 if right == args.times else 1


if __name__ == "__main__":
    sys.exit(main())
