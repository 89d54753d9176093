r"""The largest curvature with which a quadratic lies below the log loss.

For logits :math:`a \in [-C, C]^K` and every :math:`b \in R^K`, with :math:`p = \mathrm{softmax}(b)`,

.. math:: \mathrm{lse}(a) \ge \mathrm{lse}(b) + p \cdot (a-b) + \kappa\,(a-b)^T(\mathrm{diag}\,p - pp^T)(a-b)

holds for every :math:`\kappa` up to a constant that depends only on :math:`L = 2C + \ln(K-1)`. The names:

============  ==========================  ==================================================================
name          kappa                       status
============  ==========================  ==================================================================
"sharp"       1 / (2 + W(e^(L-1)))        proved: the argument of GAF's Lemma 4 with the true supremum of
                                          X - EX, which is Lambert's W(e^(L-1))
"gaf"         1 / (ln K + 2 (C + 1))      GAF, Lemma 4
"aioli"       1 / (2 (1 + L)), K = 2      AIOLI, Lemma 5
"folklore"    1 / (C + ln(K) / 2)         FOLKLORE, Lemma 1: false (docs/errata.md); kept to reproduce the paper
a number      itself                      proved if it does not exceed "sharp"
============  ==========================  ==================================================================

Binary learners that work with the margin u = z_1 - z_0, |u| <= B|x|, are the case K = 2, C = B|x|/2.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from regretless.core.kernels.jit import inlined_kernel, kernel
from regretless.core.types import Array

NUMBER, SHARP, GAF, AIOLI, FOLKLORE = range(5)
NAMES = {"sharp": SHARP, "gaf": GAF, "aioli": AIOLI, "folklore": FOLKLORE}


def rule(curvature: str | float, n_classes: int) -> tuple[int, float]:
    """The pair (code, number) for the kernels; an error that lists the choices if `curvature` is invalid."""
    if isinstance(curvature, str):
        if curvature not in NAMES:
            raise ValueError(f"curvature={curvature!r} is unknown: choose one of {sorted(NAMES)} or a positive number.")
        if curvature == "aioli" and n_classes > 2:
            raise ValueError(
                f'curvature="aioli" is proved for two classes only, and there are {n_classes}: use "sharp" or "gaf".'
            )
        return NAMES[curvature], 0.0
    if isinstance(curvature, Real) and math.isfinite(curvature) and curvature > 0:
        return NUMBER, float(curvature)
    raise ValueError(f"curvature={curvature!r} must be one of {sorted(NAMES)} or a positive number.")


QUARTERS = 256  # intervals of length 1/4 in [0, 64), which contains nearly every L


def _pieces() -> Array:
    """1 / (2 + W(e^(L-1))) on each quarter, as a polynomial of degree 7 in s, which runs from -1 to 1 there.

    The function's singularities have distance pi from the real line, so the error is about (2 * 8 pi)^-8 = 2e-14.
    """
    s = np.cos((2.0 * np.arange(8) + 1.0) * math.pi / 16.0)  # Chebyshev's nodes
    L = (np.arange(QUARTERS)[:, None] + 0.5 + 0.5 * s) / 4.0
    w = np.maximum(L - 1.0, 0.3)
    for _ in range(20):
        w = w * (L - np.log(w)) / (1.0 + w)  # Newton's method for w + ln w = L - 1
    found: Array = np.linalg.solve(np.vander(s, increasing=True), 1.0 / (2.0 + w).T).T
    return np.ascontiguousarray(found)


PIECES = _pieces()


@kernel
def sharp(L: float) -> float:
    """1 / (2 + W(e^(L-1))) for L >= 0: the largest kappa that is proved.

    It is needed for every row, so it is tabulated: AIOLI takes 0.91 (d = 5) to 0.92 (d = 20) of the time per row that
    it takes with `lambert_of_exp`.
    """
    if not 0.0 <= L < 0.25 * QUARTERS:
        return 1.0 / (2.0 + lambert_of_exp(L - 1.0))
    k = int(4.0 * L)
    s = 8.0 * L - (2.0 * k + 1.0)
    s2 = s * s
    low = (PIECES[k, 0] + s * PIECES[k, 1]) + s2 * (PIECES[k, 2] + s * PIECES[k, 3])
    high = (PIECES[k, 4] + s * PIECES[k, 5]) + s2 * (PIECES[k, 6] + s * PIECES[k, 7])
    return low + s2 * s2 * high


@kernel
def lambert_of_exp(a: float) -> float:
    """W(e^a) for a >= -1: the root of w + ln w = a, to two units of the last place and without overflow.

    A guess good to 3e-4, then one fourth-order step of Fritsch, Shafer and Crowley (1973).
    """
    if a < 6.0:
        w = 0.56718 + a * (
            0.361952 + a * (0.0734944 + a * (-0.00147831 + a * (-0.00145855 + a * (0.000255444 - a * 1.42559e-05))))
        )
    elif a < 40.0:
        w = 0.0417567 + a * (0.639064 + a * (0.0213307 + a * (-0.000772619 + a * (1.46319e-05 + a * -1.10779e-07))))
    else:
        log_a = math.log(a)
        inverse = 1.0 / a
        w = a - log_a + log_a * inverse * (1.0 + 0.5 * (log_a - 2.0) * inverse)
    r = a - w - math.log(w)
    s = 2.0 * (1.0 + w + 2.0 / 3.0 * r)
    r /= 1.0 + w
    return w * (1.0 + r * (s - r) / (s - 2.0 * r))


@inlined_kernel
def kappa(code: int, number: float, C: float, K: int) -> float:
    """kappa of a row whose comparators have logits in [-C, C]^K."""
    L = 2.0 * C if K == 2 else 2.0 * C + math.log(K - 1.0)
    if code == SHARP:
        return sharp(L)
    if code == GAF:
        return 1.0 / (math.log(K) + 2.0 * (C + 1.0))
    if code == AIOLI:
        return 1.0 / (2.0 * (1.0 + L))
    if code == FOLKLORE:
        return 1.0 / (C + 0.5 * math.log(K))
    return number


@inlined_kernel
def kappa_of(constants: Any, size: float, logits_per_weight: float, K: int) -> float:
    """`kappa` of a row of norm `size`, from a learner's constants; a declared `feature_bound` replaces the norm."""
    bound = constants.feature_bound if constants.feature_bound > 0.0 else size
    return kappa(constants.code, constants.number, logits_per_weight * constants.radius * bound, K)


def proved(code: int, number: float, C: float, K: int) -> bool:
    """Whether the constant is proved for rows whose comparators have logits up to C."""
    if code == NUMBER:
        return number <= kappa(SHARP, 0.0, C, K)
    return code != FOLKLORE
