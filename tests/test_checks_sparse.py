"""Over every learner: rows in compressed form are the same rows, or are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from learners import (
    ONE_PER_PATH,
    ONE_ROW_PREDICTIONS,
    PREDICTIONS,
    Entry,
    Stream,
    assert_same_game,
    assert_same_state,
    changed,
    contents,
    every_kind,
    fingerprint,
    learners_that,
    params,
    play,
    refused,
    through_file,
)
from regretless import BadRow, MirrorDescentAggregator
from regretless.learners.first_order import aggregator

# ---------------------------------------------------------------------- the same rows, the same bits


every_sparse_learner = learners_that(lambda entry: entry.first_order)


def with_gaps(entry: Entry, kind: str = "iid", n: int = 60, d: int = 6, seed: int = 0) -> Stream:
    """A stream with entries of 0 in it, one row of nothing else, and numbers that float32 holds too."""
    X, y = entry.stream(kind, n, d, seed=seed)
    X = np.where(np.random.default_rng(seed).random(X.shape) < 0.5, X, 0.0).astype(np.float32).astype(float)
    X[7] = 0.0
    return Stream(X, y)


def unsorted(X: np.ndarray) -> Any:
    """The entries of each row in the opposite order."""
    rows = sparse.csr_matrix(X)
    for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        rows.indices[start:stop] = rows.indices[start:stop][::-1].copy()
        rows.data[start:stop] = rows.data[start:stop][::-1].copy()
    rows.has_sorted_indices = False
    return rows


def repeated(X: np.ndarray) -> Any:
    """Every entry twice, half of it each time."""
    rows = sparse.csr_matrix(X)
    return sparse.csr_matrix((np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), 2 * rows.indptr), shape=X.shape)


def with_stored_zeros(X: np.ndarray) -> Any:
    n, d = X.shape
    return sparse.csr_matrix((X.ravel(), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)), shape=X.shape)


def with_wide_indices(X: np.ndarray) -> Any:
    rows = sparse.csr_matrix(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


def read_only(X: np.ndarray) -> Any:
    rows = sparse.csr_matrix(X)
    for array in (rows.data, rows.indices, rows.indptr):
        array.flags.writeable = False
    return rows


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "csr matrix": sparse.csr_matrix,
    "csr array": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "float32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
    "int64 indices": with_wide_indices,
    "unsorted": unsorted,
    "repeated": repeated,
    "stored zeros": with_stored_zeros,
    "read-only": read_only,
}


def parts_of(rows: Any) -> list[bytes]:
    return [np.asarray(array).tobytes() for array in vars(rows).values() if isinstance(array, np.ndarray)]


@every_sparse_learner
def test_compressed_rows_are_the_same_rows(entry: Entry) -> None:
    stream = with_gaps(entry)
    weight = np.arange(60) % 3 / 2
    whole = play(entry, stream, sample_weight=weight)
    for form, change in FORMS.items():
        rows = change(stream.X)
        before = parts_of(rows)
        learner = entry.new()
        forecasts = learner.predict_then_learn(rows, stream.y.tolist(), sample_weight=weight, **entry.first)
        assert_same_game(whole, (learner, forecasts))
        for verb in PREDICTIONS:
            if hasattr(learner, verb):
                assert np.array_equal(getattr(learner, verb)(rows), getattr(learner, verb)(stream.X)), (form, verb)
        assert_same_state(learner.fit(rows, stream.y, sample_weight=weight, **entry.first), whole[0])
        assert parts_of(rows) == before, form  # the caller's


@every_sparse_learner
@every_kind
def test_compressed_row_by_row_is_the_whole_stream(entry: Entry, kind: str) -> None:
    stream = with_gaps(entry, kind)
    rows = sparse.csr_matrix(stream.X)
    learner = entry.new()
    learner.learn_one(rows[0], stream.y[0], **entry.first)
    for t in range(1, 60):
        for verb in ONE_ROW_PREDICTIONS:
            if hasattr(learner, verb):
                assert np.array_equal(getattr(learner, verb)(rows[t]), getattr(learner, verb)(stream.X[t]))
        learner.learn_one(rows[t], stream.y[t])
    assert_same_state(learner, play(entry, stream)[0])


@every_sparse_learner
def test_dense_and_compressed_blocks_make_one_game(entry: Entry, tmp_path: Path) -> None:
    """Cut anywhere, through a file, and with more rows than the inner block has."""
    X, y = entry.stream(n=17_000, d=2)  # a block has 16,384
    learner = entry.new()
    forecasts = [learner.predict_then_learn(sparse.csr_matrix(X[:100]), y[:100], **entry.first)]
    forecasts.append(learner.predict_then_learn(X[100:200], y[100:200]))
    learner = through_file(learner, tmp_path)
    forecasts.append(learner.predict_then_learn(sparse.csr_matrix(X[200:]), y[200:]))
    assert_same_game(play(entry, Stream(X, y)), (learner, np.concatenate(forecasts)))


# ---------------------------------------------------------------------- what is refused


def spoilt(X: np.ndarray, value: float, row: int = 3, column: int = 1) -> Any:
    return sparse.csr_matrix(changed(X, (row, column), value))


def with_index(X: np.ndarray, value: int) -> Any:
    """Rows that name a column there is none of."""
    rows = with_wide_indices(X) if value > 2**31 else sparse.csr_matrix(X)
    rows.indices[rows.indptr[3]] = value
    return rows


def with_rows_that_end(X: np.ndarray, value: int) -> Any:
    """Rows of entries that are not there."""
    rows = sparse.csr_matrix(X)
    rows.indptr[4] = value
    return rows


BAD_ROWS: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "NaN": (lambda X: spoilt(X, np.nan), "row 3, column 1: NaN.*fill"),
    "inf": (lambda X: spoilt(X, np.inf), "row 3, column 1: inf"),
    "-inf": (lambda X: spoilt(X, -np.inf), "row 3, column 1: -inf"),
    "1e200": (lambda X: spoilt(X, -1e200), r"row 3, column 1: -1e\+200.*Scale"),
    "NaN of two entries": (lambda X: repeated(changed(X, (3, 1), np.nan)), "row 3, column 1: NaN"),
    "empty block": (lambda X: sparse.csr_matrix(X[:0]), r"0 sample\(s\)"),
    "no columns": (lambda X: sparse.csr_matrix(X[:, :0]), r"0 feature\(s\)"),
    "column beyond the last": (lambda X: with_index(X, 6), "row 3: column 6 among 6 columns"),
    "column before the first": (lambda X: with_index(X, -1), "row 3: column -1 among 6 columns"),
    "column far beyond": (lambda X: with_index(X, 2**32 + 1), "row 3: column 4294967297 among 6 columns"),
    "too many entries": (lambda X: with_rows_that_end(X, 10_000), "row 3: entries are missing"),
    "backwards": (lambda X: with_rows_that_end(X, 0), "row 3: entries are missing"),
}


@pytest.mark.parametrize("entry", [entry for entry in ONE_PER_PATH if entry.first_order], ids=str)
def test_bad_compressed_rows_are_refused_and_nothing_changes(entry: Entry) -> None:
    stream = with_gaps(entry)
    running, _ = play(entry, stream)
    before = fingerprint(running)
    forecasts = [verb for verb in PREDICTIONS if hasattr(running, verb)]
    for mistake, (spoil, words) in BAD_ROWS.items():
        bad = spoil(stream.X)
        y = stream.y[: bad.shape[0]]
        for verb in ("partial_fit", "predict_then_learn", "fit"):
            learner = entry.new()
            with refused(f"{mistake}, {verb}", words):
                getattr(learner, verb)(bad, y, **entry.first)
            assert contents(learner) == params(entry.learner), (mistake, verb)
        if mistake == "no columns":  # a running game has its own words for a wrong width
            words = "0 feature|features, but"
        for verb in ("partial_fit", "predict_then_learn", "fit", *forecasts):
            given = {} if verb in forecasts else {"y": y, **(entry.first if verb == "fit" else {})}
            with refused(f"{mistake}, {verb}", words):
                getattr(running, verb)(bad, **given)
            assert fingerprint(running) == before, (mistake, verb)


@every_sparse_learner
def test_one_bad_compressed_row_is_refused(entry: Entry) -> None:
    stream = with_gaps(entry)
    learner, _ = play(entry, stream)
    before = fingerprint(learner)
    nan, wide, two = spoilt(stream.X[:1], np.nan, row=0), sparse.csr_matrix((1, 7)), sparse.csr_matrix(stream.X[:2])
    for bad, words in ((nan, "row 0, column 1: NaN"), (wide, "7 features"), (two, "one row")):
        with pytest.raises(ValueError, match=words):
            learner.learn_one(bad, stream.y[0])
        with pytest.raises(ValueError, match=words):
            learner.predict_one(bad)
    assert fingerprint(learner) == before


@learners_that(lambda entry: entry.bounds_entries)
def test_compressed_entries_beyond_the_declared_bound_are_refused(entry: Entry) -> None:
    stream = with_gaps(entry)
    learner, _ = play(entry, stream)
    R = getattr(entry.learner, entry.bounds_entries)
    before = fingerprint(learner)
    with pytest.raises(BadRow, match=rf"row 40, column 5.*: -.* is beyond {entry.bounds_entries}"):
        learner.partial_fit(spoilt(stream.X, -1.001 * R, row=40, column=5), stream.y)
    assert fingerprint(learner) == before
    learner.partial_fit(spoilt(stream.X, -R, row=40, column=5), stream.y)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "compressed"])
def test_a_bad_row_has_its_number_however_many_are_evaluated_at_a_time(
    form: Callable[[np.ndarray], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aggregator, "ENTRIES", 20)
    X = changed(np.zeros((100, 4)), (77, 2), -1.5)
    learner = MirrorDescentAggregator()
    with pytest.raises(BadRow, match=r"row 77, column 2 \('x2'\): -1.5 is beyond bound = 1"):
        learner.fit(form(X), np.arange(100) % 2)
    learner = MirrorDescentAggregator([lambda rows: np.where(np.abs(rows @ np.ones(4)) > 1, np.nan, 0.5)])
    with pytest.raises(BadRow, match="row 77: base function 0 is nan"):
        learner.fit(form(X), np.arange(100) % 2)


@learners_that(lambda entry: not entry.learner.__sklearn_tags__().input_tags.sparse)
def test_dense_learners_say_that_they_are(entry: Entry) -> None:
    stream = entry.stream()
    rows = sparse.csr_matrix(stream.X)
    learner = entry.new()
    for call in (learner.partial_fit, learner.fit, learner.predict_then_learn):
        with pytest.raises(TypeError, match="dense data is required"):
            call(rows, stream.y, **entry.first)
    with pytest.raises(TypeError, match="dense data is required"):
        learner.learn_one(rows[0], stream.y[0], **entry.first)
    assert contents(learner) == params(entry.learner)
    learner, _ = play(entry, stream)
    before = fingerprint(learner)
    for verb in PREDICTIONS + ONE_ROW_PREDICTIONS:
        if hasattr(learner, verb):
            with pytest.raises(TypeError, match="dense data is required"):
                getattr(learner, verb)(rows[0])
    with pytest.raises(TypeError, match="dense data is required"):
        learner.learn_one(rows[0], stream.y[0])
    assert fingerprint(learner) == before


# ---------------------------------------------------------------------- what a row costs

PLAY_WIDE_ROWS = """
import tracemalloc
import numpy as np
from scipy import sparse
from regretless import OGD, LinearizedFTRL, Perceptron, StronglyConvexOGD

rng = np.random.default_rng(0)
n, d, entries = 500, 1_000_000, 10
indices = np.sort(rng.integers(0, d, size=(n, entries)), axis=1).ravel()
X = sparse.csr_matrix((rng.normal(size=n * entries), indices, np.arange(0, n * entries + 1, entries)), shape=(n, d))
y = np.arange(n) % 2
for learner in (OGD(radius=1.0), OGD(), StronglyConvexOGD(), LinearizedFTRL(), Perceptron()):
    learner.partial_fit(X[: n // 2], y[: n // 2])
    rest = X[n // 2 :]
    tracemalloc.start()
    learner.partial_fit(rest, y[n // 2 :])
    learner.predict(rest)
    for t in range(20):
        learner.predict_one(rest[t])
        learner.learn_one(rest[t], y[t])
    print(learner, tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
"""


@pytest.mark.slow
def test_a_row_of_few_entries_needs_no_room_for_the_others() -> None:
    """In plain Python, where every array that a kernel makes is seen: one of a number a feature has 8 MB."""
    done = subprocess.run(
        [sys.executable, "-c", PLAY_WIDE_ROWS],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    peaks = [int(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines()]
    assert len(peaks) == 5
    assert max(peaks) < 1_000_000, done.stdout
