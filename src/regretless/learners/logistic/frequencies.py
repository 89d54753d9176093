r"""The member that forecasts the label frequencies so far, :math:`p_k = (n_k + 1)/(n + K)`, whatever the row is.

This is Laplace's rule, the mean of p under the uniform belief over distributions. Since it is in the mixture, rare
labels, or rows that tell nothing, cost little more than the frequencies themselves would.
"""

from __future__ import annotations

import math

from regretless.core.kernels.jit import kernel
from regretless.core.types import Array


@kernel
def run(counts: Array, Y: Array, weight: Array, out: Array) -> None:
    """Play a block; `out` holds the logits forecast, ln(n_k + 1), and `counts` the n_k."""
    for t in range(Y.shape[0]):
        for k in range(counts.size):
            out[t, k] = math.log(counts[k] + 1.0)
            counts[k] += weight[t] * Y[t, k]


@kernel
def forecast_block(counts: Array, out: Array) -> None:
    """The logits of a block, all from the same counts."""
    for t in range(out.shape[0]):
        for k in range(counts.size):
            out[t, k] = math.log(counts[k] + 1.0)
