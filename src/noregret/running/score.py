"""The score of a run so far, and its forecasts as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from noregret._types import Array
from noregret.errors import NoBound, NoCertificate
from noregret.evaluate.play import marks
from noregret.evaluate.players import margin_as_scores
from noregret.evaluate.trace import Checkpoint, Rows, Trace
from noregret.scores import BRIER, LOSS, ROWS, WRONG, new_scores, score_classes, score_numbers


class Score:
    """Totals, calibration, and lines of a trace; all of it can be written as JSON and taken up again."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner
        self.scores, self.bins = new_scores()
        self.checkpoints: list[Checkpoint] = []
        self._cuts = marks("log")
        self._next = float(next(self._cuts))

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

    def room(self) -> int:
        """Rows up to the next line of the trace."""
        return int(self._next) - self.rows

    def add(self, forecasts: Array, targets: Array) -> None:
        """Count the forecasts of some rows; at a mark, write a line."""
        if self.kind == "numbers":
            score_numbers(forecasts, targets.reshape(-1), self.scores)
        else:
            score_classes(
                margin_as_scores(forecasts), targets, self.kind == "probabilities", True, self.scores, self.bins
            )
        if self.rows >= self._next:
            self.write()

    def write(self) -> None:
        """A line of the trace."""
        while self._next <= self.rows:
            self._next = float(next(self._cuts, math.inf))
        if self.checkpoints and self.checkpoints[-1].rows == self.rows:
            return
        certificate, bound = self.promises()
        self.checkpoints.append(
            Checkpoint(
                rows=float(self.rows),
                log_loss=float(self.scores[LOSS]),
                mistakes=float(self.scores[WRONG]),
                brier=float(self.scores[BRIER]),
                loss=float(self.learner.total_loss_),
                certificate=certificate,
                bound=bound,
                seconds=0.0,
            )
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
        self.write()
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
        while self._next <= self.rows:
            self._next = float(next(self._cuts, math.inf))


def as_table(score: Score, first: int, forecasts: Array, targets: Array, y: Any) -> Any:
    """Forecasts of some rows, as they are written down."""
    import pyarrow as pa

    rows = np.arange(first, first + len(y))
    if score.kind == "numbers":
        error = (forecasts - targets.reshape(-1)) ** 2
        return pa.table({"row": rows, "target": np.asarray(y), "forecast": forecasts, "loss": error})
    classes = score.learner.classes_
    values = margin_as_scores(forecasts)
    columns: dict[str, Any] = {"row": rows, "label": pa.array(y.tolist())}
    columns["forecast"] = pa.array(classes[values.argmax(axis=1)].tolist())
    if score.kind == "probabilities":
        p = (values * targets).sum(axis=1)
        columns["loss"] = -np.log(np.maximum(p, 1e-300))
    prefix = "p_" if score.kind == "probabilities" else "score_"
    columns |= {f"{prefix}{label}": values[:, k] for k, label in enumerate(classes.tolist())}
    return pa.table(columns)


def lines_of(trace: Trace) -> Iterator[list[Any]]:
    """The trace as rows of a table, the header first; regret where it is known."""
    known = trace.stream is not None and trace.competition is not None
    names = [name for name in Checkpoint._fields if name != "seconds"]
    yield names + (["regret_low", "regret_high"] if known else [])
    ends: list[Any] = list(trace.regret) if known else [()] * len(trace.checkpoints)
    for line, end in zip(trace.checkpoints, ends, strict=True):
        values = [getattr(line, name) for name in names]
        yield [int(values[0]), *("" if math.isnan(v) else repr(v) for v in values[1:]), *(repr(v) for v in end)]
