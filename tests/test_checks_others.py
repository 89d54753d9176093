"""The promises, over those that are no OnlineLearner: bandits, by act and feedback, and wrappers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from held import held
from learners import (
    PREDICTIONS,
    Entry,
    Stream,
    changed,
    contents,
    every_bandit,
    every_wrapper,
    fingerprint,
    params,
    refused,
    through_file,
    within,
)
from regretless import BadRow, OnlineToBatch, Stack, load

N = 40

# ---------------------------------------------------------------------- bandits


def rounds(entry: Entry, kind: str = "drifting", n: int = N) -> Stream:
    X, y = entry.stream(kind, n)
    return Stream(within(X, 1.0), y)


def play_rounds(learner: Any, stream: Stream) -> list[tuple[Any, float]]:
    """The actions and their probabilities, of rounds that are told right or wrong (and the label, where it is read)."""
    played = []
    for x, label in zip(*stream, strict=True):
        action, probability = learner.act(x)
        told = [label] if learner.needs_labels else []
        learner.feedback(x, action, bool(action == label), *told)
        played.append((action, probability))
    return played


@every_bandit
def test_bandits_are_determined_by_their_seed(entry: Entry) -> None:
    stream = rounds(entry)
    one, two = entry.new(), entry.new()
    played = play_rounds(one, stream)
    assert played == play_rounds(two, stream)
    assert held(vars(one)) == held(vars(two))
    assert play_rounds(entry.new(random_state=7), stream) != played


COPIES: dict[str, Callable[[Any, Path], Any]] = {
    "file": through_file,
    "pickle": lambda learner, folder: pickle.loads(pickle.dumps(learner)),
}


@every_bandit
@pytest.mark.parametrize("copy", COPIES)
def test_bandits_resume_from_a_copy(entry: Entry, copy: str, tmp_path: Path) -> None:
    """Also in the middle of a round."""
    stream = rounds(entry)
    whole = entry.new()
    played = play_rounds(whole, stream)
    for stop, opened in ((17, False), (23, True)):
        learner = entry.new()
        found = play_rounds(learner, Stream(stream.X[:stop], stream.y[:stop]))
        if opened:
            found.append(learner.act(stream.X[stop]))
        before = fingerprint(learner)
        resumed = COPIES[copy](learner, tmp_path)
        if opened:
            action, label = found[-1][0], stream.y[stop]
            told = [label] if learner.needs_labels else []
            resumed.feedback(stream.X[stop], action, bool(action == label), *told)
        rest = slice(stop + opened, N)
        found += play_rounds(resumed, Stream(stream.X[rest], stream.y[rest]))
        assert found == played
        assert held(vars(resumed)) == held(vars(whole))
        assert fingerprint(learner) == before  # the copy shares nothing


@every_bandit
def test_equal_bandits_are_equal_files(entry: Entry, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no state to save"):
        entry.new().save(tmp_path / "a.npz")
    assert not any(tmp_path.iterdir())
    for name in ("a.npz", "b.npz"):
        learner = entry.new()
        play_rounds(learner, rounds(entry))
        learner.save(tmp_path / name)
    load(tmp_path / "a.npz").save(tmp_path / "c.npz")
    assert len({(tmp_path / name).read_bytes() for name in ("a.npz", "b.npz", "c.npz")}) == 1


@every_bandit
def test_asking_a_bandit_changes_nothing(entry: Entry) -> None:
    learner = entry.new()
    with pytest.raises(NotFittedError):
        learner.probabilities(np.zeros(4))
    stream = rounds(entry)
    play_rounds(learner, stream)
    before = fingerprint(learner)
    for x in stream.X[:5]:
        p = learner.probabilities(x)
        assert p.shape == (3,) and p.min() >= 0.0
        assert p.sum() == pytest.approx(1.0, rel=1e-12)
    assert learner.rounds_ == N and 0 < learner.mistakes_ <= N
    assert fingerprint(learner) == before


@every_bandit
def test_the_callers_row_is_not_kept(entry: Entry) -> None:
    stream = rounds(entry)
    learner = entry.new()
    x = stream.X[0].copy()
    action, _ = learner.act(x)
    assert np.array_equal(x, stream.X[0])
    before = fingerprint(learner)
    x[:] = 7.0
    assert fingerprint(learner) == before
    told = [stream.y[0]] if learner.needs_labels else []
    learner.feedback(stream.X[0], action, bool(action == stream.y[0]), *told)


BAD_ROWS: list[tuple[Any, str]] = [
    ([0.1, np.nan, 0.0, 0.0], "NaN"),
    ([0.1, np.inf, 0.0, 0.0], "inf"),
    ([0.1] * 3, r"x has shape \(3,\)"),
    ([[0.1] * 4], r"x has shape \(1, 4\)"),
    ([], r"x has shape \(0,\)"),
    (["a"] * 4, "could not convert"),
    ([1e200] * 4, r"1e\+200|2e\+200"),
]


@every_bandit
def test_what_bandits_refuse_changes_nothing(entry: Entry) -> None:
    stream = rounds(entry)
    learner = entry.new()
    told = [0] if learner.needs_labels else []
    with refused("feedback before act", "without an open round"):
        learner.feedback(stream.X[0], 0, True, *told)
    for bad, words in BAD_ROWS:
        if len(np.shape(bad)) == 1 and len(bad) == 3:
            continue  # of the first row, the width is not known
        with refused(bad, words):
            learner.act(bad)
        assert contents(learner) == params(entry.learner), bad
    play_rounds(learner, stream)
    before = fingerprint(learner)
    for bad, words in BAD_ROWS:
        for verb in ("act", "probabilities"):
            with refused(f"{bad}, {verb}", words):
                getattr(learner, verb)(bad)
            assert fingerprint(learner) == before, (bad, verb)
    x = stream.X[0]
    action, _ = learner.act(x)
    before = fingerprint(learner)
    told = [action] if learner.needs_labels else []
    other = (action + 1) % 3
    for arguments, words in (
        ((stream.X[1], action, True, *told), "not the row of the last act"),
        ((x, other, True, *told), "was not played"),
        ((x, "label", True, *told), "was not played"),
        ((x, action, 1, *told), "must be True or False"),
        ((x, action, None, *told), "must be True or False"),
    ):
        with refused(arguments, words, BadRow):
            learner.feedback(*arguments)
        assert fingerprint(learner) == before, arguments
    with refused("act twice", "no feedback yet"):
        learner.act(x)
    assert fingerprint(learner) == before


BAD_PARAMETERS: dict[str, list[Any]] = {
    "gamma": [-0.1, 1.5, np.nan, "some", None],
    "epsilon": [-0.1, 1.5, np.nan, "some", None],
    "exploration": [0.0, -0.1, 1.5, np.nan, "some", None],
    "horizon": [0, -1, 1.5, "long", True, None],
    "n_classes": [1, 2.5, "three"],
    "classes": [[0], [0, 0, 1], [0, 1]],
    "random_state": [-1, 0.5, "seed"],
    "information": ["half", None],
    "feature_bound": [0.0, -1.0, np.nan, "big"],
    "estimator": [None, 3, "AIOLI"],
}


@every_bandit
def test_bad_parameters_of_bandits_are_named(entry: Entry) -> None:
    for name in entry.learner.get_params(deep=False):
        for value in [*BAD_PARAMETERS.get(name, []), object()]:
            learner = entry.new(**{name: value})
            if name == "horizon":
                learner.set_params(exploration="theory")  # which alone reads it
                learner.estimator = clone(learner.estimator).set_params(feature_bound=1.0)
            if name == "classes" and type(value) is object:
                continue  # refused as labels of a wrong shape
            if name == "gamma" and learner.needs_labels:
                continue  # of full information it is not read
            given = contents(learner)
            with refused(f"{name}={value!r}", name.removeprefix("n_")):
                learner.act(np.zeros(4))
            assert contents(learner) == given, (name, value)


@every_bandit
def test_parameters_of_bandits_are_a_recipe(entry: Entry) -> None:
    stream = rounds(entry)
    learner = entry.new()
    played = play_rounds(learner, stream)
    copy = clone(learner)
    assert contents(copy) == params(learner) == params(entry.learner)
    assert play_rounds(copy, stream) == played
    for name in entry.learner.get_params(deep=False):
        marker = object()
        assert getattr(entry.new(**{name: marker}), name) is marker
    with pytest.raises(ValueError, match="Invalid parameter"):
        learner.set_params(momentum=0.9)
    half = entry.new()
    found = play_rounds(half, Stream(stream.X[:20], stream.y[:20]))
    half.set_params(random_state=9, n_classes=5)  # a running game keeps those it was begun with
    assert found + play_rounds(half, Stream(stream.X[20:], stream.y[20:])) == played


# ---------------------------------------------------------------------- wrappers


def forecasts(learner: Any, X: np.ndarray) -> list[np.ndarray]:
    return [getattr(learner, verb)(X) for verb in PREDICTIONS if hasattr(learner, verb)]


@every_wrapper
def test_wrappers_go_on_from_blocks_and_copies(entry: Entry) -> None:
    stream = entry.stream("drifting", n=60)
    whole = entry.new().partial_fit(*stream, **entry.first)
    assert held(vars(whole)) == held(vars(entry.new().partial_fit(*stream, **entry.first)))
    cut = entry.new()
    for start, stop in ((0, 1), (1, 25), (25, 60)):
        cut.partial_fit(stream.X[start:stop], stream.y[start:stop], **({} if start else entry.first))
        cut = pickle.loads(pickle.dumps(cut))
    assert held(vars(cut)) == held(vars(whole))
    X = entry.stream("drifting", n=20, seed=1).X
    for one, other in zip(forecasts(cut, X), forecasts(whole, X), strict=True):
        assert np.array_equal(one, other)


@every_wrapper
def test_wrappers_forecast_without_a_trace(entry: Entry) -> None:
    X = entry.stream("uneven", seed=1).X
    for verb in (verb for verb in PREDICTIONS if hasattr(entry.learner, verb)):
        with pytest.raises(NotFittedError):
            getattr(entry.new(), verb)(X)
    learner = entry.new().partial_fit(*entry.stream("uneven"), **entry.first)
    before = fingerprint(learner)
    assert forecasts(learner, X)
    assert fingerprint(learner) == before


@every_wrapper
def test_wrappers_keep_no_array_of_the_caller(entry: Entry) -> None:
    X, y = entry.stream()
    weight = np.full(len(y), 0.5)
    copies = [array.copy() for array in (X, y, weight)]
    learner = entry.new().partial_fit(X, y, sample_weight=weight, **entry.first)
    assert all(np.array_equal(array, copy) for array, copy in zip((X, y, weight), copies, strict=True))
    before = fingerprint(learner)
    for array in (X, y, weight):
        array[...] = 7
    assert fingerprint(learner) == before


@every_wrapper
def test_what_wrappers_refuse_changes_nothing(entry: Entry) -> None:
    X, y = entry.stream(n=20)
    mistakes: list[tuple[str, dict[str, Any]]] = [
        ("row 3, column 1: NaN", {"X": changed(X, (3, 1), np.nan)}),
        ("row 3, column 1: inf", {"X": changed(X, (3, 1), np.inf)}),
        (r"0 sample\(s\)", {"X": X[:0]}),
        ("2D array", {"X": X[0]}),
        ("inconsistent numbers of samples", {"y": y[:-1]}),
        ("row 4: sample_weight -1", {"sample_weight": changed(np.ones(20), 4, -1.0)}),
        *([("row 2: label .*9", {"y": changed(y, 2, 9)})] if entry.classifies else []),
        *([] if entry.classifies else [("row 2: y = nan", {"y": changed(y, 2, np.nan)})]),
    ]
    running = entry.new().partial_fit(X, y, **entry.first)
    before = fingerprint(running)
    for words, spoilt in mistakes:
        call = {"X": X, "y": y, **spoilt}
        fresh = entry.new()
        given = fingerprint(fresh)
        with refused(words, words):
            fresh.partial_fit(**call, **entry.first)
        assert fingerprint(fresh) == given, words
        with refused(words, words):
            running.partial_fit(**call)
        assert fingerprint(running) == before, words
    with refused("width", "features"):
        running.partial_fit(X[:, :2], y)
    assert fingerprint(running) == before


@every_wrapper
def test_bad_parameters_of_wrappers_are_named(entry: Entry) -> None:
    if isinstance(entry.learner, Stack):
        for bad in ([], None, 3, "AIOLI", [3], object()):
            with refused(bad, "estimators"):
                Stack(bad)
        return
    bad_values = {"method": ["median", None, 3], "random_state": [-1, True, 0.5], "estimator": [3, None, "AIOLI"]}
    for name in entry.learner.get_params(deep=False):
        for value in [*bad_values.get(name, []), object()]:
            learner = entry.new(**{name: value})
            with refused(f"{name}={value!r}", name):
                learner.partial_fit(*entry.stream(), **entry.first)
            assert set(vars(learner)) == set(vars(entry.learner)), (name, value)


@every_wrapper
def test_clones_of_wrappers_know_nothing(entry: Entry) -> None:
    stream = entry.stream()
    learner = entry.new().partial_fit(*stream, **entry.first)
    if not isinstance(learner, OnlineToBatch):
        return
    copy = clone(learner)
    assert contents(copy) == params(learner) == params(entry.learner)
    assert held(vars(copy.partial_fit(*stream, **entry.first))) == held(vars(learner))
