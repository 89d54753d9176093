"""Features that approximate a kernel: coordinates in the span of landmarks, or random cosines and sines."""

from __future__ import annotations

import math
from typing import Any

from regretless.core.kernels.jit import kernel
from regretless.core.numbers.fourier import fourier_row
from regretless.core.rows import validate
from regretless.core.types import Array
from regretless.learners.refitting.kernel_functions import RBF, Kernel
from regretless.learners.second_order.algebra import dot

APPROXIMATIONS = ("exact", "nystrom", "random-features")
DEFAULT_BUDGET = 100


def chosen_budget(approximation: str, budget: int | None, kernel: Kernel, name: Any) -> int:
    """The validated number of features, for the kernel given as `name`."""
    if approximation not in APPROXIMATIONS:
        raise ValueError(f"approximation={approximation!r} is unknown: choose one of {APPROXIMATIONS}.")
    n_features = validate.whole("budget", DEFAULT_BUDGET if budget is None else budget, 1)
    if approximation == "exact" and budget is not None:
        raise ValueError(
            f'budget={budget}: approximation="exact" has no budget. Use "nystrom" or "random-features", or None.'
        )
    if approximation == "random-features":
        if kernel.code != RBF:
            raise ValueError(f'approximation="random-features" needs kernel="rbf", not {name!r}: use "nystrom".')
        if n_features % 2:
            raise ValueError(
                f"budget={n_features}: random features are pairs of a cosine and a sine. Give an even number."
            )
    return int(n_features)


@kernel
def span(factor: Array, k: Array, phi: Array) -> float:
    """phi = the coordinates in the span of the landmarks of a row with kernel values k; returns their square."""
    n = k.size
    for i in range(n):
        phi[i] = (k[i] - dot(factor[i, :i], phi[:i])) / factor[i, i]
    return dot(phi[:n], phi[:n])


@kernel
def fourier(frequencies: Array, X: Array, features: Array) -> None:
    """Cosines and sines along the frequencies, of squares that sum to 1."""
    size = math.sqrt(1.0 / frequencies.shape[0])
    for t in range(X.shape[0]):
        fourier_row(frequencies, X, t, 1.0, size, features)


@kernel
def accumulate(moment: Array, features: Array, weight: Array) -> None:
    """The sum of phi phi^T over the rows of weight not 0."""
    for t in range(features.shape[0]):
        if weight[t] == 0.0:
            continue
        for i in range(moment.shape[0]):
            if features[t, i] != 0.0:
                for j in range(moment.shape[0]):
                    moment[i, j] += features[t, i] * features[t, j]
