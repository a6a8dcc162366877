#!/usr/bin/env python3
"""Writes the files of parquet_test.cc into a folder: the same rows as CSV and as Parquet in many forms.

    parquet_files.py FOLDER
"""
import datetime
import pathlib
import random
import sys

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 5000


def rows():
    draw = random.Random(1)
    words = ["", "a", "Zürich", "comma, quoted", "x" * 40] + [f"w{i}" for i in range(300)]
    out = []
    for i in range(ROWS):
        out.append({
            "click": draw.randrange(2),
            "user": draw.choice([i, 2**63 + i, 2**64 - 1 - i]),
            "small": draw.randrange(256),
            "price": None if i % 7 == 0 else draw.randrange(-8000, 8000) / 8,
            "wide": draw.randrange(-10**6, 10**6) / 1024,
            "count": None if i % 11 == 0 else draw.randrange(-3, 5000),
            "city": None if i % 13 == 0 else draw.choice(words),
            "code": draw.randrange(10**6),
            "history": None if i % 17 == 0 else [draw.randrange(2**64) for _ in range(draw.randrange(6))],
            "tags": [draw.choice(words[1:3]) for _ in range(draw.randrange(4))],
            "pair": [draw.randrange(100), draw.randrange(100)],
            "place": None if i % 19 == 0 else [draw.randrange(64) / 8, None if i % 5 == 0 else 1.5, -0.25],
        })
        out[-1]["scores"] = [k / 4 - 1 for k in range(len(out[-1]["tags"]))]
        out[-1]["time"] = datetime.datetime(1965, 1, 1) + datetime.timedelta(milliseconds=i * 1_234_567_250)
        out[-1]["date"] = out[-1]["time"].date()
    return out


TYPES = {
    "click": pa.int8(), "user": pa.uint64(), "small": pa.uint8(), "price": pa.float32(), "wide": pa.float64(),
    "count": pa.int32(), "city": pa.string(), "code": pa.int64(), "history": pa.list_(pa.uint64()),
    "tags": pa.list_(pa.string()), "pair": pa.list_(pa.int32(), 2), "place": pa.list_(pa.float32(), 3),
    "scores": pa.list_(pa.float32()), "time": pa.timestamp("us"), "date": pa.date32(),
}
OTHER_TYPES = {
    "click": pa.float64(), "small": pa.int16(), "price": pa.float64(), "wide": pa.float32(), "count": pa.int64(),
    "city": pa.dictionary(pa.int16(), pa.string()), "code": pa.uint32(), "history": pa.large_list(pa.uint64()),
    "tags": pa.list_(pa.dictionary(pa.int32(), pa.string())), "pair": pa.fixed_shape_tensor(pa.uint16(), [2]),
    "place": pa.list_(pa.float64()), "scores": pa.list_(pa.float64()), "time": pa.timestamp("ms", tz="UTC"),
    "date": pa.date64(),
}


def cell(value):
    if value is None:
        return ""
    if isinstance(value, list):
        return "|".join(cell(item) for item in value)
    text = str(value)
    return f'"{text}"' if "," in text else text


def table(data, types):
    return pa.table({name: pa.array([row[name] for row in data], type) for name, type in types.items()})


def write_equal(folder, data):
    """The forms that must give the same data set."""
    lines = [",".join(TYPES)] + [",".join(cell(row[name]) for name in TYPES) for row in data]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    usual, other = table(data, TYPES), table(data, {**TYPES, **OTHER_TYPES})
    reordered = usual.select(sorted(TYPES, reverse=True)).append_column("unused", pa.array(range(len(data))))
    pq.write_table(usual, folder / "zstd_300.parquet", compression="zstd", row_group_size=300)
    pq.write_table(usual, folder / "snappy_one_group.parquet", compression="snappy", row_group_size=100000)
    pq.write_table(usual, folder / "plain.parquet", compression="none", use_dictionary=False, row_group_size=1234)
    pq.write_table(usual, folder / "pages.parquet", compression="gzip", data_page_size=500, row_group_size=3000,
                   data_page_version="2.0", version="1.0", write_page_checksum=True)
    pq.write_table(other, folder / "types.parquet", row_group_size=2500)
    pq.write_table(other, folder / "small_groups_of_types.parquet", row_group_size=100)
    pq.write_table(reordered, folder / "reordered.parquet", row_group_size=7, store_schema=False)
    # A dictionary that is too large goes on as plain text in the same column.
    pq.write_table(usual, folder / "mixed.parquet", dictionary_pagesize_limit=200)


def write_special(folder, data):
    empty, five = table([], TYPES), table(data[:5], TYPES)
    pq.write_table(empty, folder / "no_rows.parquet")
    with pq.ParquetWriter(folder / "empty_group.parquet", five.schema) as writer:
        for part in (five, empty, five):
            writer.write_table(part)
    # Rows so wide that the program cuts a row group into parts.
    lists = [[(31 * i + k) % 1000 for k in range(4096)] for i in range(1500)]
    pq.write_table(pa.table({"click": pa.array([1.0] * 1500), "ids": pa.array(lists, pa.list_(pa.int64()))}),
                   folder / "wide.parquet")
    # Values that take a few bits in the file.
    repeated = pa.table({"zeros": pa.array([[0] * 64] * 300, pa.list_(pa.int64())),
                         "words": pa.array([["x" * 100] * 4] * 300, pa.list_(pa.string()))})
    pq.write_table(repeated, folder / "repeated.parquet")
    bad = pa.table({
        "click": pa.array([1.0, 0.0, None, 1.0, 0.0, 1.0, 0.0]),
        "user": pa.array([1, -5, 2, 3, None, 4, 5]),
        "price": pa.array([0.5, 1.5, 2.5, float("nan"), 4.5, 1e300, 6.5]),
    })
    pq.write_table(bad, folder / "bad_rows.parquet", row_group_size=3)
    pq.write_table(table(data[:200], TYPES), folder / "small.parquet", row_group_size=100, write_page_checksum=True)


folder = pathlib.Path(sys.argv[1])
made = rows()
write_equal(folder, made)
write_special(folder, made)
