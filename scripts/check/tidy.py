#!/usr/bin/env python3
"""The rules of style that a machine can check. Prints one line per offence; exit 1 if there is any.

    tidy.py [ROOT]        checks the tree
    tidy.py --base REF    also shows lines added and removed per directory since REF (needs git)
    tidy.py --self-test   runs on the small bad files in scripts/check/bad, compares with expected.txt there
"""
import collections
import pathlib
import re
import subprocess
import sys

import cpp_text

TOPS = ("common", "ops", "scheduler", "server", "worker", "cli", "test")
CPP = (".h", ".cc", ".cu", ".cuh", ".inc")
LINE_COLUMNS = 100
FUNCTION_LINES, TEST_FUNCTION_LINES = 60, 80
HEADER_LINES, SOURCE_LINES, TEST_LINES, MAIN_LINES, CMAKE_LINES = 250, 400, 500, 80, 60
DIRECTORY_SOURCES = 16
PARAMETERS = 5
NESTING, TEST_NESTING = 3, 4
VIRTUALS = 10
TWIN = re.compile(r"_(cpu|cuda|absent)$")

# (pattern in code, what to use instead, files in which it is allowed). Comments are not searched.
BANNED = [
    (r"\bsleep_for\b|\busleep\s*\(|\bsleep\s*\(", "wait on a condition with a deadline", r"^$"),
    (r"\b(steady|system|high_resolution)_clock::now\b", "a Clock that is passed in",
     r"common/base/clock\.cc"),
    (r"\brandom_device\b", "EntropyBits, or a seed", r"common/base/entropy\.cc"),
    (r"\bstd::rand\b|\bsrand\b|(?<![\w.])rand\(\)", "Philox with a seed",
     r"common/net/zmq_socket\.cc"),
    (r"\bnew\b(?!\s*>)", "make_unique or a value", r"^$"),
    (r"\.\s*detach\(", "a thread that is joined", r"^$"),
    (r"(?m)^using namespace\b(?!.*literals)", "the names that are meant", r"^$"),
    (r"\bdirectory_iterator\b|\brecursive_directory_iterator\b",
     "ListFolder (common/base/folder.h), which cannot throw", r"common/base/folder\.cc|test/"),
    (r"\bpoll\s*\(\s*nullptr\b", "Pause (common/base/pause.h)", r"^$"),
    (r"(?<!\w)\*\s*std::make_unique\b[^;]*\.release\(\)", "Immortal (common/base/immortal.h)", r"^$"),
    (r"\bBoundedQueue<[^;{}]*>\s*\w+\{\s*1\s*<<\s*[12]\d", "the number that can be under way", r"^$"),
    (r"\bstatic_cast<void>\([^;]*(\.ok\(\)|\bSend\(|\bReceive\()|\(void\)|\bstd::ignore\b",
     "IgnoreError() for a Status, static_cast<void> for another value", r"^$"),
    (r"\bstd::(mutex|lock_guard|unique_lock|scoped_lock|condition_variable(_any)?)\b",
     "Mutex, MutexLock and Condition (common/base/mutex.h)", r"common/base/(mutex\.h|pause\.cc)"),
    (r"\bvirtual\b[^;{}]*\([^;{})]*=[^;{})]*\)", "two functions; defaults on virtuals mislead", r"^$"),
]
FILE_FUNCTION = re.compile(r"^(?!TEST)[A-Za-z_][\w:<>,&* ]*[ &*>](\w+)\([^;{}]*\) \{", re.MULTILINE)
MARKS = re.compile(r"\b(FIXME|" + "TO" + r"DO|XXX)\b")


class Report:
    def __init__(self):
        self.problems = []

    def add(self, path, line, text):
        self.problems.append(f"{path}:{line}: {text}" if line else f"{path}: {text}")


def files_below(root, suffixes):
    for top in TOPS:
        for file in sorted((root / top).rglob("*")):
            if file.suffix in suffixes and file.is_file():
                yield file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")


