"""Over every learner: regret <= certificate <= bound, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from learners import (
    LABELLINGS,
    LARGEST_NUMBER_WEIGHTS,
    LEARNERS,
    Entry,
    Stream,
    assert_sound,
    bound,
    certificate,
    contents,
    directions,
    every_kind,
    every_learner,
    learners_that,
    params,
    play,
    within,
)
from regretless import (
    ONS,
    BadRow,
    MirrorDescentAggregator,
    NoBound,
    NoCertificate,
    VovkAzouryWarmuth,
)
from regretless.core.tally import LOSS, ROWS
from regretless.theory.domains import Ball, Box, Octahedron, RowBall, Simplex, SubSimplex, WholeSpace

# ---------------------------------------------------------------------- 7. regret <= certificate <= bound


def comparator_shape(entry: Entry, stream: Stream) -> tuple[int, int]:
    return entry.comparator_rows, entry.features(stream.X).shape[1]


def bounded(domain: Any) -> Any:
    """The class, or where it is all of space the comparators of it that are tried."""
    return Ball(LARGEST_NUMBER_WEIGHTS) if isinstance(domain, WholeSpace) else domain


def random_comparators(domain: Any, shape: tuple[int, int], rng: np.random.Generator) -> list[np.ndarray]:
    """Fifty elements of the class, half of them on its border."""
    size = getattr(bounded(domain), "radius", getattr(domain, "size", None))
    return [bounded(domain).project(rng.normal(size=shape) * (100.0 if i % 2 else 0.5) * size) for i in range(50)]


def slack(domain: Any, W: np.ndarray) -> np.ndarray:
    """What is not negative where W is in the class."""
    if isinstance(domain, Simplex | SubSimplex):
        room = domain.size - W.sum()
        return np.append(W.ravel(), [room, -room] if isinstance(domain, Simplex) else [room])
    if isinstance(domain, Octahedron):
        return np.array([domain.size - np.abs(W).sum()])
    squares = W**2 if isinstance(domain, Box) else (W**2).sum(axis=1)
    return domain.radius**2 - (squares.ravel() if isinstance(domain, Box | RowBall) else squares.sum(keepdims=True))


def good_comparator(entry: Entry, domain: Any, stream: Stream, weight: np.ndarray) -> np.ndarray:
    shape = comparator_shape(entry, stream)
    domain = bounded(domain)
    found = minimize(
        lambda flat: float(weight @ entry.losses(flat.reshape(shape), stream)),
        domain.project(np.zeros(shape)).ravel(),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda flat: slack(domain, flat.reshape(shape))},
    )
    return domain.project(found.x.reshape(shape))


def decay_paid(entry: Entry, stream: Stream, weight: np.ndarray) -> float:
    """The part of the losses suffered that forecasts do not tell: of the weights before each row."""
    if not entry.decay:
        return 0.0
    learner = entry.new().partial_fit(stream.X[:1], stream.y[:1], sample_weight=weight[:1], **entry.first)
    total = 0.0
    for t in range(1, len(stream.y)):
        total += weight[t] * entry.decay / 2 * np.sum(learner.coef_**2)
        learner.partial_fit(stream.X[t : t + 1], stream.y[t : t + 1], sample_weight=weight[t : t + 1])
    return total


WEIGHTINGS: dict[str, Callable[[int], np.ndarray]] = {
    "weight 1": np.ones,
    "weights": lambda n: np.random.default_rng(5).choice([0.0, 0.3, 1.0, 4.0], size=n),
}


@learners_that(lambda entry: entry.certificate and not entry.believes)
@every_kind
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_regret_is_within_the_certificate(entry: Entry, kind: str, weighting: str) -> None:
    stream = entry.stream(kind, n=150, d=3)
    weight = WEIGHTINGS[weighting](150)
    learner, forecasts = play(entry, stream, sample_weight=weight)
    suffered = weight @ entry.losses_suffered(forecasts, stream.y) + decay_paid(entry, stream, weight)
    assert np.isfinite(suffered)
    domain = learner.competes_with.domain
    comparators = random_comparators(domain, comparator_shape(entry, stream), np.random.default_rng(2))
    least = bounded(domain).project(np.zeros_like(comparators[0]))
    for W in [least, good_comparator(entry, domain, stream, weight), *comparators]:
        regret = suffered - weight @ entry.losses(W, stream)
        assert regret <= learner.regret_certificate(comparator_norm=np.linalg.norm(W)) + 1e-9 * (1 + abs(suffered))


def assert_certificate_is_true_or_refused(entry: Entry, learner: Any, stream: Stream, weight: float) -> None:
    """Against the least weights there are: almost always none at all, whose losses are the same on every stream."""
    suffered = learner.state_.tally[LOSS]  # from the forecasts it would overflow where a probability underflows
    suffered += decay_paid(entry, stream, np.full(len(stream.y), weight))
    least = bounded(learner.competes_with.domain).project(np.zeros(comparator_shape(entry, stream)))
    regret = suffered - weight * entry.losses(least, stream).sum()
    try:
        assert regret <= learner.regret_certificate(np.linalg.norm(least)) + 1e-9 * (1 + abs(suffered))
    except NoCertificate as refusal:
        assert "rounding" in str(refusal) or "not proved" in str(refusal)


@learners_that(lambda entry: not entry.believes)
@pytest.mark.parametrize("size", [1e3, 1e5, 1e7, 1e9])
def test_the_certificate_survives_large_rows(entry: Entry, size: float) -> None:
    X, size = directions(300, 3), min(size, entry.largest_row)
    entry = entry.taking(size)
    stream = Stream(size * X, LABELLINGS["separable"](X, max(entry.n_classes, 2)))
    learner = entry.new().partial_fit(*stream, **entry.first)
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
        assert weight > 1e6 or np.linalg.norm(stream.X, axis=1).max() * weight**0.5 > entry.largest_row
        assert contents(learner) == params(entry.learner)
    else:
        assert_sound(entry, learner)
        if not entry.believes:
            assert_certificate_is_true_or_refused(entry, learner, stream, weight)


@every_learner
@every_kind
def test_the_tally_is_of_the_losses_suffered(entry: Entry, kind: str) -> None:
    stream = entry.stream(kind)
    weight = WEIGHTINGS["weights"](100)
    learner, forecasts = play(entry, stream, sample_weight=weight)
    assert learner.state_.tally[LOSS] == pytest.approx(weight @ entry.losses_suffered(forecasts, stream.y), rel=1e-9)
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
        if entry.decay:  # which makes far comparators pay: the promise is the same against all
            assert learner.regret_certificate() == learner.regret_certificate(comparator_norm=100.0)
        else:
            with pytest.raises(NoCertificate, match="comparator_norm"):
                learner.regret_certificate()
    else:
        with pytest.raises(NoCertificate):
            learner.regret_certificate(comparator_norm=100.0)


@learners_that(lambda entry: hasattr(entry.learner, "excess_risk_bound"))
def test_excess_risk_is_promised_of_averages_alone(entry: Entry) -> None:
    X, y = entry.stream()
    learner, _ = play(entry, Stream(within(X, 1.0), y))
    averages = isinstance(entry.learner, MirrorDescentAggregator) or getattr(entry.learner, "averaging", False)
    if averages and getattr(entry.learner, "schedule", "theory") == "theory":
        assert 0 < learner.excess_risk_bound(1000) < learner.excess_risk_bound() == learner.excess_risk_bound(101)
        with pytest.raises(NoBound, match="weight"):
            learner.partial_fit(X[:1], y[:1], sample_weight=0.5).excess_risk_bound()
    else:
        with pytest.raises(NoBound, match="averaging"):
            learner.excess_risk_bound()


def test_the_certificate_of_least_squares_is_the_regret_of_the_ridge_solution() -> None:
    entry = next(entry for entry in LEARNERS if isinstance(entry.learner, VovkAzouryWarmuth))
    stream = entry.stream("drifting")
    learner, forecasts = play(entry, stream)
    w = learner.state_.w
    regret = np.sum((forecasts - stream.y) ** 2) - np.sum((stream.X @ w - stream.y) ** 2)
    assert learner.regret_certificate(np.linalg.norm(w)) == pytest.approx(regret, rel=1e-10)
