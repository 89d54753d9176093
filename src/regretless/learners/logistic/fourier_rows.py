r"""Rows of random Fourier features, on which a linear member learns smooth functions of all columns together.

Direction i has a normal frequency per column. The angle of a rescaled row z along it is
:math:`2^o b\,\omega_i \cdot z / s`, with :math:`s^2` the mean of :math:`|z|^2` over the rows so far, this one included:
so a bandwidth means the same for few columns and for many, and a column that appears later changes little. b is `BASE`
and o an octave: the cosines and sines of the next octave follow from those of the one before, by doubling the angles.

A Fourier row has, in this order, the cosines, the sines, the rescaled row if there is room for it, and the intercept.
"""

from __future__ import annotations

import math

import numpy as np

from regretless.core.kernels.jit import kernel
from regretless.core.numbers.fourier import fourier_row
from regretless.core.types import Array

BASE = 0.6
SEED = 0
STEEPEST = 40.0  # no normal number is larger
N_ROWS, SQUARES = range(2)  # of `spread`: the rows learned, and the sum of |z|^2


def frequencies(directions: int, n_columns: int) -> Array:
    """Normal numbers (directions, n_columns): the first columns are the same, whatever the number of columns."""
    drawn = np.random.default_rng(SEED).standard_normal((n_columns, directions))
    return np.ascontiguousarray(drawn.T)


def width(directions: int, n_columns: int, direct: bool, intercept: bool) -> int:
    """The number of columns of a Fourier row; `direct`: with the rescaled row."""
    return 2 * directions + direct * n_columns + intercept


@kernel
def fourier_rows(directions: Array, spread: Array, weight: Array, rows: Array, out: Array) -> None:
    """Write the Fourier rows of a block of rescaled rows, first octave. Rows of weight > 0 count in `spread`."""
    m, d = directions.shape
    intercept = rows.shape[1] - d
    for t in range(rows.shape[0]):
        square = 0.0
        for j in range(d):
            square += rows[t, j] * rows[t, j]
        mean = (spread[SQUARES] + square) / (spread[N_ROWS] + 1.0)
        fourier_row(directions, rows, t, BASE / math.sqrt(mean) if mean > 0.0 else 0.0, 1.0, out)
        for j in range(out.shape[1] - 2 * m):  # the rescaled row and the intercept, or the intercept alone
            out[t, 2 * m + j] = rows[t, d + intercept - (out.shape[1] - 2 * m) + j]
        if weight[t] != 0.0:
            spread[N_ROWS] += 1.0
            spread[SQUARES] += square


@kernel
def next_octave(m: int, out: Array) -> None:
    """Double the angles of the first 2 m features of a block."""
    for t in range(out.shape[0]):
        for i in range(m):
            cosine, sine = out[t, i], out[t, m + i]
            out[t, i] = 1.0 - 2.0 * sine * sine
            out[t, m + i] = 2.0 * sine * cosine
