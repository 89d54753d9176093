"""The best fixed model once all rows are known, with a certified gap to the optimum."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from regretless.core.scikit_learn import ConvergenceWarning
from regretless.core.types import Array
from regretless.theory.domains import Ball, Domain
from regretless.theory.hindsight.certificate import Record
from regretless.theory.hindsight.problem import Game, game
from regretless.theory.losses import Custom


class Comparator(NamedTuple):
    """Weights, their total loss, and a gap: no weights of the set have a total loss below `loss - gap`."""

    w: Array
    loss: float
    gap: float


def best_in_hindsight(
    X: Any,
    y: Any,
    loss: str | Custom = "log",
    domain: Domain = Ball(10.0),  # noqa: B008 (frozen)
    regularization: float = 0.0,
    sample_weight: Any = None,
    tol: float = 1e-9,
    *,
    classes: Any = None,
) -> Comparator:
    r"""The weights of smallest total loss on all rows, over a set: the comparator of regret.

    .. math:: \min_{w \in \Theta} \; \sum_t c_t\, \ell_t(w) + \lambda |w|^2

    The answer is certified: `loss - gap` is below the true minimum, rounding included, because it is the minimum over
    the set of a function that lies below every loss (tangents, or for piecewise linear losses a dual point). Without
    the gap, a solver that stops early would understate regret; with it, regret is an interval. One limit: where columns
    depend on others up to rounding, no bound holds over the whole space, because absurdly large weights could fit the
    columns' rounding errors. For the squared loss the gap is then for weights that use no column for more than 10,000
    times the targets, :math:`|w_j|\,|X_{\cdot j}| \le 10^4 |y|` (or 10,000 times what the weights found use, if more).

    Parameters
    ----------
    X, y : rows (dense or scipy sparse) and labels, label probabilities (n, K), or numbers; for "squared" also vectors
        (n, m), with weights of shape (m, d).
    loss : "log" ("logistic" for two classes, else "softmax"), a name in `regretless.losses`, or a `losses.Custom`.
        Weights have shape (d,) for two-class and regression losses, (K, d) for "softmax" and "multiclass hinge".
    domain : a set from `regretless.domains`.
    regularization : lambda.
    sample_weight : c, one number per row.
    tol : the gap to reach, relative to the loss if that is above 1. If rounding or the iteration limit prevents it,
        there is a warning; the gap is valid in any case.
    classes : the labels, if y may lack some of them or their order matters.

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
    X, y, sample_weight, m = _one_number_per_row(X, y, loss, sample_weight)
    played = game(X, y, loss, domain, regularization, sample_weight, classes)
    return _in_rows(_comparator(played, played.X.shape[0], tol, None)[0], m)


def hindsight_curve(
    X: Any,
    y: Any,
    checkpoints: str | Iterable[int] = "log",
    *,
    loss: str | Custom = "log",
    domain: Domain = Ball(10.0),  # noqa: B008 (frozen)
    regularization: float = 0.0,
    sample_weight: Any = None,
    tol: float = 1e-9,
    classes: Any = None,
    told: Callable[[int], None] = lambda t: None,
) -> list[tuple[int, Comparator]]:
    """The best model in hindsight of the first t rows, for every t in `checkpoints`, each warm-started from the last.

    `checkpoints` are numbers of rows, or "log": ten per decade, and all rows. The other parameters are those of
    `best_in_hindsight`. `told` is called with each t when its model is found.

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
    X, y, sample_weight, m = _one_number_per_row(X, y, loss, sample_weight)
    played = game(X, y, loss, domain, regularization, sample_weight, classes)
    curve, start = [], None
    for t in _marks(checkpoints, played.X.shape[0] // m):
        found, start = _comparator(played, m * t, tol, start)
        curve.append((t, _in_rows(found, m)))
        told(t)
    return curve


def _one_number_per_row(X: Any, y: Any, loss: Any, sample_weight: Any) -> tuple[Any, Any, Any, int]:
    """Targets of m numbers as m rows with one each: row (t, j) has x_t in the columns of the weights of number j."""
    if loss != "squared" or np.ndim(y) != 2 or np.shape(y)[1] == 1:
        return X, y, sample_weight, 1
    m = np.shape(y)[1]
    rows = sparse.kron(X, sparse.identity(m), format="csr")
    weight = None if sample_weight is None else np.repeat(np.broadcast_to(sample_weight, np.shape(y)[0]), m)
    return rows, np.reshape(y, -1), weight, m


def _in_rows(found: Comparator, m: int) -> Comparator:
    """The weights as one row per number of the targets."""
    return found if m == 1 else found._replace(w=np.ascontiguousarray(found.w.reshape(-1, m).T))


def _marks(checkpoints: str | Iterable[int], n: int) -> list[int]:
    if isinstance(checkpoints, str):
        if checkpoints != "log":
            raise ValueError(f'checkpoints={checkpoints!r}: pass "log" or numbers of rows.')
        decades = np.arange(0, 10 * np.log10(n) + 1e-9) / 10
        return sorted({*np.round(10**decades).astype(int).tolist(), n})
    marks = [int(t) for t in checkpoints]
    if not all(1 <= t <= n for t in marks):
        raise ValueError(f"checkpoints={marks}: the stream has {n} rows.")
    return sorted(set(marks))


def _comparator(played: Game, n: int, tol: float, start: Array | None) -> tuple[Comparator, Array]:
    record: Record = played.solve(n, tol, start)
    if not record.done:
        warnings.warn(
            f"the gap to the best model in hindsight is {record.gap:.3g}, above tol={tol:.3g} for a loss of "
            f"{record.loss:.6g}. The gap is still a valid bound.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return Comparator(record.w, record.loss, record.gap), record.w
