"""play: one pass over a stream. Every row is forecast before its label is used."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, overload

import numpy as np
from scipy import sparse

from regretless.core.progress import progress_bar
from regretless.evaluate.match import Match
from regretless.evaluate.players import number_of_rows, take
from regretless.evaluate.trace import Rows, Trace, Traces
from regretless.theory.domains import Domain

AT_ONCE = 16_384  # rows per block: bounds the memory


@overload
def play(
    learners: Mapping[str, Any],
    X: Any,
    y: Any = ...,
    *,
    classes: Any = ...,
    domain: Domain | None = ...,
    checkpoints: str | Iterable[int] = ...,
    keep_forecasts: bool = ...,
    hindsight: bool = ...,
    batch: int = ...,
    progress: bool = ...,
) -> Traces: ...


@overload
def play(
    learners: Any,
    X: Any,
    y: Any = ...,
    *,
    classes: Any = ...,
    domain: Domain | None = ...,
    checkpoints: str | Iterable[int] = ...,
    keep_forecasts: bool = ...,
    hindsight: bool = ...,
    batch: int = ...,
    progress: bool = ...,
) -> Trace: ...


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
    """Evaluate one or more learners on a stream: every row is forecast before its label is used.

    Parameters
    ----------
    learners : a learner, or a dictionary of names and learners. Besides the learners of this library: objects with
        `learn_one` and `predict_proba_one` (or `predict_one`) that accept a row as a dictionary, as in River, and
        scikit-learn estimators with `partial_fit`. Learners are updated in place and keep what they have learned before
        (certificates cover all rows of a learner, so a learner that has learned rows before has none here).
    X, y : rows and labels; or X an iterable of blocks `(X, y)`; or X a function that starts an adversary: a generator
        that yields a row, receives the forecast, and then yields the label (`forecast = yield x`, then `yield y`). Each
        learner plays against its own adversary; the forecast is None until the learner knows its classes.
    classes : the labels; needed if the first block may not contain all of them.
    domain : the set of comparators for the regret; None means the learner's own. For a learner that competes with all
        weights, pass a ball: certificate and bound then hold for its radius. For a learner of another library, any set.
    checkpoints : when to record the scores: "log" (ten per decade, and the end), or numbers of rows.
    keep_forecasts : whether the trace keeps every forecast. If not, its size does not grow with the stream.
    hindsight : whether to keep the rows (without copying them), so that the trace can compute the best comparators and
        the regret. It does so on first access.
    batch : rows per call of a scikit-learn estimator; all of them are forecast before any is learned.
    progress : whether to show a progress bar. It appears in a terminal if rich is installed.

    Returns
    -------
    A `Trace` for one learner, `Traces` by name for several.

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
        raise ValueError("learners is empty: pass at least one learner.")
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise ValueError(f"batch={batch!r} must be a positive integer.")
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
            raise ValueError("y was passed with an adversary, which chooses the labels itself: omit y.")
        traces = Traces({match.name: _play_adversary(match, X, hindsight) for match in matches})
    else:
        with progress_bar(progress, X.shape[0] if hasattr(X, "shape") else None) as bar:
            for rows, labels in _blocks(X, y, stream, matches):
                for match in matches:
                    match.feed(rows, labels)
                bar.advance(number_of_rows(labels))
                del rows, labels  # before the next block is read: only one block is in memory
        traces = Traces({match.name: match.trace(stream) for match in matches})
    return next(iter(traces.values())) if single else traces


def _blocks(X: Any, y: Any, stream: Rows | None, matches: list[Match]) -> Iterator[tuple[Any, Any]]:
    """Cut the stream into blocks that bound the memory.

    Appends the blocks of the input to `stream`, if it is not None. Players get their classes from the labels of the
    first block.
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
        raise ValueError("the stream is empty: pass at least one row.")


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
        raise ValueError("the adversary yielded no row: it must yield at least one.")
    return match.trace(stream if hindsight else None)
