"""Every promise, over every learner: cuts, plain Python, files, what a call may touch, weights.

To add a learner, add a line to `LEARNERS` in tests/learners.py: all files named test_checks*.py then run over it.
"""

from __future__ import annotations

import os
import pickle
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.base import clone

import regretless
from learners import (
    KINDS,
    LEARNERS,
    ONE_PER_PATH,
    ONE_ROW_PREDICTIONS,
    PREDICTIONS,
    Entry,
    Stream,
    assert_same_game,
    assert_same_state,
    bound,
    contents,
    every_class,
    every_learner,
    every_path,
    fingerprint,
    learned,
    learners_that,
    params,
    play,
    short_games,
    state_bytes,
    through_file,
    weights,
)
from regretless import AIOLI, OGD, ONS, NoBound
from regretless.core import blocks
from regretless.core.numbers.tally import ROWS
from regretless.learners.logistic import learner as logistic
from regretless.theory.domains import Simplex

# ---------------------------------------------------------------------- 1. rows, blocks and whole streams


def row_by_row(entry: Entry, stream: Stream, learn: str) -> tuple[Any, np.ndarray]:
    """Forecast a row, learn it, go on. (Before its first row a learner knows no classes to forecast.)"""
    learner, forecasts = play(entry, Stream(stream.X[:1], stream.y[:1]))
    rows = [forecasts[0]]
    for t in range(1, len(stream.y)):
        rows.append(entry.forecast_one(learner, stream.X[t]))
        if learn == "learn_one":
            learner.learn_one(stream.X[t], stream.y[t])
        else:
            learner.partial_fit(stream.X[t : t + 1], stream.y[t : t + 1])
    return learner, np.array(rows)


@every_learner
def test_row_by_row_is_the_whole_stream(entry: Entry) -> None:
    for kind, d, learn in (("uneven", 1, "learn_one"), ("iid", 4, "partial_fit"), ("drifting", 17, "learn_one")):
        stream = entry.stream(kind, n=30, d=d)
        assert_same_game(play(entry, stream), row_by_row(entry, stream, learn))


SPLITS = [  # and with what width
    ("iid", 1, (1,)),
    ("uneven", 2, (59,)),
    ("drifting", 4, tuple(range(1, 60))),
    ("drifting", 7, (2, 3, 31)),
    ("uneven", 12, tuple(range(5, 60, 4))),
    ("iid", 20, (17, 18, 19, 40, 58)),
]


@every_learner
def test_any_split_is_the_whole_stream(entry: Entry) -> None:
    for kind, d, cuts in SPLITS:
        stream = entry.stream(kind, n=60, d=d)
        assert_same_game(play(entry, stream), play(entry, stream, cuts))


