"""Match: the loop that scores a learner. `play`, `run` and `race` feed blocks to it.

A match passes blocks to its learner, pauses at the marks, scores the forecasts, and reads the certificate and the
bound. Its counts can be saved as JSON and restored.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from regretless.core.numbers.scores import N_SCORED, N_WRONG, TOTAL_LOSS, new_scores, score_classes, score_numbers
from regretless.core.types import Array
from regretless.evaluate.players import Before, margin_as_scores, number_of_rows, player
from regretless.evaluate.trace import Checkpoint, Rows, Trace
from regretless.theory.domains import Domain

PER_DECADE = 10  # marks per decade for "log"


class Totals(NamedTuple):
    """The learner's own totals at a pause."""

    loss: float | None  # None if the match computes it
    certificate: float
    bound: float
    seconds: float


class Match:
    """A learner on a stream: its scores so far, and its trace up to the last mark.

    Scores count every forecast of this match once. Loss, certificate and bound are the learner's own, for the rows of
    this match. A learner that has learned rows before has neither certificate nor bound here, because both cover all
    rows that it has learned.

    Parameters
    ----------
    learner : a learner of this library, of River or of scikit-learn (see `players.py`).
    name : its name in the trace; None means its class name.
    classes : the labels; needed if the first block may not contain all of them.
    domain : the set of comparators for the regret; None means the learner's own.
    marks : the numbers of rows after which a line of the trace is written, or "log" (ten per decade).
    keep_forecasts : whether the trace keeps every forecast.
    batch : rows per call of a scikit-learn estimator.
    """

    def __init__(
        self,
        learner: Any,
        *,
        name: str | None = None,
        classes: Any = None,
        domain: Domain | None = None,
        marks: str | Iterable[int] = "log",
        keep_forecasts: bool = False,
        batch: int = 1,
    ) -> None:
        self.name = type(learner).__name__ if name is None else name
        self.player = player(learner, classes, batch)
        self.domain = domain
        self.scores, self.bins = new_scores()
        self.checkpoints: list[Checkpoint] = []
        self.seconds = 0.0
        self._forecasts: list[Array] | None = [] if keep_forecasts else None
        self._marks = marks_of(marks)

    @property
    def learner(self) -> Any:
        """The learner of this match."""
        return self.player.learner

    @property
    def rows(self) -> int:
        """Rows scored so far."""
        return int(self.scores[N_SCORED])

    @property
    def kind(self) -> str:
        """The kind of forecasts: "numbers", "probabilities" or "scores"."""
        if self.player.regresses:
            return "numbers"
        return "probabilities" if self.player.probabilities else "scores"

    @property
    def mean_loss(self) -> float:
        """Log loss per row; squared error per row for numbers, error rate for scores."""
        total = self.scores[N_WRONG if self.kind == "scores" else TOTAL_LOSS]
        return float(total) / max(self.rows, 1)

    # ------------------------------------------------------------------ the loop

    def feed(self, X: Any, y: Any, weight: Any = None) -> tuple[Array, Array]:
        """Play a block, and write the trace at the marks in it. Returns forecasts and targets.

        If the block is rejected, nothing changes.
        """
        first = self.rows
        ahead = self._marks[bisect_right(self._marks, first) : bisect_right(self._marks, first + number_of_rows(y))]
        noted = []
        started = time.perf_counter()
        block = self.player.play(X, y, weight, [mark - first for mark in ahead])
        for rows in block:
            self.seconds += time.perf_counter() - started
            if first + rows in ahead:
                noted.append((rows, self._totals()))
            started = time.perf_counter()
        forecasts, targets = block.forecasts, block.targets
        self.seconds += time.perf_counter() - started
        at = 0
        for rows, totals in noted:
            self._count(forecasts[at:rows], targets[at:rows])
            self._write(totals)
            at = rows
        self._count(forecasts[at:], targets[at:])
        if self._forecasts is not None:
            self._forecasts.append(forecasts)
        return forecasts, targets

    def _count(self, forecasts: Array, targets: Array) -> None:
        if self.kind == "numbers":
            if forecasts.ndim == 1:
                forecasts, targets = forecasts[:, None], targets.reshape(-1, 1)
            score_numbers(forecasts, targets, self.scores)
        else:
            probabilities = self.kind == "probabilities"
            score_classes(margin_as_scores(forecasts), targets, probabilities, self.scores, self.bins)

    def _totals(self) -> Totals:
        return Totals(self.player.total_loss(), *self.player.promises(self.domain), self.seconds)

    def _write(self, totals: Totals) -> None:
        """One line of the trace."""
        own, certificate, bound, seconds = totals
        rows, counted, mistakes, brier = self.scores.tolist()
        loss = counted if own is None else own
        self.checkpoints.append(Checkpoint(rows, counted, mistakes, brier, loss, certificate, bound, seconds))

    # ------------------------------------------------------------------ results

    def trace(self, stream: Rows | None = None, told: Callable[[int, int], None] = lambda done, total: None) -> Trace:
        """The trace, including the last row. If `stream` has the rows of the match, the trace also has the regret.

        `told` is called with the work done and the whole work, as the regret is computed.
        """
        if not self.checkpoints or self.checkpoints[-1].rows < self.rows:
            self._write(self._totals())
        return Trace(
            name=self.name,
            competition=self.player.competition(self.domain),
            kind=self.kind,
            checkpoints=tuple(self.checkpoints),
            bins=self.bins,
            forecasts=None if self._forecasts is None else np.concatenate(self._forecasts),
            classes=self.player.classes,
            stream=stream,
            seen=self.player.for_comparators,
            told=told,
        )

    def as_json(self) -> dict[str, Any]:
        """The counts so far, for `take_up`."""
        return {
            "scores": self.scores.tolist(),
            "bins": self.bins.tolist(),
            "checkpoints": [list(line) for line in self.checkpoints],
            "seconds": self.seconds,
            "before": list(self.player.before),
        }

    def take_up(self, told: dict[str, Any]) -> None:
        """Continue from the output of `as_json`, with the learner in the state it had then."""
        self.scores, self.bins = np.array(told["scores"]), np.array(told["bins"])
        self.checkpoints = [Checkpoint(*line) for line in told["checkpoints"]]
        self.seconds = float(told["seconds"])
        self.player.before = Before(*told["before"])


def marks_of(marks: str | Iterable[int]) -> list[int]:
    """The numbers of rows after which a line of the trace is written, sorted.

    >>> marks_of("log")[:12], marks_of([100, 10])
    ([1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25], [10, 100])
    """
    if isinstance(marks, str):
        if marks != "log":
            raise ValueError(f'checkpoints={marks!r} is unknown: pass "log" or numbers of rows.')
        return sorted({round(10 ** (i / PER_DECADE)) for i in range(PER_DECADE * 18)})
    found = sorted({int(t) for t in marks})
    if found and found[0] < 1:
        raise ValueError(f"checkpoints={found}: numbers of rows must be at least 1.")
    return found
