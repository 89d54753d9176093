"""Every first-order learner equals its definition, solved step by step in extended precision."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import clone

import reference
from each import for_each
from regretless import (
    OGD,
    ExponentiatedGradient,
    LinearizedFTRL,
    MirrorDescent,
    MirrorDescentAggregator,
    Perceptron,
    StronglyConvexOGD,
)
from regretless.core.numbers.tally import LOSS
from regretless.learners.first_order.schedules import (
    AdaGradNorm,
    ConstantStep,
    GrowingTemperature,
    InverseRootStep,
    InverseTimeStep,
    KnownHorizon,
)
from regretless.theory.domains import Ball, Box, Octahedron, Simplex, SubSimplex, WholeSpace

D = 4  # features, more than there are classes: a transposed matrix does not go unseen
# The loss of the reference, and the number of classes (1: numbers).
CASES = [
    *((name, 2) for name in ("logistic", "logit", "hinge", "exponential")),
    *((name, 1) for name in ("squared", "absolute", "linear")),
    *((name, 3) for name in ("softmax", "multiclass hinge")),
]
PROBABILITIES = ("logistic", "logit", "softmax")
STEEP = ("squared", "exponential")  # slopes grow with the scores: refused where the weights are not bounded
soft_cases = pytest.mark.parametrize(
    ("loss", "n_classes", "soft"),
    [(*case, soft) for case in CASES for soft in (False, True) if not soft or case[1] > 1],
)


def options_of(loss: str, n_classes: int) -> dict[str, str]:
    """What tells a learner to use that loss."""
    return {"multiclass": loss.removeprefix("multiclass ")} if n_classes > 2 else {"loss": loss}


def stream(n_classes: int, soft: bool = False, n: int = 14, bounded: bool = False, seed: int = 0) -> tuple:
    """Rows of norm 0, 1e-8, 1 and 3 with entries of 0 among them, labels, and weights with zeros among them.

    bounded: entries of at most 1.
    """
    rng = np.random.default_rng([seed, n_classes, soft])
    X = rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.8)
    norms = np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    X *= rng.choice([0, 1e-8, 1, 3], p=[0.1, 0.1, 0.5, 0.3], size=(n, 1)) / norms
    if bounded:
        X = np.clip(X, -1, 1)
    weight = rng.choice([0, 0.5, 1, 2.5], p=[0.2, 0.2, 0.4, 0.2], size=n)
    if n_classes == 1:
        y = Y = rng.uniform(-1, 1, size=n)
    elif soft:
        y = Y = rng.dirichlet(np.full(n_classes, 0.3), size=n)
    else:
        y = rng.integers(0, n_classes, n)
        Y = np.eye(n_classes)[y]
    return X, y, Y, weight


def check_game(
    learner: Any,
    slow: Any,
    loss: str,
    n_classes: int,
    soft: bool = False,
    csr: bool | tuple[bool, ...] = False,
    **kinds: Any,
) -> list[Any]:
    """The same forecasts along the way, the same weights and losses at the end; the learners that played.

    csr: of compressed rows, or (False, True): both, each with a learner.
    """
    X, y, Y, weight = stream(n_classes, soft, **kinds)
    expected = []
    for t in range(len(X)):
        expected.append(slow.forecast(X[t]))
        slow.update(X[t], Y[t], weight[t])
    later = np.array([slow.forecast(x) for x in X])
    later = later if n_classes > 2 else later[:, 0]
    played = []
    for compressed in csr if isinstance(csr, tuple) else (csr,):
        learner = clone(learner)
        rows = sparse.csr_array(X) if compressed else X
        declared = {"classes": np.arange(n_classes)} if n_classes > 1 else {}
        forecasts = learner.predict_then_learn(rows, y, sample_weight=weight, **declared)
        np.testing.assert_allclose(forecasts, as_forecasts(np.array(expected), loss), rtol=1e-9, atol=1e-9)
        scores = learner.predict(rows) if n_classes == 1 else learner.decision_function(rows)
        np.testing.assert_allclose(scores, later, rtol=1e-9, atol=1e-9)
        assert learner.state_.tally[LOSS] == close(slow.loss)
        played.append(learner)
    return played


BOTH = (False, True)  # dense and compressed rows


def as_forecasts(scores: np.ndarray, loss: str) -> np.ndarray:
    """Scores as a learner with that loss forecasts them."""
    if loss == "softmax":
        return softmax(scores, axis=1)
    if loss in PROBABILITIES:
        return np.hstack([expit(-scores), expit(scores)])
    return scores if scores.shape[1] > 1 else scores[:, 0]


def close(value: float) -> Any:
    return pytest.approx(float(value), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_perceptron(n_classes: int, soft: bool) -> None:
    slow = reference.ReferencePerceptron(n_classes, D)
    for learner in check_game(Perceptron(), slow, "hinge", n_classes, soft, BOTH, n=30):
        for size in (0.5, 3.0):
            assert learner.regret_certificate(size) == close(slow.certificate(size))


# What OGD is told, and what that means for a ball of radius 2.
STEPS: dict[str, tuple[dict[str, Any], tuple[str, float | None]]] = {
    "theory": ({}, ("theory", None)),
    "theory-G": ({"gradient_bound": 1e5}, ("theory", 1e5)),
    "number": ({"step": 0.3}, ("constant", 0.3)),
    "constant": ({"step": ConstantStep(0.05)}, ("constant", 0.05)),
    "root": ({"step": InverseRootStep(0.7)}, ("inverse root", 0.7)),
    "time": ({"step": InverseTimeStep(0.5)}, ("inverse time", 0.5)),
    "adagrad": ({"step": AdaGradNorm(0.9)}, ("adagrad norm", 0.9)),
    "adagrad-norm": ({"step": "adagrad-norm"}, ("adagrad norm", 4.0 / np.sqrt(2.0))),
}


@for_each("step", STEPS)
@soft_cases
def test_ogd(loss: str, n_classes: int, soft: bool, step: str) -> None:
    told, meant = STEPS[step]
    slow = reference.ReferenceOGD(loss, n_classes, D, 2.0, meant)
    for learner in check_game(
        OGD(radius=2.0, **told, **options_of(loss, n_classes)), slow, loss, n_classes, soft, BOTH
    ):
        # Two sizes of comparators: both the excess and the sum of the gradients must be right.
        assert learner.regret_certificate() == close(slow.ball_certificate(2.0))
        assert learner.regret_certificate(0.5) == close(slow.ball_certificate(0.5))


@for_each("radius", [None, 0.5])
@for_each(("lam", "sigma"), [(0.01, 0.0), (0.5, 0.0), (0.1, 0.4), (0.0, 0.3)])
@soft_cases
def test_strongly_convex_ogd(
    loss: str, n_classes: int, soft: bool, lam: float, sigma: float, radius: float | None
) -> None:
    if radius is None and loss in STEEP:
        radius = 5.0
    told = StronglyConvexOGD(regularization=lam, sigma=sigma, radius=radius, **options_of(loss, n_classes))
    slow = reference.ReferenceStronglyConvexOGD(loss, n_classes, D, lam, sigma, radius)
    for learner in check_game(told, slow, loss, n_classes, soft, BOTH):
        assert learner.regret_certificate() == close(slow.certificate)


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 0.5},
        {"alpha": 0.2, "beta": 0.0},
        {"alpha": 1.0, "l1": 0.4},
        {"alpha": 0.7, "beta": 0.3, "l1": 0.2, "l2": 0.5, "radius": 0.3},
        {"alpha": 2.0, "beta": 0.0, "radius": 0.3},
    ],
    ids=str,
)
@soft_cases
def test_linearized_ftrl(loss: str, n_classes: int, soft: bool, settings: dict[str, float]) -> None:
    if loss in STEEP:
        settings = {"radius": 1.0, **settings}
    if loss == "multiclass hinge" and settings.get("beta") == 0.0:
        # Without it all first weights are +-alpha, and rounding would choose among rivals that tie.
        settings = {**settings, "beta": 0.05}
    slow = reference.ReferenceFTRL(loss, n_classes, D, **settings)
    told = LinearizedFTRL(**settings, **options_of(loss, n_classes))
    for learner in check_game(told, slow, loss, n_classes, soft, BOTH):
        if "radius" in settings:
            assert learner.regret_certificate() == close(slow.box_certificate(settings["radius"]))
        else:
            for size in (0.5, 2.0):
                assert learner.regret_certificate(size) == close(slow.ball_certificate(size))


SETS = {
    "simplex": Simplex(1.5),
    "subsimplex": SubSimplex(1.5),
    "octahedron": Octahedron(1.5),
    "ball": Ball(1.5),
    "box": Box(1.5),
    "whole": WholeSpace(),
}
PAIRS = [
    *(("euclidean", domain) for domain in SETS),
    *(("entropy", domain) for domain in ("simplex", "subsimplex", "octahedron")),
    *(("p-norm", domain) for domain in ("simplex", "subsimplex", "octahedron", "whole")),
    *(("power", domain) for domain in ("simplex", "subsimplex", "octahedron")),
]
pairs = pytest.mark.parametrize(("proxy", "domain"), PAIRS)


def check_mirror_descent(
    loss: str,
    n_classes: int,
    proxy: str,
    domain: str,
    told: dict[str, Any],
    meant: tuple,
    csr: bool = False,
    **kinds: Any,
) -> None:
    """`told`: what the learner is told beyond loss, mirror and set; `meant`: the schedule."""
    size = 1.0 if domain == "whole" else 1.5
    learner = MirrorDescent(mirror=proxy, domain=SETS[domain], **told, **options_of(loss, n_classes))
    slow = reference.ReferenceMirrorDescent(
        loss, n_classes, D, proxy=proxy, domain=domain, size=size, schedule=meant,
        lazy=told.get("lazy", True), averaging=told.get("averaging", True),
    )  # fmt: skip
    (learner,) = check_game(learner, slow, loss, n_classes, csr=csr, **kinds)
    if domain == "whole":
        for norm in (0.5, 2.0):
            assert learner.regret_certificate(norm) == close(slow.certificate(norm))
    else:
        assert learner.regret_certificate() == close(slow.certificate())


@pytest.mark.parametrize(
    ("loss", "n_classes", "proxy", "domain"),
    [(*case, *pair) for case in CASES for pair in PAIRS if case[0] not in STEEP or pair[1] != "whole"],
)
def test_mirror_descent(loss: str, n_classes: int, proxy: str, domain: str) -> None:
    meant = ("inverse root", 0.3)
    turn = (CASES.index((loss, n_classes)) + PAIRS.index((proxy, domain))) % 2  # two of the four, by turns
    for lazy, averaging in ((False, bool(turn)), (True, not turn)):
        told = {"schedule": InverseRootStep(0.3), "lazy": lazy, "averaging": averaging}
        check_mirror_descent(loss, n_classes, proxy, domain, told, meant, soft=n_classes > 1 and lazy, csr=averaging)


@pytest.mark.parametrize(
    ("schedule", "meant"),
    [
        (ConstantStep(0.2), ("constant", 0.2)),
        (InverseTimeStep(0.7), ("inverse time", 0.7)),
        (GrowingTemperature(1.3), ("growing", 1.3)),
        (KnownHorizon(0.6, 14), ("horizon", 0.6, 14)),
    ],
    ids=str,
)
@pairs
def test_schedules(proxy: str, domain: str, schedule: Any, meant: tuple) -> None:
    for lazy, averaging in itertools.product((False, True), repeat=2):
        told = {"schedule": schedule, "lazy": lazy, "averaging": averaging}
        if lazy == averaging:
            check_mirror_descent("logistic", 2, proxy, domain, told, meant)
        else:
            check_mirror_descent("softmax", 3, proxy, domain, told, meant, soft=True, csr=True)


@pytest.mark.parametrize(("proxy", "domain"), [pair for pair in PAIRS if pair[1] != "whole"])
def test_theory_schedule(proxy: str, domain: str) -> None:
    """The temperature of the bound, from the mirror's own constants; the eager one is for the ball alone."""
    for loss, n_classes in (("logistic", 2), ("softmax", 3), ("absolute", 1)):
        mirror = reference.ReferenceMirror(proxy, domain, D if n_classes < 3 else 3 * D, 1.5)
        meant = reference.theory_schedule(mirror, 20.0)
        check_mirror_descent(loss, n_classes, proxy, domain, {"gradient_bound": 20.0}, meant)
        if domain == "ball":
            told = {"gradient_bound": 20.0, "lazy": False, "averaging": False}
            meant = ("inverse root", float(np.sqrt(2.0)) * 1.5 / 20.0)
            check_mirror_descent(loss, n_classes, proxy, domain, told, meant)


