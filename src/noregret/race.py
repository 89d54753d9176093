"""Play several learners on one stream and set what they lost beside what they can prove."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from noregret.base import OnlineClassifier, OnlineLearner
from noregret.errors import NoCertificate
from noregret.second_order.aioli import AIOLI
from noregret.second_order.folklore import FOLKLORE
from noregret.second_order.gaf import GAF
from noregret.second_order.ons import ONS
from noregret.second_order.vovk import VovkAzouryWarmuth
from noregret.streams import Stream


class Result(NamedTuple):
    """One line of the table."""

    learner: str
    log_loss: float | None  # None for learners of numbers
    error: float
    certificate: float | None  # None where nothing is proved
    microseconds: float  # a row


def entrants(stream: Stream) -> dict[str, OnlineLearner]:
    """The learners that can play the stream, at the stream's radius."""
    B = stream.radius
    field: dict[str, OnlineLearner] = {
        "FOLKLORE": FOLKLORE(radius=B),
        "GAF": GAF(radius=B),
        "ONS": ONS(radius=B, feature_bound=float(np.linalg.norm(stream.X, axis=1).max())),
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
    return sorted(results, key=lambda r: (r.log_loss is None, r.log_loss))


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
        certificate = learner.regret_certificate()
    except NoCertificate:
        certificate = None
    k = np.searchsorted(stream.classes, stream.y)
    loss = -np.log(forecasts[np.arange(len(k)), k])
    return Result(name, float(loss.mean()), float((forecasts.argmax(axis=1) != k).mean()), certificate, micro)
