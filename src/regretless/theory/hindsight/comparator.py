"""The best fixed model once all rows are known, with a certificate of how far from the best it can be."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from regretless.core.types import Array
from regretless.theory.domains import Ball, Domain
from regretless.theory.hindsight.certificate import Record
from regretless.theory.hindsight.problem import Game, game


class Comparator(NamedTuple):
    """Weights, their total loss, and a gap: no weights of the set have a total loss below `loss - gap`."""

    w: Array
    loss: float
    gap: float


def best_in_hindsight(
    X: Any,
    y: Any,
    loss: str = "log",
    domain: Domain = Ball(10.0),  # noqa: B008 (frozen)
    regularization: float = 0.0,
    sample_weight: Any = None,
    tol: float = 1e-9,
    *,
    classes: Any = None,
) -> Comparator:
    r"""The weights of least total loss on all rows, over a set: what regret is measured against.

    .. math:: \min_{w \in \Theta} \; \sum_t c_t\, \ell_t(w) + \lambda |w|^2

    The answer is certified: `loss - gap` is below the true minimum, rounding included, because it is the least value
    over the set of something that lies below every loss (tangents, or for piecewise linear losses a dual point). A
    solver stopped early would understate regret; with the gap, regret is an interval.

    Parameters
    ----------
    X, y : rows (dense or scipy sparse) and labels, label probabilities (n, K), or numbers.
    loss : "log" ("logistic" for two classes, else "softmax"), or a name of `regretless.losses`. Weights are (d,) for
        losses of two classes and of numbers, (K, d) for "softmax" and "multiclass hinge".
    domain : a set of `regretless.domains`.
    regularization : lambda.
    sample_weight : c, one a row.
    tol : the gap to reach, relative to the loss where that is above 1. A warning says if rounding, or the search,
        stopped before; the gap is honest all the same.
    classes : the labels, where y need not show all or in another order.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import best_in_hindsight
    >>> from regretless.theory.domains import Ball
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-X @ [1, -1, 2]))
    >>> best = best_in_hindsight(X, y, domain=Ball(5.0))
    >>> print(f"{best.loss:.4f}", best.gap < 1e-6, best.w.round(1))
    400.3002 True [ 1. -1.  2.]
    """
    played = game(X, y, loss, domain, regularization, sample_weight, classes)
    return _comparator(played, played.X.shape[0], tol, None)[0]


def hindsight_curve(
    X: Any,
    y: Any,
    checkpoints: str | Iterable[int] = "log",
    *,
    loss: str = "log",
    domain: Domain = Ball(10.0),  # noqa: B008 (frozen)
    regularization: float = 0.0,
    sample_weight: Any = None,
    tol: float = 1e-9,
    classes: Any = None,
) -> list[tuple[int, Comparator]]:
    """The best in hindsight of the first t rows, for every t of `checkpoints`; each search starts from the last answer.

    `checkpoints` are numbers of rows, or "log": ten a decade, and all rows. The other options are those of
    `best_in_hindsight`.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.ones((6, 1)), [0, 1, 1, 1, 0, 1]
    >>> for t, best in hindsight_curve(X, y, [2, 4, 6]):
    ...     print(t, f"{best.loss:.3f}")
    2 1.386
    4 2.249
    6 3.819
    """
    played = game(X, y, loss, domain, regularization, sample_weight, classes)
    curve, start = [], None
    for t in _marks(checkpoints, played.X.shape[0]):
        found, start = _comparator(played, t, tol, start)
        curve.append((t, found))
    return curve


def _marks(checkpoints: str | Iterable[int], n: int) -> list[int]:
    if isinstance(checkpoints, str):
        if checkpoints != "log":
            raise ValueError(f'checkpoints={checkpoints!r}: give "log" or numbers of rows.')
        decades = np.arange(0, 10 * np.log10(n) + 1e-9) / 10
        return sorted({*np.round(10**decades).astype(int).tolist(), n})
    marks = [int(t) for t in checkpoints]
    if not all(1 <= t <= n for t in marks):
        raise ValueError(f"checkpoints={marks}: there are {n} rows.")
    return sorted(set(marks))


def _comparator(played: Game, n: int, tol: float, start: Array | None) -> tuple[Comparator, Array]:
    record: Record = played.solve(n, tol, start)
    if not record.done:
        warnings.warn(
            f"the gap to the best in hindsight is {record.gap:.3g}, above tol={tol:.3g} for a loss of "
            f"{record.loss:.6g}. It is a valid bound all the same.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return Comparator(record.w, record.loss, record.gap), record.w
