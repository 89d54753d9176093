"""One pass over a stream: every row is forecast before its label is used."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from regretless.core.progress import progress_bar
from regretless.evaluate.match import Match
from regretless.evaluate.players import number_of_rows, take
from regretless.evaluate.trace import Rows, Trace, Traces
from regretless.theory.domains import Domain

AT_ONCE = 16_384  # rows between two looks at the clock


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
    marks = checkpoints if isinstance(checkpoints, str) else list(checkpoints)
    matches = [
        Match(
            each,
            name=name,
            classes=classes,
            domain=domain,
            marks=marks,
            keep_forecasts=keep_forecasts,
            batch=batch,
        )
        for name, each in field.items()
    ]
    stream = Rows([], []) if hindsight else None
    if inspect.isroutine(X):
        if y is not None:
            raise ValueError("an adversary chooses the labels itself: leave y out.")
        traces = Traces({match.name: _play_adversary(match, X, hindsight) for match in matches})
    else:
        with progress_bar(progress, X.shape[0] if hasattr(X, "shape") else None) as bar:
            for rows, labels in _blocks(X, y, stream, matches):
                for match in matches:
                    match.feed(rows, labels)
                bar.advance(number_of_rows(labels))
                del rows, labels  # before the next block is made: one at a time is in memory
        traces = Traces({match.name: match.trace(stream) for match in matches})
    return next(iter(traces.values())) if single else traces


def _blocks(X: Any, y: Any, stream: Rows | None, matches: list[Match]) -> Iterator[tuple[Any, Any]]:
    """The stream in blocks of a length that bounds memory.

    What was given goes to `stream`, if any, and the labels of the first block given tell the players their classes.
    """
    met = 0
    for rows, labels in [(X, y)] if y is not None else X:
        rows = rows.tocsr() if sparse.issparse(rows) else rows
        labels = labels if hasattr(labels, "shape") else np.asarray(labels)
        if stream is not None:
            stream.X.append(rows)
            stream.y.append(labels)
        if met == 0:
            for match in matches:
                match.player.meet_classes(labels)
        n = labels.shape[0]
        met += n
        for i in range(0, n, AT_ONCE):
            some = slice(i, min(i + AT_ONCE, n))
            yield take(rows, some), take(labels, some)
        del rows, labels
    if met == 0:
        raise ValueError("the stream is empty: there is nothing to play.")


def _play_adversary(match: Match, start: Callable[[], Generator[Any, Any, Any]], hindsight: bool) -> Trace:
    stream = Rows([], [])
    adversary = start()
    for x in adversary:
        row = np.asarray(x, dtype=np.float64).reshape(1, -1)
        label = np.asarray([adversary.send(match.player.forecast(row))])
        if hindsight:
            stream.X.append(row)
            stream.y.append(label)
        match.feed(row, label)
    if match.rows == 0:
        raise ValueError("the adversary yielded no row: there is nothing to play.")
    return match.trace(stream if hindsight else None)
