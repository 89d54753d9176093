"""Logits of linear weights, which the Newton and AdaGrad members share.

Weights are (K, d), one row per class. Two classes have opposite weights, so those of the margin are stored alone, as
(1, d).
"""

from __future__ import annotations

from regretless.core.jit import kernel
from regretless.core.types import Array


@kernel
def forecast_row(w: Array, X: Array, t: int, out: Array) -> None:
    """Write the logits of row t into `out[t]`."""
    C, d = w.shape
    for k in range(C):
        score = 0.0
        for j in range(d):
            score += w[k, j] * X[t, j]
        out[t, k] = score
    if C == 1:
        score = out[t, 0]
        out[t, 0], out[t, 1] = -0.5 * score, 0.5 * score


@kernel
def forecast_block(w: Array, X: Array, out: Array) -> None:
    """Write the logits of a block of rows, all from the same weights."""
    for t in range(X.shape[0]):
        forecast_row(w, X, t, out)
