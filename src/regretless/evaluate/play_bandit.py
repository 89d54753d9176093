"""play_bandit: one pass over a stream with bandit feedback. Learners see only whether their action was correct."""

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
from regretless.core.learner import OnlineLearner
from regretless.core.progress import progress_bar
from regretless.core.rows.inputs import as_floats, in_rows
from regretless.core.rows.labels import Labels, as_labels
from regretless.core.types import Array
from regretless.evaluate.match import marks_of
from regretless.evaluate.trace import ByName
from regretless.learners.bandits.bandit_multiclass import BanditMulticlass
from regretless.theory.domains import Competition, Domain

SHOWN_AT_ONCE = 256  # rounds between two updates of the progress bar


def play_bandit(
    learners: Any,
    X: Any,
    y: Any,
    *,
    domain: Domain | None = None,
    checkpoints: str | Iterable[int] = "log",
    progress: bool = True,
) -> BanditTrace | BanditTraces:
    """Evaluate one or more bandit learners on a stream: each sees only whether its action was correct.

    Parameters
    ----------
    learners : a learner, or a dictionary of names and learners: `BanditMulticlass`, `EpsilonGreedy`, `Banditron`,
        `Gaptron`, or anything with `act(x)`, which returns a label and its probability, and `feedback(x, action,
        correct)`. Learners are updated in place and keep what they have learned before. A learner with `needs_labels`
        (Gaptron with full information) also gets the label, and its trace has `told=True`.
    X, y : rows (dense or sparse) and labels.
    domain : a set of weights, one row per class: relative mistakes are measured against the best softmax model in it.
        None means the set that the learner competes with in log loss, if it declares one.
    checkpoints : when to record the scores: "log" (ten per decade, and the end), or numbers of rounds.
    progress : whether to show a progress bar. It appears in a terminal if rich is installed.

    Returns
    -------
    A `BanditTrace` for one learner, `BanditTraces` by name for several.

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
        raise ValueError("learners is empty: pass at least one learner.")
    rows = X.tocsr() if sparse.issparse(X) else as_floats(X, in_rows(None))
    labels = as_labels(y)
    if rows.ndim != 2 or rows.shape[0] != labels.size or not labels.size:
        raise ValueError(
            f"X has shape {rows.shape} and y has shape {labels.shape}: pass one label per row, and at least one row."
        )
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
    """The rows and labels, used only for comparators, which are computed once for all learners that share them."""

    def __init__(self, X: Any, y: np.ndarray) -> None:
        self.X, self.y = X, y
        self._found: dict[Any, Array] = {}

    def losses(self, trace: BanditTrace, competition: Competition) -> Array:
        """The log loss of the best comparator in hindsight at each checkpoint, up to its certified gap."""
        from regretless.theory.hindsight import hindsight_curve

        marks = trace.rounds.tolist()
        own = None if trace.seen is None else trace.name  # a learner may transform the rows
        key = (repr(competition), tuple(trace.classes.tolist()), tuple(marks), own)
        if key not in self._found:
            loss, domain, _ = competition
            X = self.X if trace.seen is None else trace.seen(self.X)
            curve = hindsight_curve(X, self.y, marks, loss=loss, domain=domain, classes=trace.classes)
            self._found[key] = np.array([found.loss for _, found in curve])
        return self._found[key]


class BanditGame:
    """A learner and its scores so far."""

    def __init__(self, name: str, learner: Any, y: np.ndarray) -> None:
        if not (hasattr(learner, "act") and hasattr(learner, "feedback")):
            raise ValueError(
                f"{name}: {type(learner).__name__} does not implement act(x) and feedback(x, action, correct), which "
                "bandit feedback needs. Wrap it in BanditMulticlass."
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
        self.played_before = hasattr(learner, "state_")  # then its bound also covers other rounds
        self.actions: NDArray[Any] = np.empty(y.size, dtype=y.dtype if y.dtype.kind in "biuf" else object)
        self.probabilities = np.empty(y.size)
        self.correct = np.empty(y.size, dtype=bool)
        self.marks: list[int] = []
        self.prices: list[float] = []
        self.times: list[float] = []
        self.seconds = 0.0

    def meet(self, x: Array, label: Any, t: int) -> None:
        """Play one round. Only learners with full information get the label."""
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
        """The theorem's bound on the expected mistakes above the comparator's log loss; NaN if there is none."""
        if self.played_before or not isinstance(self.learner, BanditMulticlass):
            return math.nan
        try:
            return float(self.learner.mistake_bound(0.0))
        except NoBound:
            return math.nan

    def trace(self, domain: Domain | None, stream: HiddenStream) -> BanditTrace:
        """The trace of all rounds."""
        own = getattr(self.learner, "competes_with", None)
        competition = own if domain is None else Competition("softmax", domain)
        theirs = domain is None or own == competition  # whether the theorem covers these comparators
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
    """The base learner's transformation of rows for comparators, or None if it has none."""
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
    name : the name of the learner.
    rounds, mistakes, seconds : totals, one entry per checkpoint.
    bound : the theorem's bound on the expected mistakes above the log loss of the best comparator in hindsight, one
        entry per checkpoint; NaN where there is none.
    actions, probabilities, correct : for every round, the action, its probability, and whether it was correct.
    told : whether the learner got the labels.
    competition : the loss and the set of comparators of relative mistakes, or None.
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
        """Mistakes per round, up to each checkpoint."""
        rate: Array = self.mistakes / self.rounds
        return rate

    @property
    def relative_mistakes(self) -> Array:
        """Mistakes minus the log loss of the best comparator in hindsight, per checkpoint; computed on access."""
        if self.competition is None or self.classes is None:
            raise ValueError("relative mistakes need comparators: pass a domain to play_bandit, such as RowBall(5.0).")
        relative: Array = self.mistakes - self.stream.losses(self, self.competition)
        return relative

    def _columns(self) -> dict[str, NDArray[Any]]:
        columns: dict[str, NDArray[Any]] = {"rounds": self.rounds, "mistakes": self.mistakes}
        columns["mistake_rate"] = self.mistake_rate
        if self.competition is not None and self.classes is not None:
            columns["relative_mistakes"] = self.relative_mistakes
        return columns | {"bound": self.bound, "seconds": self.seconds}

    def to_frame(self) -> Any:
        """A pandas DataFrame with one row per checkpoint."""
        import pandas as pd

        return pd.DataFrame(self._columns())

    def to_json(self, path: str | Path | None = None) -> str:
        """The trace as JSON, without the individual rounds; also written to `path`, if given. NaN becomes null."""
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
        """Plot mistakes per round, and relative mistakes with their bound, over time. Returns the matplotlib axes."""
        return BanditTraces({self.name: self}).plot()


class BanditTraces(ByName):
    """The `BanditTrace`s of several learners on one stream, by name."""

    def plot(self) -> Any:
        """Plot mistakes per round of every learner, and relative mistakes if known, over time. Returns the axes."""
        from regretless.evaluate.plots import plot_bandits

        return plot_bandits(self)
