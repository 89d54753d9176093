"""Opponents: losses that defeat a learner without regularization, and labels chosen against the forecast."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from regretless.core.types import Array
from regretless.streams.types import Stream


def alternating(n: int) -> Stream:
    """The linear losses w/2, -w, w, -w, ... of one weight in [-1, 1]: rows are 1, and y is the slope.

    Whoever follows the leader jumps from end to end and loses 1 in every row but the first, n - 1 in all, where w = 0
    loses nothing and gradient descent some sqrt(n). There are no classes: the losses are `"linear"`.

    >>> from regretless import FollowTheLeader
    >>> stream = alternating(1000)
    >>> forecast = FollowTheLeader().predict_then_learn(stream.X, stream.y)
    >>> print(forecast @ stream.y)
    999.0
    """
    if n < 1:
        raise ValueError(f"n={n}: a stream has at least 1 row.")
    slope = np.where(np.arange(n) % 2, -1.0, 1.0)
    slope[0] = 0.5
    return Stream("alternating", np.ones((n, 1)), slope, [], 1.0, f"{n} linear losses of alternating slope on [-1, 1]")


def against_the_forecast(
    n: int, d: int = 1, classes: Sequence[Any] = (-1, 1), seed: int = 0
) -> Callable[[], Generator[Any, Any, None]]:
    """An adversary for `regretless.play`: every label is the class that the forecast thinks least likely.

    A deterministic learner is wrong in every row, and loses at least ln K in each, K the number of classes (and ln K in
    all of them is what the uniform forecast loses): no rows are too few, and no learner is clever enough. What remains
    small is the regret, because no comparator does well either. Rows are random unit vectors of d features; where
    d = 1 they are 1. Among equally unlikely classes it names the last.

    >>> from regretless import AIOLI, play
    >>> trace = play(AIOLI(radius=1.0), against_the_forecast(200), classes=[-1, 1])
    >>> print(trace.checkpoints[-1].mistakes, trace.log_loss[-1] >= 0.6931, trace.regret[-1][1] < 5)
    200.0 True True
    """
    if n < 1 or d < 1 or len(classes) < 2:
        raise ValueError(f"n={n}, d={d}, {len(classes)} classes: give at least 1 row, 1 feature and 2 classes.")

    def adversary() -> Generator[Any, Any, None]:
        rng = np.random.default_rng(seed)
        for _ in range(n):
            x = np.ones(1) if d == 1 else rng.normal(size=d)
            forecast = yield x / np.linalg.norm(x)
            yield classes[_least_likely(forecast)]

    return adversary


def _least_likely(forecast: Array | None) -> int:
    """The class of the lowest probability or score; a single number is the margin of the second class."""
    if forecast is None:
        return -1
    scores = np.atleast_1d(forecast)
    return int(scores[0] <= 0) if scores.size == 1 else scores.size - 1 - int(scores[::-1].argmin())
