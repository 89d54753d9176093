"""Scores of a run from its stored forecasts: baselines, AUC, precision and recall, and scores over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from regretless.core.types import Array
from regretless.evaluate.match import Match
from regretless.evaluate.run.decision import Decision

MOST_WINDOWS = 60
LEAST_ROWS = 50  # of a window
BINS = 20  # of a class's probability
MOST_NUMBERS = 50_000_000  # for scores that need all forecasts at once


class OverTime(NamedTuple):
    """Mean scores in consecutive windows of equal length."""

    ends: Array  # the last row of each window, counted from 1
    loss: Array | None  # log loss, or squared error for numbers; None without probabilities
    error: Array  # error rate, or absolute error for numbers


class Scores(NamedTuple):
    """Scores of all forecasts of a run."""

    found: dict[str, Any]  # by name, for the summary
    over_time: OverTime
    bins: Array | None  # (classes, BINS, 3): number of forecasts, their sum, and how often the class came


def scores_of(tables: Iterator[Any], match: Match, decision: Decision | None) -> Scores:
    """Read the forecasts of a run once."""
    if match.kind == "numbers":
        return _of_numbers(tables, match.rows)
    counting = Counting(match, decision)
    for table in tables:
        counting.add(table)
    return counting.result()


class Counting:
    """The sums over forecasts of classes."""

    def __init__(self, match: Match, decision: Decision | None) -> None:
        self.labels = match.learner.classes_.tolist()
        self.decision = decision
        self.is_probable = match.kind == "probabilities"
        self.windows = Windows(match.rows)
        K = len(self.labels)
        self.confusion = np.zeros((K, K), dtype=np.int64)  # label, decision
        self.bins = np.zeros((K, BINS, 3))
        self.all: list[tuple[Array, Array]] | None = [] if match.rows * K <= MOST_NUMBERS else None

    def add(self, table: Any) -> None:
        """Add the forecasts of some rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        K = len(self.labels)
        y = pc.index_in(table["label"], value_set=pa.array(self.labels, table["label"].type)).to_numpy()
        prefix = "p_" if self.is_probable else "score_"
        p = np.column_stack([np.nan_to_num(table[f"{prefix}{label}"].to_numpy()) for label in self.labels])
        wrong = (p.argmax(axis=1) != y).astype(np.float64)
        loss = table["loss"].to_numpy() if self.is_probable else None
        self.windows.add(loss, wrong)
        np.add.at(self.confusion, (y, self._decided(p)), 1)
        if not self.is_probable:
            return
        for k in range(K):
            place = np.minimum((p[:, k] * BINS).astype(int), BINS - 1)
            for i, values in enumerate((None, p[:, k], (y == k).astype(float))):
                self.bins[k, :, i] += np.bincount(place, values, BINS)
        if self.all is not None:
            self.all.append((y, p))

    def _decided(self, p: Array) -> Any:
        if self.decision is None or not self.is_probable:
            return p.argmax(axis=1)
        positive = self.decision.positive
        return np.where(p[:, positive] >= self.decision.threshold, positive, 1 - positive)

    def result(self) -> Scores:
        """All scores."""
        shares = self.confusion.sum(axis=1) / self.confusion.sum()
        found: dict[str, Any] = {"baseline": _baseline(shares, self.is_probable)}
        if self.is_probable and len(self.labels) > 1:
            found["auc"] = self._auc()
        found["per_class"] = self._per_class()
        if self.decision is not None:
            found |= self._of_decision(self.decision)
        return Scores(found, self.windows.result(), self.bins if self.is_probable else None)

    def _per_class(self) -> list[dict[str, Any]]:
        right = np.diag(self.confusion)
        of_label, of_decision = self.confusion.sum(axis=1), self.confusion.sum(axis=0)
        return [
            {
                "label": label,
                "rows": int(of_label[k]),
                "precision": _ratio(right[k], of_decision[k]),
                "recall": _ratio(right[k], of_label[k]),
                "f1": _ratio(2 * right[k], of_label[k] + of_decision[k]),
            }
            for k, label in enumerate(self.labels)
        ]

    def _of_decision(self, decision: Decision) -> dict[str, Any]:
        found: dict[str, Any] = {"positive": self.labels[decision.positive], "threshold": decision.threshold}
        if decision.costs is not None:
            fp, fn = decision.costs
            rows, positive = self.confusion.sum(), self.confusion.sum(axis=1)[decision.positive]
            cost = fp * self.confusion[1 - decision.positive, decision.positive]
            cost += fn * self.confusion[decision.positive, 1 - decision.positive]
            one_answer = min(fp * (rows - positive), fn * positive)  # always the same decision
            found["cost"] = {"fp": fp, "fn": fn, "total": float(cost), "per_row": float(cost / rows)}
            found["baseline_cost_per_row"] = float(one_answer / rows)
        return found

    def _auc(self) -> float | None:
        """The area under the ROC curve; of more than two classes, the mean over each against the others."""
        from sklearn.metrics import roc_auc_score

        if self.all is None:
            return None
        y = np.concatenate([y for y, _ in self.all])
        K = len(self.labels)
        of = range(K) if self.decision is None else [self.decision.positive]
        met = [k for k in of if 0 < (y == k).sum() < y.size]
        areas = [roc_auc_score(y == k, np.concatenate([p[:, k] for _, p in self.all])) for k in met]
        return float(np.mean(areas)) if areas else None


def _baseline(shares: Array, is_probable: bool) -> dict[str, float]:
    """Scores of the best constant in hindsight: the label frequencies, or the most frequent label."""
    some = shares[shares > 0]
    found = {"error_rate": float(1 - shares.max())}
    if is_probable:
        found |= {"mean_log_loss": float(-(some * np.log(some)).sum()), "brier_score": float(1 - (shares**2).sum())}
    return found


def _ratio(a: Any, b: Any) -> float | None:
    return float(a / b) if b else None


class Windows:
    """Sums in windows of equal length. There are few enough to draw."""

    def __init__(self, rows: int) -> None:
        self.rows, self.read = rows, 0
        self.number = int(np.clip(rows // LEAST_ROWS, 1, MOST_WINDOWS))
        self.ends = np.array([(i + 1) * rows // self.number for i in range(self.number)])
        self.loss: Array | None = np.zeros(self.number)
        self.error: Array = np.zeros(self.number)

    def add(self, loss: Array | None, error: Array) -> None:
        """Add the next rows."""
        at = np.searchsorted(self.ends, np.arange(self.read, self.read + len(error)), side="right")
        self.read += len(error)
        self.error += np.bincount(at, error, self.number)
        self.loss = None if loss is None or self.loss is None else self.loss + np.bincount(at, loss, self.number)

    def result(self) -> OverTime:
        """Means."""
        lengths = np.diff(self.ends, prepend=0)
        return OverTime(self.ends, None if self.loss is None else self.loss / lengths, self.error / lengths)


def _of_numbers(tables: Iterator[Any], rows: int) -> Scores:
    """Scores of forecasts of numbers; the baselines are the mean and the median."""
    windows, targets = Windows(rows), []
    for table in tables:
        y = table["target"].to_numpy().astype(np.float64)
        windows.add(table["loss"].to_numpy(), np.abs(table["forecast"].to_numpy() - y))
        targets.append(y)
    y = np.concatenate(targets)
    baseline = {
        "mean_squared_error": float(np.mean((y - y.mean()) ** 2)),
        "mean_absolute_error": float(np.mean(np.abs(y - np.median(y)))),
    }
    return Scores({"baseline": baseline}, windows.result(), None)
