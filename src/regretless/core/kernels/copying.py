"""Copies of numbers inside kernels.

Numba compiles an assignment of arrays, `a[:] = b`, with an error for shapes that differ and the text of its message,
which takes seconds. These copies check nothing: shapes are equal.
"""

from __future__ import annotations

from regretless.core.kernels.jit import merged_kernel
from regretless.core.types import Array


@merged_kernel
def copy_line(source: Array, target: Array) -> None:
    """Copy a vector."""
    for i in range(target.size):
        target[i] = source[i]


@merged_kernel
def copy_lines(source: Array, target: Array) -> None:
    """Copy a matrix."""
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[i, j] = source[i, j]
