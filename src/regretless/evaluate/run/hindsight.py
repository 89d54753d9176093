"""The best model in hindsight of a run: its rows are read a second time, if they are not too many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from regretless.evaluate.players import take
from regretless.evaluate.run.run import Run
from regretless.evaluate.trace import Interval, Rows, Trace

Tell = Callable[[str, int, int | None], None]  # called with what is computed, how much is done, and of how much

WIDEST = 10_000  # most columns of sparse rows for which comparators are computed
OF_WEIGHT_1 = "comparators need rows of weight 1, no rows skipped by the learner, and a learner without earlier rows"
CURVE, END = 3_000_000, 60_000_000  # most numbers for comparators at every line of the trace, or only at its end
WORDS = "best model in hindsight"


def trace_of(run: Run, tell: Tell, wanted: bool = True) -> tuple[Trace, Interval | None, str]:
    """The trace of the run, and its regret at the end, or the reason why it is not known.

    Only shorter runs have the regret at every line of the trace.
    """
    why = _no_comparator(run) if wanted else "it was not asked for (--no-hindsight)"
    size = 0 if why else run.match.rows * _width(run)
    if size > END:
        why = f"{run.match.rows:,} rows of {size // run.match.rows:,} numbers are too many to compute it"
    X, y = (None, None) if why else _rows_again(run, tell)
    if X is None:
        return run.match.trace(), None, why or OF_WEIGHT_1
    trace = run.match.trace(Rows([X], [y]), lambda done, total: tell(WORDS, done, total))
    if size <= CURVE:
        return trace, trace.regret[-1], ""
    return run.match.trace(), replace(trace, checkpoints=trace.checkpoints[-1:]).regret[-1], ""


def _no_comparator(run: Run) -> str:
    """The reason why there is no comparator, if known without reading the rows; else an empty string."""
    settings, learner = run.settings, run.learner
    if learner.competes_with is None:
        return f"{type(learner).__name__} does not declare a fixed set of comparators"
    if len(getattr(learner, "classes_", (0, 1))) < 2:
        return "all rows have the same label, and comparators need at least two classes"
    if settings.source == "-":
        return "standard input cannot be read a second time"
    if settings.weight is not None or run.bad_of_learner or Path(settings.model).is_file():
        return OF_WEIGHT_1
    if isinstance(run.columns, int) and run.columns > WIDEST:
        return f"{run.columns:,} columns are too many to compute it"
    return ""


def _width(run: Run) -> int:
    """Numbers per row in the computation of a comparator: categories count as many times as they have columns."""
    first = take(run.rows(next(iter(run.read())).X), slice(0, 1))
    classes = len(getattr(run.learner, "classes_", ()))
    return int(run.match.player.for_comparators(first).shape[1]) * max(classes - 1, 1)


def _rows_again(run: Run, tell: Tell) -> tuple[Any, Any]:
    """All rows and labels of a run; None if some row has another weight than 1."""
    import numpy as np
    from scipy import sparse

    rows, labels, n = [], [], 0
    for block in run.read_again():
        if block.weight is not None and (block.weight != 1.0).any():
            return None, None
        rows.append(run.rows(block.X))
        labels.append(np.asarray(run.targets(block.y)))
        n += len(labels[-1])
        tell("reading the rows again", n, run.match.rows)
    y = np.concatenate(labels)
    if hasattr(rows[0], "column_names"):
        import pyarrow as pa

        return pa.concat_tables(rows), y
    return (sparse.vstack(rows).tocsr() if sparse.issparse(rows[0]) else np.concatenate(rows)), y
