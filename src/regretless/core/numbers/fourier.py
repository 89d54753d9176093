"""Random Fourier features: cosines and sines along random directions, which approximate the Gaussian kernel."""

from __future__ import annotations

import math

from regretless.core.kernels.jit import kernel, summing_kernel
from regretless.core.types import Array


@kernel
def fourier_row(frequencies: Array, X: Array, t: int, stretch: float, size: float, out: Array) -> None:
    """Write the features of row t to `out[t]`: m cosines of size `size`, then m sines.

    The angles are those of the row along the m frequencies, (m, d), times `stretch`.
    """
    m = frequencies.shape[0]
    for i in range(m):
        angle = stretch * along(frequencies, i, X, t)
        out[t, i] = size * math.cos(angle)
        out[t, m + i] = size * math.sin(angle)


@summing_kernel
def along(frequencies: Array, i: int, X: Array, t: int) -> float:
    """The product of frequency i and row t."""
    found = 0.0
    for j in range(frequencies.shape[1]):
        found += frequencies[i, j] * X[t, j]
    return found