def read_allowances(root):
    """{path: lines} of size_allow.txt: `path lines reason`."""
    allowed = {}
    for line in (root / "scripts/check/size_allow.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            path, lines, _reason = line.split(maxsplit=2)
            allowed[path] = int(lines)
    return allowed


def size_limit(path):
    if path.endswith("CMakeLists.txt"):
        return CMAKE_LINES
    if path.startswith("test/"):
        return TEST_LINES
    if path.endswith("/main.cc"):
        return MAIN_LINES
    return HEADER_LINES if path.endswith((".h", ".cuh", ".inc")) else SOURCE_LINES


def check_size(path, text, allowed, report):
    lines, limit = text.count("\n"), size_limit(path)
    allowance = allowed.pop(path, None)
    if allowance is not None and lines <= limit:
        report.add(path, 0, "is within its limit: remove its line from scripts/check/size_allow.txt")
    elif lines > max(limit, allowance or 0):
        report.add(path, 0, f"{lines} lines; at most {allowance or limit}")


def check_text(path, text, report):
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > LINE_COLUMNS:
            report.add(path, number, f"{len(line)} columns; at most {LINE_COLUMNS}")
        mark = MARKS.search(line)
        if mark:
            report.add(path, number, f"{mark[0]}: do it, or open an issue")
    code = cpp_text.code_only(text)
    for pattern, instead, files in BANNED:
        if re.match(files, path):
            continue
        for found in re.finditer(pattern, code):
            report.add(path, code.count("\n", 0, found.start()) + 1,
                       f'"{" ".join(found[0].split())}" is banned; use {instead}')


def check_shape(path, text, report):
    is_test = path.startswith("test/")
    most = TEST_FUNCTION_LINES if is_test else FUNCTION_LINES
    deepest = TEST_NESTING if is_test else NESTING
    functions, types = cpp_text.read(text)
    for f in functions:
        if f.lines > most:
            report.add(path, f.line, f"{f.name} has {f.lines} lines; at most {most}")
        if f.parameters > PARAMETERS and not path.endswith(".cu") and f.name != "DT_FIELDS":
            report.add(path, f.line,
                       f"{f.name} has {f.parameters} parameters; at most {PARAMETERS}, or one struct")
        if f.nesting > deepest:
            report.add(path, f.line, f"{f.name} nests {f.nesting} deep; at most {deepest}")
    for t in types:
        if t.virtuals > VIRTUALS:
            report.add(path, t.line, f"{t.name} has {t.virtuals} virtual functions; at most {VIRTUALS}")


def check_includes(path, text, headers, report):
    """Headers have #pragma once; a source includes the header of its name first, so it compiles alone. A .inc does not."""
    if path.endswith(".inc"):
        return
    if path.endswith((".h", ".cuh")):
        if "#pragma once" not in text:
            report.add(path, 1, "no #pragma once")
        return
    own = re.sub(r"\.(cc|cu)$", ".h", path)
    first = re.search(r'^\s*#\s*include\s*[<"]([^">]+)', text, re.MULTILINE)
    if own in headers and (not first or first[1] != own):
        report.add(path, 1, f'must include "{own}" first')


def check_cmake_lists(root, sources, report):
    listed = set()
    files = [f for top in TOPS for f in sorted((root / top).rglob("CMakeLists.txt"))]
    for file in files + sorted((root / "scripts/cmake").glob("*.cmake")):
        path = file.relative_to(root).as_posix()
        folder = path.rsplit("/", 1)[0]
        text = expand_loops(re.sub(r"#[^\n]*", "", file.read_text(encoding="utf-8")))
        for name in re.findall(r"[^\s()\"]+\.(?:cc|cu|fbs)(?![\w.])", text):
            name = name.replace("${PROJECT_SOURCE_DIR}/", "/")
            name = name.replace("${CMAKE_CURRENT_SOURCE_DIR}/", "")
            full = name[1:] if name.startswith("/") else f"{folder}/{name}"
            full = "/".join(normal_parts(full))
            if "$" not in full:
                listed.add(full)
                if not (root / full).exists():
                    report.add(path, 0, f"lists {full}, which does not exist")
    for source in sources:
        if source not in listed:
            report.add(source, 0, "is in no CMakeLists.txt: neither built nor run")


def expand_loops(text):
    """Appends each word of a foreach's body that names its variable, once per item."""
    for loop in re.findall(r"foreach\((\w+)\s+([^()$]*)\)(.*?)endforeach", text, re.DOTALL):
        variable, items, body = "${" + loop[0] + "}", loop[1].split(), loop[2]
        for word in re.findall(r"[^\s()]+", body):
            if variable in word:
                text += "".join(" " + word.replace(variable, item) for item in items)
    return text


def normal_parts(path):
    parts = []
    for part in path.split("/"):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return parts


def check_directories(sources, allowed, report):
    stems = collections.defaultdict(set)
    for source in sources:
        folder, name = source.rsplit("/", 1)
        stem = name.rsplit(".", 1)[0]
        if not TWIN.search(stem):
            stems[folder].add(stem)
    for folder, names in sorted(stems.items()):
        most = max(DIRECTORY_SOURCES, allowed.pop(folder, 0))
        if len(names) > most:
            report.add(folder, 0, f"{len(names)} sources; at most {most}")


def check_test_functions(root, texts, report):
    """Sources of a test compiled together: with one name in two files, overloading chooses the function."""
    seen = {}
    for path, text in texts.items():
        folder = path.rsplit("/", 1)[0]
        lists = root / folder / "CMakeLists.txt"
        apart = lists.exists() and "DT_UNITY_BUILD OFF" in lists.read_text(encoding="utf-8")
        if not re.match(r"test/(unit|sim|property)/.*\.cc$", path) or apart:
            continue
        for found in FILE_FUNCTION.finditer(text):
            name = found[1]
            other = seen.setdefault((folder, name), path)
            if other != path and name != "PrintTo":
                line = text.count("\n", 0, found.start()) + 1
                report.add(path, line, f"{name} is a function in {other}, too; give them two names")


def check_readmes(root, report):
    """The first column of a README's table names exactly the directories beside it."""
    for folder in ("", *(f"{top}/" for top in TOPS), "scripts/", "configs/"):
        here = root / folder
        if not here.is_dir():
            continue
        path = f"{folder}README.md"
        if not (here / "README.md").exists():
            report.add(path, 0, "does not exist; every top directory has one")
            continue
        text = (here / "README.md").read_text(encoding="utf-8")
        named = set(re.findall(r"^\|\s*`([\w.-]+)/`", text, re.MULTILINE))
        real = {d.name for d in here.iterdir() if is_part_of_the_tree(d)}
        for name in sorted(named - real):
            report.add(path, 0, f"its table names {name}/, which does not exist")
        for name in sorted(real - named):
            report.add(path, 0, f"its table does not name {name}/")


def is_part_of_the_tree(directory):
    made = directory.name in ("build", "runs", "__pycache__") or directory.name.startswith(".")
    return directory.is_dir() and not made and any(f.is_file() for f in directory.rglob("*"))


def print_growth(root, base):
    changed = subprocess.run(["git", "-C", str(root), "diff", "--numstat", base], capture_output=True,
                             text=True, check=True).stdout
    sums = collections.Counter()
    for line in changed.splitlines():
        added, removed, path = line.split("\t")
        if added != "-":
            sums[path.split("/")[0], "+"] += int(added)
            sums[path.split("/")[0], "-"] += int(removed)
    for top in sorted({t for t, _ in sums}):
        print(f"  {top:12} +{sums[top, '+']} -{sums[top, '-']} since {base}")


def check_tree(root):
    report, lines = Report(), collections.Counter()
    allowed = read_allowances(root)
    texts = dict(files_below(root, CPP))
    sources = [path for path in texts if path.endswith((".cc", ".cu"))]
    for path, text in texts.items():
        lines[path.split("/")[0]] += text.count("\n")
        check_size(path, text, allowed, report)
        check_text(path, text, report)
        check_shape(path, text, report)
        check_includes(path, text, texts, report)
    for path, text in files_below(root, (".txt",)):
        if path.endswith("CMakeLists.txt"):
            check_size(path, text, allowed, report)
    schemas = [path for path, _ in files_below(root, (".fbs",))]
    check_cmake_lists(root, sources + schemas, report)
    check_directories(sources, allowed, report)
    check_test_functions(root, texts, report)
    check_readmes(root, report)
    for path in allowed:
        report.add("scripts/check/size_allow.txt", 0, f"names {path}, which does not exist")
    return report.problems, lines


def self_test():
    bad = pathlib.Path(__file__).resolve().parent / "bad"
    report = Report()
    for file in sorted(bad.glob("*.bad")):
        path, text = f"server/{file.name[:-len('.bad')]}", file.read_text(encoding="utf-8")
        check_size(path, text, {}, report)
        check_text(path, text, report)
        check_shape(path, text, report)
        check_includes(path, text, {"server/own_header.h"}, report)
    found = "\n".join(report.problems) + "\n"
    expected = (bad / "expected.txt").read_text(encoding="utf-8")
    if found != expected:
        print(f"tidy: self-test found\n{found}and expected\n{expected}", end="")
        return 1
    print(f"tidy: self-test found all {len(report.problems)} offences")
    return 0


def main():
    arguments = sys.argv[1:]
    if "--self-test" in arguments:
        return self_test()
    base = None
    if "--base" in arguments:
        base = arguments.pop(arguments.index("--base") + 1)
        arguments.remove("--base")
    root = pathlib.Path(arguments[0] if arguments else ".").resolve()
    problems, lines = check_tree(root)
    print("\n".join(problems + [f"tidy: {len(problems)} problems; lines: " +
                                ", ".join(f"{top} {count}" for top, count in lines.items())]))
    if base:
        print_growth(root, base)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