@pytest.mark.parametrize("horizon", [None, 14])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "exponential", "logit", "squared", "absolute"])
def test_exponentiated_gradient(loss: str, signed: bool, horizon: int | None) -> None:
    n_classes = 1 if loss in ("squared", "absolute") else 2
    domain, scale, bound = ("octahedron" if signed else "simplex"), 1.2, 1.0
    slope = reference.largest_slope(loss, bound, scale)
    meant = reference.theory_schedule(reference.ReferenceMirror("entropy", domain, D, scale), slope, horizon)
    for soft in (False, True)[:n_classes]:
        told = ExponentiatedGradient(loss=loss, scale=scale, signed=signed, feature_bound=bound, horizon=horizon)
        slow = reference.ReferenceMirrorDescent(
            loss, n_classes, D, proxy="entropy", domain=domain, size=scale, schedule=meant
        )
        for learner in check_game(told, slow, loss, n_classes, soft, BOTH, bounded=True):
            assert learner.regret_certificate() == close(slow.certificate())


@for_each("horizon", [None, 14])
@for_each("symmetric", [False, True])
@pytest.mark.parametrize(("proxy", "domain"), [pair for pair in PAIRS if pair[0] != "euclidean" and pair[1] != "whole"])
@for_each("loss", ["hinge", "exponential", "logit", "squared"])
def test_aggregator(loss: str, proxy: str, domain: str, symmetric: bool, horizon: int | None) -> None:
    """Columns as base functions, and with their negations: twice the rows' entries."""
    n_classes, scale = (1 if loss == "squared" else 2), 1.2
    M = 2 * D if symmetric else D
    mirror = reference.ReferenceMirror(proxy, domain, M, scale)
    slope = reference.largest_slope(loss, 1.0, scale)
    meant = reference.theory_schedule(mirror, slope, horizon)
    learner = MirrorDescentAggregator(
        loss=loss, scale=scale, domain=domain, mirror=proxy, horizon=horizon, symmetric=symmetric
    )
    slow = reference.ReferenceMirrorDescent(
        loss, n_classes, M, proxy=proxy, domain=domain, size=scale, schedule=meant, averaging=True
    )
    X, y, Y, _ = stream(n_classes, bounded=True)
    H = np.hstack([X, -X]) if symmetric else X
    forecasts = learner.predict_then_learn(X, y, **({"classes": [0, 1]} if n_classes > 1 else {}))
    expected = []
    for h, label in zip(H, Y, strict=True):
        expected.append(slow.forecast(h))
        slow.update(h, label)
    np.testing.assert_allclose(forecasts, as_forecasts(np.array(expected), loss), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(learner.theta_, slow.W[0].astype(float), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(learner.average_theta_, slow.average().astype(float), rtol=1e-9, atol=1e-9)
    assert learner.regret_certificate() == close(slow.certificate())
    ratio = mirror.spread / mirror.strong_convexity
    t = len(X)  # the horizon, and one less than there are weights: the mean of theta_0 ... theta_{t-1} is meant
    bound = 2 * slope * np.sqrt(ratio * (t + 1)) / t if horizon is None else slope * np.sqrt(2 * ratio / t)
    assert learner.excess_risk_bound(t) == close(bound)
