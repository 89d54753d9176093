"""Every promise, over every learner. To add a learner, add a line to `LEARNERS` in tests/learners.py."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import noregret
from learners import (
    CLASSIFIERS,
    KINDS,
    LEARNERS,
    ONE_OF_EACH,
    Entry,
    Stream,
    assert_same_state,
    fingerprint,
    play,
    short_games,
    state_bytes,
    within,
)
from noregret import AIOLI, ONS, BadRow, NoBound, NoCertificate, VovkAzouryWarmuth
from noregret.domains import RowBall, WholeSpace
from noregret.second_order.curvature import SHARP, kappa
from noregret.second_order.surrogate import LOSS, ROWS

every_learner = pytest.mark.parametrize("entry", LEARNERS, ids=str)
every_classifier = pytest.mark.parametrize("entry", CLASSIFIERS, ids=str)
every_class = pytest.mark.parametrize("entry", ONE_OF_EACH, ids=str)
every_kind = pytest.mark.parametrize("kind", KINDS)


def learners_that(select: Callable[[Entry], Any]) -> Any:
    return pytest.mark.parametrize("entry", [entry for entry in LEARNERS if select(entry)], ids=str)


def directions(n: int, d: int) -> np.ndarray:
    X = np.random.default_rng(3).normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


LABELLINGS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {  # labels from rows
    "separable": lambda X, K: np.argmax(X @ np.random.default_rng(4).normal(size=(3, K)), axis=1),
    "alternating": lambda X, K: np.arange(len(X)) % K,
    "constant": lambda X, K: np.full(len(X), K - 1),
}


def assert_same_game(one: tuple[Any, np.ndarray], other: tuple[Any, np.ndarray]) -> None:
    """The same forecasts and the same state, bit for bit."""
    assert np.array_equal(one[1], other[1])
    assert_same_state(one[0], other[0])


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
@every_kind
@pytest.mark.parametrize("learn", ["learn_one", "partial_fit"])
@pytest.mark.parametrize("d", [1, 4, 17])
def test_row_by_row_is_the_whole_stream(entry: Entry, kind: str, learn: str, d: int) -> None:
    stream = entry.stream(kind, n=40, d=d)
    assert_same_game(play(entry, stream), row_by_row(entry, stream, learn))


@every_learner
@settings(max_examples=20)
@given(cuts=st.sets(st.integers(1, 59)), d=st.integers(1, 20), kind=st.sampled_from(sorted(KINDS)))
def test_any_split_is_the_whole_stream(entry: Entry, cuts: set[int], d: int, kind: str) -> None:
    stream = entry.stream(kind, n=60, d=d)
    assert_same_game(play(entry, stream), play(entry, stream, tuple(sorted(cuts))))


@every_class
def test_a_stream_longer_than_the_inner_block_is_no_different(entry: Entry) -> None:
    stream = entry.stream(n=20_000, d=2)
    whole = play(entry, stream)
    assert_same_game(whole, play(entry, stream, (7_000, 7_001)))
    assert_same_state(whole[0], entry.new().partial_fit(*stream, **entry.first))


@every_learner
def test_learn_one_may_be_the_first_call(entry: Entry) -> None:
    stream = entry.stream(n=1)
    learner = entry.new()
    learner.learn_one(stream.X[0], stream.y[0], **entry.first)
    assert_same_state(learner, play(entry, stream)[0])


@every_learner
@every_kind
def test_forecasts_are_those_just_before_learning(entry: Entry, kind: str) -> None:
    stream = entry.stream(kind, n=30)
    _, played = play(entry, stream)
    for t in range(1, 30):
        before, _ = play(entry, Stream(stream.X[:t], stream.y[:t]))
        assert np.array_equal(entry.forecast(before, stream.X[t : t + 1])[0], played[t])


@every_learner
def test_fit_forgets_what_came_before(entry: Entry) -> None:
    stream = entry.stream()
    learner, _ = play(entry, entry.stream(seed=1))
    assert_same_state(learner.fit(*stream, **entry.first), play(entry, stream)[0])


@learners_that(lambda entry: isinstance(entry.learner, ONS))
def test_the_streams_reach_the_border_of_the_ball(entry: Entry) -> None:
    """The suite plays ONS where it projects too."""
    stream = entry.stream("drifting")
    norms = [np.linalg.norm(play(entry, Stream(stream.X[:t], stream.y[:t]))[0].state_.w) for t in range(1, 100)]
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


@pytest.mark.xdist_group("plain-python")
@pytest.mark.parametrize("number", range(len(LEARNERS)), ids=[str(entry) for entry in LEARNERS])
def test_compiled_is_plain_python(games: tuple[Any, Any], number: int) -> None:
    compiled, plain = games
    names = [name for name in compiled if name.startswith(f"{number}.")]
    assert len(names) >= 5 * len(KINDS)
    tolerance = LEARNERS[number].rounding
    for name in names:
        np.testing.assert_allclose(compiled[name], plain[name], rtol=tolerance, atol=tolerance, err_msg=name)


# ---------------------------------------------------------------------- 3. stop, save, load, resume


def through_file(learner: Any, folder: Path) -> Any:
    learner.save(folder / "model.npz")
    return noregret.load(folder / "model.npz")


COPIES: dict[str, Callable[[Any, Path], Any]] = {
    "file": through_file,
    "pickle": lambda learner, folder: pickle.loads(pickle.dumps(learner)),
}


@every_learner
@every_kind
@pytest.mark.parametrize("copy", COPIES)
def test_resuming_from_a_copy_is_one_run(entry: Entry, kind: str, copy: str, tmp_path: Path) -> None:
    stream = entry.stream(kind)
    learner, before = play(entry, Stream(stream.X[:60], stream.y[:60]))
    resumed = COPIES[copy](learner, tmp_path)
    after = resumed.predict_then_learn(stream.X[60:], stream.y[60:])
    assert_same_game(play(entry, stream), (resumed, np.concatenate([before, after])))
    assert_same_state(learner, play(entry, Stream(stream.X[:60], stream.y[:60]))[0])  # the copy shares nothing


@every_learner
def test_equal_learners_are_equal_files(entry: Entry, tmp_path: Path) -> None:
    learner, _ = play(entry, entry.stream())
    learner.save(tmp_path / "a.npz")
    play(entry, entry.stream())[0].save(tmp_path / "b.npz")
    noregret.load(tmp_path / "a.npz").save(tmp_path / "c.npz")
    assert len({(tmp_path / name).read_bytes() for name in ("a.npz", "b.npz", "c.npz")}) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npz", "b.npz", "c.npz"]


@every_learner
def test_a_copy_says_what_the_original_says(entry: Entry, tmp_path: Path) -> None:
    learner, _ = play(entry, entry.stream())
    copy = through_file(learner, tmp_path)
    assert type(copy) is type(learner)
    assert copy.get_params() == learner.get_params()
    assert copy.n_features_in_ == learner.n_features_in_
    assert copy.competes_with == learner.competes_with
    if entry.certificate:
        assert copy.regret_certificate(0.5) == learner.regret_certificate(0.5)


@every_learner
def test_saving_before_the_first_row_is_refused(entry: Entry, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no state to save"):
        entry.new().save(tmp_path / "model.npz")
    assert not any(tmp_path.iterdir())


@every_learner
def test_clone_is_the_recipe_alone(entry: Entry) -> None:
    learner, forecasts = play(entry, entry.stream())
    copy = clone(learner)
    assert copy.get_params() == learner.get_params()
    assert vars(copy) == entry.learner.get_params()  # and nothing learned
    again = copy.predict_then_learn(*entry.stream(), **entry.first)
    assert_same_game((learner, forecasts), (copy, again))


# ---------------------------------------------------------------------- 4. what a call may touch

PREDICTIONS = ["predict", "predict_proba", "decision_function"]
ONE_ROW_PREDICTIONS = ["predict_one", "predict_proba_one"]


@every_learner
@every_kind
def test_predicting_changes_nothing(entry: Entry, kind: str) -> None:
    learner, _ = play(entry, entry.stream(kind))
    X = entry.stream(kind, seed=1).X
    before = fingerprint(learner)
    for verb in PREDICTIONS + ONE_ROW_PREDICTIONS:
        if hasattr(learner, verb):
            getattr(learner, verb)(X[0] if verb.endswith("_one") else X)
    if entry.certificate:
        learner.regret_certificate(0.5)
    assert fingerprint(learner) == before


@every_learner
@pytest.mark.parametrize("soft", [False, True])
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


@every_classifier
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
    """A stream that every number type holds exactly, and the learner without a bound on its rows."""
    X, y = entry.stream()
    return replace(entry, learner=entry.unbounded()), Stream(np.round(4.0 * X), np.round(y))


@every_learner
@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_the_rows_does_not_matter(entry: Entry, form: str) -> None:
    entry, stream = whole_numbers(entry)
    rows = FORMS[form](stream.X)
    learner = entry.new()
    forecasts = learner.predict_then_learn(rows, stream.y, **entry.first)
    assert_same_game(play(entry, stream), (learner, forecasts))
    assert np.array_equal(entry.forecast(learner, rows), entry.forecast(learner, stream.X))
    row = rows.iloc[3] if form == "frame" else rows[3]
    assert np.array_equal(entry.forecast_one(learner, row), entry.forecast(learner, stream.X)[3])
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


@every_learner
@pytest.mark.parametrize("form", VECTOR_FORMS)
def test_the_form_of_labels_and_weights_does_not_matter(entry: Entry, form: str) -> None:
    entry, stream = whole_numbers(entry)
    weight = np.arange(len(stream.y)) % 3
    shape = VECTOR_FORMS[form]
    learner = entry.new()
    forecasts = learner.predict_then_learn(stream.X, shape(stream.y), sample_weight=shape(weight), **entry.first)
    assert_same_game(play(entry, stream, sample_weight=weight), (learner, forecasts))


# ---------------------------------------------------------------------- 5. sample weights


@every_learner
@settings(max_examples=20)
@given(places=st.lists(st.integers(0, 30), min_size=1, max_size=12), kind=st.sampled_from(sorted(KINDS)))
@example(places=[0, 0], kind="iid")
@example(places=[30], kind="uneven")
def test_weight_zero_changes_nothing(entry: Entry, places: list[int], kind: str) -> None:
    stream, junk = entry.stream(kind, n=30), entry.stream("uneven", n=len(places), seed=1)
    X, y, weight = (
        np.insert(array, places, extra, axis=0)
        for array, extra in zip((*stream, np.ones(30)), (*junk, np.zeros(len(places))), strict=True)
    )
    plain, forecasts = play(entry, stream)
    learner, with_junk = play(entry, Stream(X, y), sample_weight=weight)
    assert state_bytes(learner) == state_bytes(plain)
    assert np.array_equal(with_junk[weight == 1], forecasts)
    assert np.isfinite(with_junk).all()


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
    assert not learner.state_.w.any()


@every_learner
@pytest.mark.parametrize("weight", [1e-3, 2.0, 50.0])
def test_weights_are_played(entry: Entry, weight: float) -> None:
    stream = entry.stream("uneven")
    learner, forecasts = play(entry, stream, sample_weight=np.full(100, weight))
    assert np.isfinite(forecasts).all()
    assert all(np.isfinite(array).all() for array in learner.state_)
    assert learner.state_.tally[ROWS] == 100
    assert not np.array_equal(learner.state_.P, play(entry, stream)[0].state_.P)
    if entry.theorem:
        with pytest.raises(NoBound, match="weight"):
            bound(learner)


@every_learner
def test_one_number_is_the_weight_of_all_rows(entry: Entry) -> None:
    stream = entry.stream()
    learner = entry.new().partial_fit(*stream, sample_weight=2.0, **entry.first)
    assert_same_state(learner, play(entry, stream, sample_weight=np.full(100, 2.0))[0])


# ---------------------------------------------------------------------- 7. regret <= certificate <= bound

LARGEST_NUMBER_WEIGHTS = 2.0  # the comparators' norm where the class is all of space


def losses_of_forecasts(entry: Entry, forecasts: np.ndarray, y: np.ndarray) -> np.ndarray:
    if not entry.classifies:
        return (forecasts - y) ** 2
    return -np.log(forecasts[np.arange(len(y)), y])


def losses_of_comparator(entry: Entry, W: np.ndarray, stream: Stream) -> np.ndarray:
    """Losses of a comparator (rows, d) on every row."""
    z = stream.X @ W.T
    if not entry.classifies:
        return (z[:, 0] - stream.y) ** 2
    if entry.margin:
        z = np.column_stack([np.zeros(len(z)), z])
    return logsumexp(z, axis=1) - z[np.arange(len(z)), stream.y]


def class_radius(domain: Any) -> float:
    return LARGEST_NUMBER_WEIGHTS if isinstance(domain, WholeSpace) else domain.radius


def sizes(domain: Any, W: np.ndarray) -> np.ndarray:
    """The norms that the class bounds."""
    return np.linalg.norm(W, axis=1) if isinstance(domain, RowBall) else np.array([np.linalg.norm(W)])


def into_class(domain: Any, W: np.ndarray) -> np.ndarray:
    return W / np.maximum(1.0, sizes(domain, W) / class_radius(domain))[:, None]


def random_comparators(domain: Any, shape: tuple[int, int], rng: np.random.Generator) -> list[np.ndarray]:
    """Fifty elements of the class, half of them on its border."""
    radius = class_radius(domain)
    return [into_class(domain, rng.normal(size=shape) * (100.0 if i % 2 else 0.5) * radius) for i in range(50)]


def good_comparator(entry: Entry, domain: Any, stream: Stream, weight: np.ndarray) -> np.ndarray:
    shape = (entry.comparator_rows, stream.X.shape[1])

    def total(flat: np.ndarray) -> float:
        return float(weight @ losses_of_comparator(entry, flat.reshape(shape), stream))

    def slack(flat: np.ndarray) -> np.ndarray:
        W = flat.reshape(shape)
        squares = (W**2).sum(axis=1)
        return class_radius(domain) ** 2 - (squares if isinstance(domain, RowBall) else squares.sum(keepdims=True))

    found = minimize(total, np.zeros(np.prod(shape)), method="SLSQP", constraints={"type": "ineq", "fun": slack})
    return into_class(domain, found.x.reshape(shape))


WEIGHTINGS: dict[str, Callable[[int], np.ndarray]] = {
    "weight 1": np.ones,
    "weights": lambda n: np.random.default_rng(5).choice([0.0, 0.3, 1.0, 4.0], size=n),
}


@learners_that(lambda entry: entry.certificate)
@pytest.mark.parametrize("kind", ["iid", "drifting", "uneven"])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_regret_is_within_the_certificate(entry: Entry, kind: str, weighting: str) -> None:
    stream = entry.stream(kind, n=150, d=3)
    weight = WEIGHTINGS[weighting](150)
    learner, forecasts = play(entry, stream, sample_weight=weight)
    suffered = weight @ losses_of_forecasts(entry, forecasts, stream.y)
    domain = learner.competes_with.domain
    comparators = random_comparators(domain, (entry.comparator_rows, 3), np.random.default_rng(2))
    for W in [np.zeros_like(comparators[0]), good_comparator(entry, domain, stream, weight), *comparators]:
        regret = suffered - weight @ losses_of_comparator(entry, W, stream)
        assert regret <= learner.regret_certificate(comparator_norm=np.linalg.norm(W)) + 1e-9 * (1 + suffered)


def assert_certificate_is_true_or_refused(entry: Entry, learner: Any, stream: Stream, weight: float) -> None:
    """Against no weights at all, whose losses are the same on every stream."""
    suffered = learner.state_.tally[LOSS]  # from the forecasts it would overflow where a probability underflows
    nothing = np.zeros((entry.comparator_rows, stream.X.shape[1]))
    regret = suffered - weight * losses_of_comparator(entry, nothing, stream).sum()
    try:
        assert regret <= learner.regret_certificate(0.0) + 1e-9 * (1 + suffered)
    except NoCertificate as refusal:
        assert "rounding" in str(refusal) or "not proved" in str(refusal)


@every_learner
@pytest.mark.parametrize("size", [1e3, 1e5, 1e7, 1e9])
def test_the_certificate_survives_large_rows(entry: Entry, size: float) -> None:
    X = directions(300, 3)
    stream = Stream(size * X, LABELLINGS["separable"](X, max(entry.n_classes, 2)))
    learner = entry.unbounded().partial_fit(*stream, **entry.first)
    assert_certificate_is_true_or_refused(entry, learner, stream, 1.0)
    if entry.certificate and not isinstance(entry.learner, ONS) and size <= 1e5:
        learner.regret_certificate(0.0)  # is not refused


@every_learner
@pytest.mark.parametrize("weight", [1e-300, 1e6, 1e12, 1e20, 1e50, 1e300])
@pytest.mark.filterwarnings("error")
def test_extreme_weights_are_played_soundly_or_refused(entry: Entry, weight: float) -> None:
    stream = entry.stream()
    learner = entry.new()
    try:
        learner.partial_fit(*stream, sample_weight=weight, **entry.first)
    except BadRow:
        assert weight > 1e6
        assert vars(learner) == entry.learner.get_params()
    else:
        assert_sound(entry, learner)
        assert_certificate_is_true_or_refused(entry, learner, stream, weight)


@every_learner
@every_kind
def test_the_tally_is_of_the_losses_suffered(entry: Entry, kind: str) -> None:
    stream = entry.stream(kind)
    weight = WEIGHTINGS["weights"](100)
    learner, forecasts = play(entry, stream, sample_weight=weight)
    assert learner.state_.tally[LOSS] == pytest.approx(
        weight @ losses_of_forecasts(entry, forecasts, stream.y), rel=1e-9
    )
    assert learner.state_.tally[ROWS] == np.count_nonzero(weight)


def certificate(learner: Any) -> float:
    whole = isinstance(learner.competes_with.domain, WholeSpace)
    return learner.regret_certificate(LARGEST_NUMBER_WEIGHTS if whole else None)


def bound(learner: Any) -> float:
    whole = isinstance(learner.competes_with.domain, WholeSpace)
    return learner.regret_bound(**({"comparator_norm": LARGEST_NUMBER_WEIGHTS} if whole else {}))


@every_learner
@pytest.mark.parametrize("kind", ["iid", "drifting"])
def test_the_certificate_is_within_the_bound(entry: Entry, kind: str) -> None:
    stream = entry.stream(kind, n=500)
    learner, _ = play(entry, Stream(within(stream.X, 1.0), stream.y))
    if not entry.theorem:
        with pytest.raises(NoBound):
            bound(learner)
    else:
        assert certificate(learner) <= bound(learner)


@learners_that(lambda entry: not entry.certificate)
def test_no_certificate_is_said_not_guessed(entry: Entry) -> None:
    learner, _ = play(entry, entry.stream())
    with pytest.raises(NoCertificate, match="not proved"):
        learner.regret_certificate()


@every_learner
def test_a_comparator_outside_the_class_has_no_certificate(entry: Entry) -> None:
    learner, _ = play(entry, entry.stream())
    if isinstance(learner.competes_with.domain, WholeSpace):
        with pytest.raises(NoCertificate, match="comparator_norm"):
            learner.regret_certificate()
    else:
        with pytest.raises(NoCertificate):
            learner.regret_certificate(comparator_norm=100.0)


def test_the_certificate_of_least_squares_is_the_regret_of_the_ridge_solution() -> None:
    entry = next(entry for entry in LEARNERS if isinstance(entry.learner, VovkAzouryWarmuth))
    stream = entry.stream("drifting")
    learner, forecasts = play(entry, stream)
    w = learner.state_.w
    regret = np.sum((forecasts - stream.y) ** 2) - np.sum((stream.X @ w - stream.y) ** 2)
    assert learner.regret_certificate(np.linalg.norm(w)) == pytest.approx(regret, rel=1e-10)


# ---------------------------------------------------------------------- 8. what is refused


@dataclass(frozen=True)
class Mistake:
    """A call that must fail: what it changes in a good one, and words of the complaint."""

    name: str
    spoil: Callable[[Entry, Stream], dict[str, Any]]
    words: str  # a regular expression
    of: str = "all"  # "classifiers" or "regressors" alone
    when: str = "always"  # "first": in a first call alone, "later": in a running game alone

    def __str__(self) -> str:
        return self.name


def changed(array: np.ndarray, place: Any, value: Any) -> np.ndarray:
    array = array.copy()
    array[place] = value
    return array


def bad_rows(name: str, change: Callable[[np.ndarray], Any], words: str, when: str = "always") -> Mistake:
    return Mistake(name, lambda entry, stream: {"X": change(stream.X)}, words, when=when)


def bad_labels(name: str, change: Callable[[np.ndarray], Any], words: str, of: str = "all") -> Mistake:
    return Mistake(name, lambda entry, stream: {"y": change(stream.y)}, words, of)


def bad_soft_labels(name: str, change: Callable[[np.ndarray], Any], words: str) -> Mistake:
    def spoil(entry: Entry, stream: Stream) -> dict[str, Any]:
        return {"y": change(np.full((len(stream.y), entry.n_classes), 1 / entry.n_classes))}

    return Mistake(name, spoil, words, "classifiers")


def bad_classes(name: str, classes: Any, words: str, when: str) -> Mistake:
    return Mistake(name, lambda entry, stream: {"y": 0 * stream.y, "classes": classes}, words, "classifiers", when)


def bad_weights(name: str, change: Callable[[np.ndarray], Any], words: str) -> Mistake:
    return Mistake(name, lambda entry, stream: {"sample_weight": change(np.ones(len(stream.y)))}, words)


ROW_MISTAKES = [
    bad_rows("NaN", lambda X: changed(X, (3, 1), np.nan), "row 3, column 1: NaN.*fill"),
    bad_rows("inf", lambda X: changed(X, (3, 1), np.inf), "row 3, column 1: inf"),
    bad_rows("-inf", lambda X: changed(X, (3, 1), -np.inf), "row 3, column 1: -inf"),
    bad_rows("1e200", lambda X: changed(X, (3, 1), -1e200), r"row 3(, column 1: -|: \|x\| = )1e\+200.*Scale"),
    bad_rows("empty block", lambda X: X[:0], r"0 sample\(s\)"),
    bad_rows("no columns", lambda X: X[:, :0], r"0 feature\(s\)"),
    bad_rows("wrong width", lambda X: X[:, :3], "3 features.*expecting 4 features", when="later"),
    bad_rows("one dimension", lambda X: X[0], "2D array"),
    bad_rows("three dimensions", lambda X: X[None], "dim 3"),
    bad_rows("text", lambda X: X.astype(str).astype(object) + "?", "could not convert"),
]
LABEL_MISTAKES = [
    bad_labels("short y", lambda y: y[:-1], "inconsistent numbers of samples"),
    bad_labels("empty y", lambda y: y[:0], "inconsistent numbers of samples"),
    bad_labels("y of three dimensions", lambda y: y.reshape(-1, 1, 1), "y has shape"),
    bad_labels("no y", lambda y: None, "y is None"),
    bad_labels("unknown label", lambda y: changed(y, 2, 9), "row 2: label .*9.*Correct", "classifiers"),
    bad_labels("NaN label", lambda y: changed(y * 1.0, 2, np.nan), "row 2: label .*nan", "classifiers"),
    bad_labels("NaN target", lambda y: changed(y, 2, np.nan), "row 2: y = nan", "regressors"),
    bad_labels("inf target", lambda y: changed(y, 2, -np.inf), "row 2: y = -inf", "regressors"),
    bad_labels("text target", lambda y: ["a"] * len(y), "could not convert", "regressors"),
    bad_labels("two targets", lambda y: np.column_stack([y, y]), "y has shape", "regressors"),
    bad_soft_labels("soft labels off", lambda y: changed(y, (2, 0), 0.9), "row 2: .*sum to.*Divide"),
    bad_soft_labels("negative soft label", lambda y: changed(y, (2, 0), -0.1), "row 2, label column 0: -0.1"),
    bad_soft_labels("NaN soft label", lambda y: changed(y, (2, 1), np.nan), "row 2, label column 1: nan"),
    bad_soft_labels("soft labels too wide", lambda y: np.column_stack([y, 0 * y[:, 0]]), "columns"),
    bad_classes("other classes", [0, 7], "classes=.*differ", "later"),
    bad_classes("a class twice", [0, 1, 1], "twice", "first"),
    bad_classes("one class declared", [0], "one class", "first"),
    bad_classes("one class met", None, "one class.*declare", "first"),
]
WEIGHT_MISTAKES = [
    bad_weights("negative weight", lambda w: changed(w, 4, -0.5), "row 4: sample_weight -0.5"),
    bad_weights("NaN weight", lambda w: changed(w, 4, np.nan), "row 4: sample_weight nan"),
    bad_weights("inf weight", lambda w: changed(w, 4, np.inf), "row 4: sample_weight inf"),
    bad_weights("short weights", lambda w: w[:-1], "sample_weight has shape"),
    bad_weights("matrix of weights", lambda w: w[:, None], "sample_weight has shape"),
    bad_weights("text weights", lambda w: ["a"] * len(w), "could not convert"),
]
MISTAKES = ROW_MISTAKES + LABEL_MISTAKES + WEIGHT_MISTAKES


def applies(entry: Entry, mistake: Mistake) -> bool:
    return mistake.of == "all" or (mistake.of == "classifiers") == entry.classifies


def cases(mistakes: list[Mistake], when: str) -> Any:
    """Every mistake with every learner it can be made with."""
    made = [mistake for mistake in mistakes if mistake.when in ("always", when)]
    pairs = [(entry, mistake) for entry in LEARNERS for mistake in made if applies(entry, mistake)]
    return pytest.mark.parametrize(("entry", "mistake"), pairs, ids=[f"{entry}-{mistake}" for entry, mistake in pairs])


def spoilt(entry: Entry, mistake: Mistake, declared: dict[str, Any]) -> dict[str, Any]:
    stream = entry.stream(seed=1, n=20)
    return {"X": stream.X, "y": stream.y, **declared, **mistake.spoil(entry, stream)}


@cases(MISTAKES, "first")
@pytest.mark.parametrize("verb", ["partial_fit", "predict_then_learn", "fit"])
def test_a_refused_first_call_leaves_no_trace(entry: Entry, mistake: Mistake, verb: str) -> None:
    learner = entry.new()
    with pytest.raises(ValueError, match=mistake.words):
        getattr(learner, verb)(**spoilt(entry, mistake, entry.first))
    assert vars(learner) == entry.learner.get_params()


@cases(MISTAKES, "later")
@pytest.mark.parametrize("verb", ["partial_fit", "predict_then_learn"])
def test_a_refused_later_call_changes_nothing(entry: Entry, mistake: Mistake, verb: str) -> None:
    learner, _ = play(entry, entry.stream())
    before = fingerprint(learner), state_bytes(learner)
    with pytest.raises(ValueError, match=mistake.words):
        getattr(learner, verb)(**spoilt(entry, mistake, {}))
    assert (fingerprint(learner), state_bytes(learner)) == before


@cases(MISTAKES, "first")
def test_a_refused_fit_forgets_nothing(entry: Entry, mistake: Mistake) -> None:
    learner, _ = play(entry, entry.stream())
    before = fingerprint(learner)
    with pytest.raises(ValueError, match=mistake.words):
        learner.fit(**spoilt(entry, mistake, entry.first))
    assert fingerprint(learner) == before


@cases(ROW_MISTAKES, "later")
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_bad_rows_are_not_forecast_either(entry: Entry, mistake: Mistake) -> None:
    learner, _ = play(entry, entry.stream())
    before = fingerprint(learner)
    X = mistake.spoil(entry, entry.stream(n=20))["X"]
    for verb in PREDICTIONS:
        if hasattr(learner, verb):
            with pytest.raises(ValueError, match=mistake.words):
                getattr(learner, verb)(X)
    assert fingerprint(learner) == before


@every_learner
@pytest.mark.parametrize(
    "bad", [[1.0, 2.0, np.nan, 0.0], [np.inf] * 4, [1.0] * 3, [[1.0] * 4], 1.0, [1e200] * 4], ids=str
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_one_bad_row_is_refused(entry: Entry, bad: Any) -> None:
    learner, _ = play(entry, entry.stream())
    before = fingerprint(learner)
    with pytest.raises(BadRow):
        learner.learn_one(bad, 1)
    with pytest.raises(BadRow):
        entry.forecast_one(learner, bad)
    assert fingerprint(learner) == before


@every_classifier
@pytest.mark.parametrize("bad", [9, "a", None, float("nan"), [0.5, 0.1], np.full(9, 1 / 9)], ids=str)
def test_one_unknown_label_is_refused(entry: Entry, bad: Any) -> None:
    learner, _ = play(entry, entry.stream())
    before = fingerprint(learner)
    with pytest.raises(ValueError, match=r"label|classes"):
        learner.learn_one(np.ones(4) / 8, bad)
    assert fingerprint(learner) == before


@learners_that(lambda entry: getattr(entry.learner, "feature_bound", None))
def test_a_row_beyond_the_declared_bound_is_refused(entry: Entry) -> None:
    stream = entry.stream()
    learner, _ = play(entry, stream)
    R = entry.learner.feature_bound
    on_the_border, beyond = np.array([[R, 0.0, 0.0, 0.0]]), changed(stream.X, 5, [0.0, -1.001 * R, 0.0, 0.0])
    before = fingerprint(learner)
    for call in (learner.partial_fit, learner.predict_then_learn, entry.new().partial_fit):
        with pytest.raises(BadRow, match=r"row 5: \|x\| = .* beyond feature_bound"):
            call(beyond, stream.y, **entry.first)
    with pytest.raises(BadRow, match="row 5"):
        entry.forecast(learner, beyond)
    with pytest.raises(BadRow, match="feature_bound"):
        learner.learn_one(beyond[5], stream.y[5])
    assert fingerprint(learner) == before
    learner.partial_fit(on_the_border, stream.y[:1])


@learners_that(lambda entry: isinstance(entry.learner, AIOLI))
def test_two_class_learners_refuse_three(entry: Entry) -> None:
    learner = entry.new()
    with pytest.raises(ValueError, match=r"binary.*3 here"):
        learner.partial_fit(np.eye(3) / 8, [0, 1, 2])
    assert vars(learner) == entry.learner.get_params()


BAD_PARAMETERS: dict[str, list[Any]] = {
    "radius": [0.0, -1.0, np.nan, np.inf, "big", True],
    "regularization": [0.0, -1.0, np.nan, np.inf, "big"],
    "curvature": [0.0, -1.0, np.nan, "steep"],
    "virtual_weight": [-1.0, np.nan, "heavy", None],
    "feature_bound": [0.0, -1.0, np.nan, "big"],
    "gamma": [0.0, -1.0, np.nan],
    "epsilon": [0.0, -1.0, np.nan],
    "expectation": ["exact", 3],
    "n_samples": [0, -1, 1.5],
    "smoothing": [-0.1, 1.1, np.nan, "some", "theory"],
    "random_state": [-1, 0.5, "seed"],
    "horizon": [],  # read by smoothing="theory" alone
}


@pytest.mark.parametrize(
    ("entry", "name"), [(entry, name) for entry in ONE_OF_EACH for name in entry.learner.get_params()], ids=str
)
def test_bad_parameters_are_named_at_the_first_row(entry: Entry, name: str) -> None:
    for value in BAD_PARAMETERS[name]:
        learner = entry.new(**{name: value})
        with pytest.raises(ValueError, match=name):
            learner.partial_fit(*entry.stream(), **entry.first)
        assert not hasattr(learner, "state_")


@every_learner
def test_before_the_first_row_there_is_nothing_to_say(entry: Entry) -> None:
    X = entry.stream().X
    for verb in PREDICTIONS + ONE_ROW_PREDICTIONS:
        if hasattr(entry.learner, verb):
            with pytest.raises(NotFittedError):
                getattr(entry.new(), verb)(X[0] if verb.endswith("_one") else X)
    for verb in ("regret_certificate", "regret_bound"):
        with pytest.raises(NotFittedError):
            getattr(entry.new(), verb)()


# ---------------------------------------------------------------------- 9. extremes


EXTREMES: dict[str, Callable[[], np.ndarray]] = {
    "1e150": lambda: 1e150 * directions(200, 3),
    "1e150 on the axes": lambda: 1e150 * np.tile(np.eye(3), (60, 1)),
    "1e-300": lambda: 1e-300 * directions(200, 3),
    "5e-324": lambda: 5e-324 * np.sign(directions(200, 3)),
    "from 1e-300 to 1e150": lambda: 10.0 ** np.linspace(-300, 150, 200)[:, None] * directions(200, 3),
    "from 1e150 to 1e-300": lambda: 10.0 ** np.linspace(150, -300, 200)[:, None] * directions(200, 3),
    "one huge column": lambda: directions(200, 3) * [1e150, 1.0, 1e-150],
    "zeros": lambda: np.zeros((200, 3)),
    "margins of 1e4": lambda: 100.0 * np.repeat(directions(4, 3), 50, axis=0),
    "identical": lambda: np.tile(directions(1, 3), (20_000, 1)),
    "separable": lambda: 10.0 * directions(2_000, 3),
}


@every_learner
@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("labelling", LABELLINGS)
@pytest.mark.parametrize("radius", [None, 100.0])
@pytest.mark.filterwarnings("error")
def test_extremes_stay_finite(entry: Entry, extreme: str, labelling: str, radius: float | None) -> None:
    learner = entry.unbounded() if radius is None else entry.unbounded(radius=radius, gamma=0.5)
    X = EXTREMES[extreme]()
    y = LABELLINGS[labelling](X, entry.n_classes if entry.classifies else 2)
    played = learner.predict_then_learn(X, y, **entry.first)
    assert_sound(entry, learner)
    for forecasts in (played, entry.forecast(learner, X[:200])):
        assert np.isfinite(forecasts).all()
        if entry.classifies:
            assert forecasts.min() >= 0
            np.testing.assert_allclose(forecasts.sum(axis=1), 1.0, rtol=1e-12)


def assert_sound(entry: Entry, learner: Any) -> None:
    """A state without NaN or infinity, P exactly symmetric, and no variance negative beyond rounding."""
    for name, array in learner.state_._asdict().items():
        assert np.isfinite(array).all(), name
    P = learner.state_.P
    assert np.array_equal(P, P.T)
    assert np.diagonal(P).min() >= -1e-10 / start_of(learner)
    if isinstance(entry.learner, ONS):
        assert np.linalg.norm(learner.state_.w) <= learner.radius * (1 + 1e-9)


@every_learner
def test_a_row_of_norm_1e200_is_refused_with_a_remedy(entry: Entry) -> None:
    learner = entry.unbounded()
    with pytest.raises(BadRow, match=r"too large.*Scale the features"):
        learner.partial_fit(1e200 * np.eye(3), [0, 1, 0], **entry.first)


def hessian_of_row(
    entry: Entry, learner: Any, X: np.ndarray, y: np.ndarray, forecasts: np.ndarray
) -> np.ndarray | None:
    """What each row adds to A, as a multiple of x x^T, where a formula in the forecasts gives it."""
    if isinstance(learner, VovkAzouryWarmuth):
        return np.ones(len(X))
    if isinstance(learner, ONS) and entry.margin:
        return (forecasts[:, 1] - y) ** 2
    if isinstance(learner, AIOLI):
        R = learner.feature_bound
        C = 0.5 * learner.radius * (np.linalg.norm(X, axis=1) if R is None else np.full(len(X), R))
        return np.array([kappa(SHARP, 0.0, c, 2) for c in C]) * forecasts.prod(axis=1)
    return None


def start_of(learner: Any) -> float:
    """The multiple of the identity that A starts as."""
    return learner._constants.epsilon if isinstance(learner, ONS) else learner._constants.regularization


@every_learner
@pytest.mark.slow
def test_the_inverse_stays_one_over_200_000_rows(entry: Entry) -> None:
    stream = entry.stream(n=200_000, d=5)
    learner, forecasts = play(entry, stream)
    assert_sound(entry, learner)
    c = hessian_of_row(entry, learner, *stream, forecasts)
    if c is not None:
        A = start_of(learner) * np.eye(5) + (stream.X * c[:, None]).T @ stream.X
        assert np.linalg.norm(learner.state_.P @ A - np.eye(5)) <= 1e-8


@learners_that(lambda entry: isinstance(entry.learner, AIOLI | VovkAzouryWarmuth))
@pytest.mark.slow
def test_the_inverse_stays_one_over_a_million_identical_rows(entry: Entry) -> None:
    stream = Stream(np.tile(directions(1, 3), (1_000_000, 1)), np.ones(1_000_000, dtype=int))
    learner, forecasts = play(entry, stream)
    assert_sound(entry, learner)
    lam, c = start_of(learner), hessian_of_row(entry, learner, *stream, forecasts)
    along = np.outer(stream.X[0], stream.X[0])  # a projection: the rows have norm 1
    P = (np.eye(3) - along) / lam + along / (lam + c.sum())  # (inverting the sum of the rows loses seven digits)
    assert np.linalg.norm(learner.state_.P - P) <= 1e-12 * np.linalg.norm(P)
    assert stream.X[0] @ learner.state_.P @ stream.X[0] == pytest.approx(1 / (lam + c.sum()), rel=1e-6)


# ---------------------------------------------------------------------- labels

KINDS_OF_LABELS: dict[str, tuple[list[Any], list[Any]]] = {  # labels for codes 0 and 1, and their order
    "text": (["yes", "no"], ["no", "yes"]),
    "bool": ([True, False], [False, True]),
    "signs": ([1, -1], [-1, 1]),
    "ints": ([7, 3], [3, 7]),
    "whole floats": ([2.0, 1.0], [1.0, 2.0]),
    "mixed": (["a", 1], ["a", 1]),
}
SOME_CODES = np.array([0, 1, 1, 0, 1, 0, 0, 1, 0, 1])


@learners_that(lambda entry: entry.n_classes == 2)
@pytest.mark.parametrize("kind", KINDS_OF_LABELS)
@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize("declared", [False, True])
def test_labels_of_any_kind(entry: Entry, kind: str, as_array: bool, declared: bool, tmp_path: Path) -> None:
    names, order = KINDS_OF_LABELS[kind]
    X = directions(10, 4) / 2
    y: Any = [names[code] for code in SOME_CODES]
    if as_array:
        y = np.array(y, dtype=object if kind == "mixed" else None)
    learner = entry.new().partial_fit(X, y, classes=order if declared else None)
    assert learner.classes_.tolist() == order
    coded = entry.new().partial_fit(X, [order.index(names[code]) for code in SOME_CODES])
    assert_same_state(learner, coded)
    assert learner.predict(X).tolist() == [order[code] for code in coded.predict(X)]
    learner.learn_one(X[0], names[0])
    copy = through_file(learner, tmp_path)
    assert copy.classes_.tolist() == order
    assert [type(label) for label in copy.classes_.tolist()] == [type(label) for label in order]
    with pytest.raises(BadRow, match="row 1"):
        learner.partial_fit(X[:2], [names[0], "other"])


@every_classifier
def test_declared_classes_keep_their_order(entry: Entry) -> None:
    order = list(range(entry.n_classes))[::-1]
    stream = entry.stream()
    learner = entry.new().partial_fit(*stream, classes=order)
    assert learner.classes_.tolist() == order
    assert_same_state(learner, play(entry, Stream(stream.X, entry.n_classes - 1 - stream.y))[0])


@every_classifier
def test_classes_declared_later_must_agree(entry: Entry) -> None:
    stream = entry.stream()
    learner, _ = play(entry, stream)
    learner.partial_fit(*stream, classes=range(entry.n_classes))
    learner.partial_fit(*stream, classes=np.arange(entry.n_classes))
    before = fingerprint(learner)
    for wrong in (range(entry.n_classes + 1), range(entry.n_classes)[::-1], ["a", "b"]):
        with pytest.raises(ValueError, match="differs from"):
            learner.partial_fit(*stream, classes=wrong)
        with pytest.raises(ValueError, match="differs from"):
            learner.learn_one(stream.X[0], stream.y[0], classes=wrong)
    assert fingerprint(learner) == before


@every_classifier
def test_a_class_may_be_met_late(entry: Entry) -> None:
    stream = entry.stream()
    learner = entry.new().partial_fit(stream.X[:1], [0], **entry.first)
    assert learner.predict_proba(stream.X).shape == (100, entry.n_classes)
    assert learner.predict(stream.X).shape == (100,)


@every_classifier
def test_soft_labels(entry: Entry) -> None:
    stream = entry.stream("uneven")
    hard = np.eye(entry.n_classes)[stream.y]
    soft = softmax(np.random.default_rng(1).normal(size=hard.shape), axis=1)
    declared = entry.new().partial_fit(stream.X, hard, **entry.first)
    assert_same_state(declared, play(entry, stream)[0])
    inferred = entry.new().partial_fit(stream.X, soft)
    assert inferred.classes_.tolist() == list(range(entry.n_classes))
    forecasts = entry.new().predict_then_learn(stream.X, soft)
    suffered = -np.sum(soft * np.log(forecasts))
    assert inferred.state_.tally[LOSS] == pytest.approx(suffered, rel=1e-9)
    frame = pd.DataFrame(soft)
    assert_same_state(inferred, entry.new().partial_fit(stream.X, frame))
    inferred.partial_fit(*stream)  # hard labels may follow soft ones
    inferred.learn_one(stream.X[0], stream.y[0])


@every_classifier
def test_one_soft_label(entry: Entry) -> None:
    stream = entry.stream()
    soft = np.full((1, entry.n_classes), 1 / entry.n_classes)
    one, block = play(entry, stream)[0], play(entry, stream)[0]
    one.learn_one(stream.X[0], soft[0])
    assert_same_state(one, block.partial_fit(stream.X[:1], soft))


# ---------------------------------------------------------------------- forecasts


@every_classifier
@every_kind
def test_what_is_forecast_is_consistent(entry: Entry, kind: str) -> None:
    learner, _ = play(entry, entry.stream(kind))
    X = entry.stream(kind, seed=1).X
    p, z = learner.predict_proba(X), learner.decision_function(X)
    assert p.shape == (100, entry.n_classes)
    assert p.min() >= 0
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    assert z.shape == ((100,) if entry.n_classes == 2 else (100, entry.n_classes))
    logits = np.column_stack([np.zeros(100), z]) if entry.n_classes == 2 else z
    np.testing.assert_allclose(softmax(logits, axis=1), p, rtol=1e-12, atol=1e-300)
    assert np.array_equal(learner.predict(X), learner.classes_[p.argmax(axis=1)])


@every_learner
def test_a_block_of_forecasts_is_its_rows(entry: Entry) -> None:
    learner, _ = play(entry, entry.stream("uneven"))
    X = entry.stream("uneven", seed=1).X
    assert np.array_equal(entry.forecast(learner, X), [entry.forecast_one(learner, x) for x in X])


# ---------------------------------------------------------------------- names of features


@every_class
def test_columns_keep_their_names(entry: Entry, tmp_path: Path) -> None:
    stream = entry.stream()
    frame = pd.DataFrame(stream.X, columns=["a", "b", "c", "d"])
    learner = entry.new().partial_fit(frame, stream.y, **entry.first)
    assert learner.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    copy = through_file(learner, tmp_path)
    for model in (learner, copy):
        before = fingerprint(model)
        for wrong in (frame[["b", "a", "c", "d"]], frame.rename(columns={"a": "z"})):
            with pytest.raises(ValueError, match="feature names"):
                model.partial_fit(wrong, stream.y)
            with pytest.raises(ValueError, match="feature names"):
                entry.forecast(model, wrong)
        with pytest.raises(BadRow, match=r"row 3, column 1 \('b'\): NaN"):
            model.partial_fit(frame.assign(b=changed(stream.X[:, 1], 3, np.nan)), stream.y)
        assert fingerprint(model) == before
    assert np.array_equal(entry.forecast(learner, frame), entry.forecast(copy, frame))


# ---------------------------------------------------------------------- parameters


def other_value(value: Any) -> Any:
    """A value that is not the parameter's and that it might have had."""
    if isinstance(value, str):
        return {"sharp": "gaf", "gaf": "sharp"}.get(value, "sobol")
    if isinstance(value, int):
        return 2 * value + 1
    return 0.75 * value if value else 0.75


