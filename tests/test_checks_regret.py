"""Over every learner: regret <= certificate <= bound, or a refusal."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from each import for_each
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
    refused,
    within,
)
from regretless import (
    FTRL,
    ONS,
    AggregatingForecaster,
    BadRow,
    MirrorDescentAggregator,
    NoBound,
    NoCertificate,
    OneVsRest,
    OnlineLogisticRegression,
    VovkAzouryWarmuth,
)
from regretless.core.numbers.tally import LOSS, ROWS
from regretless.core.rows.validate import HEAVIEST
from regretless.theory.domains import Ball, Box, Octahedron, RowBall, Simplex, SubSimplex, WholeSpace

# ---------------------------------------------------------------------- 7. regret <= certificate <= bound


def seen(entry: Entry, stream: Stream) -> Stream:
    """The stream as comparators see it."""
    return Stream(entry.features(stream.X), stream.y)


def comparator_shape(entry: Entry, stream: Stream) -> tuple[int, int]:
    return entry.comparator_rows, stream.X.shape[1]


def bounded(domain: Any) -> Any:
    """The class, or where it is all of space the comparators of it that are tried."""
    return Ball(LARGEST_NUMBER_WEIGHTS) if isinstance(domain, WholeSpace) else domain


def random_comparators(domain: Any, shape: tuple[int, int], rng: np.random.Generator) -> list[np.ndarray]:
    """Twenty elements of the class, half of them on its border."""
    size = getattr(bounded(domain), "radius", getattr(domain, "size", None))
    return [bounded(domain).project(rng.normal(size=shape) * (100.0 if i % 2 else 0.5) * size) for i in range(20)]


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


@learners_that(lambda entry: entry.certificate and entry.compares and not entry.believes)
@for_each(("kind", "weighting"), [("iid", "weight 1"), ("drifting", "weights"), ("uneven", "weights")])
def test_regret_is_within_the_certificate(entry: Entry, kind: str, weighting: str) -> None:
    """(test_regret.py plays all of them with weight 1, against the solver of best_in_hindsight.)"""
    stream = entry.stream(kind, n=100, d=3)
    weight = WEIGHTINGS[weighting](100)
    learner, forecasts = play(entry, stream, sample_weight=weight)
    suffered = weight @ entry.losses_suffered(forecasts, stream.y) + decay_paid(entry, stream, weight)
    assert np.isfinite(suffered)
    domain, stream = learner.competes_with.domain, seen(entry, stream)
    comparators = random_comparators(domain, comparator_shape(entry, stream), np.random.default_rng(2))
    least = bounded(domain).project(np.zeros_like(comparators[0]))
    for W in [least, good_comparator(entry, domain, stream, weight), *comparators]:
        regret = suffered - weight @ entry.losses(W, stream)
        assert regret <= learner.regret_certificate(comparator_norm=np.linalg.norm(W)) + 1e-9 * (1 + abs(suffered))


NEVER = r"(?!)"
ROUNDING = (
    r"^(no member has a certificate .*)?"
    r"(A has grown to \S+ times regularization in \d+ rows, along directions that rounding cannot separate"
    r"|forecasts and losses are so large that rounding may change their sum by"
    r"|weight \|x\|\^2 / regularization reached \S+, and beyond 1e\+12 rounding in the refits)"
)


def reason_to_refuse(entry: Entry, size: float, weight: float) -> str:
    """The words by which a certificate may be refused for 100 to 300 rows of that size and weight."""
    learner = entry.learner
    if isinstance(learner, OneVsRest):
        return "regret against the best softmax is not proved"
    if isinstance(learner, ONS) and weight < 1e12 and (size > 1.0 or not entry.certificate):
        return "gamma=.* is not proved to keep the quadratics below the loss"
    if entry.single and (size >= 1e3 or weight >= 1e6):
        return ROUNDING  # 24 bits
    if entry.first_order or isinstance(learner, VovkAzouryWarmuth | OnlineLogisticRegression | AggregatingForecaster):
        return NEVER
    return ROUNDING if weight >= 1e12 or (isinstance(learner, FTRL) and size >= 1e7) else NEVER


def assert_certificate_is_true_or_refused(
    entry: Entry, learner: Any, stream: Stream, size: float, weight: float
) -> None:
    """Against the least weights there are: almost always none at all, whose losses are the same on every stream."""
    if not entry.compares:
        return
    suffered = learner.state_.tally[LOSS]  # from the forecasts it would overflow where a probability underflows
    suffered += decay_paid(entry, stream, np.full(len(stream.y), weight))
    stream = seen(entry, stream)
    least = bounded(learner.competes_with.domain).project(np.zeros(comparator_shape(entry, stream)))
    regret = suffered - weight * entry.losses(least, stream).sum()
    try:
        assert regret <= learner.regret_certificate(np.linalg.norm(least)) + 1e-9 * (1 + abs(suffered))
    except NoCertificate as refusal:
        assert re.search(reason_to_refuse(entry, size, weight), str(refusal)), refusal


@learners_that(lambda entry: not entry.believes)
def test_the_certificate_survives_large_rows(entry: Entry) -> None:
    X = directions(300, 3)
    for size in (1e3, 1e5, 1e7, 1e9):
        size = min(size, entry.largest_row)
        taking = entry.taking(size)
        stream = Stream(size * X, LABELLINGS["separable"](X, max(entry.n_classes, 2)))
        learner = taking.new().partial_fit(*stream, **entry.first)
        assert_certificate_is_true_or_refused(taking, learner, stream, size, 1.0)


@every_learner
@pytest.mark.filterwarnings("error")
def test_extreme_weights_are_played_soundly_or_refused(entry: Entry) -> None:
    stream = entry.stream()
    norm = np.linalg.norm(stream.X, axis=1).max()
    for weight in (1e-300, 1e6, 1e12, 1e20, 1e300):
        learner = entry.new()
        words = "sample_weight" if weight > HEAVIEST else "row norm" if norm * weight**0.5 > entry.largest_row else ""
        if words:
            with refused(weight, words, BadRow):
                learner.partial_fit(*stream, sample_weight=weight, **entry.first)
            assert contents(learner) == params(entry.learner)
            continue
        learner.partial_fit(*stream, sample_weight=weight, **entry.first)
        assert_sound(entry, learner)
        if not entry.believes:
            assert_certificate_is_true_or_refused(entry, learner, stream, 1.0, weight)


@every_learner
@every_kind
def test_the_tally_is_of_the_losses_suffered(entry: Entry, kind: str) -> None:
    stream = entry.stream(kind)
    weight = WEIGHTINGS["weights"](100)
    learner, forecasts = play(entry, stream, sample_weight=weight)
    assert learner.state_.tally[LOSS] == pytest.approx(weight @ entry.losses_suffered(forecasts, stream.y), rel=1e-9)
    assert learner.state_.tally[ROWS] == np.count_nonzero(weight)


@every_learner
@for_each("kind", ["iid", "drifting"])
def test_the_certificate_is_within_the_bound(entry: Entry, kind: str) -> None:
    stream = entry.stream(kind, n=30 if entry.single else 500)  # single precision proves little of longer ones
    learner, _ = play(entry, Stream(within(stream.X, 1.0), stream.y))
    if not entry.theorem:
        with pytest.raises(NoBound):
            bound(learner)
    else:
        assert certificate(learner) <= bound(learner)


@learners_that(lambda entry: not entry.certificate)
def test_no_certificate_is_said_not_guessed(entry: Entry) -> None:
    learner, _ = play(entry, entry.stream())
    with pytest.raises(NoCertificate, match=r"not proved|has no regret"):
        learner.regret_certificate()


@learners_that(lambda entry: entry.compares)
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
