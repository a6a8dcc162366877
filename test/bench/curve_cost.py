#!/usr/bin/env python3
"""What encryption costs: the same job with CURVE and in the clear, in turns.

On two hosts, which are network namespaces of this machine (needs root and ip): scheduler and server on one, the worker on the
other, so that rows go over TCP. On one host (`dovetail launch`), where rows go through shared memory. Prints samples a second
and CPU-seconds per million samples, median of the pairs' ratios. And the checksums, which must all be the same.

    test/bench/curve_cost.py --dovetail build/release/dovetail --rows 400000 --pairs 5
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

JOB = """job: curve_cost
seed: 1
data: {format: criteo, train: [data/train.tsv]}
model:
  use: MODELS/deepfm.yaml
  with: {ids: [C*], numeric: [I*], dim: 16, units: [64, 32]}
optimizer: {name: adam, lr: 0.001}
train: {batch_size: 4096, epochs: 2}
cluster: {servers: 1, workers: 1}
"""
SCHEDULER = "tcp://10.77.0.1:4700"


def run(*command, **more):
    subprocess.run([str(c) for c in command], check=True, **more)


class TwoHosts:
    """Namespaces a (10.77.0.1) and b (10.77.0.2), joined by a cable."""

    def __enter__(self):
        self.__exit__()
        for host in "ab":
            run("ip", "netns", "add", f"dovetail-{host}")
        run("ip", "link", "add", "dovetail-a", "netns", "dovetail-a", "type", "veth", "peer", "name", "dovetail-b",
            "netns", "dovetail-b")
        for i, host in enumerate("ab", 1):
            inside = ["ip", "-n", f"dovetail-{host}"]
            run(*inside, "addr", "add", f"10.77.0.{i}/24", "dev", f"dovetail-{host}")
            run(*inside, "link", "set", f"dovetail-{host}", "up")
            run(*inside, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for host in "ab":
            subprocess.run(["ip", "netns", "del", f"dovetail-{host}"], stderr=subprocess.DEVNULL)

    def start(self, host, *command, cwd):
        return subprocess.Popen(["ip", "netns", "exec", f"dovetail-{host}", *map(str, command)], cwd=cwd)


def two_hosts(hosts, dovetail, folder, flags):
    result = ["--result", "r.json"]
    processes = [hosts.start("a", dovetail, "scheduler", "job.yaml", "--listen", SCHEDULER, *result, *flags, cwd=folder)]
    for host, role, address in (("a", "server", "tcp://10.77.0.1:0"), ("b", "worker", "tcp://10.77.0.2:0")):
        processes.append(hosts.start(host, dovetail, role, "job.yaml", "--scheduler", SCHEDULER, "--listen", address,
                                     *flags, cwd=folder))
    for process in processes:
        assert process.wait(timeout=600) == 0, process.args


def one_host(_, dovetail, folder, flags):
    run(dovetail, "launch", "job.yaml", "--result", "r.json", *flags, cwd=folder, stdout=subprocess.DEVNULL)


def measure(way, hosts, dovetail, folder, clear):
    way(hosts, dovetail, folder, ["--set", "security.insecure=true"] if clear else [])
    result = json.loads((folder / "r.json").read_text())
    cpu = sum(role["cpu_seconds"] for role in result["roles"])
    return result["samples_per_second"], cpu / result["samples"] * 1e6, json.dumps(result["checksum"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dovetail", type=pathlib.Path, default=pathlib.Path("build/release/dovetail"))
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--pairs", type=int, default=5)
    args = parser.parse_args()
    dovetail = args.dovetail.resolve()
    models = pathlib.Path(__file__).resolve().parents[2] / "configs" / "models"
    checksums = set()
    with tempfile.TemporaryDirectory() as name, TwoHosts() as hosts:
        folder = pathlib.Path(name)
        (folder / "job.yaml").write_text(JOB.replace("MODELS", str(models)))
        run(dovetail, "data", "generate", "--rows", args.rows, "--out", folder / "data", stdout=subprocess.DEVNULL)
        for title, way in (("two hosts, tcp", two_hosts), ("one host, shared memory", one_host)):
            measure(way, hosts, dovetail, folder, True)  # The first run only warms up.
            pairs = [[measure(way, hosts, dovetail, folder, clear) for clear in (True, False)] for _ in range(args.pairs)]
            checksums |= {one[2] for pair in pairs for one in pair}
            for at, what, unit in ((0, "samples/s", 1e-3), (1, "CPU-s per million samples", 1)):
                clear, curve = ([pair[i][at] * unit for pair in pairs] for i in (0, 1))
                ratios = [b / a for a, b in zip(clear, curve)]
                print(f"{title}: {what}: clear {statistics.median(clear):.2f}{' k' if at == 0 else ''}, CURVE "
                      f"{statistics.median(curve):.2f}{' k' if at == 0 else ''}, ratio {statistics.median(ratios):.3f} "
                      f"({min(ratios):.3f} to {max(ratios):.3f})")
    print(f"{len(checksums)} checksum{'' if len(checksums) == 1 else 's'} in all")


if __name__ == "__main__":
    main()