def check_long_stream(entry: Entry, n: int, whole: tuple[Any, np.ndarray]) -> None:
    stream = entry.stream(n=n, d=2)
    assert_same_game(whole, play(entry, stream, (n // 3, n // 3 + 1)))
    assert_same_state(whole[0], entry.new().partial_fit(*stream, **entry.first))


@every_class
def test_a_stream_longer_than_the_inner_block_is_no_different(entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    """With inner blocks that are short; below with those of users."""
    whole = play(entry, entry.stream(n=200, d=2))
    monkeypatch.setattr(blocks, "BLOCK", 32)
    monkeypatch.setattr(logistic, "BLOCK", 32)
    check_long_stream(entry, 200, play(entry, entry.stream(n=200, d=2)))
    check_long_stream(entry, 200, whole)


@learners_that(lambda entry: isinstance(entry.learner, AIOLI | OGD))
def test_a_long_stream_is_no_different(entry: Entry) -> None:
    n = blocks.BLOCK + 100
    check_long_stream(entry, n, play(entry, entry.stream(n=n, d=2)))


@every_path
def test_learn_one_may_be_the_first_call(entry: Entry) -> None:
    stream = entry.stream(n=1)
    learner = entry.new()
    learner.learn_one(stream.X[0], stream.y[0], **entry.first)
    assert_same_state(learner, play(entry, stream)[0])


@every_learner
def test_forecasts_are_those_just_before_learning(entry: Entry) -> None:
    for kind in KINDS:
        stream = entry.stream(kind, n=16)
        _, played = play(entry, stream)
        for t in (1, 2, 8, 15):
            before, _ = play(entry, Stream(stream.X[:t], stream.y[:t]))
            assert np.array_equal(entry.forecast(before, stream.X[t : t + 1])[0], played[t]), (kind, t)


@every_path
def test_fit_forgets_what_came_before(entry: Entry) -> None:
    stream = entry.stream()
    learner, _ = play(entry, entry.stream(seed=1))
    assert_same_state(learner.fit(*stream, **entry.first), play(entry, stream)[0])


@learners_that(lambda entry: isinstance(entry.learner, ONS | OGD))
def test_the_streams_reach_the_border_of_the_ball(entry: Entry) -> None:
    """The suite plays learners that project where they do."""
    stream = entry.stream("drifting")
    norms = [np.linalg.norm(weights(play(entry, Stream(stream.X[:t], stream.y[:t]))[0])) for t in range(1, 100)]
    assert np.mean(np.isclose(norms, entry.learner.radius, rtol=1e-12)) > 0.1


# ---------------------------------------------------------------------- 2. compiled and plain Python


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The short games, compiled and not."""
    folder = tmp_path_factory.mktemp("games")
    short_games(str(folder / "compiled.npz"))
    subprocess.run(
        [sys.executable, "-c", f"import learners; learners.short_games({str(folder / 'plain.npz')!r})"],
        cwd=Path(__file__).parent,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        check=True,
        capture_output=True,
    )
    return np.load(folder / "compiled.npz"), np.load(folder / "plain.npz")


@pytest.mark.parametrize("number", range(len(LEARNERS)), ids=[str(entry) for entry in LEARNERS])
def test_compiled_is_plain_python(games: tuple[Any, Any], number: int) -> None:
    compiled, plain = games
    names = [name for name in compiled if name.startswith(f"{number}.")]
    for kind in KINDS:
        assert {f"{number}.{kind}.{what}" for what in ("forecasts", "later", "tally")} < set(names)
    tolerance = LEARNERS[number].rounding
    for name in names:
        np.testing.assert_allclose(compiled[name], plain[name], rtol=tolerance, atol=tolerance, err_msg=name)


# ---------------------------------------------------------------------- 3. stop, save, load, resume


COPIES: dict[str, Callable[[Any, Path], Any]] = {
    "file": through_file,
    "bytes": lambda learner, folder: type(learner).from_bytes(learner.to_bytes()),
    "pickle": lambda learner, folder: pickle.loads(pickle.dumps(learner)),
    "mapped": lambda learner, folder: joblib.load(joblib.dump(learner, folder / "model.joblib")[0], mmap_mode="r"),
}


@every_learner
def test_resuming_from_a_copy_is_one_run(entry: Entry, tmp_path: Path) -> None:
    stream = entry.stream("uneven", n=60)
    whole, said = play(entry, stream)
    learner, before = play(entry, Stream(stream.X[:40], stream.y[:40]))
    kept = state_bytes(learner)
    for copy, how in COPIES.items():
        resumed = how(learner, tmp_path)
        after = resumed.predict_then_learn(stream.X[40:], stream.y[40:])
        assert np.array_equal(np.concatenate([before, after]), said), copy
        assert_same_state(whole, resumed)
        assert state_bytes(learner) == kept, f"{copy}: the copy shares something"


@every_learner
def test_equal_learners_are_equal_files(entry: Entry, tmp_path: Path) -> None:
    learner, _ = play(entry, entry.stream())
    learner.save(tmp_path / "a.npz")
    play(entry, entry.stream())[0].save(tmp_path / "b.npz")
    regretless.load(tmp_path / "a.npz").save(tmp_path / "c.npz")
    assert len({(tmp_path / name).read_bytes() for name in ("a.npz", "b.npz", "c.npz")}) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.npz", "c.npz"]


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
def test_files_have_the_rights_of_any_new_file(tmp_path: Path) -> None:
    learner = AIOLI().partial_fit(np.eye(2), [0, 1])
    before = os.umask(0o027)
    try:
        for _ in range(2):  # new, and in the place of an older one
            learner.save(tmp_path / "model.npz")
            assert stat.S_IMODE((tmp_path / "model.npz").stat().st_mode) == 0o640
    finally:
        os.umask(before)
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


@every_learner
def test_a_copy_says_what_the_original_says(entry: Entry, tmp_path: Path) -> None:
    learner, _ = play(entry, entry.stream())
    copy = through_file(learner, tmp_path)
    assert type(copy) is type(learner)
    assert params(copy) == params(learner)
    assert copy.n_features_in_ == learner.n_features_in_
    assert copy.competes_with == learner.competes_with
    if entry.certificate:
        assert copy.regret_certificate(0.2) == learner.regret_certificate(0.2)


@every_class
def test_saving_before_the_first_row_is_refused(entry: Entry, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no state to save"):
        entry.new().save(tmp_path / "model.npz")
    assert not any(tmp_path.iterdir())


@every_path
def test_clone_is_the_recipe_alone(entry: Entry) -> None:
    learner, forecasts = play(entry, entry.stream())
    copy = clone(learner)
    assert params(copy) == params(learner)
    assert contents(copy) == params(entry.learner)  # and nothing learned
    again = copy.predict_then_learn(*entry.stream(), **entry.first)
    assert_same_game((learner, forecasts), (copy, again))


# ---------------------------------------------------------------------- 4. what a call may touch


@pytest.mark.parametrize("entry", ONE_PER_PATH, ids=str)
def test_display_and_completion(entry: Entry) -> None:
    fresh = entry.new()
    learner, _ = play(entry, entry.stream("uneven"))
    for each in (fresh, learner):
        assert "partial_fit" in dir(each)
        assert type(each).__name__ in repr(each)
        assert type(each).__name__ in each._repr_html_()
    assert "state_" in dir(learner)


@every_learner
def test_predicting_changes_nothing(entry: Entry) -> None:
    learner, _ = play(entry, entry.stream("uneven"))
    X = entry.stream("uneven", seed=1).X
    before = fingerprint(learner)
    for verb in PREDICTIONS + ONE_ROW_PREDICTIONS:
        if hasattr(learner, verb):
            getattr(learner, verb)(X[0] if verb.endswith("_one") else X)
    if entry.certificate:
        learner.regret_certificate(0.2)
    assert fingerprint(learner) == before


@pytest.mark.parametrize(
    ("entry", "soft"),
    [(entry, soft) for entry in ONE_PER_PATH for soft in (False, True) if not soft or entry.takes_soft_labels],
    ids=str,
)
def test_the_callers_arrays_are_neither_changed_nor_kept(entry: Entry, soft: bool) -> None:
    X, y = entry.stream()
    if soft and entry.classifies:
        y = softmax(np.random.default_rng(0).normal(size=(len(y), entry.n_classes)), axis=1)
    weight = np.full(len(y), 0.5)
    copies = [array.copy() for array in (X, y, weight)]
    learner = entry.new()
    forecasts = learner.predict_then_learn(X, y, sample_weight=weight, **entry.first)
    entry.forecast(learner, X)
    assert all(np.array_equal(array, copy) for array, copy in zip((X, y, weight), copies, strict=True))
    before = fingerprint(learner)
    for array in (X, y, weight, forecasts):
        array[...] = 7
    assert fingerprint(learner) == before


@pytest.mark.parametrize("entry", [entry for entry in ONE_PER_PATH if entry.classifies], ids=str)
def test_the_callers_classes_are_not_kept(entry: Entry) -> None:
    classes = np.arange(entry.n_classes)
    learner = entry.new().partial_fit(*entry.stream(), classes=classes)
    classes[:] = 7
    assert learner.classes_.tolist() == list(range(entry.n_classes))


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "read-only": read_only,
    "Fortran": np.asfortranarray,
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda X: X[::-1].copy()[::-1],
    "float32": lambda X: X.astype(np.float32),
    "int": lambda X: X.astype(int),
    "big-endian": lambda X: X.astype(">f8"),
    "list": lambda X: X.tolist(),
    "frame": lambda X: pd.DataFrame(X).rename(columns=str),
}


def whole_numbers(entry: Entry) -> tuple[Entry, Stream]:
    """A stream that every number type holds exactly, and the learner without a bound below its rows."""
    X, y = entry.stream()
    X = np.round(4.0 * X)
    return entry.taking(np.abs(X).max()), Stream(X, np.round(y))


@every_path
def test_the_form_of_the_rows_does_not_matter(entry: Entry) -> None:
    entry, stream = whole_numbers(entry)
    whole, said = play(entry, stream)
    later = entry.forecast(whole, stream.X)
    for form, change in FORMS.items():
        rows = change(stream.X)
        learner = entry.new()
        forecasts = learner.predict_then_learn(rows, stream.y, **entry.first)
        assert_same_game((whole, said), (learner, forecasts))
        assert np.array_equal(entry.forecast(learner, rows), later), form
        row = rows.iloc[3] if form == "frame" else rows[3]
        assert np.array_equal(entry.forecast_one(learner, row), later[3]), form
        learner.learn_one(row, stream.y[3])


VECTOR_FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "read-only": read_only,
    "every other": lambda y: np.repeat(y, 2)[::2],
    "int8": lambda y: y.astype(np.int8),
    "float": lambda y: y.astype(float),
    "list": lambda y: y.tolist(),
    "series": pd.Series,
    "shuffled index": lambda y: pd.Series(y, index=range(len(y))[::-1]),
}


@every_path
def test_the_form_of_labels_and_weights_does_not_matter(entry: Entry) -> None:
    entry, stream = whole_numbers(entry)
    weight = np.arange(len(stream.y)) % 3
    whole = play(entry, stream, sample_weight=weight)
    for shape in VECTOR_FORMS.values():
        learner = entry.new()
        forecasts = learner.predict_then_learn(stream.X, shape(stream.y), sample_weight=shape(weight), **entry.first)
        assert_same_game(whole, (learner, forecasts))


# ---------------------------------------------------------------------- 5. sample weights


PLACES = [  # of the rows of weight 0, among 30 others
    ("iid", [0, 0]),
    ("uneven", [30]),
    ("drifting", [0, 3, 3, 4, 17, 29, 30, 30]),
    ("iid", list(range(30))),
]


@every_learner
def test_weight_zero_changes_nothing(entry: Entry) -> None:
    for kind, places in PLACES:
        stream, junk = entry.stream(kind, n=30), entry.stream("uneven", n=len(places), seed=1)
        X, y, weight = (
            np.insert(array, places, extra, axis=0)
            for array, extra in zip((*stream, np.ones(30)), (*junk, np.zeros(len(places))), strict=True)
        )
        plain, forecasts = play(entry, stream)
        learner, with_junk = play(entry, Stream(X, y), sample_weight=weight)
        assert state_bytes(learner) == state_bytes(plain), places
        assert np.array_equal(with_junk[weight == 1], forecasts), places
        assert np.isfinite(with_junk).all(), places


@every_learner
def test_a_row_of_weight_zero_is_still_forecast(entry: Entry) -> None:
    learner, _ = play(entry, entry.stream())
    X, y = entry.stream(seed=1)
    expected = entry.forecast(learner, X)
    before = state_bytes(learner)
    assert np.array_equal(learner.predict_then_learn(X, y, sample_weight=np.zeros(len(y))), expected)
    assert state_bytes(learner) == before


@every_learner
def test_only_rows_of_weight_zero_leave_a_learner_at_its_start(entry: Entry) -> None:
    X, y = entry.stream()
    learner = entry.new().partial_fit(X, y, sample_weight=np.zeros(len(y)), **entry.first)
    assert not learner.state_.tally.any()
    domain, W = learner.competes_with and learner.competes_with.domain, weights(learner)
    assert np.array_equal(W, np.full(W.shape, domain.size / W.size if isinstance(domain, Simplex) else 0.0))


@every_learner
def test_weights_are_played(entry: Entry) -> None:
    stream = entry.stream("uneven")
    plain, _ = play(entry, stream)
    for weight in (1e-3, 2.0, 50.0):
        learner, forecasts = play(entry, stream, sample_weight=np.where(np.arange(100) % 2, weight, 1.0))
        assert np.isfinite(forecasts).all()
        assert all(np.isfinite(array).all() for array in learner.state_)
        assert learner.state_.tally[ROWS] == 100
        assert not np.array_equal(learned(learner), learned(plain)), weight
        if entry.theorem and not entry.single:  # which rounding forbids first
            with pytest.raises(NoBound, match="weight"):
                bound(learner)


@every_path
def test_one_number_is_the_weight_of_all_rows(entry: Entry) -> None:
    stream = entry.stream()
    learner = entry.new().partial_fit(*stream, sample_weight=2.0, **entry.first)
    assert_same_state(learner, play(entry, stream, sample_weight=np.full(100, 2.0))[0])
