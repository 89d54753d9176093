"""Random Fourier features: cosines and sines along random directions, which approximate the Gaussian kernel."""

from __future__ import annotations

import math

from regretless.core.jit import kernel
from regretless.core.types import Array


@kernel
def fourier_row(frequencies: Array, X: Array, t: int, stretch: float, size: float, out: Array) -> None:
    """Write the features of row t to `out[t]`: m cosines of size `size`, then m sines.

    The angles are those of the row along the m frequencies, (m, d), times `stretch`.
    """
    m, d = frequencies.shape
    for i in range(m):
        angle = 0.0
        for j in range(d):
            angle += frequencies[i, j] * X[t, j]
        out[t, i] = size * math.cos(stretch * angle)
        out[t, m + i] = size * math.sin(stretch * angle)
