"""One pass over a stream whose labels are hidden: learners are told only whether they were right."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from regretless.core.errors import NoBound
from regretless.core.inputs import as_floats, in_rows
from regretless.core.labels import Labels, as_labels
from regretless.core.learner import OnlineLearner
from regretless.core.progress import progress_bar
from regretless.core.types import Array
from regretless.evaluate.match import marks_of
from regretless.evaluate.trace import ByName
from regretless.learners.bandits.bandit_multiclass import BanditMulticlass
from regretless.theory.domains import Competition, Domain

SHOWN_AT_ONCE = 256  # rounds between two looks at the bar


def play_bandit(
    learners: Any,
    X: Any,
    y: Any,
    *,
    domain: Domain | None = None,
    checkpoints: str | Iterable[int] = "log",
    progress: bool = True,
) -> BanditTrace | BanditTraces:
    """Play bandit learners, one or several side by side, on a stream: each is told no more than right or wrong.

    Parameters
    ----------
    learners : a learner, or a dictionary of names and learners: `BanditMulticlass`, `EpsilonGreedy`, `Banditron`,
        `Gaptron`, or anything with `act(x)`, which returns a label and its probability, and `feedback(x, action,
        correct)`. They learn in place, and go on from what they know. A learner that says `needs_labels` (Gaptron with
        full information) is given the label as well, and the trace says so.
    X, y : rows (dense or sparse) and labels.
    domain : a set of weights, one row a class: relative mistakes are then measured against its best softmax. Without
        one, against what the learner competes with in log loss, if it says so.
    checkpoints : when the score is written down: "log" (ten a decade, and the end), or numbers of rounds.
    progress : whether to show a bar, in a terminal, with rich installed.

    Returns
    -------
    A `BanditTrace`, or `BanditTraces` by name.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import FOLKLORE, BanditMulticlass, play_bandit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(2000, 2)) / np.sqrt(2)
    >>> y = np.argmax(X @ [[5, -5, 0], [0, 0, 5]] + rng.gumbel(size=(2000, 3)), axis=1)
    >>> base = FOLKLORE(radius=5.0, feature_bound=1.0)
    >>> trace = play_bandit(BanditMulticlass(base, n_classes=3, exploration=0.2), X, y)
    >>> print(f"{trace.mistakes[-1]} mistakes, {trace.relative_mistakes[-1]:.1f} more than the best log loss")
    899 mistakes, -142.4 more than the best log loss
    """
    single = not isinstance(learners, Mapping)
    field_ = {type(learners).__name__: learners} if single else dict(learners)
    if not field_:
        raise ValueError("there is no learner to play.")
    rows = X.tocsr() if sparse.issparse(X) else as_floats(X, in_rows(None))
    labels = as_labels(y)
    if rows.ndim != 2 or rows.shape[0] != labels.size or not labels.size:
        raise ValueError(f"X has shape {rows.shape} and y {labels.shape}: give a label a row, one row or more.")
    stream = HiddenStream(rows, labels)
    games = [BanditGame(name, learner, labels) for name, learner in field_.items()]
    marks = {*marks_of(checkpoints), labels.size}
    with progress_bar(progress, labels.size, "rounds") as bar:
        for t in range(labels.size):
            x = rows[t].toarray().ravel() if sparse.issparse(rows) else rows[t]
            for game in games:
                game.meet(x, labels[t], t)
            if t + 1 in marks:
                for game in games:
                    game.write(t + 1)
            if (t + 1) % SHOWN_AT_ONCE == 0:
                bar.advance(SHOWN_AT_ONCE)
    traces = BanditTraces({game.name: game.trace(domain, stream) for game in games})
    return next(iter(traces.values())) if single else traces


class HiddenStream:
    """The rows and labels, for comparators alone: found once for all learners that have the same."""

    def __init__(self, X: Any, y: np.ndarray) -> None:
        self.X, self.y = X, y
        self._found: dict[Any, Array] = {}

    def losses(self, trace: BanditTrace, competition: Competition) -> Array:
        """The log loss of the best in hindsight at each checkpoint; at most its gap above the least."""
        from regretless.theory.hindsight import hindsight_curve

        marks = trace.rounds.tolist()
        own = None if trace.seen is None else trace.name  # a learner may look at the rows in a way of its own
        key = (repr(competition), tuple(trace.classes.tolist()), tuple(marks), own)
        if key not in self._found:
            loss, domain, _ = competition
            X = self.X if trace.seen is None else trace.seen(self.X)
            curve = hindsight_curve(X, self.y, marks, loss=loss, domain=domain, classes=trace.classes)
            self._found[key] = np.array([found.loss for _, found in curve])
        return self._found[key]


class BanditGame:
    """A learner and its score so far."""

    def __init__(self, name: str, learner: Any, y: np.ndarray) -> None:
        if not (hasattr(learner, "act") and hasattr(learner, "feedback")):
            raise ValueError(
                f"{name}: {type(learner).__name__} has no act(x) and feedback(x, action, correct), so it cannot play "
                "without labels. BanditMulticlass makes such a learner of one."
            )
        self.name, self.learner = name, learner
        self.labels: Labels | None = getattr(learner, "_labels", None)
        if self.labels is None and hasattr(learner, "_declared"):
            self.labels = learner._declared()
        if self.labels is not None:
            foreign = self.labels.codes(y)[1]
            if foreign.any():
                i = int(np.argmax(foreign))
                raise self.labels.unknown(y[i], i)
        self.told = bool(getattr(learner, "needs_labels", False))
        self.played_before = hasattr(learner, "state_")  # then its bound is of other rounds as well
        self.actions: NDArray[Any] = np.empty(y.size, dtype=y.dtype if y.dtype.kind in "biuf" else object)
        self.probabilities = np.empty(y.size)
        self.correct = np.empty(y.size, dtype=bool)
        self.marks: list[int] = []
        self.prices: list[float] = []
        self.times: list[float] = []
        self.seconds = 0.0

    def meet(self, x: Array, label: Any, t: int) -> None:
        """One round; the label goes no further than this, but for learners of full information."""
        started = time.perf_counter()
        action, probability = self.learner.act(x)
        correct = bool(action == label)
        if self.told:
            self.learner.feedback(x, action, correct, label)
        else:
            self.learner.feedback(x, action, correct)
        self.seconds += time.perf_counter() - started
        self.actions[t], self.probabilities[t], self.correct[t] = action, probability, correct

    def write(self, rounds: int) -> None:
        """One line of the trace."""
        self.marks.append(rounds)
        self.times.append(self.seconds)
        self.prices.append(self._price())

    def _price(self) -> float:
        """What its theorem says of the expected mistakes above the comparator's log loss; NaN if nothing."""
        if self.played_before or not isinstance(self.learner, BanditMulticlass):
            return math.nan
        try:
            return float(self.learner.mistake_bound(0.0))
        except NoBound:
            return math.nan

    def trace(self, domain: Domain | None, stream: HiddenStream) -> BanditTrace:
        """The whole score."""
        own = getattr(self.learner, "competes_with", None)
        competition = own if domain is None else Competition("softmax", domain)
        theirs = domain is None or own == competition  # whether the theorem speaks of these comparators
        return BanditTrace(
            name=self.name,
            competition=competition,
            rounds=np.array(self.marks),
            mistakes=np.cumsum(~self.correct)[np.array(self.marks) - 1],
            bound=np.array(self.prices) if theirs else np.full(len(self.prices), math.nan),
            seconds=np.array(self.times),
            actions=self.actions,
            probabilities=self.probabilities,
            correct=self.correct,
            told=self.told,
            classes=None if self.labels is None else self.labels.classes,
            stream=stream,
            seen=_own_sight(self.learner) if domain is None else None,
        )


