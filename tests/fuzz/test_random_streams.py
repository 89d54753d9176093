"""Files of any kind, damaged: each is read, or refused by a ValueError that names it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regretless.core.errors import BadRow
from regretless.streams import read

pytestmark = pytest.mark.slow

pa = pytest.importorskip("pyarrow")

PIECES = [b"\x00", b"\r", b"\n", b"\r\n", b'"', b",", b";", b"\t", b"|", b":", b" ", b"#", b"{", b"}", b"[", b"'", b"^"]
PIECES += [b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", "é中\U0001f600".encode(), b"NaN", b"Infinity", b"-1e999"]
PIECES += [
    b"9" * 5000,
    b"[" * 3000,
    b"\\ud800",
    b"\\u0000",
    b"1_000",
    b"=cmd()",
    b"\x1b[31m",
    b"null",
    b"true",
    b"1e308",
]
PIECES += [
    b'{"y": 1, "y": 2}\n',
    b'{"new": 3, "y": "b"}\n',
    b"1 99999999999:1\n",
    b"1 qid:3 1:1\n",
    b"1 2 3 |f a\n",
    b"|\n",
]
PIECES += [b"\xe2\x80\xa8", b"0000-00-00", b"9999-12-31T23:59:59+14:00", b"0001-01-01T00:00:00+14:00"]
SUFFIXES = ["csv", "tsv", "jsonl", "svm", "vw", "parquet", "arrow", "csv.gz", "jsonl.bz2", "vw.xz"]
SQUEEZE = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def rows(rng: np.random.Generator) -> list[dict[str, Any]]:
    n = int(rng.integers(1, 40))
    words = ["a", "b", "[red]", "=1+1", "é", ""]
    return [
        {
            "x": float(f"{rng.normal():.3g}"),
            "colour": words[rng.integers(len(words))],
            "when": f"2026-01-{rng.integers(1, 29):02d}",
            "y": words[rng.integers(2)],
        }
        for _ in range(n)
    ]


def encoded(kind: str, table: list[dict[str, Any]], rng: np.random.Generator) -> bytes:
    """The table in a format, whole."""
    if kind in ("csv", "tsv"):
        mark = "\t" if kind == "tsv" else ","
        lines = [mark.join(table[0])] + [mark.join(map(str, row.values())) for row in table]
        return ("\n".join(lines) + "\n").encode()
    if kind == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in table).encode()
    if kind == "svm":
        return "".join(f"{int(row['y'] == 'a')} 1:{row['x']} 3:1 # note\n" for row in table).encode()
    if kind == "vw":
        return "".join(
            f"{1 if row['y'] == 'a' else -1} 1 't|f x:{row['x']} |g {row['when']}\n" for row in table
        ).encode()
    columns = pa.Table.from_pylist(table)
    if rng.random() < 0.5:
        columns = columns.set_column(1, "colour", columns["colour"].dictionary_encode())
    out = io.BytesIO()
    if kind == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(columns, out, compression=str(rng.choice(["none", "snappy", "zstd"])))
    else:
        new = pa.ipc.new_file if rng.random() < 0.5 else pa.ipc.new_stream
        with new(out, columns.schema) as file:
            file.write_table(columns)
    return out.getvalue()


def damaged(raw: bytes, rng: np.random.Generator) -> bytes:
    """Bytes flipped, pieces put in, cut out or doubled."""
    for _ in range(int(rng.integers(0, 4))):
        at = int(rng.integers(0, len(raw) + 1))
        what = rng.integers(5)
        if what == 0 and at < len(raw):
            raw = raw[:at] + bytes([raw[at] ^ (1 << rng.integers(8))]) + raw[at + 1 :]
        elif what == 1:
            raw = raw[:at] + PIECES[rng.integers(len(PIECES))] + raw[at:]
        elif what == 2:
            raw = raw[:at] + raw[at + int(rng.integers(1, 50)) :]
        elif what == 3:
            raw = raw[:at] + raw[max(0, at - 30) :]
        else:
            raw = raw[:at]
    return raw


def blocks_of(path: Path, on_bad: str, at_once: int) -> list[Any]:
    reading = read(path, "y", on_bad=on_bad, rows_at_once=at_once)
    found = [(block.X, block.y, block.weight) for block in reading]
    return [found, [(bad.line, bad.why) for bad in reading.bad], reading.columns]


def test_damaged_files_are_read_or_refused(cases, tmp_path):
    for rng in cases:
        suffix = SUFFIXES[rng.integers(len(SUFFIXES))]
        kind, _, squeezed = suffix.partition(".")
        inside = damaged(encoded(kind, rows(rng), rng), rng)
        raw = SQUEEZE[squeezed](inside) if squeezed else inside
        path = tmp_path / f"rows.{suffix}"
        path.write_bytes(damaged(raw, rng) if squeezed and rng.random() < 0.5 else raw)
        at_once = int(rng.choice([1, 3, 4096]))
        strictly = skipping = None
        try:
            strictly = blocks_of(path, "error", at_once)
        except ValueError as error:
            assert path.name in str(error), f"{error!r} does not name the file"
            if isinstance(error, BadRow):
                assert "line " in str(error) or "row " in str(error)
        try:
            skipping = blocks_of(path, "skip", at_once)
        except ValueError as error:
            assert not isinstance(error, BadRow), f"{error!r}: a bad line is to be skipped"
            assert path.name in str(error)
        assert (strictly is None) or (skipping is not None and not skipping[1]), "read, and yet something is skipped"
        if skipping is not None:
            for X, y, weight in skipping[0]:
                assert X.shape[0] == len(y) == (len(y) if weight is None else len(weight)) > 0
