r"""Lower bounds over the whole space, where a gradient that is not exactly 0 proves nothing without curvature.

Let H be the Hessian at w, mu its smallest eigenvalue, and let the forecasts (or their differences) of every row change
by at most r |v| when the weights change by v.

- Smooth losses with |f'''| <= (speed of the forecasts) f'' satisfy f(w + v) >= f(w) + g.v + (e^-rs + rs - 1)/r^2 with
  r in units of H, s = |v|_H, so that f >= f(w) - |g|^2/(2 mu (1 - a)) where a = r |g|/mu < 1.
- For piecewise linear losses take H from the weights alpha of the pieces (`Design.gram` of alpha). Then alpha can be
  changed, each by at most a times itself, so that the gradient of the tangents is exactly 0: a dual point, if a <= 1.
  Its offset differs by p.H^-1 g, where p is the change of the offset as the weights move along H.

Both need mu > 0. Columns that are linear combinations of others make it 0, but weights on them add nothing, so they can
be dropped if the combination is known to be exact. That is so if the other columns alone reach all forecasts. Otherwise
it is checked without rounding, for combinations with short binary fractions as coefficients: equal columns, zero
columns, sums of indicators. Columns that are nearly but not exactly dependent allow huge weights with a real gain, and
then there is no bound over all of the space. For the squared loss there is one over weights that are not absurd, which
use each column for at most FAR times the targets' length (`reachable`): such weights cannot use a difference between
columns that is only rounding.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigvalsh
from scipy.linalg.lapack import dpstrf

from regretless.core.types import Array
from regretless.theory.hindsight.design import CHUNK, UNIT, Design, summed
from regretless.theory.hindsight.smooth import Squared

FRACTION = 2.0**-10  # coefficients of exact combinations are multiples of this
LEAST = 1e-30  # entries below this have no half in single precision
MANY_ROWS = 10_000  # more rows than columns, if the columns are not too many
FAR = 1e4
LONGEST = 2.0**18  # at most this many rows: a product with half the digits of x is then exact


class Firm(NamedTuple):
    """How strongly the curvature bounds the weights: see `firmness`."""

    decrement: float  # |g|^2/mu
    ratio: float  # a
    shift: float  # |p.H^-1 g|


def firmness(
    design: Design,
    H: Array,
    g: Array,
    off: Array,
    live: Array,
    reach: float,
    ridge: float = 0.0,
    free: bool = True,
    flat: Array | None = None,
    pushed: tuple[Array, Array] | None = None,
) -> Firm | None:
    """The quantities in this module's bounds, with columns scaled so that H's diagonal is about 1.

    `live` marks the forecasts on which the function depends, and `free` says whether it depends on nothing else, except
    through constant slopes `flat`. `reach` is the speed of differences relative to |x| |v| (0: the curvature is
    constant), `off` the uncertainty of g, `ridge` the regularization's part of H, `pushed` p and its uncertainty.
    """
    size = design.size
    if design.n_classes and free:  # only differences matter: set the weights of the last class to 0
        size -= design.d
    H = H[:size, :size] + ridge * np.eye(size)
    gradient = np.abs(g).ravel()[:size] + off.ravel()[:size]
    diagonal = np.einsum("ii->i", H)
    scale = np.where(diagonal > 0, 2.0 ** -np.round(0.5 * np.log2(np.where(diagonal > 0, diagonal, 1.0))), 1.0)
    scaled = H * np.multiply.outer(scale, scale)
    if not np.isfinite(scaled).all():
        return None
    terms = min(design.n, CHUNK) + design.n / CHUNK + design.n_classes + 32
    doubt = size * UNIT * (4 * terms + 16 * size)  # error of the entries, as a matrix norm, and of the eigenvalues
    kept = _independent(scaled, 4 * doubt)
    if kept.size < size and not (free and _rest_depends(design, scaled, scale, kept, live, flat)):
        return None
    if kept.size == 0:
        return Firm(0.0, 0.0, 0.0)
    mu = float(eigvalsh(scaled[np.ix_(kept, kept)], subset_by_index=[0, 0])[0]) - doubt
    if mu <= 0:
        return None
    square = float(((gradient * scale)[kept] ** 2).sum()) * (1 + 4 * size * UNIT)
    columns = np.zeros(design.size)
    columns[kept] = scale[kept]
    fastest = reach * 1.001 * design.largest_scaled_row(columns.reshape(-1, design.d).max(axis=0))
    shift = 0.0
    if pushed is not None:
        p, p_off = ((each.ravel()[:size] * scale)[kept] for each in pushed)
        M = scaled[np.ix_(kept, kept)]
        solved = cho_solve(cho_factor(M, lower=True), p)
        length = float(np.linalg.norm(solved))
        left = float(np.linalg.norm(p - M @ solved)) + float(np.linalg.norm(p_off)) + 4 * doubt * length
        shift = 1.01 * math.sqrt(square) * (length + left / mu)
    return Firm(square / mu, fastest * math.sqrt(square) / mu, shift)


def reachable(design: Design, loss: Squared, slopes: Array, w: Array) -> float:
    """The bound for the squared loss over all weights that use no column for more than FAR times the targets' length.

    Or FAR times the largest use of a column by w, if that is more.

    The tangents are those with exactly these slopes, whatever their rounding errors, which would be multiplied by FAR.
    """
    y, c = loss.y, loss.weight
    offset, lost = summed(-slopes * y, -slopes * (0.25 * slopes / c))
    g, off = design.pull_exactly(slopes, np.zeros_like(slopes))
    lengths = design.column_norms
    use = max(float(np.linalg.norm(y)), float((np.abs(w) * lengths).max()))
    most = FAR * use / np.where(lengths > 0, lengths, math.inf)
    return offset - lost - 1.01 * float(((np.abs(g) + off) * most).sum())


def _independent(scaled: Array, tolerance: float) -> NDArray[np.intp]:
    """Columns whose Gram matrix is safely positive definite, by Cholesky decomposition with pivoting."""
    _, pivots, rank, _ = dpstrf(scaled, tol=tolerance, lower=1)
    return np.sort(pivots[:rank].astype(np.intp) - 1)


def _rest_depends(
    design: Design, scaled: Array, scale: Array, kept: NDArray[np.intp], live: Array, flat: Array | None
) -> bool:
    """Whether every other column is exactly a combination of those kept, where the function depends on it."""
    steep = np.zeros(0, dtype=np.intp) if flat is None else np.flatnonzero(flat)
    if kept.size == _directions(design, live, kept.size) and not steep.size:
        return True  # the kept columns already reach all forecasts
    rest = np.setdiff1d(np.arange(scale.size), kept)
    M = np.zeros((kept.size, rest.size))
    if kept.size:
        try:
            factor = cho_factor(scaled[np.ix_(kept, kept)], lower=True)
        except LinAlgError:
            return False
        M = cho_solve(factor, scaled[np.ix_(kept, rest)]) * np.divide.outer(scale[kept], scale[rest])
    nice = np.round(M / FRACTION) * FRACTION
    if np.any(np.abs(nice) >= LONGEST * FRACTION) or np.any(np.abs(M - nice) > 1e-3 * FRACTION * (1 + np.abs(nice))):
        return False
    for at, j in enumerate(rest):
        v = np.zeros(design.size)
        v[j] = 1.0
        v[kept] = -nice[:, at]
        if not _unseen(design, v.reshape(-1, design.d), live):
            return False
        if flat is not None and not _balanced(design, v, steep, flat):
            return False
    return True


def _directions(design: Design, live: Array, least: int) -> int:
    """The rank of the relevant forecasts: at least `least`, or enough."""
    rows = np.flatnonzero(live if live.ndim == 1 else live.sum(axis=0) > 1)
    if rows.size > MANY_ROWS:
        return least + 1
    X = design.X[rows]
    X = X.toarray() if sparse.issparse(X) else X
    X, which = X[X.any(axis=1)], rows[X.any(axis=1)]
    if live.ndim == 1:
        return len(np.unique(X, axis=0))
    distinct = np.unique(np.hstack([X, live[:, which].T]), axis=0)
    return int(distinct[:, design.d :].sum()) - len(distinct)


def _unseen(design: Design, V: Array, live: Array) -> bool:
    """Whether changing the weights by V changes no relevant forecast, in exact arithmetic."""
    columns = np.flatnonzero(V.any(axis=0))
    V = V[:, columns]
    X = design.X[:, columns]
    entries = np.abs(X.data if sparse.issparse(X) else X)
    if np.any((entries > 0) & (entries < LEAST)):
        return False
    if live.ndim == 1:
        return all(_is_zero(row * V[0]) for row in _halves(X[np.flatnonzero(live)]))
    return all(
        _is_zero(row * (V[k] - V[classes[0]]))
        for row, classes in ((row, np.flatnonzero(seen)) for row, seen in zip(_halves(X), live.T, strict=True))
        for k in classes[1:]
    )


def _balanced(design: Design, v: Array, rows: NDArray[np.intp], flat: Array) -> bool:
    """Whether changing the weights by v changes the sum of these rows' constant slopes times forecasts by exactly 0."""
    if rows.size > MANY_ROWS:
        return False
    columns = np.flatnonzero(v)
    X = design.X[rows][:, columns]
    table = (X.toarray() if sparse.issparse(X) else X).tolist()
    exact = [Fraction(a) for a in v[columns].tolist()]
    moves = (sum(a * Fraction(x) for a, x in zip(exact, row, strict=True) if x) for row in table)
    return sum(Fraction(a) * move for a, move in zip(flat[rows].tolist(), moves, strict=True)) == 0


def _halves(X: Array | sparse.csr_array) -> NDArray[np.float64]:
    """Each row as the sum of two rows whose entries have at most 29 significant digits, (n, 2, d)."""
    dense: Any = X.toarray() if sparse.issparse(X) else X  # type: ignore[union-attr]
    with np.errstate(over="ignore", under="ignore"):
        high = dense.astype(np.float32).astype(np.float64)
    return np.stack([high, dense - high], axis=1)


def _is_zero(products: Array) -> bool:
    """Whether numbers sum to 0 exactly."""
    return bool(math.fsum(products.ravel()) == 0.0)
