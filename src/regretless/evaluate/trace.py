"""Trace: the result of a game. Scores at every checkpoint, and the regret, computed on first access."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from regretless.core.types import Array
from regretless.theory.domains import Competition


class Checkpoint(NamedTuple):
    """The totals after a number of rows."""

    rows: float
    log_loss: float  # for probabilities; squared error for numbers
    mistakes: float  # for classes; absolute error for numbers
    brier: float
    loss: float  # the loss of the regret
    certificate: float  # NaN if there is none
    bound: float  # NaN if there is none
    seconds: float


class Rows(NamedTuple):
    """The blocks of a stream, as passed by the user."""

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
    """An interval that contains the regret: the comparator's loss is known up to a certified gap."""

    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Trace:
    """The result of one learner on one stream.

    Totals are arrays with one entry per checkpoint: `rows`, `loss` (the learner's own loss, as used in the regret),
    `log_loss`, `mistakes`, `brier`, `certificate`, `bound` and `seconds`; NaN where a value does not exist. `regret`
    has one `Interval` per checkpoint; its comparators are computed on first access.

    Attributes
    ----------
    name : the name of the learner.
    competition : the loss and the set of comparators of the regret, or None.
    kind : "probabilities", "scores" (of classes) or "numbers".
    forecasts : every forecast, with `keep_forecasts=True`; else None.
    classes : the labels, in the order of the columns of forecasts.
    """

    name: str
    competition: Competition | None
    kind: str
    checkpoints: tuple[Checkpoint, ...]
    bins: Array
    forecasts: Array | None
    classes: Any
    stream: Rows | None
    seen: Callable[[Any], Any]
    told: Callable[[int, int], None] = lambda done, total: None  # as comparators are found

    def __getattr__(self, name: str) -> Array:
        if name in Checkpoint._fields:
            return np.array([getattr(checkpoint, name) for checkpoint in self.checkpoints])
        raise AttributeError(f"Trace has no attribute {name!r}.")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *Checkpoint._fields})

    def _summary(self) -> dict[str, str]:
        """The numbers at the end, as text. The regret is left out: its comparators may take long."""
        last = self.checkpoints[-1]
        found = {"rows": f"{last.rows:,.0f}"}
        if self.kind == "numbers":
            found |= {
                "mean squared error": f"{last.log_loss / last.rows:.4g}",
                "mean absolute error": f"{self.error_rate:.4g}",
            }
        else:
            found["error rate"] = f"{self.error_rate:.4f}"
        if self.kind == "probabilities":
            found |= {"log loss per row": f"{self.mean_log_loss:.4f}", "Brier score": f"{self.brier_score:.4f}"}
        promises = {"certificate": last.certificate, "bound": last.bound}
        return found | {name: f"{value:.4g}" for name, value in promises.items() if not math.isnan(value)}

    def __repr__(self) -> str:
        return f"Trace({self.name}: {', '.join(f'{name} {value}' for name, value in self._summary().items())})"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{value}</td></tr>" for name, value in self._summary().items())
        return f"<table><caption>{escape(self.name)}</caption>{rows}</table>"

    # ------------------------------------------------------------------ at the end

    @property
    def mean_log_loss(self) -> float:
        """Log loss per row, at the end; NaN if the learner does not forecast probabilities."""
        return self._mean("log_loss") if self.kind == "probabilities" else math.nan

    @property
    def error_rate(self) -> float:
        """Mistakes per row, at the end; for numbers, the mean absolute error."""
        return self._mean("mistakes")

    @property
    def brier_score(self) -> float:
        """Mean squared distance of the probabilities from the labels, at the end: from 0 to 2."""
        return self._mean("brier") if self.kind == "probabilities" else math.nan

    def _mean(self, name: str) -> float:
        return float(getattr(self.checkpoints[-1], name)) / self.checkpoints[-1].rows

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: the mean distance between confidence and accuracy, over bins of confidence."""
        if self.kind != "probabilities":
            return math.nan
        return float(np.abs(self.bins[:, 1] - self.bins[:, 2]).sum() / self.bins[:, 0].sum())

    @property
    def reliability(self) -> Array:
        """One row per non-empty bin: number of forecasts, mean confidence, accuracy."""
        some = self.bins[self.bins[:, 0] > 0]
        return np.column_stack([some[:, 0], some[:, 1] / some[:, 0], some[:, 2] / some[:, 0]])

    # ------------------------------------------------------------------ regret

    @cached_property
    def comparators(self) -> list[Any]:
        """The best model in hindsight up to each checkpoint, with its certified gap (`regretless.hindsight`)."""
        from regretless.theory.hindsight import best_in_hindsight, hindsight_curve

        if self.stream is None or self.competition is None:
            missing = "hindsight=True" if self.stream is None else "a domain"
            raise ValueError(f"this trace has no comparators, so no regret: call play with {missing}.")
        X, y = self.stream.joined()
        X, y = self.seen(X), np.asarray(y)
        loss, domain, regularization = self.competition
        options: dict[str, Any] = {"loss": loss, "domain": domain}
        if self.kind != "numbers":
            options["classes"] = self.classes
        marks = [int(checkpoint.rows) for checkpoint in self.checkpoints]
        if regularization == 0.0:
            # the time for a comparator grows with its rows
            options["told"] = lambda t: self.told(sum(mark for mark in marks if mark <= t), sum(marks))
            return [found for _, found in hindsight_curve(X, y, marks, **options)]
        return [best_in_hindsight(X[:t], y[:t], regularization=t * regularization, **options) for t in marks]

    @property
    def regret(self) -> list[Interval]:
        """The loss minus that of the best model in hindsight, per checkpoint: an interval as wide as the gap."""
        return [
            Interval(checkpoint.loss - found.loss, checkpoint.loss - found.loss + found.gap)
            for checkpoint, found in zip(self.checkpoints, self.comparators, strict=True)
        ]

    # ------------------------------------------------------------------ export

    def _columns(self) -> dict[str, Array]:
        columns = {name: getattr(self, name) for name in Checkpoint._fields}
        if self.stream is not None and self.competition is not None:
            columns["regret_low"], columns["regret_high"] = (np.array(ends) for ends in zip(*self.regret, strict=True))
        return columns

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row per checkpoint, including the regret if it can be computed."""
        import pandas as pd

        return pd.DataFrame(self._columns()).astype({"rows": int})

    def to_json(self, path: str | Path | None = None) -> str:
        """The trace as JSON; also written to `path`, if given. NaN becomes null."""

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
        """Plot regret, certificate and bound over time, and the reliability of forecasts. Returns the axes."""
        from regretless.evaluate.plots import plot_trace

        return plot_trace(self)


class ByName(dict[str, Any]):
    """The traces of several learners on one stream, by name."""

    def to_frame(self) -> Any:
        """All traces in one pandas DataFrame; its first column is the learner's name."""
        import pandas as pd

        return pd.concat({name: trace.to_frame() for name, trace in self.items()}, names=["learner"]).reset_index(0)

    def to_json(self, path: str | Path | None = None) -> str:
        """All traces as one JSON object by name; also written to `path`, if given."""
        text = json.dumps({name: json.loads(trace.to_json()) for name, trace in self.items()}, indent=1)
        if path is not None:
            Path(path).write_text(text)
        return text


class Traces(ByName):
    """The `Trace`s of several learners on one stream, by name."""

    def _repr_html_(self) -> str:
        return "".join(trace._repr_html_() for trace in self.values())

    def plot(self) -> Any:
        """Plot regret and mean loss of every learner over time. Returns the matplotlib axes."""
        from regretless.evaluate.plots import plot_traces

        return plot_traces(self)
