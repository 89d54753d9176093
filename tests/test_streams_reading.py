"""Reading files in blocks: every format gives the same rows; bad lines are found where they are."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from datetime import date, datetime, time, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.utils import murmurhash3_32

from regretless import BadRow, OnlineLogisticRegression
from regretless.streams import BadLine, read
from regretless.streams.sources import SAMPLE


def together(reading):
    """All rows: columns, labels, weights."""
    blocks = list(reading)
    assert [block.first for block in blocks] == np.cumsum([0, *(b.X.shape[0] for b in blocks)])[:-1].tolist()
    X = blocks[0].X
    X = sparse.vstack([b.X for b in blocks]) if sparse.issparse(X) else pa.concat_tables([b.X for b in blocks])
    y = None if blocks[0].y is None else np.concatenate([b.y for b in blocks])
    return X, y, None if blocks[0].weight is None else np.concatenate([b.weight for b in blocks])


# ---------------------------------------------------------------------- all formats, any cut

numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
words = st.none() | st.text(alphabet='xy,;"\n\r é\t', max_size=5).map("w".__add__)
truths = st.none() | st.booleans()


@st.composite
def tables(draw):
    n = draw(st.integers(1, 12))
    some = {"size": numbers, "colour": words, "is it": truths, "other": numbers}
    columns = {name: draw(st.lists(values, min_size=n, max_size=n)) for name, values in some.items()}
    labels = draw(st.sampled_from([st.integers(-3, 3), st.sampled_from(["yes", "no, not"])]))
    columns["label"] = draw(st.lists(labels, min_size=n, max_size=n))
    return columns


def write_csv(columns, path):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        shown = {None: "", True: "true", False: "False"}
        for row in zip(*columns.values(), strict=True):
            writer.writerow([shown[v] if v is None or isinstance(v, bool) else v for v in row])


def write_jsonl(columns, path):
    with path.open("w", encoding="utf-8") as file:
        for row in zip(*columns.values(), strict=True):
            file.write(json.dumps(dict(zip(columns, row, strict=True))) + "\n")


def arrow_of(columns):
    kinds = {"size": pa.float64(), "colour": pa.string(), "is it": pa.bool_(), "other": pa.float64()}
    return pa.table({name: pa.array(values, kinds.get(name)) for name, values in columns.items()})


def write_parquet(columns, path):
    pq.write_table(arrow_of(columns), path, row_group_size=5)


def write_file(columns, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, arrow_of(columns).schema) as out:
        out.write_table(arrow_of(columns), max_chunksize=3)


def write_stream(columns, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, arrow_of(columns).schema) as out:
        out.write_table(arrow_of(columns), max_chunksize=4)


WRITERS = {
    "csv": write_csv,
    "jsonl": write_jsonl,
    "parquet": write_parquet,
    "feather": write_file,
    "arrows": write_stream,
}


@settings(max_examples=60)
@given(columns=tables(), rows=st.integers(1, 13))
def test_every_format_gives_back_the_rows(tmp_path_factory, columns, rows):
    folder = tmp_path_factory.mktemp("formats")
    for suffix, write in WRITERS.items():
        path = folder / f"data.{suffix}"
        write(columns, path)
        X, y, _ = together(read(path, "label", rows_at_once=rows))
        assert X.column_names == ["size", "colour", "is it", "other"], suffix
        truth = [None if v is None else float(v) for v in columns["is it"]]
        assert X.to_pydict() == {**{n: columns[n] for n in X.column_names}, "is it": truth}, suffix
        assert y.tolist() == columns["label"], suffix
        assert y.dtype == np.int64 or y.dtype.kind == "U"


@pytest.mark.parametrize("suffix", WRITERS)
def test_skip_goes_on_where_one_stopped(tmp_path, suffix):
    columns = {"size": [float(i) for i in range(10)], "label": [i % 2 for i in range(10)]}
    path = tmp_path / f"data.{suffix}"
    WRITERS[suffix](columns, path)
    for skip in range(11):
        blocks = list(read(path, "label", rows_at_once=4, skip=skip))
        assert [v for b in blocks for v in b.X["size"].to_pylist()] == columns["size"][skip:]
        assert not blocks or blocks[0].first == skip


# ---------------------------------------------------------------------- CSV

TEXT = """\
age,colour,weight,when,member,label
31,red,1,2024-01-01,true,yes
?,blue,0.5,2024-01-02 00:00:10,false,no
NA,,2,,,yes
1e3,"a ""quoted""
name",0,2024-01-01T01:00:00+01:00,TRUE,no
"""


def test_kinds_missing_values_and_weights(tmp_path):
    (tmp_path / "a.csv").write_text("\ufeff" + TEXT.replace("\n", "\r\n"), encoding="utf-8")
    reading = read(tmp_path / "a.csv", "label", weight="weight")
    (block,) = reading
    assert reading.columns == {"age": "number", "colour": "category", "when": "time", "member": "truth"}
    assert block.X.to_pydict() == {
        "age": [31.0, None, None, 1000.0],
        "colour": ["red", "blue", None, 'a "quoted"\r\nname'],
        "when": [datetime(2024, 1, 1), datetime(2024, 1, 2, 0, 0, 10), None, datetime(2024, 1, 1, 1)],
        "member": [1.0, 0.0, None, 1.0],
    }
    assert block.y.tolist() == ["yes", "no", "yes", "no"]
    assert block.weight.tolist() == [1.0, 0.5, 2.0, 0.0]
    assert (block.first, block.lines) == (0, 6)


WRITTEN = {
    "2024-03-05": datetime(2024, 3, 5),
    "2024-03-05 09:07": datetime(2024, 3, 5, 9, 7),
    "2024-03-05T09:07:01.25": datetime(2024, 3, 5, 9, 7, 1, 250_000),
    "2024-03-05T09:07:01Z": datetime(2024, 3, 5, 9, 7, 1),
    "2024-03-05 09:07:01+05:30": datetime(2024, 3, 5, 9, 7, 1),
    "2024-03-05T09:07-0800": datetime(2024, 3, 5, 9, 7),
    "2024-03-05T09:07:01.1234567+02:00": datetime(2024, 3, 5, 9, 7, 1, 123_456),  # read one by one
    "2024-03-05 25:00": None,
    "2024-02-30": None,
}


def test_dates_are_read_as_their_own_clocks_show_them():
    """And in the same way whether or not their block has one that is written in an unusual way, or none."""
    for some in ({text: when for text, when in WRITTEN.items() if when}, WRITTEN):
        lines = [*some, *["2024-01-01"] * 30]
        csv_text = "when,y\n" + "".join(f"{text},1\n" for text in lines)
        json_text = "".join(json.dumps({"when": text, "y": 1}) + "\n" for text in lines)
        for text, form in ((csv_text, "csv"), (json_text, "jsonl")):
            for rows in (1, 100):
                reading = read(io.StringIO(text), "y", format=form, rows_at_once=rows, on_bad="skip")
                X, _, _ = together(reading)
                assert reading.columns == {"when": "time"} and X["when"].type == pa.timestamp("us")
                assert X["when"].to_pylist()[:-30] == [when for when in some.values() if when]
                assert reading.bad_count == sum(when is None for when in some.values())
    (trend,) = read(io.StringIO("when,y\n1970-01-02 12:00,1\n,0\n"), "y", columns={"when": "trend", "y": "whole"})
    assert trend.X["when"].to_pylist() == [1.5, None]


def test_labels_keep_their_kind():
    for labels, kind in (("1 2", "i"), ("1 +2", "i"), ("1 2.5", "f"), ("1 b", "U"), ("true false", "U")):
        text = "x,y\n" + "".join(f"0,{label}\n" for label in labels.split())
        assert read(io.StringIO(text), "y").__iter__().__next__().y.dtype.kind == kind


BROKEN = [
    ("3,oops,1", "column 'b' has 'oops', which is not a number"),
    ("3,1", "it has 2 fields, the header has 3"),
    ("3,1,1,1", "it has 4 fields, the header has 3"),
    ("3,1,", "column 'y', the target, is empty"),
    ("3,1,NA", "column 'y', the target, is empty"),
    ("3,inf,1", "column 'b' has inf, which is not finite"),
    ("3,1,x", "column 'y' has 'x', which is not an integer"),
    ('3,"1,1', "a quote is never closed"),
    ('3,"1"1,1', "it is not valid CSV"),
    ("3,\udcff,1", "it is not UTF-8"),
]


@pytest.mark.parametrize("rows", [1, 7, 5000])
@pytest.mark.parametrize(("line", "why"), BROKEN, ids=[why for _, why in BROKEN])
def test_a_bad_line_is_named_or_left_out(tmp_path, line, why, rows):
    path = tmp_path / "bad.csv"
    known = SAMPLE if "integer" in why else 30  # one label that is text makes all text, if it is in the sample
    rows = max(rows, known // 40)
    lines = ["a,b,y", *["1,2,0", "2,3,1"] * (known // 2), "", line, "5,6,1", "7,8,0"]
    path.write_bytes("\n".join(lines).encode("utf-8", errors="surrogateescape"))
    where = lines.index(line) + 1
    if rows == 5000:
        with pytest.raises(BadRow, match=rf"bad\.csv, line {where}: {why}.*on_bad=\"skip\""):
            list(read(path, "y"))
    told: list[BadLine] = []
    reading = read(path, "y", on_bad="quarantine", on_bad_line=told.append, rows_at_once=rows)
    X, y, _ = together(reading)
    assert X["a"].to_pylist()[-3:] == [2.0, 5.0, 7.0] and y.tolist()[-3:] == [1, 1, 0]
    assert X.num_rows == known + 2 and reading.bad_count == 1 and reading.bad == told
    assert told[0].line == where and why in told[0].why
    assert told[0].text == line.replace("\udcff", "\ufffd")


def test_lines_are_counted_through_quoted_ones():
    text = 'a,y\n"1\n",0\n\n"2",1\n"3\n\n",0\noops,1\n' + "4,0\n" * 20
    reading = read(io.BytesIO(text.encode()), "y", on_bad="skip", rows_at_once=2)
    X, _, _ = together(reading)
    assert X["a"].to_pylist() == [1.0, 2.0, 3.0, *[4.0] * 20]
    assert [(bad.line, bad.text) for bad in reading.bad] == [(9, "oops,1")]


def test_bad_lines_are_counted_and_a_thousand_kept():
    text = "a,y\n" + "1,0\n2\n" * 3000
    reading = read(io.StringIO(text), "y", on_bad="skip")
    assert sum(block.X.num_rows for block in reading) == 3000
    assert reading.bad_count == 3000 and len(reading.bad) == 1000
    assert [bad.line for bad in reading.bad[:2]] == [3, 5]


def test_a_missing_target_names_the_closest_column():
    with pytest.raises(ValueError, match=r"no column 'lable'.*'size', 'label'.*Did you mean 'label'"):
        list(read(io.StringIO("size,label\n1,2\n"), "lable"))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: read("data.txt", "y"), r"format=.*csv"),
        (lambda: read("data.csv", "y", format="excel"), "choose one of"),
        (lambda: read("data.csv", "y", rows_at_once=0), "rows_at_once"),
        (lambda: read("data.csv", "y", on_bad="ignore"), "quarantine"),
        (lambda: read("data.csv", "y", columns=3), "dictionary"),
        (lambda: read("data.svm", "y", columns={"a": "number"}), "number of features"),
        (lambda: read("data.vw", "y", weight="w"), "no weight column"),
        (lambda: list(read(io.StringIO(""), "y")), "empty"),
        (lambda: list(read(io.StringIO("a,a,y\n"), "y")), "duplicate"),
        (lambda: list(read(io.StringIO("y\n1\n"), "y")), "no feature columns left"),
        (lambda: list(read(io.StringIO("a,y\n1,1\n"), "y", columns={"a": "text"})), "choose one of"),
        (lambda: list(read(io.StringIO("a,y\n1,1\n"), "y", columns={"aa": "number"})), "Did you mean 'a'"),
    ],
)
def test_bad_requests_are_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_columns_declare_kinds_and_choose():
    text = "zip,a,b,y\n12,1,2,1\nK1,3,4,2\n"
    reading = read(io.StringIO(text), "y", columns={"zip": "category", "b": "number", "y": "category"})
    (block,) = reading
    assert block.X.to_pydict() == {"zip": ["12", "K1"], "b": [2.0, 4.0]}
    assert block.y.tolist() == ["1", "2"]
    assert reading.columns == {"zip": "category", "b": "number"}


def test_without_labels():
    (block,) = read(io.StringIO("a,b\n1,2\n"), None)
    assert block.y is None and block.X.column_names == ["a", "b"]


PIECES = ["1", "+2", "-nan", "inf", "0x1f", "x", "", ",", ",", '"', "\n", "\n", "\r", " ", "\xff", "é", "?"]


@settings(max_examples=50)
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_bytes_give_the_same_rows_and_bad_lines_under_any_cut(junk):
    """A block without quotes is parsed by other code than one with them: nobody can tell."""
    text = b"a,b,y\n" + b"1,2,0\n" * 10 + "".join(junk).encode("latin-1") + b"\n5,6,1\n"
    seen = []
    for rows in (2, 5, 4096):
        reading = read(io.BytesIO(text), "y", on_bad="skip", rows_at_once=rows)
        X, y, _ = together(reading)
        seen.append((X.to_pydict(), y.tolist(), reading.bad, reading.columns))
        assert X.num_rows + reading.bad_count <= text.count(b"\n")
    assert seen[0] == seen[1] == seen[2]


# ---------------------------------------------------------------------- lazily, and from standard input


class Endless:
    """A pipe that never ends, and knows how much of it was read."""

    def __init__(self):
        self.rows = -1

    def readline(self, limit):
        self.rows += 1
        return b"a,c,y\n" if self.rows == 0 else f"{self.rows},red,{self.rows % 2}\n".encode()

    def read(self, size):
        return b""


def test_no_more_is_read_than_was_asked_for():
    pipe = Endless()
    blocks = iter(read(pipe, "y", rows_at_once=1000))
    for k, block in zip(range(1, 31), blocks, strict=False):
        assert block.X.num_rows <= 1000
        assert pipe.rows <= max(1000 * k, SAMPLE + 1000)
    pipe = Endless()
    next(iter(read(pipe, "y", rows_at_once=1, columns={"a": "number", "y": "whole"})))
    assert pipe.rows == 1  # declared columns need no sample


def test_the_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "long.csv"
    with path.open("w") as file:
        file.write("a,b,y\n")
        file.writelines(f"{i},word{i % 7},{i % 2}\n" for i in range(200_000))
    pool, most = pa.default_memory_pool(), []
    before = pool.bytes_allocated()
    for _ in read(path, "y"):
        most.append(pool.bytes_allocated() - before)
    assert len(most) == 49 and max(most) < 2**20 < path.stat().st_size


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (None, "a,y\n1,0\n2,1\n"),
        ("jsonl", '{"a": 1, "y": 0}\n{"a": 2, "y": 1}\n'),
        ("svmlight", "0 1:1\n1 1:2\n"),
        ("vw", "0 |n a:1\n1 |n a:2\n"),
    ],
)
def test_standard_input(monkeypatch, form, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    reading = read("-", "y", format=form)
    X, y, _ = together(reading)
    assert y.tolist() == [0, 1] and X.shape[0] == 2
    with pytest.raises(ValueError, match="standard input can be read only once"):
        iter(reading)


def test_compressed_files_and_tabs(tmp_path):
    with gzip.open(tmp_path / "a.tsv.gz", "wt") as file:
        file.write("a\ty\n1,5\tx\n")
    reading = read(tmp_path / "a.tsv.gz", "y")
    for _ in range(2):  # a file with a name can be read again
        (block,) = reading
        assert block.X["a"].to_pylist() == [1.5] and block.y.tolist() == ["x"]


def test_semicolons_where_the_header_has_no_comma():
    (block,) = read(io.StringIO("a;b;y\n1;2,5;x\n"), "y")
    assert block.X.to_pydict() == {"a": [1.0], "b": [2.5]}


def test_a_broken_archive_is_told_of(tmp_path):
    raw = gzip.compress(b"a,y\n" + b"1,2\n" * 5000)
    (tmp_path / "cut.csv.gz").write_bytes(raw[:-12])
    (tmp_path / "plain.csv.gz").write_bytes(b"a,y\n1,2\n")
    for name in ("cut", "plain"):
        with pytest.raises(ValueError, match=rf"{name}\.csv\.gz: it is damaged, or not compressed"):
            list(read(tmp_path / f"{name}.csv.gz", "y"))


# ---------------------------------------------------------------------- JSON lines, Parquet


def test_json_lines_that_are_none():
    good = '{"a": 1, "y": "p"}\n'
    wrong = {
        '{"a": 1,': "not valid JSON",
        "[1, 2]": "not a JSON object",
        '{"a": {"b": 1}, "y": "p"}': "column 'a' is an object",
        '{"a": "5", "y": "p"}': "'5', which is not a number",
        '{"a": Infinity, "y": "p"}': "not finite",
        '{"a": 1}': "target, is empty",
        '{"a": 1, "new": 3, "y": "p"}': "column 'new' is not in the first",
    }
    text = good * SAMPLE + "".join(f"{line}\n" for line in wrong) + '{"y": "q"}\n'
    reading = read(io.StringIO(text), "y", format="jsonl", on_bad="skip")
    X, y, _ = together(reading)
    assert X.num_rows == SAMPLE + 1 and X["a"].to_pylist()[-1] is None and y[-1] == "q"
    assert [bad.line for bad in reading.bad] == list(range(SAMPLE + 1, SAMPLE + 8))
    for bad, (line, why) in zip(reading.bad, wrong.items(), strict=True):
        assert bad.text == line and why in bad.why


def test_parquet_types(tmp_path):
    when = datetime(2024, 1, 1, 0, 0, 1)
    table = pa.table(
        {
            "i": pa.array([1, None, 3], pa.int32()),
            "d": pa.array([date(1970, 1, 2), None, date(1970, 1, 3)]),
            "t": pa.array([when] * 3, pa.timestamp("ns", "America/New_York")),
            "of_day": pa.array([time(9, 30), None, time(1)]),
            "lasts": pa.array([timedelta(minutes=2), None, timedelta(1)]),
            "c": pa.array(["a", "b", None]).dictionary_encode(),
            "f": pa.array([0.5, float("nan"), float("inf")]),
            "y": pa.array([True, False, True]),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(BadRow, match=r"row 3: column 'f' has inf, which is not finite"):
        list(read(tmp_path / "a.parquet", "y"))
    (block,) = read(tmp_path / "a.parquet", "y", on_bad="skip")
    assert block.X.to_pydict() == {
        "i": [1.0, None],
        "d": [datetime(1970, 1, 2), None],
        "t": [datetime(2023, 12, 31, 19, 0, 1)] * 2,
        "of_day": [datetime(1970, 1, 1, 9, 30), None],
        "lasts": [120.0, None],
        "c": ["a", "b"],
        "f": [0.5, None],
    }
    assert block.y.tolist() == [True, False] and block.y.dtype == bool
    (trend,) = read(tmp_path / "a.parquet", "y", columns={"d": "trend"})
    assert trend.X.to_pydict() == {"d": [1.0, None, 2.0]}
    with pytest.raises(ValueError, match=r"type date32.* cannot be 'number'; use 'time'"):
        list(read(tmp_path / "a.parquet", "y", columns={"d": "number"}))
    pq.write_table(pa.table({"l": pa.array([[1]]), "y": [1]}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"column 'l': columns of type list.*'drop'"):
        list(read(tmp_path / "b.parquet", "y"))


# ---------------------------------------------------------------------- svmlight and VW text


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("rows", [1, 7, 100])
def test_svmlight_in_chunks(tmp_path, base, rows):
    rng = np.random.default_rng(base)
    X = rng.normal(size=(60, 9)) * (rng.random((60, 9)) < 0.4)
    X[5, 8] = X[7, 0] = 1.5
    y = rng.integers(0, 3, size=60)
    dump_svmlight_file(X, y, str(tmp_path / "a.svm"), zero_based=base == 0, comment="made up")
    reading = read(tmp_path / "a.svm", "label", rows_at_once=rows)
    got, labels, _ = together(reading)
    assert got.shape == (60, 9) and np.abs(got.toarray() - X).max() < 1e-12
    assert np.array_equal(labels, y) and labels.dtype == np.int64
    assert (reading.columns, reading.format) == (9, f"svmlight{base}")
    unlabelled, none, _ = together(read(tmp_path / "a.svm", None, rows_at_once=rows, columns=12))
    assert none is None and unlabelled.shape == (60, 12)


def test_svmlight_bad_lines():
    wrong = {
        "x 1:1": "not svmlight text",
        "1 2:1 1:1": "increasing indices",
        "1 1:": "not svmlight text",
        "1 1:inf": "not finite",
        "nan 1:1": "no label",
        "0.5 1:1": "are integers",
        "1 4:1": "index 4, but the first rows end at 3: pass a larger columns=",
        "1 0:1": "index 0, but indices start at 1",
    }
    text = "1 1:1 3:2 # fine\n\n# nothing\n" * SAMPLE + "".join(f"{line}\n" for line in wrong) + "0 2:5\n"
    reading = read(io.BytesIO(text.encode()), "y", format="libsvm", on_bad="skip", rows_at_once=3000)
    X, y, _ = together(reading)
    assert X.shape == (SAMPLE + 1, 3) and y[-1] == 0
    assert X.toarray()[-1].tolist() == [0, 5, 0] and X.toarray()[0].tolist() == [1, 0, 2]
    assert [bad.line for bad in reading.bad] == list(range(3 * SAMPLE + 1, 3 * SAMPLE + 9))
    for bad, (line, why) in zip(reading.bad, wrong.items(), strict=True):
        assert bad.text == line and why in bad.why
    with pytest.raises(BadRow, match=rf"line {3 * SAMPLE + 1}"):
        list(read(io.BytesIO(text.encode()), "y", format="libsvm"))


def test_vw_text():
    text = "1 2.5 'tag|user:2 age:3 old |item red\n-1 |user age\n|item red red:0.5\n1 tag|a b\n-1 0.5 |  x:y:2\n"
    reading = read(io.StringIO(text), "y", format="vw", bits=10, on_bad="skip")
    X, y, weight = together(reading)

    def at(name):
        return murmurhash3_32(name, seed=0, positive=True) % 1024

    assert X.shape == (4, 1024) and reading.columns == 1024
    assert X[0, at("user^age")] == 6 and X[0, at("user^old")] == 2 and X[0, at("item^red")] == 1
    assert X[3, at("^x:y")] == 2
    assert y.tolist() == [1, -1, 1, -1] and weight.tolist() == [2.5, 1, 1, 0.5]
    assert [(bad.line, bad.why) for bad in reading.bad] == [(3, "it has no label.")]
    X, none, _ = together(read(io.StringIO(text), None, format="vw", bits=10))
    assert none is None and X.shape == (5, 1024) and X[2, at("item^red")] == 1.5


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("1 age:3", "no '|'"),
        ("1 2 3 |a b", "label importance tag"),
        ("one |a b", "the label is 'one'"),
        ("1 -2 |a b", "importance is -2"),
        ("1 |a b:x", "value of feature 'b' is 'x'"),
        ("1 |a b:inf", "not finite"),
        ("1 |a:x b", "scale of namespace 'a'"),
    ],
)
def test_vw_bad_lines(line, why):
    with pytest.raises(BadRow, match=rf"line 2: .*{why.replace('|', '[|]')}"):
        list(read(io.StringIO(f"1 |a b\n{line}\n"), "y", format="vw"))


# ---------------------------------------------------------------------- a learner at the other end


def test_a_learner_reads_a_pipe(tmp_path):
    """A process may write while the learner learns; cuts do not matter."""
    rng = np.random.default_rng(0)
    lines = [f"{x:.3f},{'red' if x + e > 0 else 'blue'},{int(x > 0)}\n" for x, e in rng.normal(size=(300, 2))]
    text = "x,colour,y\n" + "".join(lines)
    forecasts = []
    for rows in (300, 37):
        learner = OnlineLogisticRegression()
        reading = read(io.StringIO(text), "y", rows_at_once=rows)
        forecasts.append(np.concatenate([learner.predict_then_learn(b.X, b.y, classes=[0, 1]) for b in reading]))
    assert np.array_equal(*forecasts)
    assert np.mean(forecasts[0].argmax(axis=1)[100:] == [int(line[-2]) for line in lines[100:]]) > 0.9
