"""The evidence of rows under the uniform prior, by quadrature: for one or two parameters.

The evidence is the mean over the unit ball of exp(-losses). The posterior is log-concave and is integrated along rays
from its centre (`posterior_centre.py`), where it is within a factor e of its maximum. A ray ends where the posterior
has fallen to e^-28 of its value at the centre, which a search finds, or at the border of the ball. Along a ray, and
over the angles of the rays, the Clenshaw-Curtis rule is applied on panels that are halved until the error is small. The
integral as a function of the angle has no hidden peaks: it measures a convex body from within, and for a narrow body a
ray at an angle a from its direction still has a length of 1/a times the width. A linear map makes the body nearly
round: the Hessian of losses and barrier at the centre becomes the identity.

Forecasts are ratios of evidences: the evidences of all rows and the new one with each label are proportional to the
probabilities of the labels. Each integral has its own centre, so a probability of 1e-300 has as many correct digits as
one of 1/2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from regretless.core.kernels.jit import kernel
from regretless.core.numbers.links import leader
from regretless.core.types import Array
from regretless.learners.refitting.posterior import gaps, total_loss
from regretless.learners.refitting.posterior_centre import centre, chord
from regretless.learners.second_order.algebra import dot, forward

Ints = npt.NDArray[np.int64]
DEEP = 28.0  # below e^-28 of the maximum lies 2e-11 of the integral of a log-concave function of two variables
PRECISION = 2e-10  # of a panel of angles, relative to the whole
FINER = 5e-11  # of a panel of a ray: noise in the rays would halve the panels of angles in vain
ROUNDING = 2e-16  # of losses, for each unit of weight
MOST_PANELS = 2000
BOTH_WAYS = np.array([0.0, math.pi])
N_STEPS = 32


def clenshaw_curtis(n: int) -> Array:
    """The weights at the nodes -cos(pi j/n), j = 0, ..., n, of the integral over [-1, 1]; n is even."""
    j, k = np.arange(n + 1), np.arange(1, n // 2 + 1)
    b = np.where(k == n // 2, 1.0, 2.0) / (4.0 * k**2 - 1.0)
    weights: Array = 2.0 / n * (1.0 - np.cos(2.0 * np.pi * np.outer(j, k) / n) @ b)
    weights[[0, n]] /= 2.0
    return weights


# The ends of a panel are nodes, so that the rule sees a change at the very end. The rules with half and a quarter of
# the steps use the same nodes.
NODES = -np.cos(np.pi * np.arange(N_STEPS + 1) / N_STEPS)
RULES = np.zeros((3, N_STEPS + 1))
for _i in range(3):
    RULES[_i, :: 2**_i] = clenshaw_curtis(N_STEPS // 2**_i)


def log_evidence(X: Array, Y: Array, G: Array, U: Array) -> float:
    """log of the mean of exp(-losses) over the unit ball. U is a first guess of the centre, and becomes it."""
    Z, axes = np.empty(Y.shape), np.empty((U.size, U.size))
    top = look(X, Y, G, U, Z, axes)
    if U.size == 1:
        return top + math.log(rays(X, Y, G, U, Z, axes, BOTH_WAYS).sum() / 2.0)
    return top + math.log(turn(X, Y, G, U, Z, axes) / math.pi)


@kernel
def look(X: Array, Y: Array, G: Array, U: Array, Z: Array, axes: Array) -> float:
    """Move U to the centre; Z are its gaps, and the rows of `axes` span a frame in which the posterior is nearly round.

    Returns the log of the posterior there times the frame's volume.
    """
    M = np.zeros(axes.shape)
    centre(X, Y, G, U, 1.0, Z, M)
    top = -total_loss(Z, Y)
    for j in range(U.size):  # the rows of M^{-1}
        axes[:, j] = 0.0
        axes[j, j] = 1.0
        forward(M, axes[:, j])
        top -= math.log(M[j, j])
    return top


def turn(X: Array, Y: Array, G: Array, U: Array, Z: Array, axes: Array) -> float:
    """The integral over all directions: panels of angles are halved, all at once, until each is precise."""
    ends = np.linspace(
        0.4, 0.4 + 2.0 * math.pi, 3
    )  # not along the axes, where the integrand may change quickly: that would hide at a panel's end
    low, high = ends[:-1], ends[1:]
    precision = max(PRECISION, 4.0 * ROUNDING * Y.sum())
    done = 0.0
    for _ in range(60):
        half = 0.5 * (high - low)
        angles = (0.5 * (low + high))[:, None] + half[:, None] * NODES
        f = rays(X, Y, G, U, Z, axes, angles.ravel()).reshape(angles.shape)
        found = np.array([rule(values, width) for values, width in zip(f, half, strict=True)])
        rough = found[:, 1] > precision * (done + found[:, 0].sum())
        done += found[~rough, 0].sum()
        if not rough.any():
            return done
        middle = 0.5 * (low + high)[rough]
        low, high = np.concatenate([low[rough], middle]), np.concatenate([middle, high[rough]])
    return done + found[rough, 0].sum()


@kernel
def rule(f: Array, half: float) -> tuple[float, float]:
    """The integral of f > 0 over a panel of that half width, and its error.

    The error is the difference from the rule with half the steps, but at least the square of the error of that rule:
    doubling the steps squares the error at best, and a smaller difference is a coincidence.
    """
    fine, coarse, coarser = dot(RULES[0], f), dot(RULES[1], f), dot(RULES[2], f)
    error = abs(fine - coarse)
    if fine > 0.0:
        error = max(error, (coarse - coarser) ** 2 / fine)
    return half * fine, half * error


class Ray(NamedTuple):
    """A ray through the posterior: at distance t its rows have the gaps Z + t C."""

    Z: Array  # (n, K) gaps at the centre
    C: Array  # (n, K) their change per unit of t
    Y: Array  # (n, K) labels times weights
    tops: Ints  # (n,) the leading class at the centre
    leads: Array  # (n,) its probability


@kernel
def rays(X: Array, Y: Array, G: Array, U: Array, Z: Array, axes: Array, angles: Array) -> Array:
    """The integral of the posterior (1 at the centre U, of gaps Z) along the ray of each angle."""
    n, K = Z.shape
    size = U.size
    C, a = np.empty((n, K)), np.empty(U.shape)
    tops, leads = np.empty(n, np.int64), np.empty(n)
    for i in range(n):
        tops[i] = leader(Z[i])
        leads[i] = lead(Z[i], tops[i])
    precision = max(FINER, ROUNDING * Y.sum())
    found = np.empty(angles.size)
    for m in range(angles.size):
        cos, sin = math.cos(angles[m]), math.sin(angles[m])
        for j in range(size):
            a.reshape(-1)[j] = cos * axes[0, j] + (sin * axes[1, j] if size > 1 else 0.0)
        gaps(X, G, a, C)
        end = chord(U.reshape(-1), a.reshape(-1))
        found[m] = integral(Ray(Z, C, Y, tops, leads), end, size - 1, precision)
    return found


@kernel
def lead(z: Array, top: int) -> float:
    """The probability of the leading class."""
    odds = 0.0
    for k in range(z.size):
        odds += math.exp(z[k] - z[top])
    return 1.0 / odds


@kernel
def integral(ray: Ray, end: float, power: int, precision: float) -> float:
    """The integral of t^power exp(-rise) along the ray, over [0, end]."""
    end = horizon(ray, end)
    if end <= 0.0:
        return 0.0
    low, high = np.empty(MOST_PANELS), np.empty(MOST_PANELS)
    part, error = np.empty(MOST_PANELS), np.empty(MOST_PANELS)
    f = np.empty(NODES.size)
    low[0], high[0], low[1], high[1] = 0.0, 0.4 * end, 0.4 * end, end
    count = 2
    total = 0.0
    for i in range(count):
        part[i], error[i] = panel(ray, low[i], high[i], power, f)
        total += part[i]
    i = 0
    while i < count:
        if error[i] <= precision * total or count == MOST_PANELS:
            i += 1
            continue
        total -= part[i]
        middle = 0.5 * (low[i] + high[i])
        low[count], high[count], high[i] = middle, high[i], middle
        for j in (i, count):
            part[j], error[j] = panel(ray, low[j], high[j], power, f)
            total += part[j]
        count += 1
    return part[:count].sum()


@kernel
def panel(ray: Ray, low: float, high: float, power: int, f: Array) -> tuple[float, float]:
    """The integral of t^power exp(-rise) over [low, high], and its error."""
    half = 0.5 * (high - low)
    for j in range(f.size):
        t = low + half * (1.0 + NODES[j])
        f[j] = math.exp(-rise(ray, t)) * (t if power == 1 else 1.0)
    return rule(f, half)


@kernel
def horizon(ray: Ray, end: float) -> float:
    """Where exp(-rise) has fallen to e^-28 or a little less, or `end`."""
    low, high = 0.0, end
    t = min(9.0, end)  # right for a Gaussian
    for _ in range(200):
        fall = rise(ray, t)
        if fall < DEEP:
            low = t
        else:
            high = t
        if low == end or (DEEP <= fall <= 2.0 * DEEP):
            break
        # the rise is roughly a power of t between 1 and 2
        t *= min(max((1.4 * DEEP / max(fall, 1e-3)) ** 0.67, 1e-6), 1e3)
        if t >= high:
            t = end if high == end else 0.5 * (low + high)
        elif t <= low:
            t = 0.5 * (low + high)
    return high


@kernel
def rise(ray: Ray, t: float) -> float:
    """The losses of gaps Z + t C less those of gaps Z: row by row, so that no large numbers cancel.

    A loss is sum_k y_k (z_top - z_k) - mass log(probability of top). While the leading class stays, the first changes
    by t times differences of C. Logarithms are taken of products, where weights are 1.
    """
    Z, C, Y, tops, leads = ray
    n, K = Z.shape
    total, product = 0.0, 1.0
    for i in range(n):
        if K == 2:
            before, move = Z[i, 1], t * C[i, 1]
            z = before + move
            mass = Y[i, 0] + Y[i, 1]
            if z >= 0.0:
                total += Y[i, 0] * move if before >= 0.0 else Y[i, 0] * z + Y[i, 1] * before
            else:
                total -= Y[i, 1] * move if before < 0.0 else Y[i, 1] * z + Y[i, 0] * before
            odds = 1.0 + math.exp(-abs(z))
        else:
            top = 0
            for k in range(1, K):
                if (Z[i, k] - Z[i, top]) + t * (C[i, k] - C[i, top]) > 0.0:
                    top = k
            mass, odds = 0.0, 1.0
            for k in range(K):
                mass += Y[i, k]
                if k != top:
                    move = t * (C[i, top] - C[i, k])
                    odds += math.exp(Z[i, k] - Z[i, top] - move)
                    total += Y[i, k] * move
                if top != tops[i]:
                    total += Y[i, k] * (Z[i, top] - Z[i, tops[i]])
        if mass == 1.0:
            product *= odds * leads[i]
            if not 1e-100 < product < 1e100:
                total += math.log(product)
                product = 1.0
        else:
            total += mass * math.log(odds * leads[i])
    return total + math.log(product)