def change_every_parameter(learner: Any) -> None:
    learner.set_params(**{name: other_value(value) for name, value in learner.get_params().items()})


@every_learner
def test_parameters_are_stored_untouched(entry: Entry) -> None:
    learner, _ = play(entry, entry.stream())
    assert learner.get_params() == entry.learner.get_params()
    for name, value in entry.learner.get_params().items():
        assert getattr(learner, name) is value or getattr(learner, name) == value
        marker = object()
        assert getattr(entry.new(**{name: marker}), name) is marker
    with pytest.raises(ValueError, match="Invalid parameter"):
        learner.set_params(momentum=0.9)


@every_learner
def test_a_running_game_keeps_its_parameters(entry: Entry, tmp_path: Path) -> None:
    stream = entry.stream()
    learner, before = play(entry, Stream(stream.X[:50], stream.y[:50]))
    competition = learner.competes_with
    said = learner.regret_certificate(0.5) if entry.certificate else None
    learner.save(tmp_path / "before.npz")
    change_every_parameter(learner)
    assert learner.competes_with == competition
    assert not entry.certificate or learner.regret_certificate(0.5) == said
    learner.save(tmp_path / "after.npz")
    assert (tmp_path / "before.npz").read_bytes() == (tmp_path / "after.npz").read_bytes()
    after = learner.predict_then_learn(stream.X[50:], stream.y[50:])
    whole = play(entry, stream)
    assert_same_game(whole, (learner, np.concatenate([before, after])))
    if entry.certificate:
        assert certificate(learner) == certificate(whole[0])


@every_learner
def test_new_parameters_begin_with_a_new_game(entry: Entry) -> None:
    stream = Stream(within(entry.stream().X, 0.5), entry.stream().y)
    learner, _ = play(entry, stream)
    change_every_parameter(learner)
    fresh = clone(learner).fit(*stream, **entry.first)
    assert not np.array_equal(fresh.state_.P, learner.state_.P)
    assert_same_state(learner.fit(*stream, **entry.first), fresh)
    assert learner.competes_with == fresh.competes_with
