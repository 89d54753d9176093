"""Columns of files: words for missing values, decimal commas, encodings, and what the caller declares."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")

from regretless import BadRow  # noqa: E402
from regretless.core.rows.calendar import calendar_features  # noqa: E402
from regretless.streams import read  # noqa: E402
from regretless.streams.whole import read_whole  # noqa: E402


def block_of(text: str | bytes, target: str | None = "y", **options):
    (block,) = read(io.BytesIO(text) if isinstance(text, bytes) else io.StringIO(text), target, **options)
    return block


@pytest.mark.parametrize("word", ["", "NA", "n/a", "N/A", "#N/A", "nan", "NULL", "None", "nil", "-", "--", "?", " Na "])
def test_words_for_a_missing_value(word):
    rows = f"1,red,0\n{word},{word},1\n" + "2,blue,1\n" * 5
    found = block_of(f"size,colour,y\n{rows}").X.to_pydict()
    assert found["size"][:2] == [1.0, None] and found["colour"][:2] == ["red", None]
    quoted = [{"size": 1, "y": 0}, {"size": word, "y": 1}, *[{"size": 2, "y": 1}] * 10]
    lines = "\n".join(map(json.dumps, quoted))
    assert block_of(lines, format="jsonl").X["size"].to_pylist()[:2] == [1.0, None]


def test_none_and_a_dash_are_labels():
    assert block_of("a,y\n1,none\n2,-\n3,some\n").y.tolist() == ["none", "-", "some"]
    with pytest.raises(BadRow, match="the target, is empty"):
        block_of("a,y\n1,none\n2,n/A\n")


def test_a_decimal_comma_is_read_as_one():
    """Where fields are not separated by commas; dots may stand between thousands."""
    found = block_of("a;b;c;w;y\n1,5;1.234,5;x,y;0,5;2,5\n-,25;7;z;1;3\n", weight="w")
    assert found.X.to_pydict() == {"a": [1.5, -0.25], "b": [1234.5, 7.0], "c": ["x,y", "z"]}
    assert found.weight.tolist() == [0.5, 1.0] and found.y.tolist() == [2.5, 3.0]
    thousands = "a;b;y\n1.234;1,5;0\n2.500;2;1\n"
    assert block_of(thousands).X["a"].to_pylist() == [1.234, 2.5]
    assert block_of(thousands, decimal=",").X["a"].to_pylist() == [1234.0, 2500.0]
    assert block_of(thousands, decimal=".").X["b"].to_pylist() == ["1,5", "2"]
    assert block_of('a,y\n"1,234",0\n"2,500",1\n').X["a"].to_pylist() == ["1,234", "2,500"]
    reading = read(io.StringIO("a;y\n" + "1,5;0\n" * 20 + "1.5;1\nno;1\n"), "y", on_bad="skip")
    assert sum(block.X.num_rows for block in reading) == 20
    assert [bad.line for bad in reading.bad] == [22, 23] and "decimal comma" in reading.bad[0].why


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8-sig"])
def test_other_encodings_of_text(encoding):
    text = 'stra\u00dfe,y\n"Caf\u00e9\nau lait",1\nM\u00fcnchen,0\n' * 1
    assert block_of(text.encode(encoding), encoding=encoding).X.to_pydict() == {
        "stra\u00dfe": ["Caf\u00e9\nau lait", "M\u00fcnchen"]
    }
    rows = '{"stra\u00dfe": "Caf\u00e9", "y": 1}\n'.encode(encoding)
    assert block_of(rows, encoding=encoding, format="jsonl").X["stra\u00dfe"].to_pylist() == ["Caf\u00e9"]


def test_text_that_is_not_utf_8_names_the_remedy():
    with pytest.raises(BadRow, match=r"line 2: it is not UTF-8 text.*encoding='latin-1'"):
        block_of("a,y\nCaf\u00e9,1\n".encode("latin-1"))
    with pytest.raises(ValueError, match="encoding='klingon' is unknown"):
        read("a.csv", "y", encoding="klingon")
    with pytest.raises(ValueError, match="not text"):
        read("a.parquet", "y", encoding="latin-1")
    with pytest.raises(ValueError, match="decimal=';'"):
        read("a.csv", "y", decimal=";")


TABLE = "ref,zip,size,when,y\nr-1,01234,1,2024-01-01,0\n,99,2,2024-01-03,1\nbad,1,x,2024-01-02,1\nr-4,7,4,,0\n"


def test_some_columns_are_declared_and_the_others_inferred():
    declare = {"ref": "id", "zip": "category", "size": "number", "when": "drop", "y": "category"}
    for rows in (1, 2, 100):
        reading = read(io.StringIO(TABLE), "y", declare=declare, on_bad="skip", rows_at_once=rows)
        blocks = list(reading)
        X = pa.concat_tables([block.X for block in blocks])
        assert X.to_pydict() == {"zip": ["01234", "99", "7"], "size": [1.0, 2.0, 4.0]}
        assert pa.concat_tables([block.ids for block in blocks]).to_pydict() == {"ref": ["r-1", "", "r-4"]}
        assert np.concatenate([block.places for block in blocks]).tolist() == [2, 3, 5]
        assert np.concatenate([block.y for block in blocks]).tolist() == ["0", "1", "0"]
        assert reading.columns == {"zip": "category", "size": "number"}
    again = block_of(TABLE, None, columns=reading.columns, declare={"ref": "id"}, on_bad="skip", skip=1)
    assert again.ids.to_pydict() == {"ref": ["", "r-4"]} and again.places.tolist() == [3, 5]


def test_what_cannot_be_declared():
    for declare, why in (
        ({"nothing": "drop"}, "no column 'nothing'"),
        ({"y": "drop"}, "column 'y' is the target: it cannot also be 'drop'"),
        ({"size": "text"}, "choose one of"),
        (dict.fromkeys(["ref", "zip", "size", "when"], "drop"), "no feature columns left"),
    ):
        with pytest.raises(ValueError, match=why):
            block_of(TABLE, declare=declare)
    with pytest.raises(ValueError, match="no named columns"):
        read("a.vw", "y", declare={"a": "drop"})


def test_nested_json_says_so_and_can_be_left_out():
    lines = '{"a": 1, "inner": {"b": 2}, "y": 0}\n' * 3
    for on_bad in ("error", "skip"):
        with pytest.raises(ValueError, match=r"Line 1: column 'inner' is an object.*declare=\{'inner': 'drop'\}"):
            block_of(lines, format="jsonl", on_bad=on_bad)
    assert block_of(lines, format="jsonl", declare={"inner": "drop"}).X.to_pydict() == {"a": [1.0] * 3}
    with pytest.raises(ValueError, match="no rows"):
        block_of("", format="jsonl")


def test_ids_of_parquet_keep_their_type(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": [7, 8], "a": [1.0, 2.0], "l": [[1], [2]], "y": [0, 1]}), tmp_path / "a.parquet")
    (block,) = read(tmp_path / "a.parquet", "y", declare={"id": "id", "l": "drop"})
    assert block.ids.to_pydict() == {"id": [7, 8]} and block.X.column_names == ["a"]
    assert block.places.tolist() == [1, 2]


def test_a_race_sees_the_calendar_features_of_dates(tmp_path):
    (tmp_path / "a.csv").write_text("when,x,y\n2024-01-01 06:00,1,0\n,2,1\n2024-03-05,3,0\n")
    X = read_whole(tmp_path / "a.csv", "y").X
    features = calendar_features(["2024-01-01T06:00", None, "2024-03-05"])
    np.testing.assert_array_equal(X[[0, 2], :-1], features[[0, 2]])
    np.testing.assert_allclose(X[1, :-1], np.nanmean(features, axis=0))
