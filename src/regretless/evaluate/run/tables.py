"""Forecasts and trace of a run as tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from regretless.core.types import Array
from regretless.evaluate.match import Match
from regretless.evaluate.players import margin_as_scores
from regretless.evaluate.trace import Checkpoint, Trace


def columns_of(match: Match) -> list[str]:
    """The columns of the forecasts of a run, once all classes are known."""
    if match.kind == "numbers":
        return ["row", "target", "forecast", "loss"]
    prefix, before = ("p_", ["loss"]) if match.kind == "probabilities" else ("score_", [])
    return ["row", "label", "forecast", *before, *(f"{prefix}{label}" for label in match.learner.classes_.tolist())]


def as_table(match: Match, first: int, forecasts: Array, targets: Array, y: Any) -> Any:
    """The table of forecasts of a block."""
    import pyarrow as pa

    columns: list[Any] = [np.arange(first, first + len(y)), pa.array(y.tolist())]
    if match.kind == "numbers":
        columns += [forecasts, (forecasts - targets.reshape(-1)) ** 2]
    else:
        values = margin_as_scores(forecasts)
        columns.append(pa.array(match.learner.classes_[values.argmax(axis=1)].tolist()))
        if match.kind == "probabilities":
            columns.append(-np.log(np.maximum((values * targets).sum(axis=1), 1e-300)))
        columns += list(values.T)
    return pa.table([pa.array(column) for column in columns], names=columns_of(match))


def lines_of(trace: Trace) -> Iterator[list[Any]]:
    """The trace as rows of a table, after a header; with the regret if it is known."""
    known = trace.stream is not None and trace.competition is not None
    names = [name for name in Checkpoint._fields if name != "seconds"]
    yield names + (["regret_low", "regret_high"] if known else [])
    ends: list[Any] = list(trace.regret) if known else [()] * len(trace.checkpoints)
    for line, end in zip(trace.checkpoints, ends, strict=True):
        values = [getattr(line, name) for name in names]
        yield [int(values[0]), *("" if math.isnan(v) else repr(v) for v in values[1:]), *(repr(v) for v in end)]
