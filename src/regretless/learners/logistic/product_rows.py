"""Rows of products, on which a linear member learns how two columns act together.

A product row has, in this order, the products of pairs of rescaled columns (squares are among them), the rescaled row
and the intercept. If there are too many pairs for the row's size, a random sample of them is used.
"""

from __future__ import annotations

import numpy as np

from regretless.core.kernels.jit import kernel
from regretless.core.types import Array

SEED = 0


def width(n_pairs: int, n_columns: int, intercept: bool) -> int:
    """The number of columns of a product row."""
    return n_pairs + n_columns + intercept


def all_pairs(n_columns: int) -> int:
    """How many pairs so many columns have, each with itself included."""
    return n_columns * (n_columns + 1) // 2


def choose_pairs(n_pairs: int, n_columns: int, known: Array) -> Array:
    """So many pairs (n_pairs, 2) of columns: those known, as far as there is room for them, then random others."""
    kept = known[:n_pairs]
    if len(kept) == n_pairs:
        return kept
    first, second = np.tril_indices(n_columns)
    new = ~np.isin(first * n_columns + second, kept @ np.array([n_columns, 1]))
    others = np.column_stack([first[new], second[new]])
    drawn = np.sort(np.random.default_rng(SEED).permutation(len(others))[: n_pairs - len(kept)])
    return np.concatenate([kept, others[drawn]])


@kernel
def product_rows(pairs: Array, rows: Array, out: Array) -> None:
    """Write the product rows of a block of rescaled rows; `pairs` (n, 2) holds integers."""
    n = pairs.shape[0]
    for t in range(rows.shape[0]):
        for i in range(n):
            out[t, i] = rows[t, int(pairs[i, 0])] * rows[t, int(pairs[i, 1])]
        for j in range(rows.shape[1]):
            out[t, n + j] = rows[t, j]