def _own_sight(learner: Any) -> Callable[[Any], Any] | None:
    """How the comparators of its base see the rows, if not as they come."""
    base = getattr(learner, "estimator_", None)
    if base is None or type(base).for_comparators is OnlineLearner.for_comparators:
        return None
    sight: Callable[[Any], Any] = base.for_comparators
    return sight


@dataclass(frozen=True)
class BanditTrace:
    """The game of one bandit learner on one stream.

    Attributes
    ----------
    name : of the learner.
    rounds, mistakes, seconds : totals at the checkpoints, one entry each.
    bound : at the checkpoints, what the theorem says of the expected mistakes above the log loss of the best in
        hindsight; NaN where it says nothing.
    actions, probabilities, correct : of every round, what was played, with which probability, and whether it was right.
    told : whether the learner was given the labels.
    competition : what relative mistakes are measured against, or None.
    """

    name: str
    competition: Competition | None
    rounds: NDArray[np.int64] = field(repr=False)
    mistakes: NDArray[np.int64] = field(repr=False)
    bound: Array = field(repr=False)
    seconds: Array = field(repr=False)
    actions: NDArray[Any] = field(repr=False)
    probabilities: Array = field(repr=False)
    correct: NDArray[np.bool_] = field(repr=False)
    told: bool
    classes: Any = field(repr=False)
    stream: HiddenStream = field(repr=False)
    seen: Callable[[Any], Any] | None = field(repr=False)

    @property
    def mistake_rate(self) -> Array:
        """Mistakes a round, up to each checkpoint."""
        rate: Array = self.mistakes / self.rounds
        return rate

    @property
    def relative_mistakes(self) -> Array:
        """Mistakes minus the log loss of the best in hindsight, at each checkpoint. (Found when first asked for.)"""
        if self.competition is None or self.classes is None:
            raise ValueError("there is nothing to measure against: play with a domain, such as RowBall(5.0).")
        relative: Array = self.mistakes - self.stream.losses(self, self.competition)
        return relative

    def _columns(self) -> dict[str, NDArray[Any]]:
        columns: dict[str, NDArray[Any]] = {"rounds": self.rounds, "mistakes": self.mistakes}
        columns["mistake_rate"] = self.mistake_rate
        if self.competition is not None and self.classes is not None:
            columns["relative_mistakes"] = self.relative_mistakes
        return columns | {"bound": self.bound, "seconds": self.seconds}

    def to_frame(self) -> Any:
        """A pandas DataFrame with a line for each checkpoint."""
        import pandas as pd

        return pd.DataFrame(self._columns())

    def to_json(self, path: str | Path | None = None) -> str:
        """The trace as JSON, without the single rounds, written to `path` if one is given. NaN becomes null."""
        document = {
            "learner": self.name,
            "told_the_labels": self.told,
            "loss": None if self.competition is None else self.competition.loss,
            "domain": None if self.competition is None else repr(self.competition.domain),
            "checkpoints": {
                name: [value if math.isfinite(value) else None for value in values.tolist()]
                for name, values in self._columns().items()
            },
        }
        text = json.dumps(document, indent=1)
        if path is not None:
            Path(path).write_text(text)
        return text

    def plot(self) -> Any:
        """Axes of matplotlib: mistakes a round, and relative mistakes with their bound, over time."""
        return BanditTraces({self.name: self}).plot()


class BanditTraces(ByName):
    """The games of several bandit learners on one stream, by name: `BanditTrace`s."""

    def plot(self) -> Any:
        """Axes of matplotlib: mistakes a round of every learner over time, and relative mistakes where there are."""
        from regretless.evaluate.plots import plot_bandits

        return plot_bandits(self)
