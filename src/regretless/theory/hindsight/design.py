"""The rows of a problem: forecasts, gradients and Hessians of linear models, with bounds on their rounding errors.

Weights are w (d,), with one forecast per row, or W (K, d), with K. Forecasts are (n,) or (K, n), class by class, so
that sums over classes are sums of long arrays. Slopes and curvatures have the shape of the forecasts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from regretless.core.kernels.jit import exact_kernel
from regretless.core.rows.compressed import SparseRows, parts
from regretless.core.types import Array

UNIT = 2.0**-53  # the largest relative error of one rounding
CHUNK = 2048  # rows per product: they stay in the cache, and a sum of that many terms loses few digits
SPLIT = 2.0**27 + 1  # splits a number into two halves of its digits
SUM = 64 * UNIT  # error of NumPy's sum, relative to the sum of absolute values: blocks of 128 terms, then pairwise
FEW = 10_000  # terms that can be summed exactly at little cost


def summed(*terms: Array) -> tuple[float, float]:
    """The sum of computed numbers, each with an error of up to 2 UNIT, and a bound on its error."""
    sizes = sum(float(np.abs(each).sum()) for each in terms)
    if sum(each.size for each in terms) <= FEW:
        return math.fsum(x for each in terms for x in each.ravel().tolist()), 3 * UNIT * sizes
    return sum(float(each.sum()) for each in terms), SUM * sizes


class Design:
    """The rows X, dense or CSR, for weights with `n_classes` rows (0: a vector of weights)."""

    def __init__(self, X: Any, n_classes: int = 0) -> None:
        self.X = X
        self.n, self.d = X.shape
        self.n_classes = n_classes
        self.shape = (n_classes, self.d) if n_classes else (self.d,)
        self.size = math.prod(self.shape)
        self.forecast_shape = (n_classes, self.n) if n_classes else (self.n,)

    def take(self, rows: Any) -> Design:
        """The same for some of the rows."""
        return Design(self.X[rows], self.n_classes)

    def forecasts(self, w: Array) -> Array:
        """X w, or W X'."""
        return np.ascontiguousarray((self.X @ w.T).T) if self.n_classes else np.asarray(self.X @ w)

    def pull(self, slopes: Array) -> Array:
        """The gradient in the weights, X' a: a sum over the rows, in chunks (see `rounding`)."""
        total = np.zeros(self.shape)
        for rows, X in self._chunks:
            total += slopes[..., rows] @ X
        return total

    def rounding(self, slopes: Array, uncertainty: Array) -> Array:
        """A bound on the distance of `pull(slopes)` from the exact gradient, if the slopes have errors `uncertainty`.

        A product of m terms has an error of at most m UNIT times the sum of their absolute values, and by
        Cauchy-Schwarz that sum is at most |column| |slopes|.
        """
        terms = min(self.n, CHUNK) + self.n / CHUNK + 4
        off = terms * UNIT * np.linalg.norm(slopes, axis=-1) + np.linalg.norm(uncertainty, axis=-1)
        return 1.01 * np.multiply.outer(off, self.column_norms)

    def pull_exactly(self, slopes: Array, uncertainty: Array) -> tuple[Array, Array]:
        """`pull` in double-double precision, with a bound on its error: slower and much more precise."""
        X = SparseRows.of(self.X) if sparse.issparse(self.X) else self.X
        table = np.ascontiguousarray(slopes.reshape(-1, self.n).T)
        high, low = np.zeros((2, table.shape[1], self.d))
        for rows, entries in parts(X):
            pull_twice(*entries, table[rows], high, low)
        g = (high + low).reshape(self.shape)
        lost = 4 * (4 * self.n * UNIT) ** 2 * np.linalg.norm(slopes, axis=-1) + np.linalg.norm(uncertainty, axis=-1)
        return g, 2 * UNIT * np.abs(g) + 1.01 * np.multiply.outer(lost, self.column_norms)

    def forecast_error(self, w: Array) -> float:
        """A bound on the error of a computed forecast."""
        rows = w.reshape(-1, self.d)
        return (self.d + 4) * UNIT * self.largest_row * float(np.linalg.norm(rows, axis=1).max())

    def gram(self, curvature: Array) -> Array:
        """The Hessian in the (flattened) weights.

        One forecast per row: X' diag(h) X. K forecasts per row: the sum of (diag(h) - h h'/sum(h)) (x) x x', which is
        the sum over pairs of classes of h_j h_k/sum(h) times the square of (e_j - e_k) (x) x. No term is negative.
        """
        if not self.n_classes:
            return self._gram(curvature)
        K, d = self.n_classes, self.shape[-1]
        total = curvature.sum(axis=0)
        share = curvature / np.where(total > 0, total, 1.0)
        H = np.zeros((K, d, K, d))
        for j in range(K):
            for k in range(j):
                pair = self._gram(curvature[j] * share[k])
                H[j, :, j] += pair
                H[k, :, k] += pair
                H[j, :, k] -= pair
                H[k, :, j] -= pair
        return H.reshape(self.size, self.size)

    def _gram(self, h: Array) -> Array:
        root = np.sqrt(h)[:, None]
        H = np.zeros((self.d, self.d))
        for rows, X in self._dense_chunks():
            scaled = X * root[rows]
            H += scaled.T @ scaled
        return H

    @cached_property
    def column_norms(self) -> Array:
        """The norm of each column of X, rounded up."""
        squares = np.zeros(self.d)
        for _, X in self._chunks:
            squares += _squares(X).sum(axis=0)
        return np.asarray(1.001 * np.sqrt(squares))

    @cached_property
    def largest_row(self) -> float:
        """The largest norm of a row, rounded up."""
        return 1.001 * self.largest_scaled_row(np.ones(self.d))

    def largest_scaled_row(self, scale: Array) -> float:
        """The largest norm of a row whose columns are multiplied by `scale`."""
        squares = (_squares(X) @ scale**2 for _, X in self._chunks)
        return math.sqrt(max((float(square.max()) for square in squares), default=0.0))

    @cached_property
    def _chunks(self) -> list[tuple[slice, Any]]:
        """The rows in chunks, without copies."""
        X, found = self.X, []
        for i in range(0, self.n, CHUNK):
            rows = slice(i, min(i + CHUNK, self.n))
            if sparse.issparse(X):
                first, last = X.indptr[rows.start], X.indptr[rows.stop]
                parts = X.data[first:last], X.indices[first:last], X.indptr[rows.start : rows.stop + 1] - first
                found.append((rows, sparse.csr_array(parts, shape=(rows.stop - rows.start, self.d))))
            else:
                found.append((rows, X[rows]))
        return found

    def _dense_chunks(self) -> Iterator[tuple[slice, Array]]:
        for rows, X in self._chunks:
            yield rows, X.toarray() if sparse.issparse(X) else X


@exact_kernel
def pull_twice(
    indptr: NDArray[np.int64], indices: NDArray[np.uint32], data: Array, slopes: Array, high: Array, low: Array
) -> None:
    """Add the gradient of a block to high + low. Each product and sum is kept together with its rounding error."""
    for t in range(indptr.size - 1):
        for k in range(slopes.shape[1]):
            a = slopes[t, k]
            if a == 0.0:
                continue
            c = SPLIT * a
            a_high = c - (c - a)
            a_low = a - a_high
            for i in range(indptr[t], indptr[t + 1]):
                x, j = data[i], indices[i]
                c = SPLIT * x
                x_high = c - (c - x)
                x_low = x - x_high
                product = a * x
                lost = a_low * x_low - (((product - a_high * x_high) - a_low * x_high) - a_high * x_low)
                total = high[k, j] + product
                part = total - high[k, j]
                low[k, j] += ((high[k, j] - (total - part)) + (product - part)) + lost
                high[k, j] = total


def _squares(X: Any) -> Any:
    return X.multiply(X).tocsr() if sparse.issparse(X) else X * X
