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

from regretless.core.deviations import joined, standardised
from regretless.core.jit import kernel
from regretless.core.types import Array

LARGEST = 1e150  # the largest value of a feature: its square is finite
FARTHEST = 4.0  # standard deviations; on heavy-tailed columns clipping forecasts better than leaving rows as they are
# The rows of `moments` (6, d): values seen, their mean, the sum of squared deviations (as in core/deviations.py), the
# smaller and the larger of the first two values that differ, and whether there was a third.
COUNT, MEAN, SQUARE, LOW, HIGH, MORE = range(6)
MOMENTS = 6


@kernel
def blank(ranged: Array, blind: NDArray[np.int64]) -> None:
    """Set the columns that the second version of the rows lacks to 0."""
    for t in range(ranged.shape[0]):
        for i in range(blind.size):
            ranged[t, blind[i]] = 0.0


@kernel
def rescale(moments: Array, X: Array, weight: Array, out: Array, ranged: Array) -> None:
    """Write the two versions of a block, whose columns beyond X become 1. Rows of weight 0 leave the moments unchanged.

    `out` is standardised; in `ranged`, columns of two values are divided by half of their distance.
    """
    d = X.shape[1]
    for t in range(X.shape[0]):
        for j in range(d):
            x = X[t, j]
            if math.isnan(x):
                out[t, j] = ranged[t, j] = 0.0
                continue
            count = moments[COUNT, j]
            away = x - moments[MEAN, j]
            square = joined(moments[SQUARE, j], away, away, count / (count + 1.0))
            out[t, j] = min(max(standardised(square, away, count), -FARTHEST), FARTHEST)
            low, high, more = moments[LOW, j], moments[HIGH, j], moments[MORE, j]
            if count == 0.0:
                low = high = x
            elif low == high:
                low, high = min(low, x), max(high, x)
            elif x not in (low, high):
                more = 1.0
            ranged[t, j] = out[t, j]
            if more == 0.0 and low < high:
                ranged[t, j] = min(max(away / (high - low), -1.0), 1.0) * 2.0
            if weight[t] != 0.0:
                moments[COUNT, j] = count + 1.0
                moments[MEAN, j] += away / (count + 1.0)
                moments[SQUARE, j] = square
                moments[LOW, j], moments[HIGH, j], moments[MORE, j] = low, high, more
        for j in range(d, out.shape[1]):
            out[t, j] = ranged[t, j] = 1.0
