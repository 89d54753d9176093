"""Borrowed arrays: what kernels write into them stays, and they are freed by their owner."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import regretless
from regretless.core.kernels.borrow import borrowed, keep
from regretless.core.kernels.jit import inlined_kernel, kernel


class Pair(NamedTuple):
    sums: Any
    table: Any
    n: int


@inlined_kernel
def count(sums: Any, table: Any, x: float) -> None:
    row = 1 if x > 0.0 else 0
    sums[0] += x
    table[row, 0] += 1.0
    table[row, 1] += x


@kernel
def each(pair: Pair, X: Any) -> None:
    pair = borrowed(pair)
    for t in range(X.size):
        count(pair.sums, pair.table, X[t])


@kernel
def together(pair: Pair, X: Any) -> None:
    pair, X = borrowed((pair, X))
    for t in range(X.size):
        count(pair.sums, pair.table, X[t])


@kernel
def parts(pair: Pair, X: Any) -> None:
    sums, table = borrowed((pair.sums, pair.table))
    for t in range(X.size):
        count(sums, table, X[t])


@kernel
def own_array(pair: Pair, X: Any) -> None:
    own = np.zeros((2, X.size))
    lent = borrowed(own)
    for t in range(X.size):
        lent[0, t] = X[t]
    for t in range(X.size):
        count(pair.sums, pair.table, lent[0, t])
    keep(own)


@pytest.mark.parametrize("play", [each, together, parts, own_array], ids=lambda play: play.__name__)
def test_writes_stay(play: Any) -> None:
    X = np.array([1.0, -2.0, 3.0, 0.5])
    pair = Pair(np.zeros(1), np.zeros((2, 2)), 4)
    play(pair, X)
    assert pair.sums[0] == 2.5
    assert pair.table.tolist() == [[1.0, -2.0], [3.0, 4.5]]


def test_no_overload_is_inlined_by_numba() -> None:
    """After such an inlining, Numba removes writes that it believes nobody reads."""
    package = Path(regretless.__file__).parent
    for path in package.rglob("*.py"):
        assert not re.search(r"@overload\(.*inline=", path.read_text()), path
