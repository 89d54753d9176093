"""One learner on one order of a stream: its scores over time, and its regret at the end."""

from __future__ import annotations

import copy
import hashlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from regretless.core.learner import OnlineLearner
from regretless.core.scikit_learn import clone, is_regressor
from regretless.core.types import Array
from regretless.evaluate.play import play
from regretless.evaluate.race.entrants import field_of, setting_of
from regretless.evaluate.race.rivals import rivals_of
from regretless.evaluate.trace import Trace
from regretless.streams import Dataset, Stream
from regretless.streams import stream as named_stream
from regretless.streams.named import prepared, row_order
from regretless.theory.domains import Ball, Domain, RowBall, WholeSpace

Source = str | Dataset | Stream  # where the rows come from


@dataclass(frozen=True)
class Game:
    """The result of one pass. `log_loss` and `error` are means over the rows so far, at the checkpoints `rows`."""

    learner: str
    rows: NDArray[np.int64] = field(repr=False)
    log_loss: Array | None = field(repr=False)  # None if the learner does not forecast probabilities
    error: Array = field(repr=False)
    regret: tuple[float, float]  # at the end, in the learner's own loss; NaN if it has no comparators
    certificate: float
    bound: float
    loss: str | None  # the loss of the regret
    microseconds: float  # per row


@dataclass(frozen=True)
class Refusal:
    """A learner that does not support the stream, or that failed on it."""

    learner: str
    why: str


def order_of(source: Source, rows: int | None, seed: int | None) -> Stream:
    """The stream in the random order of a seed, or in its own order (None); synthetic streams are drawn by the seed."""
    if isinstance(source, str):
        return _named(source, rows, seed)
    if isinstance(source, Dataset):
        return prepared(source, rows, seed)
    order = row_order(len(source.y), rows, seed)
    return source._replace(X=source.X[order], y=np.asarray(source.y)[order])


_named = lru_cache(maxsize=4)(named_stream)  # consecutive games use the same order


def play_game(
    source: Source, rows: int | None, seed: int | None, learners: Any, against: tuple[str, ...], name: str
) -> Game | Refusal:
    """Play the learner of that name on one order, on one thread so that sums have a fixed order of summation."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow warnings of other libraries; this library raises errors
        stream = order_of(source, rows, seed)
        rivals = {rival.name: rival for rival in rivals_of(against)}
        if name in rivals:
            codes = np.searchsorted(np.asarray(stream.classes), stream.y)
            make = partial(rivals[name].make, stream)
            return _guest_game(name, make, stream, codes, list(range(len(stream.classes))))
        learner = field_of(stream, learners)[name]
        if isinstance(learner, OnlineLearner):
            return _own_game(name, learner, stream)
        return _guest_game(name, partial(copy.deepcopy, learner), stream, stream.y, stream.classes)


def as_signs(y: Any, classes: list[Any]) -> Array:
    """Two classes as -1 and 1, for learners that forecast numbers."""
    return np.where(np.asarray(y) == classes[1], 1.0, -1.0)


def _own_game(name: str, learner: OnlineLearner, stream: Stream) -> Game | Refusal:
    numbers = is_regressor(learner)
    if numbers and len(stream.classes) != 2:
        return Refusal(name, "it forecasts numbers, which can separate only two classes")
    labels = as_signs(stream.y, stream.classes) if numbers else stream.y
    classes = None if numbers else stream.classes
    options: dict[str, Any] = {"classes": classes, "progress": False}
    try:
        warm = clone(learner)  # compiles before timing; some know `competes_with` only now
        play(warm, stream.X[:2], labels[:2], **options)
    except ValueError as error:
        return Refusal(name, str(error))
    everywhere = warm.competes_with is not None and isinstance(warm.competes_with.domain, WholeSpace)
    domain = Ball(setting_of(stream).matrix_radius) if everywhere else None
    trace = play(clone(learner), stream.X, labels, domain=domain, keep_forecasts=numbers, **options)
    return _game(name, trace, stream)


def _guest_game(name: str, make: Callable[[], Any], stream: Stream, labels: Any, classes: list[Any]) -> Game | Refusal:
    """Play a learner of another library; comparators have the stream's radius, in each row of weights."""
    domain: Domain = Ball(stream.radius) if len(classes) == 2 else RowBall(stream.radius)
    options: dict[str, Any] = {"classes": classes, "domain": domain, "progress": False}
    try:
        play(make(), stream.X[:2], labels[:2], **options)  # one-time work, before timing
        trace = play(make(), stream.X, labels, **options)
    except (ArithmeticError, ValueError) as error:
        return Refusal(name, f"it failed: {error}")
    return _game(name, trace, stream)


def _game(name: str, trace: Any, stream: Stream) -> Game:
    rows = trace.rows.astype(np.int64)
    mistakes = trace.mistakes
    if trace.forecasts is not None:  # numbers: their signs
        wrong = (trace.forecasts.reshape(-1) >= 0) != (stream.y == stream.classes[1])
        mistakes = np.cumsum(wrong)[rows - 1]
    return Game(
        learner=name,
        rows=rows,
        log_loss=trace.log_loss / rows if trace.kind == "probabilities" else None,
        error=mistakes / rows,
        regret=_regret(trace),
        certificate=float(trace.certificate[-1]),
        bound=float(trace.bound[-1]),
        loss=None if trace.competition is None else trace.competition.loss,
        microseconds=1e6 * float(trace.seconds[-1]) / len(stream.y),
    )


# ---------------------------------------------------------------------- regret at the end

_found: dict[tuple[str, str], tuple[float, float]] = {}  # the loss of the best in hindsight, and its gap


def _regret(trace: Trace) -> tuple[float, float]:
    """The regret at the end. Learners and orders that share rows share a comparator, computed once per process.

    The rows are sorted first, so that the comparator is the same to the bit for every order.
    """
    from regretless.theory.hindsight import best_in_hindsight

    if trace.competition is None or trace.stream is None:
        return math.nan, math.nan
    X, y = trace.stream.joined()
    X, y = np.ascontiguousarray(trace.seen(X)), np.asarray(y)
    loss, domain, regularization = trace.competition
    codes = y if trace.kind == "numbers" else np.searchsorted(np.asarray(trace.classes), y)
    order = np.lexsort((*X.T, codes))
    X, y = X[order], y[order]
    key = hashlib.sha256(X.tobytes() + codes[order].tobytes()).hexdigest(), repr(trace.competition)
    if key not in _found:
        options = {} if trace.kind == "numbers" else {"classes": trace.classes}
        found = best_in_hindsight(X, y, loss=loss, domain=domain, regularization=len(y) * regularization, **options)
        _found[key] = float(found.loss), float(found.gap)
    best, gap = _found[key]
    suffered = float(trace.loss[-1])
    return suffered - best, suffered - best + gap
