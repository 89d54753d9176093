"""Play several learners on one stream and set what they lost beside what they can prove."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from noregret.automatic.logistic import OnlineLogisticRegression
from noregret.base import OnlineClassifier, OnlineLearner
from noregret.domains import Ball, WholeSpace
from noregret.errors import NoCertificate
from noregret.first_order.aggregation import MirrorDescentAggregator
from noregret.first_order.base_functions import stumps
from noregret.first_order.eg import ExponentiatedGradient
from noregret.first_order.ftrl import LinearizedFTRL
from noregret.first_order.mirror_descent import MirrorDescent
from noregret.first_order.ogd import OGD
from noregret.first_order.perceptron import Perceptron
from noregret.first_order.strongly_convex import StronglyConvexOGD
from noregret.second_order.aioli import AIOLI
from noregret.second_order.folklore import FOLKLORE
from noregret.second_order.gaf import GAF
from noregret.second_order.ons import ONS
from noregret.second_order.vovk import VovkAzouryWarmuth
from noregret.streams import Stream


class Result(NamedTuple):
    """One line of the table."""

    learner: str
    log_loss: float | None  # None for learners that forecast no probabilities
    error: float
    certificate: float | None  # None where nothing is proved
    microseconds: float  # a row


def entrants(stream: Stream) -> dict[str, OnlineLearner]:
    """The learners that can play the stream, at the stream's radius."""
    B = stream.radius
    R = float(np.linalg.norm(stream.X, axis=1).max())
    field: dict[str, OnlineLearner] = {
        "OnlineLogisticRegression": OnlineLogisticRegression(),
        "FOLKLORE": FOLKLORE(radius=B),
        "GAF": GAF(radius=B),
        "ONS": ONS(radius=B, feature_bound=R),
        **first_order(stream, R),
    }
    if stream.X.shape[1] * (len(stream.classes) - 1) <= 200:  # its projections cost the cube of this
        field["ONS, gamma = 1/4"] = ONS(radius=B, gamma=0.25, epsilon=1.0)
    if len(stream.classes) == 2:
        field = {
            "AIOLI": AIOLI(radius=B),
            "AIOLI, a = 1/2": AIOLI(radius=B, virtual_weight=0.5),
            **field,
            "Vovk-Azoury-Warmuth": VovkAzouryWarmuth(regularization=1 / B**2),
        }
    return field


def first_order(stream: Stream, R: float) -> dict[str, OnlineLearner]:
    """The first-order learners that can play the stream, whose rows have norms up to R."""
    size = frobenius(stream)
    slope = 1.0 if len(stream.classes) == 2 else 2**0.5  # |p - y| at most
    field: dict[str, OnlineLearner] = {
        "OGD": OGD(radius=size),
        "OGD, adagrad-norm": OGD(radius=size, step="adagrad-norm"),
        "Mirror descent, lazy": MirrorDescent(domain=Ball(size), averaging=False, gradient_bound=slope * R),
        "FTRL-Proximal": LinearizedFTRL(),
        "Online SVM": StronglyConvexOGD(regularization=1 / len(stream.y)),
        "Perceptron": Perceptron(),
    }
    if len(stream.classes) == 2:
        top = float(np.abs(stream.X).max())
        field["EG+-"] = ExponentiatedGradient(scale=size, signed=True, feature_bound=top)
        if np.ptp(stream.X[:100], axis=0).any():
            votes = stumps(stream.X[:100], n_per_feature=5)
            field["MDA over stumps"] = MirrorDescentAggregator(votes, loss="logit", scale=size, symmetric=True)
    return field


def frobenius(stream: Stream) -> float:
    """The Frobenius norm of comparators with one row of the stream's radius a class (two classes have one row)."""
    K = len(stream.classes)
    return stream.radius * (1.0 if K == 2 else K**0.5)


def race(
    stream: Stream, field: dict[str, OnlineLearner], step: Callable[[str, int], None] = lambda name, rows: None
) -> list[Result]:
    """Every learner over the whole stream, best log loss first. `step(name, rows)` is told of progress."""
    results = []
    for name, learner in field.items():
        _warm_up(learner, stream)
        started = time.perf_counter()
        forecasts = np.concatenate(list(_play(learner, stream, name, step)))
        seconds = time.perf_counter() - started
        results.append(_score(name, learner, stream, forecasts, seconds))
    return sorted(results, key=lambda r: (r.log_loss is None, r.log_loss or 0.0, r.error))


def _play(learner: OnlineLearner, stream: Stream, name: str, step: Callable[[str, int], None]) -> Iterator[np.ndarray]:
    block = max(100, len(stream.y) // 20)
    for i in range(0, len(stream.y), block):
        X, y = stream.X[i : i + block], stream.y[i : i + block]
        if isinstance(learner, OnlineClassifier):
            yield learner.predict_then_learn(X, y, classes=stream.classes)
        else:
            yield learner.predict_then_learn(X, _signs(y, stream))
        step(name, len(y))


def _warm_up(learner: OnlineLearner, stream: Stream) -> None:
    """Compile before the clock runs."""
    for _ in _play(clone(learner), stream._replace(X=stream.X[:2], y=stream.y[:2]), "", lambda name, rows: None):
        pass


def _signs(y: np.ndarray, stream: Stream) -> np.ndarray:
    return np.where(y == stream.classes[1], 1.0, -1.0)


def _score(name: str, learner: OnlineLearner, stream: Stream, forecasts: np.ndarray, seconds: float) -> Result:
    micro = 1e6 * seconds / len(stream.y)
    if not isinstance(learner, OnlineClassifier):
        wrong = (forecasts >= 0) != (_signs(stream.y, stream) > 0)
        return Result(name, None, float(wrong.mean()), learner.regret_certificate(stream.radius), micro)
    try:
        whole = isinstance(learner.competes_with.domain, WholeSpace)
        certificate = learner.regret_certificate(frobenius(stream) if whole else None)
    except NoCertificate:
        certificate = None
    k = np.searchsorted(stream.classes, stream.y)
    if not hasattr(learner, "predict_proba"):
        winner = forecasts > 0 if forecasts.ndim == 1 else forecasts.argmax(axis=1)
        return Result(name, None, float((winner != k).mean()), certificate, micro)
    loss = -np.log(forecasts[np.arange(len(k)), k])
    return Result(name, float(loss.mean()), float((forecasts.argmax(axis=1) != k).mean()), certificate, micro)
