"""The score of a run so far, and its forecasts as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from regretless.core.errors import NoBound, NoCertificate
from regretless.core.scores import LOSS, ROWS, WRONG, new_scores, score_classes, score_numbers
from regretless.core.types import Array
from regretless.evaluate.play import marks
from regretless.evaluate.players import margin_as_scores
from regretless.evaluate.trace import Checkpoint, Rows, Trace


class Score:
    """Totals, calibration, and lines of a trace; all of it can be written as JSON and taken up again."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.scores, self.bins = new_scores()
        self.checkpoints: list[Checkpoint] = []
        self._marks = marks("log")
        self._next = float(next(self._marks))
        self._met = 0  # rows the learner has met
        self._noted: list[tuple[int, float, float, float]] = []

    @property
    def kind(self) -> str:
        """What the learner forecasts."""
        if is_regressor(self.learner):
            return "numbers"
        return "probabilities" if hasattr(self.learner, "predict_proba") else "scores"

    @property
    def rows(self) -> int:
        """Rows forecast so far."""
        return int(self.scores[ROWS])

    @property
    def mean_loss(self) -> float:
        """Log loss a row, of numbers the squared error, of scores the errors."""
        column = WRONG if self.kind == "scores" else LOSS
        return float(self.scores[column] / max(self.scores[ROWS], 1.0))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While the learner meets a block, note what it promises at the marks in it. Blocks are rows."""
        learner, loop = self.learner, type(self.learner)._inner_loop
        run = getattr(learner, loop)

        def with_marks(X: Any, Y: Array, weight: Array, out: Array, *more: Any) -> None:
            at, n = 0, X.shape[0]
            while at < n:
                if self._met >= self._next:
                    self._note()
                stop = int(min(n, at + self._next - self._met))
                run(X[at:stop], Y[at:stop], weight[at:stop], out[at:stop], *more)
                self._met += stop - at
                at = stop

        setattr(learner, loop, with_marks)
        try:
            yield
        finally:
            vars(learner).pop(loop, None)
        if self._met >= self._next:
            self._note()

    def _note(self) -> None:
        self._noted.append((self._met, float(self.learner.total_loss_), *self.promises()))
        self._next = float(next(self._marks, math.inf))

    def add(self, forecasts: Array, targets: Array) -> None:
        """Count the forecasts of a block that the learner met, with a line of the trace at each mark."""
        first, at = self.rows, 0
        for note in self._noted:
            self._count(forecasts[at : note[0] - first], targets[at : note[0] - first])
            self._write(note)
            at = note[0] - first
        self._noted.clear()
        self._count(forecasts[at:], targets[at:])

    def _count(self, forecasts: Array, targets: Array) -> None:
        if self.kind == "numbers":
            score_numbers(forecasts, targets.reshape(-1), self.scores)
        else:
            kinds = self.kind == "probabilities", True
            score_classes(margin_as_scores(forecasts), targets, *kinds, self.scores, self.bins)

    def _write(self, note: tuple[int, float, float, float]) -> None:
        rows, loss, certificate, bound = note
        _, log_loss, mistakes, brier = self.scores.tolist()
        self.checkpoints.append(
            Checkpoint(float(rows), log_loss, mistakes, brier, loss, certificate, bound, seconds=0.0)
        )

    def promises(self) -> tuple[float, float]:
        """Certificate and bound, NaN where there is none."""
        try:
            certificate = float(self.learner.regret_certificate())
        except NoCertificate:
            certificate = math.nan
        try:
            bound = float(self.learner.regret_bound())
        except NoBound:
            bound = math.nan
        return certificate, bound

    def trace(self, X: Any = None, y: Any = None) -> Trace:
        """The whole score; with the rows of the run also its regret."""
        if self.checkpoints[-1:] == [] or self.checkpoints[-1].rows < self.rows:
            self._write((self.rows, float(self.learner.total_loss_), *self.promises()))
        return Trace(
            name=type(self.learner).__name__,
            competition=self.learner.competes_with,
            kind=self.kind,
            checkpoints=tuple(self.checkpoints),
            bins=self.bins,
            forecasts=None,
            classes=getattr(self.learner, "classes_", None),
            stream=None if X is None else Rows([X], [y]),
            seen=self.learner._for_comparators,
        )

    def as_json(self) -> dict[str, Any]:
        """What has been added up."""
        return {
            "scores": self.scores.tolist(),
            "bins": self.bins.tolist(),
            "checkpoints": [list(line) for line in self.checkpoints],
        }

    def take_up(self, told: dict[str, Any]) -> None:
        """What `as_json` told."""
        self.scores, self.bins = np.array(told["scores"]), np.array(told["bins"])
        self.checkpoints = [Checkpoint(*line) for line in told["checkpoints"]]
        self._met = self.rows
        while self._next <= self.rows:
            self._next = float(next(self._marks, math.inf))


def columns_of(score: Score) -> list[str]:
    """The columns of the forecasts of a run, once all classes are known."""
    if score.kind == "numbers":
        return ["row", "target", "forecast", "loss"]
    prefix, before = ("p_", ["loss"]) if score.kind == "probabilities" else ("score_", [])
    return ["row", "label", "forecast", *before, *(f"{prefix}{label}" for label in score.learner.classes_.tolist())]


def as_table(score: Score, first: int, forecasts: Array, targets: Array, y: Any) -> Any:
    """Forecasts of some rows, as they are written down."""
    import pyarrow as pa

    columns: list[Any] = [np.arange(first, first + len(y)), pa.array(y.tolist())]
    if score.kind == "numbers":
        columns += [forecasts, (forecasts - targets.reshape(-1)) ** 2]
    else:
        values = margin_as_scores(forecasts)
        columns.append(pa.array(score.learner.classes_[values.argmax(axis=1)].tolist()))
        if score.kind == "probabilities":
            columns.append(-np.log(np.maximum((values * targets).sum(axis=1), 1e-300)))
        columns += list(values.T)
    return pa.table([pa.array(column) for column in columns], names=columns_of(score))


def lines_of(trace: Trace) -> Iterator[list[Any]]:
    """The trace as rows of a table, the header first; regret where it is known."""
    known = trace.stream is not None and trace.competition is not None
    names = [name for name in Checkpoint._fields if name != "seconds"]
    yield names + (["regret_low", "regret_high"] if known else [])
    ends: list[Any] = list(trace.regret) if known else [()] * len(trace.checkpoints)
    for line, end in zip(trace.checkpoints, ends, strict=True):
        values = [getattr(line, name) for name in names]
        yield [int(values[0]), *("" if math.isnan(v) else repr(v) for v in values[1:]), *(repr(v) for v in end)]
