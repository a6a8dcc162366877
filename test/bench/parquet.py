#!/usr/bin/env python3
"""What reading Parquet costs, against CSV and against pyarrow's own reading of the same columns.

    parquet.py BUILD [--rows 1000000] [--runs 3] [--folder DIR] [--large GIB]

Run it with the Python that has pyarrow: build/python/bin/python3. Makes rows like Criteo's (a label, 13 numbers, 26
strings) as CSV and as Parquet in several forms, reads each with `dovetail data convert`, which also writes the data
cache, and with pyarrow.parquet.read_table, in turns. Prints medians of CPU-seconds per million rows, the ratios, and the
peak of memory. With --runs 0 it does none of that. With --large, also reads a Parquet file of so many GiB and prints the peak of memory alone.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import programs

NAMES = ["label"] + [f"I{i}" for i in range(1, 14)] + [f"C{i}" for i in range(1, 27)]
TYPES = {name: pa.string() if name[0] == "C" else pa.int64() for name in NAMES}
FORMS = {
    "zstd, row groups of 100,000": {"compression": "zstd", "row_group_size": 100_000},
    "snappy, row groups of 100,000": {"compression": "snappy", "row_group_size": 100_000},
    "snappy, row groups of 1,048,576": {"compression": "snappy", "row_group_size": 1 << 20},
    "snappy, row groups of 300": {"compression": "snappy", "row_group_size": 300},
    "snappy, no dictionaries": {"compression": "snappy", "row_group_size": 100_000, "use_dictionary": False},
}
JOB = """
job: bench
data:
  format: FORMAT
  train: [FILE]
  cache_dir: CACHE
  columns:
    - {name: label, role: label}
COLUMNS
model:
  tables: {t: {dim: 1}}
  graph: [{name: logit, op: linear, table: t, inputs: [C1]}]
  loss: [{type: binary_cross_entropy, input: logit, label: label}]
"""


def rows_of(dovetail, rows, folder):
    """The generated rows as a table."""
    subprocess.run([dovetail, "data", "generate", "--rows", str(rows * 5 // 4), "--seed", "1", "--out",
                    str(folder / "made")], check=True, stdout=subprocess.DEVNULL)
    made = next((folder / "made").glob("train*"))
    return pyarrow.csv.read_csv(
        made, read_options=pyarrow.csv.ReadOptions(column_names=NAMES),
        parse_options=pyarrow.csv.ParseOptions(delimiter="\t"),
        convert_options=pyarrow.csv.ConvertOptions(column_types=TYPES, strings_can_be_null=True))


def job_file(folder, file):
    columns = [f"    - {{name: {name}, type: {'string' if name[0] == 'C' else 'float'}"
               f"{', transform: log' if name[0] == 'I' else ''}}}" for name in NAMES[1:]]
    path = folder / f"{file.name}.yaml"
    path.write_text(JOB.replace("FORMAT", file.suffix[1:]).replace("FILE", str(file))
                    .replace("CACHE", str(folder / "cache")).replace("COLUMNS", "\n".join(columns)))
    return path


def anonymous_bytes(pid):
    """Memory of a process, without the pages of files, of which the data cache has as many as the machine has room for."""
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    except ProcessLookupError:
        pass
    return 0


def cost_of(command):
    """(CPU-seconds, seconds, peak of memory in bytes) of a process."""
    begun, peak = time.monotonic(), 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            break
        peak = max(peak, anonymous_bytes(process.pid))
        time.sleep(0.02)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begun, peak


def read_cost(dovetail, folder, file):
    for cache in (folder / "cache").glob("*"):
        cache.unlink()
    return cost_of([dovetail, "data", "convert", str(job_file(folder, file))])


def pyarrow_cost(file):
    """The cost of reading alone: the process without it is subtracted."""
    start = "import pyarrow.parquet as pq; "
    columns = ",".join(NAMES)
    read = cost_of([sys.executable, "-c", f"{start}pq.read_table('{file}', columns='{columns}'.split(','))"])
    nothing = cost_of([sys.executable, "-c", start])
    return read[0] - nothing[0], read[1] - nothing[1], read[2]


def compare(dovetail, folder, table, runs):
    files = {}
    pyarrow.csv.write_csv(table, folder / "rows.csv", pyarrow.csv.WriteOptions(quoting_style="none"))
    files["csv"] = folder / "rows.csv"
    for number, (form, options) in enumerate(FORMS.items()):
        files[form] = folder / f"form{number}.parquet"
        pq.write_table(table, files[form], **options)
    ours, theirs = {form: [] for form in files}, {form: [] for form in files}
    for _ in range(runs):
        for form, file in files.items():
            ours[form].append(read_cost(dovetail, folder, file))
            if form != "csv":
                theirs[form].append(pyarrow_cost(file))
    millions = table.num_rows / 1e6
    csv = statistics.median(cost[0] for cost in ours["csv"]) / millions
    print(f"{table.num_rows:,} rows; CPU-seconds per million rows, medians of {runs} runs")
    print(f"{'':34}{'MB':>7}{'dovetail':>10}{'pyarrow':>9}{'ratio':>7}{'of csv':>8}{'peak MiB':>10}")
    for form, file in files.items():
        cpu = statistics.median(cost[0] for cost in ours[form]) / millions
        peak = max(cost[2] for cost in ours[form]) / 2**20
        line = f"{form:34}{file.stat().st_size / 1e6:7.0f}{cpu:10.2f}"
        if form != "csv":
            other = statistics.median(cost[0] for cost in theirs[form]) / millions
            line += f"{other:9.2f}{cpu / other:7.2f}"
        else:
            line += f"{'':16}"
        print(f"{line}{cpu / csv:8.2f}{peak:10.0f}", flush=True)


def large(dovetail, folder, table, gib):
    file = folder / "large.parquet"
    with pq.ParquetWriter(file, table.schema, compression="none") as writer:
        while not file.exists() or file.stat().st_size < gib * 2**30:
            writer.write_table(table, row_group_size=1 << 20)
    rows = pq.read_metadata(file).num_rows
    cpu, seconds, peak = read_cost(dovetail, folder, file)
    print(f"{file.stat().st_size / 2**30:.1f} GiB, {rows:,} rows: {seconds:.0f} s, {cpu / rows * 1e6:.2f} CPU-seconds "
          f"per million rows, peak {peak / 2**20:.0f} MiB of memory")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder")
    parser.add_argument("--large", type=float)
    options = parser.parse_args()
    dovetail = programs.find(options.build, "dovetail")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        table = rows_of(dovetail, options.rows, folder)
        if options.runs:
            compare(dovetail, folder, table, options.runs)
        if options.large:
            large(dovetail, folder, table, options.large)


if __name__ == "__main__":
    main()
