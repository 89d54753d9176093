r"""The sigmoid smoothed by a Gaussian, :math:`g(\mu) = E\,\sigma(\mu + \tau t)`, for many mu at one :math:`\tau`.

For small :math:`\tau` it is the trapezoidal sum in t, minus the contributions of the sigmoid's poles: each pole
:math:`t_p = (i\pi(2n-1) - \mu)/\tau` adds :math:`2\pi i\,\varphi(t_p) / (\tau (e^{-2\pi i t_p/h} - 1))` to the sum.
Since these are known and subtracted, the step need not shrink as :math:`\tau` grows. For large :math:`\tau` it is the
expansion in the even moments of the logistic distribution,

.. math:: g(\mu) = \Phi(x) - \varphi(x) \sum_{j \ge 1} a_j \tau^{-2j} \mathrm{He}_{2j-1}(x), \qquad x = \mu/\tau,

which is asymptotic: its terms decrease to about :math:`e^{-\tau^2/2}`. In the far tail the identity
:math:`g(\mu) = e^{\mu + \tau^2/2} g(-\mu - \tau^2)` moves both to arguments where they are precise relative to g.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from regretless.core.kernels.jit import kernel, summing_kernel
from regretless.core.types import Array

STEP = 0.5
SIDE = 17  # nodes on either side: exp(-8.5^2 / 2) is 2e-16
NODES = STEP * np.arange(-SIDE, SIDE + 1)
WEIGHTS = STEP * np.exp(-0.5 * NODES**2) / math.sqrt(2.0 * math.pi)
HIGHEST_POLE = 2.9  # poles above it add less than 1e-14
EXPANDS = 8.0  # the least tau for which the expansion is used
RARE = -4.0  # below this x the value is small, and is computed to relative precision
ROOT2 = math.sqrt(2.0)
ROOT2PI = math.sqrt(2.0 * math.pi)
TERMS = 24
ZETAS = [math.pi**2 / 6.0]  # zeta(2j): (j + 1/2) zeta(2j) = sum_{0 < i < j} zeta(2i) zeta(2j - 2i)
for _j in range(2, TERMS + 1):
    ZETAS.append(sum(ZETAS[i] * ZETAS[-1 - i] for i in range(_j - 1)) / (_j + 0.5))
MOMENTS = 2.0 * (1.0 - 2.0 ** (1.0 - 2.0 * np.arange(1, TERMS + 1))) * ZETAS  # a_j = E V^{2j} / (2j)! of a logistic V


class Smoother(NamedTuple):
    """The quantities that depend only on tau."""

    tau: float
    falls: Array  # exp(-tau t) at the nodes
    rises: Array  # exp(2 pi y / h) at the heights y of the poles
    lifts: Array  # exp(y^2 / 2) there


@kernel
def smoother(tau: float) -> Smoother:
    """The `Smoother` of one tau."""
    if not tau < EXPANDS:
        nothing = np.empty(0)
        return Smoother(tau, nothing, nothing, nothing)
    poles = int(0.5 * (HIGHEST_POLE * tau / math.pi + 1.0))
    falls, rises, lifts = np.empty(NODES.size), np.empty(poles), np.empty(poles)
    for i in range(falls.size):
        falls[i] = math.exp(-tau * NODES[i])
    for n in range(poles):
        y = (2 * n + 1) * math.pi / tau
        rises[n] = math.exp(2.0 * math.pi * y / STEP)
        lifts[n] = math.exp(0.5 * y * y)
    return Smoother(tau, falls, rises, lifts)


@kernel
def smoothed(mu: float, by: Smoother) -> float:
    """g(mu), to 1e-14."""
    if by.rises.size + by.falls.size == 0:
        x = mu / by.tau
        return 0.5 * math.erfc(-x / ROOT2) - math.exp(-0.5 * x * x) / ROOT2PI * expansion(x, by.tau)
    g = on_nodes(math.exp(-min(max(mu, -600.0), 600.0)), by.falls)
    if by.rises.size > 0:
        g -= from_poles(mu / by.tau, by)
    return min(max(g, 0.0), 1.0)


@summing_kernel
def on_nodes(fall: float, falls: Array) -> float:
    """The trapezoidal sum, given exp(-mu)."""
    total = 0.0
    for i in range(falls.size):
        total += WEIGHTS[i] / (1.0 + fall * falls[i])
    return total


@kernel
def from_poles(x: float, by: Smoother) -> float:
    """The contribution of the poles to the trapezoidal sum: for each pole and its mirror image, twice the real part."""
    if abs(x) > 9.0:
        return 0.0
    # t_p = -x + i y: phi(t_p) = exp((y^2 - x^2)/2 + i x y)/sqrt(2 pi), exp(-2 pi i t_p/h) = exp(2 pi (y + i x)/h)
    turn, angle = 2.0 * math.pi * x / STEP, x * math.pi / by.tau
    cos_turn, sin_turn = math.cos(turn), math.sin(turn)
    cos, sin = math.cos(angle), math.sin(angle)
    cos_twice, sin_twice = cos * cos - sin * sin, 2.0 * sin * cos
    total = 0.0
    for n in range(by.rises.size):
        re, im = by.rises[n] * cos_turn - 1.0, by.rises[n] * sin_turn  # the denominator
        # Re[i e^{i x y} / (re + i im)] = (cos im - sin re) / |.|^2
        total += by.lifts[n] * (cos * im - sin * re) / (re * re + im * im)
        cos, sin = cos * cos_twice - sin * sin_twice, sin * cos_twice + cos * sin_twice
    return 4.0 * math.pi / (by.tau * ROOT2PI) * math.exp(-0.5 * x * x) * total


@kernel
def expansion(x: float, tau: float) -> float:
    """The sum of a_j tau^{-2j} He_{2j-1}(x), as long as its terms decrease."""
    shrink = 1.0 / (tau * tau)
    total, factor, last = 0.0, shrink, math.inf
    even, odd = 1.0, x  # He_{2j-2}, He_{2j-1}
    for j in range(1, TERMS + 1):
        term = MOMENTS[j - 1] * factor * odd
        size = MOMENTS[j - 1] * factor * (abs(odd) + abs(even))  # one of the two may be near a zero
        if size > last:
            break
        total += term
        if size < 1e-17:
            break
        last = size
        factor *= shrink
        even = x * odd - (2.0 * j - 1.0) * even
        odd = x * even - 2.0 * j * odd
    return total


@kernel
def log_smoothed(mu: float, by: Smoother) -> float:
    """log g(mu), such that g has relative precision in the tail too."""
    tau = by.tau
    square = tau * tau
    outside = 0.0
    if mu < -0.5 * square:
        outside = mu + 0.5 * square
        mu = -mu - square
    x = mu / tau if tau > 0.0 else 0.0
    if mu >= 0.0 or x > RARE:
        return outside + math.log(smoothed(mu, by))
    lead = log_normal_cdf(x)  # here tau > 8
    if x < -1e5:  # He_n(x) is x^n, and the sum has the closed form of the logistic moments
        angle = -math.pi * x / tau
        return outside + lead + math.log(angle / math.sin(angle))
    hazard = math.exp(-0.5 * x * x - lead) / ROOT2PI
    return outside + lead + math.log1p(-hazard * expansion(x, tau))


@kernel
def log_normal_cdf(x: float) -> float:
    """log Phi(x)."""
    if x > -30.0:
        return math.log(0.5 * math.erfc(-x / ROOT2))
    inverse = 1.0 / (x * x)
    return (
        -0.5 * x * x - math.log(-x * ROOT2PI) + math.log(1.0 - inverse * (1.0 - 3.0 * inverse * (1.0 - 5.0 * inverse)))
    )
