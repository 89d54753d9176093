"""Keys of rows: every kind of column gives the numbers of a Python dictionary."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regretless import AIOLI, BadRow, KeyedLearner
from regretless.learners.wrappers import texts
from regretless.learners.wrappers.keys import KeyTable, as_keys, listed
from regretless.learners.wrappers.texts import TextIndex, Texts

SOME = ["b", "", "a", "ä", "a ", "日本語", "😀", "é", "é", "b", "", "x" * 128, "😀", "z", "a", "ZZ", "日本", "x" * 127]
SURROGATE = [*SOME, "\ud800", "\ud801", "\ud800"]
NUL = ["a", "b", "b\0", "a\0b", "c"]


def as_series(kind):
    return lambda keys: pd.Series(keys, dtype=kind, index=range(5, 5 + len(keys)))


COLUMNS = {
    "list": list,
    "tuple": tuple,
    "U": np.array,
    "U, every other one": lambda keys: np.array([key for key in keys for _ in range(2)])[::2],
    "U, big-endian": lambda keys: np.array(keys).astype(np.array(keys).dtype.newbyteorder(">")),
    "object": lambda keys: np.array(keys, dtype=object),
    "np.str_": lambda keys: [np.str_(key) for key in keys],
    "StringDType": lambda keys: np.array(keys, dtype=np.dtypes.StringDType()),
    "pandas": pd.Series,
    "pandas Index": pd.Index,
    "pandas object": as_series(object),
    "pandas string": as_series("string"),
    "pandas string[python]": as_series("string[python]"),
    "pandas category": as_series("category"),
    "PyArrow": pa.array,
    "PyArrow slice": lambda keys: pa.array(["before", *keys, "after"])[1:-1],
    "PyArrow large_string": lambda keys: pa.array(keys, pa.large_string()),
    "PyArrow string_view": lambda keys: pa.array(keys, pa.string_view()),
    "PyArrow dictionary": lambda keys: pa.array(keys).dictionary_encode(),
    "PyArrow chunks": lambda keys: pa.chunked_array([keys[:3], [], keys[3:]], pa.string()),
}


def in_order(keys):
    """The keys and their numbers by definition."""
    numbers = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys], list(numbers)


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_text_of_every_kind_of_column(column):
    wanted, keys = in_order(SOME)
    for some in (SOME, ["plain", "ascii", "plain"], SOME[:1], [""]):
        read = as_keys(column(some), len(some))
        assert [read[i] for i in range(len(read))] == some
    table = KeyTable(np.empty(0, dtype=np.int64), "")
    assert table.find(as_keys(column(SOME))).tolist() == [-1] * len(SOME) and len(table) == 0
    assert table.add(as_keys(column(SOME))).tolist() == wanted
    assert table.find(as_keys(column(SOME[::-1]))).tolist() == wanted[::-1]
    assert listed(table.since(0)) == keys


def test_text_that_is_not_utf_8():
    table = KeyTable(np.empty(0, dtype=np.int64), "")
    wanted, keys = in_order(SURROGATE)
    for column in (list, np.array, lambda keys: np.array(keys, dtype=object)):
        assert table.add(as_keys(column(SURROGATE))).tolist() == wanted
        assert listed(table.since(0)) == keys
    wrong = np.array([0x110000], dtype=np.uint32).view("<U1")
    with pytest.raises(ValueError, match="keys are not characters: 0x110000"):
        as_keys(wrong)


@given(st.lists(st.lists(st.text(alphabet=st.characters(exclude_characters="\0"), max_size=6)), max_size=6))
def test_blocks_of_text_get_the_numbers_of_a_dictionary(blocks):
    table = KeyTable(np.empty(0, dtype=np.int64), "")
    wanted, _ = in_order([key for block in blocks for key in block])
    assert [number for block in blocks for number in table.add(as_keys(block)).tolist()] == wanted


def test_texts_in_one_bucket_are_told_apart():
    many = Texts.of([f"key {i}" for i in range(40_000)])
    index = TextIndex()
    here = [many[i] for i in range(len(many)) if texts.hash_of(many.chars[many.starts[i] : many.ends[i]]) % 512 == 3]
    few = here[: len(index.buckets) // 8]
    assert len(few) > 30 and len(index.buckets) <= 512
    assert index.add(Texts.of(few)).tolist() == list(range(len(few)))
    assert index.find(Texts.of(few[::-1])).tolist() == list(range(len(few)))[::-1]
    assert index.find(Texts.of(here[len(few) :])).tolist() == [-1] * (len(here) - len(few))
    held = "x" * 128
    assert index.add(Texts.of([held])).tolist() == [len(few)]
    assert index.find(Texts.of([held + "y", held[:-1], held + "\0", held])).tolist() == [-1, -1, -1, len(few)]


def test_an_index_grows_forgets_and_travels():
    keys = [f"{i}" * (1 + i % 7) for i in range(3000)]
    different = list(dict.fromkeys(keys))
    index = TextIndex()
    numbers = np.concatenate([index.add(Texts.of(keys[i : i + 100])) for i in range(0, 3000, 100)])
    assert numbers.tolist() == in_order(keys)[0]
    again = pickle.loads(pickle.dumps(index))
    again.forget(1000)
    assert again.n == 1000 and index.n == len(different)
    found = again.find(Texts.of(different)).tolist()
    assert found == [*range(1000), *[-1] * (len(different) - 1000)]
    assert again.add(Texts.of(["short", different[0]])).tolist() == [1000, 0]
    assert listed(again.lines[1000:1001]) == ["short"]


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "pandas category"])
def test_text_with_nul_is_forecast_and_not_learned(name):
    keyed = KeyedLearner(AIOLI()).learn(["a", "b"], np.eye(2), [0, 1])
    before = keyed.to_bytes()
    keys = COLUMNS[name](NUL)
    with pytest.raises(BadRow, match=r"row 2: key 'b\\x00' contains the character NUL" if name[0] != "U" else "NUL"):
        keyed.learn(keys, np.ones((5, 2)), [0, 1, 0, 1, 0])
    assert keyed.to_bytes() == before
    p = keyed.predict_proba(keys, np.eye(2)[[0, 1, 1, 0, 0]])[:, 0]
    assert p[0] != 0.5 and p[1] != 0.5 and p[3] == 0.5 and p[4] == 0.5
    assert p[2] == (p[1] if name[0] == "U" else 0.5)  # NumPy drops a NUL at the end


def test_long_text_is_forecast_and_not_learned():
    keyed = KeyedLearner(AIOLI()).learn(["x" * 128, "b"], np.eye(2), [0, 1])
    before = keyed.to_bytes()
    for column in (list, np.array, pa.array):
        keys = column(["b", "x" * 129])
        with pytest.raises(BadRow, match=r"row 1: key 'x{20}'... has 129 characters, and the limit is 128"):
            keyed.learn(keys, np.eye(2), [0, 1])
        assert keyed.predict_proba(keys, np.eye(2))[1].tolist() == [0.5, 0.5]
    with pytest.raises(KeyError, match="has no learner"):
        keyed.learner_of("x" * 100_000)
    assert keyed.to_bytes() == before


@pytest.mark.parametrize(
    "keys",
    [
        pa.array(["a", None]),
        pd.Series(["a", None]),
        pd.Series(["a", None], dtype="string"),
        np.ma.array(["a", "b"], mask=[False, True]),
        np.ma.array([1, 2], mask=[False, True]),
        np.array(["a", np.nan], dtype=np.dtypes.StringDType(na_object=np.nan)),
    ],
    ids=["PyArrow", "pandas", "pandas string", "masked text", "masked integers", "StringDType"],
)
def test_missing_keys_of_columns(keys):
    with pytest.raises(BadRow, match="row 1: the key is missing"):
        as_keys(keys, 2)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint64, ">i8", object, "Int64", "int64[pyarrow]"])
def test_integers_of_every_kind(kind):
    is_pandas = kind in ("Int64", "int64[pyarrow]")
    column = pd.Series([3, 1, 3], dtype=kind) if is_pandas else np.array([3, 1, 3], dtype=kind)
    read = as_keys(column, 3)
    assert read.dtype == np.int64 and read.tolist() == [3, 1, 3]
    assert KeyTable(np.empty(0, dtype=np.int64), "").add(read).tolist() == [0, 1, 0]


def test_a_file_with_text_that_is_none_is_refused():
    from regretless.core.files import packed

    keyed = KeyedLearner(AIOLI()).learn(["abc", "abd"], np.eye(2), [0, 1])
    for damage in ((0, 1, 0), (1, 2, 0x110000), (1, 2, ord("c"))):
        header, arrays = packed.unpack(keyed.to_bytes())
        arrays["state.keys"][damage[0], damage[1]] = damage[2]
        with pytest.raises(ValueError, match=r"keys are not characters|a key occurs twice"):
            KeyedLearner.from_bytes(packed.pack(header, arrays))
