"""Over every learner: rows of any size, and the inverse after many rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from learners import (
    LABELLINGS,
    Entry,
    Stream,
    assert_sound,
    directions,
    every_learner,
    learners_that,
    play,
    start_of,
)
from noregret import AIOLI, ONS, BadRow, VovkAzouryWarmuth
from noregret.second_order.curvature import SHARP, kappa

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
