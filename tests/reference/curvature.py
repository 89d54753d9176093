"""The constants kappa (docs/errata.md, docs/architecture.md), one row at a time."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq


def _lambert_of_exp(t: float) -> float:
    """W(e^t): the root w > 0 of w + ln w = t."""
    if t >= 1.0:  # at w = 1 the left side is 1 <= t, at w = t it is t + ln t >= t
        low, high = 1.0, t
    else:  # at w = e^{t-1} <= 1 the left side is <= 1 + (t - 1) = t, at w = 1 it is 1 > t
        low, high = math.exp(t - 1.0), 1.0
    if low == high:
        return low
    return float(brentq(lambda w: w + math.log(w) - t, low, high, xtol=1e-300, rtol=1e-15))


def curvature(choice: str | float, *, radius: float, norm: float, n_classes: int | None = None) -> float:
    """kappa of one row of norm ``norm`` against comparators in a ball of radius ``radius``.

    Multiclass: logits |z_k| <= C = radius * norm, L = 2 C + ln(K - 1). ``n_classes=None`` is the
    binary margin parametrisation, |u| <= L = radius * norm, i.e. C = L / 2 and K = 2.

    ==========  ==========================  =================================================
    "sharp"     1 / (2 + W(e^{L-1}))        W is Lambert's function
    "gaf"       1 / (ln K + 2 (C + 1))      GAF Lemma 4 (kappa = beta / 2)
    "aioli"     1 / (2 (1 + L))             AIOLI Lemma 5 (K = 2 only)
    "folklore"  1 / (C + ln(K) / 2)         FOLKLORE Lemma 1: not a lower bound (docs/errata.md)
    a number    itself
    ==========  ==========================  =================================================
    """
    if not isinstance(choice, str):
        return float(choice)
    if n_classes is None:
        K, C = 2, radius * norm / 2.0
    else:
        K, C = n_classes, radius * norm
    L = 2.0 * C + math.log(K - 1)
    if choice == "sharp":
        return 1.0 / (2.0 + _lambert_of_exp(L - 1.0))
    if choice == "gaf":
        return 1.0 / (math.log(K) + 2.0 * (C + 1.0))
    if choice == "aioli":
        if K != 2:
            raise ValueError("the curvature 'aioli' is defined for two classes only")
        return 1.0 / (2.0 * (1.0 + L))
    if choice == "folklore":
        return 1.0 / (C + math.log(K) / 2.0)
    raise ValueError(f"unknown curvature {choice!r}")


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(30)


def curvature_ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """KL(v||w) / (v (1 - v) (a - b)^2) for a = logit w, b = logit v.

    With F = ln(1 + e^u) the divergence is F(a) - F(b) - F'(b) (a - b), and v (1 - v) = F''(b).
    Close to a = b, where that difference cancels, it is written as the integral
    (a - b)^2 int_0^1 (1 - s) F''(b + s (a - b)) ds instead.
    """
    a, b = np.where(b > 0, -a, a), np.where(b > 0, -b, b)  # (a, b) -> (-a, -b) changes nothing
    gap = a - b
    v = np.exp(-np.logaddexp(0.0, -b))
    second = v * np.exp(-np.logaddexp(0.0, b))
    with np.errstate(divide="ignore", invalid="ignore"):
        far = (np.logaddexp(0.0, a) - np.logaddexp(0.0, b) - v * gap) / (second * gap**2)
        ratio = np.where(np.isfinite(far), far, np.inf)
        near = np.abs(gap) < 1.0
        s = (1.0 + _NODES) / 2.0
        u = b[near][:, None] + s * gap[near][:, None]
        inner = np.exp(-np.logaddexp(0.0, u) - np.logaddexp(0.0, -u))
        ratio[near] = (inner * (1.0 - s)) @ (_WEIGHTS / 2.0) / second[near]
    return ratio


def best_curvature(L: float) -> float:
    """inf over |a| <= L and all b of ``curvature_ratio(a, b)``: a grid, then ever finer grids.

    By the symmetry (a, b) -> (-a, -b), b <= 0 is enough; b is spaced finely near 0.
    """
    deepest = math.log1p(min(L, 600.0) + 2.0)
    box = np.array([[-L, L], [0.0, deepest]])  # a, and t with b = 1 - e^t
    limits = box.copy()
    best = np.inf
    for _ in range(12):
        a = np.linspace(box[0, 0], box[0, 1], 201)
        t = np.linspace(box[1, 0], box[1, 1], 201)
        grid_a, grid_t = np.meshgrid(a, t, indexing="ij")
        ratio = curvature_ratio(grid_a, -np.expm1(grid_t))
        i, j = np.unravel_index(np.argmin(ratio), ratio.shape)
        best = min(best, float(ratio[i, j]))
        centre = np.array([a[i], t[j]])
        half = (box[:, 1] - box[:, 0]) / 20.0  # ten cells each way
        box = np.stack([centre - half, centre + half], axis=1)
        box = np.clip(box, limits[:, :1], limits[:, 1:])
    return best
