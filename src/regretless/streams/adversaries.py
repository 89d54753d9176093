"""Adversaries: losses that defeat learners without regularization, and labels chosen against the forecast."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from regretless.core.types import Array
from regretless.streams.types import Stream


def alternating(n: int) -> Stream:
    """The linear losses w/2, -w, w, -w, ... of one weight in [-1, 1]: every row is 1, and y is the slope.

    Follow-the-leader jumps between the ends and has loss 1 on every row but the first, n - 1 in total, while w = 0 has
    loss 0 and gradient descent about sqrt(n). There are no classes: the loss is `"linear"`.

    >>> from regretless import FollowTheLeader
    >>> stream = alternating(1000)
    >>> forecast = FollowTheLeader().predict_then_learn(stream.X, stream.y)
    >>> print(forecast @ stream.y)
    999.0
    """
    if n < 1:
        raise ValueError(f"n={n}: a stream needs at least 1 row.")
    slope = np.where(np.arange(n) % 2, -1.0, 1.0)
    slope[0] = 0.5
    return Stream("alternating", np.ones((n, 1)), slope, [], 1.0, f"{n} linear losses of alternating slope on [-1, 1]")


def against_the_forecast(
    n: int, d: int = 1, classes: Sequence[Any] = (-1, 1), seed: int = 0
) -> Callable[[], Generator[Any, Any, None]]:
    """An adversary for `regretless.play`: every label is the class to which the forecast gives the least probability.

    A deterministic learner is wrong on every row and has a loss of at least ln K per row, for K classes, which is the
    loss of the uniform forecast. No learner can avoid this, but the regret stays small, because no comparator does well
    either. Rows are random unit vectors with d features (all 1 if d = 1). Among equally unlikely classes the last is
    chosen.

    >>> from regretless import AIOLI, play
    >>> trace = play(AIOLI(radius=1.0), against_the_forecast(200), classes=[-1, 1])
    >>> print(trace.checkpoints[-1].mistakes, trace.log_loss[-1] >= 0.6931, trace.regret[-1][1] < 5)
    200.0 True True
    """
    if n < 1 or d < 1 or len(classes) < 2:
        raise ValueError(f"n={n}, d={d}, {len(classes)} classes: at least 1 row, 1 feature and 2 classes are needed.")

    def adversary() -> Generator[Any, Any, None]:
        rng = np.random.default_rng(seed)
        for _ in range(n):
            x = np.ones(1) if d == 1 else rng.normal(size=d)
            forecast = yield x / np.linalg.norm(x)
            yield classes[_least_likely(forecast)]

    return adversary


def _least_likely(forecast: Array | None) -> int:
    """The class of lowest probability or score; a single number is the margin of the second class."""
    if forecast is None:
        return -1
    scores = np.atleast_1d(forecast)
    return int(scores[0] <= 0) if scores.size == 1 else scores.size - 1 - int(scores[::-1].argmin())
