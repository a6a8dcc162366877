#!/usr/bin/env python3
"""Compares every #include with who may include whom. Prints one line per wrong one; exit 1 if there is any.

    layers.py [ROOT]      checks the tree
    layers.py --self-test checks the rules on made-up includes
"""
import pathlib
import re
import sys

# Our own headers: files whose path matches the first pattern may include files that match the second. The first row
# that matches a file counts. In addition, no two second-level directories may include each other.
LAYERS = [
    (r"common/base/", r"common/base/"),
    (r"common/specs/", r"common/(base|specs)/"),
    (r"common/config/reader/", r"common/(base|config/reader|specs)/"),
    (r"common/config/", r"common/(base|config|graph|metrics|specs)/"),
    (r"common/", r"common/"),
    (r"ops/.*op_spec|ops/op_list", r"common/(base|config|device|graph|layout|specs)/|ops/"),
    (r"ops/", r"common/(base|config|device|graph|layout|runtime|metrics|specs)/|ops/"),
    (r"scheduler/", r"common/|scheduler/|ops/(op_spec|op_list|sharding)\.h|ops/.*_spec\.h|ops/update/(attrs|update)\.h"),
    (r"server/", r"common/|server/|ops/update/"),
    (r"worker/", r"common/|worker/|ops/"),
    (r"cli/", r"(common|ops|scheduler|server|worker|cli)/"),
    (r"test/", r"."),
]

# Outside libraries: only files that match the second pattern may include headers that match the first.
OUTSIDE = [
    ("ZeroMQ", r"zmq(_addon)?\.h(pp)?$", r"common/net/zmq_"),
    ("Asio, Beast", r"boost/(asio|beast)", r"common/runtime/|common/net/http"),
    ("Boost", r"boost/", r"common/(runtime|net)/"),
    ("yaml-cpp", r"yaml-cpp/", r"common/config/reader/yaml_"),
    ("RocksDB", r"rocksdb/", r"common/storage/rocksdb_"),
    ("oneTBB", r"(tbb|oneapi)/", r"common/runtime/task_pool\.cc"),
    ("FlatBuffers", r"flatbuffers/|.*_generated\.h$", r"common/wire/|common/(control/codec|plan/plan_codec)\.cc"),
    ("Gloo", r"gloo/", r"worker/collective/\w+_gloo\.(h|cc)"),
    ("oneDNN", r"(oneapi/)?dnnl", r"ops/(.*/)?compiled_product_cpu\.cc"),
    ("spdlog", r"spdlog/", r"common/base/log\.cc"),
    ("CLI11", r"CLI/", r"cli/"),
    ("xxHash", r"xxhash", r"common/base/"),
    ("dynamic loading", r"dlfcn\.h", r"common/device/|worker/data/(arrow|kafka)/\w+_library\.cc"),
    ("Arrow", r"(arrow|parquet)/", r"worker/data/arrow/\w+_arrow\.(h|cc)"),
    ("librdkafka", r"librdkafka/", r"worker/data/kafka/\w+_kafka\.cc|test/"),
    ("NCCL", r"nccl", r"common/device/nccl_cuda\.cu"),
    ("CUDA", r"(cuda|cublas|curand|cusparse|device_launch|cub/|thrust/|cooperative_groups|nvtx|mma\.h)",
     r".*_cuda\.(h|cu|cuh|cc)|.*\.cu|common/device/"),
    ("GoogleTest", r"g(test|mock)/", r"test/"),
]

TOPS = ("common", "ops", "scheduler", "server", "worker", "cli", "test")
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


def problem_with(path, quote, header):
    """Why `path` may not include `header`; None if it may."""
    for library, pattern, allowed in OUTSIDE:
        if re.match(pattern, header) and not (quote == '"' and header.startswith(TOPS)):
            if re.match(allowed, path):
                return None
            return f"includes <{header}>; {library} is named only in {allowed}"
    if quote == "<":
        return None
    if re.match(r"common/wire/|common/(control/codec|plan/plan_codec)\.cc", path) and header.endswith("_generated.h"):
        return None
    if not header.startswith(tuple(f"{top}/" for top in TOPS)):
        if "absl/" in header:
            return None
        return f'includes "{header}"; ours are included by their path from the root'
    for files, allowed in LAYERS:
        if re.match(files, path):
            if re.match(allowed, header):
                return None
            return f'includes "{header}"; it may include {allowed}'
    return f'includes "{header}", and no layer is known for this file'


