"""Sums: what the service knows about its forecasts besides the learner. A function of the log, like the learner.

All sums are about forecasts as they were served, whenever their labels came. The learner's own loss is that of the
forecasts it would have made at the moment it learned each label; the difference is the cost of the delay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np

from regretless.core.numbers.scores import BINS, N_SCORED, N_WRONG, TOTAL_BRIER, TOTAL_LOSS, new_scores, score_classes
from regretless.core.types import Array

MOST_POINTS = 240  # of the history; then every other one is dropped
MOST_SHARES = 12  # classes up to which the history has their counts


class Scored(msgspec.Struct, gc=False):
    """A forecast that was served, and its label."""

    forecast: bytes  # probabilities as float64, little-endian
    k: int  # the class of the label
    weight: float
    waited: float  # seconds from the forecast to its label
    version: int  # labels learned before the forecast


@cache
def _targets(n_classes: int) -> Array:
    return np.eye(n_classes)


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

    def add(self, several: Sequence[Scored]) -> None:
        """Score forecasts by their labels, in order."""
        n, counts = self.labels, self.counts
        K = len(counts)
        p = np.frombuffer(b"".join([each.forecast for each in several]), dtype="<f8").reshape(len(several), K)
        targets = _targets(K)[[each.k for each in several]]
        targets.flags.writeable = False  # like p: one type of arrays, one compiled function, the same bits
        for each, probabilities in zip(several, p.tolist(), strict=True):
            k = each.k
            self.delay_seconds += each.waited
            self.delay_labels += n - each.version
            self.weight += each.weight
            self.served_loss -= each.weight * math.log(max(probabilities[k], 1e-300))
            self.baseline_loss -= math.log((counts[k] + 0.5) / (n + 0.5 * K))
            counts[k] += 1
            n += 1
        score_classes(p, targets, True, self.scores, self.bins)

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
