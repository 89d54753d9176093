"""E softmax(omega) for a Gaussian omega in two and three classes, by adaptive quadrature.

The integrands are log-concave, whatever the variances: -ln(1 + e^a + e^b) is concave, and so is the
logarithm of a marginal (Prékopa). Each one-dimensional integral over a standard normal variable
therefore has one peak, falls at least like e^{-(t - peak)^2 / 2} on both sides of it, and is taken
relative to that peak, so that tiny probabilities keep their relative accuracy. It is cut at
every place where the softmax changes its regime, on the scale of that change.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import IntegrationWarning, quad
from scipy.optimize import brentq, minimize_scalar

REACH = 10.0  # e^{-50} of the peak is left out
LOG_ROOT_TWO_PI = math.log(2 * math.pi) / 2


def _log_sigmoid(u: float) -> float:
    """ln(1 / (1 + e^{-u}))."""
    return -math.log1p(math.exp(-u)) if u > 0 else u - math.log1p(math.exp(u))


def _log_integral(log_f: Callable[[float], float], peak: float, cuts: Sequence[float], accuracy: float) -> float:
    """ln of the integral of e^{log_f} over peak ± REACH, cut at ``cuts``."""
    top = log_f(peak)
    low, high = peak - REACH, peak + REACH
    inside = [c for c in (*cuts, peak - 4, peak - 1, peak, peak + 1, peak + 4) if low < c < high]
    edges = [low, *sorted(inside), high]
    value = error = 0.0
    for left, right in pairwise(edges):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IntegrationWarning)  # the error is checked below
            piece = quad(
                lambda t: math.exp(log_f(t) - top),
                left,
                right,
                epsabs=accuracy * 1e-3,
                epsrel=accuracy,
                limit=100,
            )
        value += piece[0]
        error += piece[1]
    assert error <= 100 * accuracy * value, f"quadrature error {error} of {value}"
    return top + math.log(value)


def _sigmoid_peak(mean: float, deviation: float) -> float:
    """The t that maximises ln sigmoid(mean + deviation t) - t^2 / 2, between 0 and the deviation."""

    def slope(t: float) -> float:
        return deviation * math.exp(_log_sigmoid(-mean - deviation * t)) - t

    return float(brentq(slope, 0.0, deviation))


def log_expected_sigmoid(mean: float, deviation: float) -> float:
    """ln E sigmoid(mean + deviation T), T standard normal."""
    if deviation == 0.0:
        return _log_sigmoid(mean)

    def log_f(t: float) -> float:
        return _log_sigmoid(mean + deviation * t) - t * t / 2

    switch = -mean / deviation  # where the sigmoid's argument is 0
    cuts = [switch + c / deviation for c in (-36.0, -6.0, 0.0, 6.0, 36.0)]
    integral = _log_integral(log_f, _sigmoid_peak(mean, deviation), cuts, 1e-13)
    return integral - LOG_ROOT_TWO_PI


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_AROUND_PEAK = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 4.5, 6.5, REACH])
_AROUND_SWITCH = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 36.0])


def log_expected_sigmoid_by_panels(mean: float, deviation: float) -> float:
    """The same number, ten times faster, for use inside another integral.

    Gauss-Legendre panels that grow geometrically away from the peak and away from the switch: on
    each the integrand is analytic far beyond the panel, and 16 nodes leave no error.
    """
    if deviation == 0.0:
        return _log_sigmoid(mean)
    peak = _sigmoid_peak(mean, deviation)
    steps = np.concatenate([-_AROUND_SWITCH, _AROUND_SWITCH])
    cuts = np.clip((steps - mean) / deviation, peak - REACH, peak + REACH)
    edges = np.sort(np.concatenate([peak - _AROUND_PEAK, peak + _AROUND_PEAK, cuts]))
    half = np.diff(edges) / 2
    t = (edges[:-1] + half)[:, None] + half[:, None] * _NODES
    log_f = -np.logaddexp(0.0, -mean - deviation * t) - t * t / 2
    top = np.max(log_f)
    integral = np.sum(half * (np.exp(log_f - top) @ _WEIGHTS))
    return float(top) + math.log(integral) - LOG_ROOT_TWO_PI


def _log_expected_class_0(mean: np.ndarray, covariance: np.ndarray) -> float:
    """ln E 1 / (1 + e^a + e^b) for (a, b) ~ N(mean, covariance).

    Given a, and with c = 1 + e^a: 1 / (c + e^b) = (1/c) sigmoid(ln c - b), and b is normal, so the
    inner integral is an expected sigmoid; the outer one is over a = mean_a + deviation_a T.
    """
    if covariance[0, 0] < covariance[1, 1]:
        mean, covariance = mean[::-1], covariance[::-1, ::-1]
    (mean_a, mean_b), (variance_a, cross, variance_b) = mean, covariance[[0, 0, 1], [0, 1, 1]]
    if variance_a <= 0.0:
        return -float(np.logaddexp.reduce([0.0, mean_a, mean_b]))
    slope_a = math.sqrt(variance_a)
    slope_b = cross / slope_a  # a = mean_a + slope_a T, E[b | T] = mean_b + slope_b T
    rest_b = math.sqrt(max(variance_b - slope_b**2, 0.0))

    def log_f(t: float) -> float:
        a, b = mean_a + slope_a * t, mean_b + slope_b * t
        log_c = -_log_sigmoid(-a)
        return log_expected_sigmoid_by_panels(log_c - b, rest_b) - log_c - t * t / 2

    # At the peak t is the slope of the rest, an average of 0, -slope_a and -slope_b.
    bounds = (-slope_a, slope_a)
    peak = float(minimize_scalar(lambda t: -log_f(t), bounds=bounds, method="bounded").x)
    # The regimes change where a = 0, E[b | T] = 0 and a = E[b | T]: on the softmax's own scale
    # and on that of b's remaining deviation.
    cuts = []
    for value, slope in (
        (mean_a, slope_a),
        (mean_b, slope_b),
        (mean_a - mean_b, slope_a - slope_b),
    ):
        if slope != 0.0:
            for c in (0.0, 6.0, 36.0, rest_b, 6 * rest_b):
                cuts += [(c - value) / slope, (-c - value) / slope]
    return _log_integral(log_f, peak, sorted(set(cuts)), 1e-11) - LOG_ROOT_TWO_PI


def log_softmax_normal_expectation(m: ArrayLike, Q: ArrayLike) -> np.ndarray:
    """ln E softmax(omega), omega ~ N(m, Q / 2), for K = 2 or 3."""
    mean = np.asarray(m, dtype=float)
    covariance = np.asarray(Q, dtype=float) / 2
    K = len(mean)
    if K not in (2, 3):
        raise NotImplementedError("quadrature is written for two and three classes")
    logs = np.empty(K)
    for k in range(K):  # the differences omega_j - omega_k of the other classes
        others = [j for j in range(K) if j != k]
        D = np.eye(K)[others] - np.eye(K)[k]
        gap, spread = D @ mean, D @ covariance @ D.T
        if K == 2:
            logs[k] = log_expected_sigmoid(-gap[0], math.sqrt(max(spread[0, 0], 0.0)))
        else:
            logs[k] = _log_expected_class_0(gap, spread)
    assert abs(np.sum(np.exp(logs)) - 1) < (1e-11 if K == 2 else 1e-9)
    return logs


def softmax_normal_expectation(m: ArrayLike, Q: ArrayLike) -> np.ndarray:
    """E softmax(omega), omega ~ N(m, Q / 2), for K = 2 or 3."""
    return np.exp(log_softmax_normal_expectation(m, Q))
