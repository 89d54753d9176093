"""Sums: what the service knows about its forecasts besides the learner. A function of the log, like the learner.

All sums are about forecasts as they were served, whenever their labels came. The learner's own loss is that of the
forecasts it would have made at the moment it learned each label; the difference is the cost of the delay.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from regretless.core.scores import BINS, N_SCORED, N_WRONG, TOTAL_BRIER, TOTAL_LOSS, new_scores, score_classes
from regretless.core.types import Array

MOST_POINTS = 240  # of the history; then every other one is dropped
MOST_SHARES = 12  # classes up to which the history has their counts


class Sums:
    """Scores of the served forecasts, a baseline, delays, and their history.

    The baseline forecasts the frequencies of the labels so far, (count + 1/2) / (rows + K/2).
    """

    def __init__(self, n_classes: int) -> None:
        self.scores, self.bins = new_scores()  # one row of `scores` and `bins` per label, whatever its weight
        self.counts = [0] * n_classes
        self.forecasts = 0  # served
        self.refused = 0  # labels that the learner could not learn
        self.weight = 0.0
        self.start_loss = 0.0  # the learner's loss before the first event
        self.served_loss = 0.0  # weighted, as in the regret
        self.baseline_loss = 0.0
        self.delay_seconds = 0.0
        self.delay_labels = 0  # labels learned between a forecast and its label
        self.every = 10  # labels between two points of the history
        self.history: list[list[Any]] = []

    @property
    def labels(self) -> int:
        """Labels learned: the version of the model."""
        return int(self.scores[N_SCORED])

    def add(self, p: Array, target: Array, k: int, weight: float, waited: float, version: int) -> None:
        """Score a forecast p (K,) by its label k, with its target (1, K)."""
        n = self.labels
        self.delay_seconds += waited
        self.delay_labels += n - version
        self.weight += weight
        self.served_loss -= weight * math.log(max(float(p[k]), 1e-300))
        self.baseline_loss -= math.log((self.counts[k] + 0.5) / (n + 0.5 * len(self.counts)))
        self.counts[k] += 1
        score_classes(p[None], target, True, self.scores, self.bins)

    # ------------------------------------------------------------------ history

    @property
    def due(self) -> bool:
        """Whether the history gets a point now."""
        last = self.history[-1][0] if self.history else 0
        return self.labels // self.every > last // self.every

    def note(self, at: float, learner_loss: float, certificate: float | None, bound: float | None) -> None:
        """Add a point to the history."""
        counts = list(self.counts) if len(self.counts) <= MOST_SHARES else None
        sums = (float(self.scores[TOTAL_LOSS]), float(self.scores[N_WRONG]), self.baseline_loss, self.served_loss)
        self.history.append([self.labels, at, *sums, learner_loss, certificate, bound, counts])
        if len(self.history) > MOST_POINTS:
            self.history = self.history[1::2]
            self.every *= 2

    # ------------------------------------------------------------------ for people

    def summary(self) -> dict[str, Any]:
        """Means over the labels; None before the first."""
        n = self.labels

        def mean(total: float) -> float | None:
            return float(total) / n if n else None

        return {
            "forecasts": self.forecasts,
            "labels": n,
            "refused": self.refused,
            "log_loss": mean(self.scores[TOTAL_LOSS]),
            "error": mean(self.scores[N_WRONG]),
            "brier": mean(self.scores[TOTAL_BRIER]),
            "baseline_log_loss": mean(self.baseline_loss),
            "delay_seconds": mean(self.delay_seconds),
            "delay_labels": mean(self.delay_labels),
        }

    # ------------------------------------------------------------------ files

    def as_json(self) -> dict[str, Any]:
        """For `from_json`; exact."""
        return vars(self) | {"scores": self.scores.tolist(), "bins": self.bins.tolist()}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Sums:
        """Restore what `as_json` returned."""
        found = cls(len(told["counts"]))
        if told.keys() != vars(found).keys():
            raise ValueError(f"the sums have the names {sorted(told)}, not {sorted(vars(found))}")
        vars(found).update(told)
        found.scores, found.bins = np.array(told["scores"], dtype=float), np.array(told["bins"], dtype=float)
        if found.scores.shape != (4,) or found.bins.shape != (BINS, 3):
            raise ValueError("the scores have the wrong shape")
        return found