def cycle_in(edges):
    """A cycle among directories as a list, first = last; None if there is none."""
    state, trail = {}, []

    def visit(at):
        state[at] = "open"
        trail.append(at)
        for to in sorted(edges.get(at, ())):
            if state.get(to) == "open":
                return trail[trail.index(to):] + [to]
            if to not in state:
                found = visit(to)
                if found:
                    return found
        trail.pop()
        state[at] = "done"
        return None

    for start in sorted(edges):
        if start not in state:
            found = visit(start)
            if found:
                return found
    return None


def directory_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0] + "/*"


def check_tree(root):
    problems, edges, count = [], {}, 0
    for top in TOPS:
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            path = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                include = INCLUDE.match(line)
                if not include:
                    continue
                count += 1
                why = problem_with(path, include[1], include[2])
                if why:
                    problems.append(f"{path}:{number}: {why}")
                source, target = directory_of(path), directory_of(include[2])
                loose = "/*" in source + target or top in ("test", "cli")
                if include[2].startswith(TOPS) and source != target and not loose:
                    edges.setdefault(source, set()).add(target)
    cycle = cycle_in(edges)
    if cycle:
        problems.append("directories include each other in a circle: " + " → ".join(cycle))
    return problems, count


def self_test():
    cases = [
        ("common/base/a.cc", '"', "common/base/a.h", True),
        ("common/base/a.cc", '"', "common/config/load_job.h", False),
        ("common/net/zmq_socket.cc", "<", "zmq.hpp", True),
        ("server/service/loop.cc", "<", "zmq.hpp", False),
        ("server/service/loop.cc", '"', "worker/client/pull.h", False),
        ("server/service/loop.cc", '"', "ops/update/update.h", True),
        ("server/service/loop.cc", '"', "ops/kernel.h", False),
        ("scheduler/plan/plan.cc", '"', "ops/op_spec.h", True),
        ("scheduler/plan/plan.cc", '"', "ops/dense/mlp_cpu.h", False),
        ("worker/engine/run.cc", '"', "ops/kernel.h", True),
        ("worker/engine/run.cc", '"', "kernel.h", False),
        ("worker/engine/run.cc", "<", "cuda_runtime.h", False),
        ("ops/dense/scale_cuda.cu", "<", "cuda_runtime.h", True),
        ("ops/dense/scale.cc", '"', "common/net/zmq_socket.h", False),
        ("common/graph/graph.cc", '"', "ops/op_spec.h", False),
        ("common/wire/pull.cc", '"', "pull_generated.h", True),
        ("common/plan/plan_codec.cc", '"', "plan_generated.h", True),
        ("common/plan/plan.cc", '"', "plan_generated.h", False),
        ("worker/client/pull.cc", '"', "pull_generated.h", False),
    ]
    wrong = [c for c in cases if (problem_with(*c[:3]) is None) != c[3]]
    for path, _, header, allowed in wrong:
        print(f"self-test: {path} including {header} should be {'allowed' if allowed else 'refused'}")
    if cycle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}}) != ["a", "b", "c", "a"]:
        wrong.append("cycle")
        print("self-test: a → b → c → a is a cycle")
    if cycle_in({"a": {"b", "c"}, "b": {"c"}}) is not None:
        wrong.append("no cycle")
        print("self-test: a → b → c, a → c is no cycle")
    print(f"layers: self-test of {len(cases) + 2} cases, {len(wrong)} wrong")
    return 1 if wrong else 0


def main():
    if "--self-test" in sys.argv:
        return self_test()
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    problems, count = check_tree(root)
    print("\n".join(problems + [f"layers: {count} includes, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
