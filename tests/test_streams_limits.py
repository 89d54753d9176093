"""Limits of what is read: memory and time stay bounded whatever a file says or inflates to."""

from __future__ import annotations

import gzip
import json
import time
from io import BytesIO, StringIO

import numpy as np
import pytest

from regretless.streams import csv_table, fetch, json_table, read, sources
from regretless.streams.witness import Changed, Witness

pa = pytest.importorskip("pyarrow")


def test_a_block_has_a_largest_size_however_long_its_lines_are(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LARGEST_BLOCK", 10_000)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n" + b"".join(b"%01000d,%d\n" % (t, t % 2) for t in range(300))))
    blocks = list(read(path, "y"))
    assert max(block.X.num_rows for block in blocks) <= 10
    np.testing.assert_array_equal(np.concatenate([block.X["a"].to_numpy() for block in blocks]), np.arange(300.0))
    in_threes = read(path, "y", rows_at_once=3)
    assert sum(block.X.num_rows for block in in_threes) == 300


@pytest.mark.parametrize("rows_at_once", [1, 7, 4096])
def test_the_sample_ends_at_the_same_line_however_blocks_are_cut(monkeypatch, rows_at_once):
    monkeypatch.setattr(sources, "LARGEST_BLOCK", 300)
    lines = [f'{{"a": {t}, "y": {t % 2}}}\n' for t in range(40)]
    lines[30] = '{"a": 1, "b": 2, "y": 0}\n'
    reading = read(BytesIO("".join(lines).encode()), "y", format="jsonl", on_bad="skip", rows_at_once=rows_at_once)
    assert sum(block.X.num_rows for block in reading) == 39
    assert [bad.line for bad in reading.bad] == [31]


def test_names_that_few_rows_have_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(json_table, "MOST_CELLS", 1000)
    lines = [json.dumps({"y": t % 2, f"k{t // 2}": 1.0}) + "\n" for t in range(400)]
    reading = read(StringIO("".join(lines)), "y", format="jsonl", on_bad="skip")
    blocks = list(reading)
    assert all(block.X.num_rows * block.X.num_columns <= 1000 for block in blocks)
    assert sum(block.X.num_rows for block in blocks) + reading.bad_count == 400
    assert "is not in the first" in reading.bad[0].why


def test_a_header_of_many_columns_is_quick_and_has_an_end(monkeypatch):
    names = [f"c{i}" for i in range(80_000)]
    began = time.process_time()
    csv_table.CsvTable(iter([",".join(names).encode()]))
    with pytest.raises(ValueError, match="'c5' is empty or a duplicate"):
        csv_table.CsvTable(iter([",".join([*names, "c5"]).encode()]))
    assert time.process_time() - began < 3.0
    monkeypatch.setattr(csv_table, "MOST_COLUMNS", 10)
    with pytest.raises(ValueError, match="MOST_COLUMNS"):
        list(read(StringIO(",".join(names[:11]) + "\n"), "y"))


def test_a_line_has_a_longest_length(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LONGEST", 1000)
    (tmp_path / "long.vw").write_text("1 |f a\n1 |f " + "a " * 1000)
    with pytest.raises(ValueError, match=r"long\.vw: line 2 has more than 1000 bytes"):
        list(read(tmp_path / "long.vw", "y"))


def test_a_data_set_inflates_to_a_largest_size(tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "SMALL", 1000)
    path = tmp_path / "a9a.gz"
    path.write_bytes(gzip.compress(bytes(1_000_000)))
    with pytest.raises(ValueError, match="LARGEST_RATIO"):
        fetch.contents(path)
    path.write_bytes(gzip.compress(bytes(range(256)) * 3))
    assert fetch.contents(path) == bytes(range(256)) * 3


def test_a_parquet_column_that_declares_too_much_is_refused(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    from regretless.streams import arrow_table

    path = tmp_path / "bomb.parquet"
    pq.write_table(
        pa.table({"a": np.zeros(100_000), "y": np.arange(100_000)}), path, compression="zstd", use_dictionary=False
    )
    monkeypatch.setattr(arrow_table, "LARGEST_COLUMN", 1000)
    with pytest.raises(ValueError, match=r"bomb\.parquet: column 'a' expands"):
        list(read(path, "y"))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_a_witness_notices_a_change(tmp_path, suffix):
    import pyarrow.parquet as pq

    path = tmp_path / f"rows.{suffix}"

    def seen(values: list[str], before=None):
        table = pa.table({"a": pa.array(values).dictionary_encode(), "y": [t % 2 for t in range(len(values))]})
        if suffix == "csv":
            path.write_text("a,y\n" + "".join(f"{v},{t % 2}\n" for t, v in enumerate(values)))
        elif suffix == "parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table)
        reading = read(path, "y")
        reading.witness = Witness(before)
        list(reading)
        return reading.witness.seen()

    before = seen(["u", "v", "w"])
    assert seen(["u", "v", "w"], before) == before
    for other in (["u", "v", "x"], ["u", "v"]):
        with pytest.raises(Changed, match="has changed"):
            seen(other, before)
    if suffix == "csv":
        seen(["u", "v", "w", "more"], before)


def test_whole_labels_beyond_what_is_exact_are_bad_rows():
    reading = read(StringIO("1 1:1\n0 1:2\n" * 2100 + "1e300 1:1\n"), "y", format="svmlight", on_bad="skip")
    assert sum(block.X.shape[0] for block in reading) == 4200
    assert "1e+300" in reading.bad[0].why
