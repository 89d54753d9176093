"""What a game leaves behind: the score at every checkpoint, and the regret once somebody asks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from regretless.core.types import Array
from regretless.theory.domains import Competition


class Checkpoint(NamedTuple):
    """The totals after some rows."""

    rows: float
    log_loss: float  # of probabilities; of numbers the squared error
    mistakes: float  # of classes; of numbers the absolute error
    brier: float
    loss: float  # what regret is measured in
    certificate: float  # NaN where there is none
    bound: float  # NaN where there is none
    seconds: float


class Rows(NamedTuple):
    """The blocks of a stream, as they were given."""

    X: list[Any]
    y: list[Any]

    def joined(self) -> tuple[Any, Any]:
        """All rows in order."""
        if len(self.X) == 1:
            return self.X[0], self.y[0]
        stack = sparse.vstack if sparse.issparse(self.X[0]) else np.concatenate
        return stack([X if sparse.issparse(X) else np.asarray(X) for X in self.X]), np.concatenate(
            [np.asarray(y) for y in self.y]
        )


class Interval(NamedTuple):
    """Where the regret is: the comparator is known up to its certified gap."""

    low: float
    high: float


@dataclass(frozen=True)
class Trace:
    """The game of one learner on one stream.

    Totals at the checkpoints are arrays, one entry a checkpoint: `rows`, `loss` (what regret is measured in, the
    learner's own), `log_loss`, `mistakes`, `brier`, `certificate`, `bound` and `seconds`; NaN where there is none.
    `regret` is an `Interval` at each checkpoint; the comparators are found when it is first asked for.

    Attributes
    ----------
    name : of the learner.
    competition : the loss and the set that regret is measured in, or None.
    kind : "probabilities", "scores" (of classes) or "numbers".
    forecasts : every forecast, if it was asked to keep them.
    classes : the labels, in the order of the columns of forecasts.
    """

    name: str
    competition: Competition | None
    kind: str
    checkpoints: tuple[Checkpoint, ...] = field(repr=False)
    bins: Array = field(repr=False)
    forecasts: Array | None = field(repr=False)
    classes: Any = field(repr=False)
    stream: Rows | None = field(repr=False)
    seen: Callable[[Any], Any] = field(repr=False)

    def __getattr__(self, name: str) -> Array:
        if name in Checkpoint._fields:
            return np.array([getattr(checkpoint, name) for checkpoint in self.checkpoints])
        raise AttributeError(f"a Trace has no {name!r}.")

    # ------------------------------------------------------------------ at the end

    @property
    def mean_log_loss(self) -> float:
        """Per row, at the end; NaN for learners that forecast no probabilities."""
        return self._mean("log_loss") if self.kind == "probabilities" else math.nan

    @property
    def error_rate(self) -> float:
        """Mistakes per row, at the end; of numbers the mean absolute error."""
        return self._mean("mistakes")

    @property
    def brier_score(self) -> float:
        """Mean squared distance of the probabilities from the labels, at the end: from 0 to 2."""
        return self._mean("brier") if self.kind == "probabilities" else math.nan

    def _mean(self, name: str) -> float:
        return float(getattr(self.checkpoints[-1], name)) / self.checkpoints[-1].rows

    @property
    def calibration_error(self) -> float:
        """ECE: how far how often the class named was right is from how sure the forecast was, over bins of sureness."""
        if self.kind != "probabilities":
            return math.nan
        return float(np.abs(self.bins[:, 1] - self.bins[:, 2]).sum() / self.bins[:, 0].sum())

    @property
    def reliability(self) -> Array:
        """A row for each bin that has forecasts: how many, how sure on average, how often right."""
        some = self.bins[self.bins[:, 0] > 0]
        return np.column_stack([some[:, 0], some[:, 1] / some[:, 0], some[:, 2] / some[:, 0]])

    # ------------------------------------------------------------------ regret

    @cached_property
    def comparators(self) -> list[Any]:
        """The best in hindsight up to each checkpoint, each with its certified gap (`regretless.hindsight`)."""
        from regretless.theory.hindsight import best_in_hindsight, hindsight_curve

        if self.stream is None or self.competition is None:
            missing = "hindsight=True" if self.stream is None else "a domain to measure against"
            raise ValueError(f"there is no regret without comparators: play with {missing}.")
        X, y = self.stream.joined()
        X, y = self.seen(X), np.asarray(y)
        loss, domain, regularization = self.competition
        options: dict[str, Any] = {"loss": loss, "domain": domain}
        if self.kind != "numbers":
            options["classes"] = self.classes
        marks = [int(checkpoint.rows) for checkpoint in self.checkpoints]
        if regularization == 0.0:
            return [found for _, found in hindsight_curve(X, y, marks, **options)]
        return [best_in_hindsight(X[:t], y[:t], regularization=t * regularization, **options) for t in marks]

    @property
    def regret(self) -> list[Interval]:
        """The loss minus that of the best in hindsight up to each checkpoint: an interval, by the comparator's gap."""
        return [
            Interval(checkpoint.loss - found.loss, checkpoint.loss - found.loss + found.gap)
            for checkpoint, found in zip(self.checkpoints, self.comparators, strict=True)
        ]

    # ------------------------------------------------------------------ other forms

    def _columns(self) -> dict[str, Array]:
        columns = {name: getattr(self, name) for name in Checkpoint._fields}
        if self.stream is not None and self.competition is not None:
            columns["regret_low"], columns["regret_high"] = (np.array(ends) for ends in zip(*self.regret, strict=True))
        return columns

    def to_frame(self) -> Any:
        """A pandas DataFrame with a line for each checkpoint, regret included where it can be had."""
        import pandas as pd

        return pd.DataFrame(self._columns()).astype({"rows": int})

    def to_json(self, path: str | Path | None = None) -> str:
        """The trace as JSON, written to `path` if one is given. NaN becomes null."""

        def plain(value: float) -> float | None:
            return float(value) if math.isfinite(value) else None

        document = {
            "learner": self.name,
            "loss": None if self.competition is None else self.competition.loss,
            "domain": None if self.competition is None else repr(self.competition.domain),
            "mean_log_loss": plain(self.mean_log_loss),
            "error_rate": plain(self.error_rate),
            "brier_score": plain(self.brier_score),
            "calibration_error": plain(self.calibration_error),
            "checkpoints": {name: [plain(v) for v in values] for name, values in self._columns().items()},
            "reliability": self.reliability.tolist(),
        }
        text = json.dumps(document, indent=1)
        if path is not None:
            Path(path).write_text(text)
        return text

    def plot(self) -> Any:
        """Axes of matplotlib: regret, certificate and bound over time, and the reliability of the forecasts."""
        from regretless.evaluate.plots import plot_trace

        return plot_trace(self)


class ByName(dict[str, Any]):
    """The traces of several learners on one stream, by name."""

    def to_frame(self) -> Any:
        """All traces in one pandas DataFrame, the learner's name in front."""
        import pandas as pd

        return pd.concat({name: trace.to_frame() for name, trace in self.items()}, names=["learner"]).reset_index(0)

    def to_json(self, path: str | Path | None = None) -> str:
        """All traces as one JSON object by name, written to `path` if one is given."""
        text = json.dumps({name: json.loads(trace.to_json()) for name, trace in self.items()}, indent=1)
        if path is not None:
            Path(path).write_text(text)
        return text


class Traces(ByName):
    """The games of several learners on one stream, by name: `Trace`s."""

    def plot(self) -> Any:
        """Axes of matplotlib: the regret of every learner over time, and its mean loss."""
        from regretless.evaluate.plots import plot_traces

        return plot_traces(self)
