"""Forecasts and trace of a run as tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from regretless.core.types import Array
from regretless.evaluate.match import Match
from regretless.evaluate.players import margin_as_scores
from regretless.evaluate.run.scores import OverTime
from regretless.evaluate.trace import Checkpoint, Trace
from regretless.streams import Block


def columns_of(match: Match, ids: Sequence[str]) -> list[str]:
    """The columns of the forecasts of a run, once all classes are known."""
    before = ["row", *id_columns(ids)]
    if match.kind == "numbers":
        return [*before, "target", "forecast", "loss"]
    prefix, loss = ("p_", ["loss"]) if match.kind == "probabilities" else ("score_", [])
    return [*before, "label", "forecast", *loss, *(f"{prefix}{label}" for label in match.learner.classes_.tolist())]


def id_columns(ids: Sequence[str]) -> list[str]:
    """The names of identifiers beside forecasts, which have columns of their own."""
    taken = ("row", "label", "target", "forecast", "loss")
    return [f"id_{name}" if name in taken or name.startswith(("p_", "score_")) else name for name in ids]


def as_table(match: Match, block: Block, forecasts: Array, targets: Array) -> Any:
    """The table of forecasts of a block. A row is named by its line in the file."""
    import pyarrow as pa

    ids = () if block.ids is None else block.ids.column_names
    columns: list[Any] = [block.places, *(block.ids[name] for name in ids), pa.array(np.asarray(block.y).tolist())]
    if match.kind == "numbers":
        columns += [forecasts, (forecasts - targets.reshape(-1)) ** 2]
    else:
        values = margin_as_scores(forecasts)
        columns.append(pa.array(match.learner.classes_[values.argmax(axis=1)].tolist()))
        if match.kind == "probabilities":
            columns.append(-np.log(np.maximum((values * targets).sum(axis=1), 1e-300)))
        columns += list(values.T)
    plain = [column if hasattr(column, "chunks") else pa.array(column) for column in columns]
    return pa.table(plain, names=columns_of(match, ids))


def lines_of(trace: Trace) -> Iterator[list[Any]]:
    """The trace as rows of a table, after a header; with the regret if it is known."""
    known = trace.stream is not None and trace.competition is not None
    names = [name for name in Checkpoint._fields if name != "seconds"]
    yield names + (["regret_low", "regret_high"] if known else [])
    ends: list[Any] = list(trace.regret) if known else [()] * len(trace.checkpoints)
    for line, end in zip(trace.checkpoints, ends, strict=True):
        values = [getattr(line, name) for name in names]
        yield [int(values[0]), *("" if math.isnan(v) else repr(v) for v in values[1:]), *(repr(v) for v in end)]


def windows_of(scores: OverTime) -> Iterator[list[Any]]:
    """Scores in windows as rows of a table, after a header."""
    yield ["first_row", "last_row", *(["loss"] if scores.loss is not None else []), "error"]
    first = 1
    for i, end in enumerate(scores.ends.tolist()):
        loss = [] if scores.loss is None else [repr(float(scores.loss[i]))]
        yield [first, end, *loss, repr(float(scores.error[i]))]
        first = end + 1
