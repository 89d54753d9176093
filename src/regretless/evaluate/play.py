"""One pass over a stream: every row is forecast before its label is used."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from regretless.core.scores import new_scores, score_classes, score_numbers
from regretless.core.types import Array
from regretless.evaluate.players import margin_as_scores, player, take
from regretless.evaluate.trace import Checkpoint, Rows, Trace, Traces
from regretless.theory.domains import Domain

AT_ONCE = 16_384  # rows between two looks at the clock
A_DECADE = 10  # checkpoints where they are "log"


def play(
    learners: Any,
    X: Any,
    y: Any = None,
    *,
    classes: Any = None,
    domain: Domain | None = None,
    checkpoints: str | Iterable[int] = "log",
    keep_forecasts: bool = False,
    hindsight: bool = True,
    batch: int = 1,
    progress: bool = True,
) -> Trace | Traces:
    """Play one learner, or several side by side, on a stream: every row is forecast before its label is used.

    Parameters
    ----------
    learners : a learner, or a dictionary of names and learners. Beside those of this library: anything with `learn_one`
        and `predict_proba_one` (or `predict_one`) that takes a row as a dictionary, as River's do, and any scikit-learn
        estimator with `partial_fit`. They learn in place, and go on from what they know (but what a learner promises
        is of all its rows: one that has met some before has no certificate here).
    X, y : rows and labels; or X an iterable of blocks `(X, y)`; or X a function that starts an adversary: a generator
        which yields a row, is sent the forecast, and then yields the label (`forecast = yield x`, then `yield y`). Each
        learner meets an adversary of its own; before it knows its classes the forecast is None.
    classes : the labels, where the first block need not show all.
    domain : the set that regret is measured against, if not the learner's own. For a learner that competes with all
        weights, a ball: certificate and bound are then of its radius. For a learner of another library, any set.
    checkpoints : when the score is written down: "log" (ten a decade, and the end), or numbers of rows.
    keep_forecasts : whether the trace keeps every forecast; otherwise its size does not grow with the stream.
    hindsight : whether to keep the rows (they are not copied), so that the trace can find the best comparators and the
        regret, which it does when first asked.
    batch : how many rows a scikit-learn estimator is given at a time; all of them are forecast before any is learned.
    progress : whether to show a bar, in a terminal, with rich installed.

    Returns
    -------
    A `Trace`, or `Traces` by name.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import AIOLI, play
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-X @ [1, -1, 2]))
    >>> trace = play(AIOLI(radius=5.0), X, y)
    >>> low, high = trace.regret[-1]
    >>> print(f"{low:.2f} <= regret <= {high:.2f} <= {trace.certificate[-1]:.2f} <= {trace.bound[-1]:.2f}")
    14.59 <= regret <= 14.59 <= 25.58 <= 202.38
    """
    single = not isinstance(learners, Mapping)
    field = {type(learners).__name__: learners} if single else dict(learners)
    if not field:
        raise ValueError("there is no learner to play.")
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise ValueError(f"batch={batch!r} must be a whole number of rows.")
    games = [Game(name, each, classes, domain, keep_forecasts, batch) for name, each in field.items()]
    if inspect.isroutine(X):
        if y is not None:
            raise ValueError("an adversary chooses the labels itself: leave y out.")
        for game in games:
            game.stream = Rows([], []) if hindsight else None
            _play_adversary(game, X, checkpoints)
    else:
        stream = Rows([], []) if hindsight else None
        with _bar(progress, X.shape[0] if hasattr(X, "shape") else None) as advance:
            for rows, labels, cut in _blocks(X, y, checkpoints, stream, games):
                for game in games:
                    game.meet(rows, labels, cut)
                advance(len(labels))
                del rows, labels  # before the next block is made: one at a time is in memory
        for game in games:
            game.stream = stream
    traces = Traces({game.name: game.trace() for game in games})
    return next(iter(traces.values())) if single else traces


class Game:
    """A learner and its score so far."""

    def __init__(self, name: str, learner: Any, classes: Any, domain: Domain | None, keep: bool, batch: int) -> None:
        self.name = name
        self.player = player(learner, classes, batch)
        self.domain = domain
        self.stream: Rows | None = None
        self.forecasts: list[Array] | None = [] if keep else None
        self.checkpoints: list[Checkpoint] = []
        self.seconds = 0.0
        self.scores, self.bins = new_scores()

    def meet(self, X: Any, y: Any, cut: bool) -> None:
        """Play a block, and write the score down if it ends at a checkpoint."""
        started = time.perf_counter()
        forecasts, targets = self.player.play(X, y)
        self.seconds += time.perf_counter() - started
        if self.player.regresses:
            score_numbers(forecasts, targets.reshape(-1), self.scores)
        else:
            kinds = self.player.probabilities, not self.player.keeps_log_loss
            score_classes(margin_as_scores(forecasts), targets, *kinds, self.scores, self.bins)
        if self.forecasts is not None:
            self.forecasts.append(forecasts)
        self.written = cut
        if cut:
            self.write()

    def write(self) -> None:
        """One line of the trace."""
        rows, log_loss, mistakes, brier = self.scores.tolist()
        loss, (certificate, bound) = self.player.total_loss(self.scores), self.player.promises(self.domain)
        log_loss = loss if self.player.keeps_log_loss else log_loss
        self.checkpoints.append(Checkpoint(rows, log_loss, mistakes, brier, loss, certificate, bound, self.seconds))

    def trace(self) -> Trace:
        """The whole score, the end included."""
        if not self.written:
            self.write()
        classes = "probabilities" if self.player.probabilities else "scores"
        return Trace(
            name=self.name,
            competition=self.player.competition(self.domain),
            kind="numbers" if self.player.regresses else classes,
            checkpoints=tuple(self.checkpoints),
            bins=self.bins,
            forecasts=None if self.forecasts is None else np.concatenate(self.forecasts),
            classes=self.player.classes,
            stream=self.stream,
            seen=self.player.for_comparators,
        )


def marks(checkpoints: str | Iterable[int]) -> Iterator[int]:
    """The rows after which the score is written down, in order."""
    if not isinstance(checkpoints, str):
        marks = sorted({int(t) for t in checkpoints})
        if marks and marks[0] < 1:
            raise ValueError(f"checkpoints={marks}: the first is of 1 row or more.")
        yield from marks
        return
    if checkpoints != "log":
        raise ValueError(f'checkpoints={checkpoints!r}: give "log" or numbers of rows.')
    t = 0
    for i in range(A_DECADE * 18):
        if (mark := round(10 ** (i / A_DECADE))) > t:
            t = mark
            yield t


def _blocks(
    X: Any, y: Any, checkpoints: Any, stream: Rows | None, games: list[Game]
) -> Iterator[tuple[Any, Any, bool]]:
    """The stream in blocks that end at checkpoints, and whether each does.

    What was given goes to `stream`, if any, and the labels of the first block given tell the players their classes.
    """
    cuts = marks(checkpoints)
    cut = next(cuts, math.inf)
    met = 0
    for rows, labels in [(X, y)] if y is not None else X:
        rows = rows.tocsr() if sparse.issparse(rows) else rows
        labels = labels if hasattr(labels, "shape") else np.asarray(labels)
        if stream is not None:
            stream.X.append(rows)
            stream.y.append(labels)
        if met == 0:
            for game in games:
                game.player.meet_classes(labels)
        i, n = 0, labels.shape[0]
        while i < n:
            stop = int(min(n, i + AT_ONCE, i + cut - met))
            met += stop - i
            some = slice(i, stop)
            yield take(rows, some), take(labels, some), met == cut
            if met == cut:
                cut = next(cuts, math.inf)
            i = stop
        del rows, labels
    if met == 0:
        raise ValueError("the stream is empty: there is nothing to play.")


def _play_adversary(game: Game, start: Callable[[], Generator[Any, Any, Any]], checkpoints: Any) -> None:
    cuts = marks(checkpoints)
    cut, met = next(cuts, math.inf), 0
    adversary = start()
    for x in adversary:
        row = np.asarray(x, dtype=np.float64).reshape(1, -1)
        label = np.asarray([adversary.send(game.player.forecast(row))])
        met += 1
        if game.stream is not None:
            game.stream.X.append(row)
            game.stream.y.append(label)
        game.meet(row, label, met == cut)
        if met == cut:
            cut = next(cuts, math.inf)
    if met == 0:
        raise ValueError("the adversary yielded no row: there is nothing to play.")


@contextmanager
def _bar(wanted: bool, total: int | None) -> Iterator[Callable[[int], Any]]:
    """Yields what is to be told of rows done: a progress bar where there is a terminal, and rich is installed."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
    except ImportError:
        wanted = False
    if not wanted or not (console := Console(stderr=True)).is_terminal:
        yield lambda rows: None
        return
    with Progress("rows", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("rows", total=total)
        yield lambda rows: progress.advance(task, rows)
