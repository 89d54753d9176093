"""Over every learner: rows of any size, and the state after many rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from learners import (
    LABELLINGS,
    LEARNERS,
    Entry,
    Stream,
    assert_sound,
    directions,
    every_learner,
    learners_that,
    make_stream,
    play,
    start_of,
    within,
)
from regretless import AIOLI, OGD, ONS, BadRow, StronglyConvexOGD, VovkAzouryWarmuth
from regretless.learners.first_order.linear import SQUARE
from regretless.learners.second_order.curvature import SHARP, kappa
from regretless.learners.second_order.rounding import covariance

# ---------------------------------------------------------------------- 9. extremes


EXTREMES: dict[str, Callable[[float], np.ndarray]] = {  # by the largest norm that is taken
    "huge": lambda top: top * directions(60, 3),
    "huge on the axes": lambda top: top * np.tile(np.eye(3), (20, 1)),
    "1e-300": lambda top: 1e-300 * directions(30, 3),
    "5e-324": lambda top: 5e-324 * np.sign(directions(30, 3)),
    "from 1e-300 to huge": lambda top: 10.0 ** np.linspace(-300, np.log10(top), 60)[:, None] * directions(60, 3),
    "from huge to 1e-300": lambda top: 10.0 ** np.linspace(np.log10(top), -300, 60)[:, None] * directions(60, 3),
    "one huge column": lambda top: directions(60, 3) * [top, 1.0, 1.0 / top],
    "zeros": lambda top: np.zeros((30, 3)),
    "margins of 1e4": lambda top: 100.0 * np.repeat(directions(4, 3), 15, axis=0),
    "identical": lambda top: np.tile(directions(1, 3), (60, 1)),  # a million of them: below
    "separable": lambda top: 10.0 * directions(60, 3),
}


def in_small_and_in_large_sets() -> list[tuple[Entry, bool]]:
    """Every learner as it is, and if its set has a size it is told, with a large one."""
    sizes = {"radius", "scale"}
    return [
        (entry, large)
        for large in (False, True)
        for entry in LEARNERS
        if not large or sizes & entry.learner.get_params().keys()
    ]


def labellings(entry: Entry, X: np.ndarray) -> list[np.ndarray]:
    """Of `LABELLINGS`, each once: of identical rows, the separable labels are constant too."""
    found = [labels(X, entry.n_classes if entry.classifies else 2) for labels in LABELLINGS.values()]
    if len({tuple(x) for x in X.tolist()}) == 1:
        found = found[1:]
    if not entry.classifies and entry.first_order:
        found.append(entry.largest_target * np.where(np.arange(len(X)) % 3, 0.999, -0.999))
    return found


@pytest.mark.parametrize(("entry", "large"), in_small_and_in_large_sets(), ids=str)
@pytest.mark.filterwarnings("error")
def test_extremes_stay_finite(entry: Entry, large: bool) -> None:
    entry = entry.taking(entry.largest_row, **({"radius": 100.0, "scale": 100.0, "gamma": 0.5} if large else {}))
    for extreme, rows in EXTREMES.items():
        X = within(rows(entry.largest_row), entry.largest_row)
        if entry.slow:
            X = X[np.linspace(0, len(X) - 1, 30).round().astype(int)]  # all sizes, fewer of each
        for y in labellings(entry, X):
            learner = entry.new()
            played = learner.predict_then_learn(X, y, **entry.first)
            assert_sound(entry, learner)
            for forecasts in (played, entry.forecast(learner, X)):
                assert np.isfinite(forecasts).all(), extreme
                if entry.probabilities:
                    assert forecasts.min() >= 0, extreme
                    np.testing.assert_allclose(forecasts.sum(axis=1), 1.0, rtol=1e-12, err_msg=extreme)


@every_learner
@pytest.mark.filterwarnings("error")
def test_rows_and_weights_of_all_sizes_stay_finite(entry: Entry) -> None:
    """Also where a gradient, or the square of one, is lost below the least number."""
    entry = entry.taking(entry.largest_row)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        weight = 10.0 ** rng.uniform(-300, 12, size=100)
        X = 10.0 ** rng.uniform(-320, np.log10(entry.largest_row), size=(100, 1)) * directions(100, 3)
        X = within(X, entry.largest_row) / np.sqrt(np.maximum(weight, 1.0))[:, None]
        y = LABELLINGS["separable"](X, max(entry.n_classes, 2))
        learner, forecasts = play(entry, Stream(X, y), sample_weight=weight)
        assert np.isfinite(forecasts).all()
        assert_sound(entry, learner)


@every_learner
def test_a_row_of_norm_1e200_is_refused_with_a_remedy(entry: Entry) -> None:
    with pytest.raises(BadRow, match=r"too large.*Scale the features"):
        entry.taking(entry.largest_row).new().partial_fit(1e200 * np.eye(3), [0, 1, 0], **entry.first)


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


@every_learner
@pytest.mark.slow
def test_the_state_stays_sound_over_many_rows(entry: Entry) -> None:
    """And where there is an inverse, it stays one: of 100,000 rows where a row takes a microsecond, else of 5,000."""
    inverse = isinstance(entry.learner, AIOLI | VovkAzouryWarmuth)
    stream = entry.stream(n=200 if entry.slow else 100_000 if inverse else 5_000, d=5)
    learner, forecasts = play(entry, stream)
    assert_sound(entry, learner)
    c = hessian_of_row(entry, learner, *stream, forecasts)
    assert c is not None or not inverse
    if c is not None:
        A = start_of(learner) * np.eye(5) + (stream.X * c[:, None]).T @ stream.X
        P = covariance(learner.state_.P, learner.state_.tally) if isinstance(learner, AIOLI) else learner.state_.P
        assert np.linalg.norm(P @ A - np.eye(5)) <= (1e-2 if entry.single else 1e-8)


@learners_that(lambda entry: isinstance(entry.learner, AIOLI | VovkAzouryWarmuth))
@pytest.mark.slow
def test_the_inverse_stays_one_over_a_million_identical_rows(entry: Entry) -> None:
    stream = Stream(np.tile(directions(1, 3), (1_000_000, 1)), np.ones(1_000_000, dtype=int))
    learner, forecasts = play(entry, stream)
    assert_sound(entry, learner)
    lam, c = start_of(learner), hessian_of_row(entry, learner, *stream, forecasts)
    along = np.outer(stream.X[0], stream.X[0])  # a projection: the rows have norm 1
    P = (np.eye(3) - along) / lam + along / (lam + c.sum())  # (inverting the sum of the rows loses seven digits)
    found = covariance(learner.state_.P, learner.state_.tally)
    assert np.linalg.norm(found - P) <= (1e-2 if entry.single else 1e-12) * np.linalg.norm(P)
    if not entry.single:
        assert stream.X[0] @ found @ stream.X[0] == pytest.approx(1 / (lam + c.sum()), rel=1e-6)


# ---------------------------------------------------------------------- one factor for all weights


def descend(learner: Any, stream: Stream) -> list[float]:
    """The weights of gradient descent with the logistic loss: each moved, decayed and projected at every row."""
    decay = learner.regularization if isinstance(learner, StronglyConvexOGD) else 0.0
    radius = math.inf if learner.radius is None else learner.radius
    w, largest = [0.0] * stream.X.shape[1], 0.0
    for t, (x, label) in enumerate(zip(stream.X.tolist(), stream.y.tolist(), strict=True), start=1):
        sign = 2 * label - 1
        slope = -sign / (1.0 + math.exp(sign * sum(a * b for a, b in zip(w, x, strict=True))))
        largest = max(largest, abs(slope) * math.hypot(*x))
        eta = 1.0 / (decay * t) if decay else math.sqrt(2.0) * radius / (largest * math.sqrt(t))
        w = [(1.0 - eta * decay) * a - eta * slope * b for a, b in zip(w, x, strict=True)]
        norm = math.hypot(*w)
        if norm > radius:
            w = [a * radius / norm for a in w]
    return w


@pytest.mark.parametrize(
    "learner",
    [
        OGD(radius=1.5),
        StronglyConvexOGD(loss="logistic", regularization=0.02),
        StronglyConvexOGD(loss="logistic", regularization=0.02, radius=1.5),
    ],
    ids=repr,
)
@pytest.mark.slow
def test_the_weights_times_their_factor_are_the_weights_after_60_000_rows(learner: Any) -> None:
    stream = make_stream("drifting", 60_000, 3, 2, seed=0)
    w = learner.fit(*stream).coef_[0]
    np.testing.assert_allclose(w, descend(learner, stream), rtol=1e-9)
    assert learner.state_.size[SQUARE] == pytest.approx(w @ w, rel=1e-9)
