r"""Features in any unit: each is standardised online, from the values seen so far.

An entry x of a row becomes

.. math:: z = \mathrm{clip}_{\pm 4}\,\frac{x - \bar x}{s}, \qquad
          s^2 = \frac1c \left(\sum_{i \le c} (x_i - \bar x)^2 + \frac{c}{c+1}(x - \bar x)^2\right),

with the mean and the sum over the c values learned before. The second term is that of x itself. The row is known when
it is forecast and its label is not, so no label leaks; and the term keeps the first rows, and an outlier, within
:math:`|z| \le \sqrt{c+1}`. A column that never changed gives 0, and so does a missing value, which counts as the mean.
Multiplying a column by a number, or adding one to it, changes nothing but the rounding.

A rare value of a column of zeros and ones is many deviations from the mean: standardised, it moves a forecast as far as
an outlier does. So there is a second version of the row, in which a column that has had two values so far, x included,
is divided by half of their distance instead, :math:`z = 2(x - \bar x)/(b - a)`. It is the same where both are as
frequent. Columns of single categories that also have offsets (offsets.py) are 0 in it. The other columns are the same
in both versions.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from regretless.core.kernels.jit import apart_kernel, kernel, merged_kernel, shared_kernel
from regretless.core.numbers.deviations import LARGEST_SUM, LEAST, joined, standardised
from regretless.core.types import Array

LARGEST = 1e150  # the largest value of a feature: its square is finite
FARTHEST = 4.0  # standard deviations; on heavy-tailed columns clipping forecasts better than leaving rows as they are
# The rows of `moments` (6, d): values seen, their mean, the sum of squared deviations (core/numbers/deviations.py), the
# smaller and the larger of the first two values that differ, and whether there was a third.
COUNT, MEAN, SQUARE, LOW, HIGH, MORE = range(6)
MOMENTS = 6
STANDARDISED, RANGED = 0.0, 1.0  # the two versions of a row


@kernel
def blank(ranged: Array, blind: NDArray[np.int64]) -> None:
    """Set the columns that the second version of the rows lacks to 0."""
    for t in range(ranged.shape[0]):
        for i in range(blind.size):
            ranged[t, blind[i]] = 0.0


@shared_kernel
def rescale(moments: Array, X: Array, weight: Array, out: Array, ranged: Array) -> None:
    """Write the two versions of a block, whose columns beyond X become 1. Rows of weight 0 leave the moments unchanged.

    `out` is standardised; in `ranged`, columns of two values are divided by half of their distance.
    """
    d = X.shape[1]
    for t in range(X.shape[0]):
        learns = weight[t] != 0.0
        settled = rescale_settled(moments, X[t], out[t], ranged[t])
        if learns:
            learn_settled(moments, X[t])
        if settled < d:
            for j in range(d):
                if not is_settled(moments, j, X[t, j]):
                    rescale_one(moments, j, X[t, j], learns, out[t], ranged[t])
        for j in range(d, out.shape[1]):
            out[t, j] = ranged[t, j] = 1.0


@merged_kernel
def is_settled(moments: Array, j: int, x: float) -> bool:
    """Whether x is a usual value of column j: nothing is remembered of it but its moments.

    The column has had values, and this one is not missing, nor the second or third that differs. The sum of squares is
    in its plain form, or 0 since x is all there has been.
    """
    count, square, more = moments[COUNT, j], moments[SQUARE, j], moments[MORE, j]
    known = (more != 0.0) | (x == moments[LOW, j]) | (x == moments[HIGH, j])
    return (count > 0.0) & known & ((square > 0.0) | ((square == 0.0) & (x == moments[MEAN, j]))) & (x == x)


@apart_kernel
def rescale_settled(moments: Array, row: Array, out: Array, ranged: Array) -> int:
    """`rescale_one` for all settled columns of a row, which learns nothing; returns how many there are.

    Without branches, eight columns are one: a row of 20 takes 40 ns instead of 440. Other columns get any number.
    """
    found = 0
    for j in range(row.size):
        x, count, square = row[j], moments[COUNT, j], moments[SQUARE, j]
        away = x - moments[MEAN, j]
        far = away * math.sqrt(count / max(grown_square(square, away, count), LEAST))
        out[j] = 0.0 if away == 0.0 else min(max(far, -FARTHEST), FARTHEST)
        low, high = moments[LOW, j], moments[HIGH, j]
        two = (moments[MORE, j] == 0.0) & (low < high)
        of_range = min(max(away / (high - low if two else 1.0), -1.0), 1.0) * 2.0
        ranged[j] = of_range if two else out[j]
        found += is_settled(moments, j, x)
    return found


@merged_kernel
def grown_square(square: float, away: float, count: float) -> float:
    """The sum of squared deviations of `count` values and one that is `away` from their mean."""
    return min(square + away * away * (count / (count + 1.0)), LARGEST_SUM)


@apart_kernel
def learn_settled(moments: Array, row: Array) -> None:
    """Update the moments of all settled columns: no other numbers of them change."""
    for j in range(row.size):
        x, count, square = row[j], moments[COUNT, j], moments[SQUARE, j]
        away = x - moments[MEAN, j]
        settled = is_settled(moments, j, x)
        moments[COUNT, j] = count + 1.0 if settled else count
        moments[MEAN, j] += away / (count + 1.0) if settled else 0.0
        moments[SQUARE, j] = grown_square(square, away, count) if settled else square


@kernel
def rescale_one(moments: Array, j: int, x: float, learns: bool, out: Array, ranged: Array) -> None:
    """Write column j of a row, and update its moments."""
    if math.isnan(x):
        out[j] = ranged[j] = 0.0
        return
    count = moments[COUNT, j]
    away = x - moments[MEAN, j]
    square = joined(moments[SQUARE, j], away, away, count / (count + 1.0))
    out[j] = min(max(standardised(square, away, count), -FARTHEST), FARTHEST)
    low, high, more = moments[LOW, j], moments[HIGH, j], moments[MORE, j]
    if count == 0.0:
        low = high = x
    elif low == high:
        low, high = min(low, x), max(high, x)
    elif x not in (low, high):
        more = 1.0
    ranged[j] = out[j]
    if more == 0.0 and low < high:
        ranged[j] = min(max(away / (high - low), -1.0), 1.0) * 2.0
    if learns:
        moments[COUNT, j] = count + 1.0
        moments[MEAN, j] += away / (count + 1.0)
        moments[SQUARE, j] = square
        moments[LOW, j], moments[HIGH, j], moments[MORE, j] = low, high, more
