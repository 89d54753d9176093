"""Logits of linear weights, which the Newton and AdaGrad members share.

Weights are (K, d), one row per class. Two classes have opposite weights, so those of the margin are stored alone, as
(1, d).
"""

from __future__ import annotations

from regretless.core.kernels.jit import kernel, merged_kernel, summing_kernel
from regretless.core.types import Array


@summing_kernel
def score(w: Array, k: int, X: Array, t: int) -> float:
    """The product of row k of the weights and row t."""
    found = 0.0
    for j in range(w.shape[1]):
        found += w[k, j] * X[t, j]
    return found


@merged_kernel
def forecast_row(w: Array, X: Array, t: int, out: Array) -> None:
    """Write the logits of row t into `out[t]`."""
    if w.shape[0] == 1:
        half = 0.5 * score(w, 0, X, t)
        out[t, 0], out[t, 1] = -half, half
        return
    for k in range(w.shape[0]):
        out[t, k] = score(w, k, X, t)


@kernel
def forecast_block(w: Array, X: Array, out: Array) -> None:
    """Write the logits of a block of rows, all from the same weights."""
    for t in range(X.shape[0]):
        forecast_row(w, X, t, out)
