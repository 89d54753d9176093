"""Over every learner, played: the upper end of the regret interval <= the certificate <= the bound, on hard streams."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any

import numpy as np

import regretless
from each import for_each
from learners import LARGEST_NUMBER_WEIGHTS, Entry, Stream, learners_that, within
from regretless.streams import adversarial
from regretless.theory.domains import Ball, WholeSpace

ROWS = 80


def of_hazan(entry: Entry) -> Stream:
    """The stream on which proper learners do badly: a rare class, of rows far from those of the frequent one."""
    stream = adversarial(ROWS, seed=1)
    rare = stream.y > 0
    return Stream(stream.X, np.where(rare, entry.n_classes - 1, 0) if entry.classifies else np.where(rare, 1.0, -1.0))


def against_the_forecast(entry: Entry) -> Callable[[], Generator[Any, Any, None]]:
    """Every label is the one that the forecast thinks least of; a number is the far end of [-1, 1]."""
    X = within(entry.stream("iid", ROWS, 3).X, 1.0)

    def adversary() -> Generator[Any, Any, None]:
        for x in X:
            forecast = yield x
            if not entry.classifies:
                yield 1.0 if forecast is None or np.sum(forecast) <= 0.0 else -1.0
            elif forecast is None:
                yield 0
            else:
                scores = np.atleast_1d(forecast)
                yield int(np.argmin(scores)) if scores.size > 1 else int(scores[0] <= 0.0)

    return adversary


STREAMS: dict[str, Callable[[Entry], Any]] = {
    "adversarial": of_hazan,
    "label-adversarial": against_the_forecast,
    "drifting": lambda entry: entry.stream("drifting", ROWS, 3),
}


@learners_that(lambda entry: entry.certificate and entry.compares and not entry.believes)
@for_each("name", STREAMS)
def test_regret_is_an_interval_under_certificate_and_bound(entry: Entry, name: str) -> None:
    stream = STREAMS[name](entry)
    X, y = (stream, None) if callable(stream) else (within(stream.X, 1.0), stream.y)
    learner = entry.new()
    whole = isinstance(learner.competes_with.domain, WholeSpace)
    trace = regretless.play(
        learner,
        X,
        y,
        classes=entry.first.get("classes"),
        domain=Ball(LARGEST_NUMBER_WEIGHTS) if whole else None,
        checkpoints=[10, ROWS] if name == "adversarial" else [ROWS],
        progress=False,
    )
    for (low, high), loss, certificate, bound in zip(
        trace.regret, trace.loss, trace.certificate, trace.bound, strict=True
    ):
        assert low <= high <= low + 1e-8 * (1.0 + abs(loss))
        assert high <= certificate + 1e-9 * (1.0 + abs(loss))
        assert certificate <= bound or (math.isnan(bound) and not entry.theorem)
