"""Over every learner: regret <= certificate <= bound, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from learners import (
    LABELLINGS,
    LARGEST_NUMBER_WEIGHTS,
    LEARNERS,
    Entry,
    Stream,
    assert_sound,
    bound,
    certificate,
    directions,
    every_kind,
    every_learner,
    learners_that,
    play,
    within,
)
from noregret import ONS, BadRow, NoBound, NoCertificate, VovkAzouryWarmuth
from noregret.domains import RowBall, WholeSpace
from noregret.tally import LOSS, ROWS

# ---------------------------------------------------------------------- 7. regret <= certificate <= bound


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
