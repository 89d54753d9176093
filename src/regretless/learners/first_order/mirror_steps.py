"""The compiled mirror steps: from a dual point to the weights and back. `mirrors.py` states the problems."""

from __future__ import annotations

import math

import numpy as np

from regretless.core.kernels.copying import copy_line
from regretless.core.kernels.jit import kernel, shared_kernel, summing_kernel
from regretless.core.numbers.exponentials import exponentiate
from regretless.core.types import Array

EUCLIDEAN, ENTROPY, PNORM, POWER = range(4)
WHOLE, BALL, SIMPLEX, SUBSIMPLEX, OCTAHEDRON, BOX = range(6)

TINY = 1e-300  # a temperature below it would turn 0/0 into NaN


@summing_kernel
def total(x: Array) -> float:
    """The sum of x, in several partial sums: faster than one running sum, and with less rounding."""
    s = 0.0
    for j in range(x.size):
        s += x[j]
    return s


@kernel
def lowest(x: Array) -> float:
    """The least entry, from four running minima that the processor updates together."""
    a, b, c, d = x[0], x[0], x[0], x[0]
    whole = x.size - x.size % 4
    for j in range(0, whole, 4):
        a, b, c, d = min(a, x[j]), min(b, x[j + 1]), min(c, x[j + 2]), min(d, x[j + 3])
    for j in range(whole, x.size):
        a = min(a, x[j])
    return min(min(a, b), min(c, d))


@kernel
def entropy_simplex(zeta: Array, beta: float, lam: float, out: Array) -> None:
    """out = lam softmax(-zeta / beta), eq. (10): differences first, so that nothing overflows."""
    low, heat = lowest(zeta), 1.0 / max(beta, TINY)
    for j in range(zeta.size):
        out[j] = (low - zeta[j]) * heat
    exponentiate(out)
    scale = lam / total(out)
    for j in range(zeta.size):
        out[j] *= scale


@kernel
def entropy_subsimplex(zeta: Array, beta: float, lam: float, out: Array) -> None:
    """The first M weights of the simplex with one more base function, 0, whose zeta stays 0."""
    low, heat = min(lowest(zeta), 0.0), 1.0 / max(beta, TINY)
    for j in range(zeta.size):
        out[j] = (low - zeta[j]) * heat
    exponentiate(out)
    scale = lam / (total(out) + math.exp(low * heat))
    for j in range(zeta.size):
        out[j] *= scale


@kernel
def entropy_octahedron(zeta: Array, beta: float, lam: float, out: Array) -> None:
    """The differences of the weights of h and -h on the simplex of 2M: -lam sinh(zeta_j/beta) / sum cosh(zeta/beta).

    The difference of the two exponentials is taken by expm1: weights near 0 keep their digits.
    """
    beta = max(beta, TINY)
    high = 0.0
    for j in range(zeta.size):
        high = max(high, abs(zeta[j]))
    both = 0.0
    for j in range(zeta.size):
        a = abs(zeta[j])
        larger = math.exp((a - high) / beta)
        less = math.expm1(-2.0 * a / beta)
        both += larger * (2.0 + less)
        out[j] = larger * less if zeta[j] > 0.0 else -larger * less
    scale = lam / both
    for j in range(zeta.size):
        out[j] *= scale


@kernel
def power_sums(delta: Array, t: float, r: float) -> tuple[float, float, float]:
    """The sums of w^(r-1), w^r and w^(r+1) over the positive w_j = (t - delta_j) / t."""
    s0, s1, s2 = 0.0, 0.0, 0.0
    for j in range(delta.size):
        if delta[j] < t:
            w = (t - delta[j]) / t
            below = 1.0 if r == 1.0 else math.exp((r - 1.0) * math.log(w))
            s0 += below
            s1 += below * w
            s2 += below * w * w
    return s0, s1, s2


@kernel
def height(pnorm: bool, r: float, t: float, s1: float, s2: float) -> float:
    """The l1 norm of the weights of d = t w (power: its r-th root), of degree one in t in either case.

    The weights are d^r for the power proxy, and d^r / |d|_{r+1}^{r-1} for the p-norm.
    """
    if pnorm:
        return t * s1 * s2 ** ((1.0 - r) / (1.0 + r))
    return t * s1 ** (1.0 / r)


@kernel
def waterline(delta: Array, pnorm: bool, r: float, high: float) -> float:
    """The t in (0, high] at which the weights of (t - delta)_+ add up to 1, for delta >= 0 with a 0 among them.

    The height rises with t. It is at least t, for one w is 1, and at most M^(1/r) t, or M^(2/(r+1)) t for the
    p-norm, by Hölder: a bracket of a factor e or e^2 once M >= 3. Newton's method, halving the bracket whenever
    a step leaves it or is not half the last.
    """
    M = delta.size
    low = M ** (-2.0 / (r + 1.0)) if pnorm else M ** (-1.0 / r)
    low = min(0.999 * low, high)
    enough = 1e-13 * math.sqrt(M)  # above the rounding of the sums; Newton's last step squares it
    last = 2.0 * (high - low)
    t = high
    for _ in range(200):
        s0, s1, s2 = power_sums(delta, t, r)
        h = height(pnorm, r, t, s1, s2)
        if h > 1.0:
            high = t
        else:
            low = t
        slope = r * s0 / s1 - (r - 1.0) * s1 / s2 if pnorm else s0 / s1
        step = t * (h - 1.0) / (h * slope)
        if abs(step) <= enough * t:
            return t - step
        if not (low <= t - step <= high) or abs(step) > 0.5 * last:
            step = t - 0.5 * (low + high)
        last = abs(step)
        t -= step
        if high - low <= 1e-15 * high:
            break
    return t


@kernel
def power_step(proxy: int, domain: int, zeta: Array, beta: float, lam: float, out: Array) -> None:
    """The step of the p-norm, power and Euclidean proxies on the simplex, sub-simplex, octahedron and whole space.

    In units of `unit` the optimality conditions read: theta is the weights of d = (mu - zeta)_+, where mu makes them
    add up to lam on the simplex; on the sub-simplex and the octahedron (with -|zeta|, and the signs put back) mu is 0
    if that much is allowed. The Euclidean proxy is the power proxy with s = 1.
    """
    M = zeta.size
    r = 1.0 if proxy == EUCLIDEAN else max(1.0, math.log(M))
    pnorm = proxy == PNORM
    unit = max(beta / lam if pnorm else beta * lam * r, TINY)
    signed = domain == OCTAHEDRON or domain == WHOLE
    low = np.inf
    for j in range(M):
        out[j] = -abs(zeta[j]) if signed else zeta[j]
        low = min(low, out[j])
    free = -low / unit  # the largest d when mu = 0
    constrained = domain == SIMPLEX or (domain != WHOLE and free > 1.0)
    if not constrained:
        if low >= 0.0:
            for j in range(M):
                out[j] = 0.0
            return
        for j in range(M):
            out[j] = 1.0 - max(0.0, out[j] / low)
        _, s1, s2 = power_sums(out, 1.0, r)
        constrained = domain != WHOLE and height(pnorm, r, free, s1, s2) > 1.0
        if not constrained:
            level = lam * free * s2 ** ((1.0 - r) / (1.0 + r)) if pnorm else lam * free**r
            for j in range(M):
                c = -abs(zeta[j]) if signed else zeta[j]
                w = max(0.0, c / low)
                out[j] = level * (w if r == 1.0 else w**r)
                if signed and zeta[j] > 0.0:
                    out[j] = -out[j]
            return
    for j in range(M):
        c = -abs(zeta[j]) if signed else zeta[j]
        out[j] = (c - low) / unit
    t = waterline(out, pnorm, r, 1.0 if domain == SIMPLEX else min(1.0, free))
    for j in range(M):
        w = max(0.0, (t - out[j]) / t)
        out[j] = w if r == 1.0 or w == 0.0 else math.exp(r * math.log(w))
    scale = lam / total(out)
    for j in range(M):
        out[j] *= -scale if signed and zeta[j] > 0.0 else scale


@kernel
def ball_step(zeta: Array, beta: float, radius: float, out: Array) -> None:
    """out = -zeta / beta, brought back to the l2 ball along its ray."""
    beta = max(beta, TINY)
    high = 0.0
    for j in range(zeta.size):
        high = max(high, abs(zeta[j]))
    if high == 0.0:
        for j in range(zeta.size):
            out[j] = 0.0
        return
    square = 0.0
    for j in range(zeta.size):
        out[j] = zeta[j] / high
        square += out[j] * out[j]
    norm = math.sqrt(square)
    scale = -min(high / beta, radius / norm)
    for j in range(zeta.size):
        out[j] *= scale


@kernel
def curved_root(a: float, c: float, r: float) -> float:
    """The v >= 0 with v + c v^r = a, for r >= 1: Newton's method, from above.

    The start is at most twice the root, and the function is convex, so the iterates fall to it.
    """
    if a <= 0.0:
        return 0.0
    v = a if c <= 0.0 else min(a, math.exp((math.log(a) - math.log(c)) / r))
    for _ in range(200):
        below = c * math.exp((r - 1.0) * math.log(v)) if v > 0.0 else 0.0
        step = (v + below * v - a) / (1.0 + r * below)
        v -= step
        if step <= 1e-16 * v:
            break
    return max(v, 0.0)


@kernel
def pnorm_shape(a: Array, log_c: float, r: float, w: Array) -> float:
    """w_j with w^s + c w = a_j, s = 1/r, up to a common factor. Returns ln(|w|_p^(1-s) / |w|_2), p = 1 + s.

    For c > 1 the factor is c: c w is at most a_j, where w itself would underflow.
    """
    c = math.exp(log_c)
    factor = max(log_c, 0.0)
    sum_p, square = 0.0, 0.0
    for j in range(a.size):
        v = curved_root(a[j], c, r)
        if log_c > 0.0 and 2.0 * v < a[j]:
            w[j] = a[j] - v
        else:
            w[j] = max(c, 1.0) * (v if r == 1.0 else v**r)
        sum_p += w[j] * v
        square += w[j] * w[j]
    return (r - 1.0) / (r + 1.0) * (math.log(sum_p) - factor) - 0.5 * math.log(square) + factor


@kernel
def pnorm_ball(zeta: Array, beta: float, radius: float, out: Array) -> None:
    """The step of the p-norm proxy (35) on the l2 ball, when the free step leaves it.

    With a = |zeta| in units of its largest entry, the weights are -sign(zeta) radius w/|w|_2, where w^s + c w = a for
    the multiplier c > 0 of the ball at which the gradient of V has the right size: beta |w|_p^(1-s)/|w|_2 is the radius
    times the unit. Bisection on ln c; the root is unique because the step is.
    """
    M = zeta.size
    r = max(1.0, math.log(M))
    high = 0.0
    for j in range(M):
        high = max(high, abs(zeta[j]))
    a = np.abs(zeta) / high
    level = math.log(radius * (high / beta))
    low, top = -40.0, 0.0
    while top < 640.0 and pnorm_shape(a, top, r, out) < level:
        low, top = top, 2.0 * top + 5.0
    while low > -640.0 and pnorm_shape(a, low, r, out) > level:
        low, top = 2.0 * low, low
    if top >= 640.0:  # w^s is negligible: the direction of zeta
        copy_line(a, out)
    else:
        for _ in range(200):
            middle = 0.5 * (low + top)
            if not low < middle < top:
                break
            if pnorm_shape(a, middle, r, out) < level:
                low = middle
            else:
                top = middle
        pnorm_shape(a, low, r, out)
    square = 0.0
    for j in range(M):
        square += out[j] * out[j]
    scale = radius / math.sqrt(square)
    for j in range(M):
        out[j] *= -scale if zeta[j] > 0.0 else scale


@kernel
def pnorm_box(zeta: Array, beta: float, radius: float, out: Array) -> None:
    """The step of the p-norm proxy (35) on the box, when the free step leaves it.

    In units of the radius the weights are min(1, (a/k)^r), a = |zeta| in units of its largest entry, where k is
    beta/(radius unit) times their |.|_p^(1-s). One weight is 1, which gives a bracket of k; bisection on ln k.
    """
    M = zeta.size
    r = max(1.0, math.log(M))
    high = 0.0
    for j in range(M):
        high = max(high, abs(zeta[j]))
    base = math.log(max(beta / high / radius, TINY))
    low, top = base, min(0.0, base + (r - 1.0) / (r + 1.0) * math.log(M))
    for _ in range(200):
        middle = 0.5 * (low + top)
        if not low < middle < top:
            break
        sum_p = 0.0
        for j in range(M):
            a = abs(zeta[j]) / high
            if a > 0.0:
                sum_p += math.exp(min(0.0, (r + 1.0) * (math.log(a) - middle)))
        if middle < base + (r - 1.0) / (r + 1.0) * math.log(sum_p):
            low = middle
        else:
            top = middle
    for j in range(M):
        a = abs(zeta[j]) / high
        size = radius * math.exp(min(0.0, r * (math.log(a) - low))) if a > 0.0 else 0.0
        out[j] = -size if zeta[j] > 0.0 else size


@kernel
def pnorm_step(domain: int, zeta: Array, beta: float, lam: float, out: Array) -> None:
    """The step of the p-norm proxy on the ball or box: the free step, if it stays inside."""
    power_step(PNORM, WHOLE, zeta, beta, lam, out)
    square, largest = 0.0, 0.0
    for j in range(out.size):
        square += (out[j] / lam) * (out[j] / lam)
        largest = max(largest, abs(out[j]))
    if domain == BALL and not square <= 1.0:  # the free step may overflow
        pnorm_ball(zeta, max(beta, TINY), lam, out)
    elif domain == BOX and not (largest <= lam and math.isfinite(square)):
        pnorm_box(zeta, max(beta, TINY), lam, out)


@shared_kernel
def mirror_step(proxy: int, domain: int, lam: float, zeta: Array, beta: float, out: Array) -> None:
    """out = argmin of zeta.theta + beta V(theta) over the set: the lazy scheme (11). `out` is not `zeta`."""
    if proxy == ENTROPY:
        if domain == SIMPLEX:
            entropy_simplex(zeta, beta, lam, out)
        elif domain == SUBSIMPLEX:
            entropy_subsimplex(zeta, beta, lam, out)
        else:
            entropy_octahedron(zeta, beta, lam, out)
    elif proxy == EUCLIDEAN and domain == BALL:
        ball_step(zeta, beta, lam, out)
    elif proxy == EUCLIDEAN and domain == WHOLE:
        beta = max(beta, TINY)
        for j in range(zeta.size):
            out[j] = -zeta[j] / beta
    elif proxy == EUCLIDEAN and domain == BOX:
        beta = max(beta, TINY)
        for j in range(zeta.size):
            out[j] = min(max(-zeta[j] / beta, -lam), lam)
    elif proxy == PNORM and (domain == BALL or domain == BOX):
        pnorm_step(domain, zeta, beta, lam, out)
    else:
        power_step(proxy, domain, zeta, beta, lam, out)


@kernel
def common_product(theta: Array, lam: float) -> float:
    """k for which sqrt(theta_j^2 + k^2) add up to lam: k^2/4 is the product of the weights of h_j and -h_j.

    Of all weights with difference theta and sum lam these have the least entropy (8). Newton's method, from above.
    """
    slack = lam - np.sum(np.abs(theta))
    if slack <= 0.0:
        return 0.0
    k = lam / theta.size
    for _ in range(2000):
        value, slope = -slack, 0.0
        for j in range(theta.size):
            a = abs(theta[j])
            root = math.sqrt(a * a + k * k)
            value += k * (k / (root + a))
            slope += k / root
        step = value / slope
        k -= step
        if step <= 1e-15 * k:
            break
    return k


@shared_kernel
def dual_point(proxy: int, domain: int, lam: float, theta: Array, out: Array) -> None:
    """out = -grad V(theta): the zeta whose mirror step with beta = 1 is theta, for theta inside the set."""
    M = theta.size
    if proxy == ENTROPY:
        slack = 1.0
        if domain == SUBSIMPLEX:
            slack = lam - np.sum(theta)
        elif domain == OCTAHEDRON:
            slack = common_product(theta, lam)
        for j in range(M):
            if domain == OCTAHEDRON:
                out[j] = -math.asinh(theta[j] / slack)
            else:
                out[j] = math.log(slack) - math.log(theta[j])
    elif proxy == EUCLIDEAN:
        for j in range(M):
            out[j] = -theta[j]
    else:
        s = 1.0 / max(1.0, math.log(M))
        high = 0.0
        for j in range(M):
            high = max(high, abs(theta[j]))
        level = 0.0
        if proxy == POWER:
            level = lam / s * (high / lam) ** s
        elif high > 0.0:
            norm = 0.0
            for j in range(M):
                norm += (abs(theta[j]) / high) ** (1.0 + s)
            level = high / (lam * lam) * norm ** ((1.0 - s) / (1.0 + s))
        for j in range(M):
            out[j] = 0.0 if high == 0.0 else level * (abs(theta[j]) / high) ** s
            if theta[j] > 0.0:
                out[j] = -out[j]


@shared_kernel
def eager_step(proxy: int, domain: int, lam: float, zeta: Array, u: Array, rate: float, out: Array) -> None:
    """The eager scheme (22), (24): out = argmin of rate u.theta + D_V(theta, the last out); rate is gamma/beta.

    `zeta` is a dual point of the last `out`, 0 at the start, and becomes one of the new: zeta += rate u, the mirror
    step, then -grad V of it. The last operation discards the part of zeta that only pressed against the
    boundary; that is the only difference from the lazy scheme. The entropy never touches the boundary, so its zeta is
    kept (this is EG, (23), second line), and a weight too small for floating point can still grow again.
    """
    for j in range(zeta.size):
        zeta[j] += rate * u[j]
    mirror_step(proxy, domain, lam, zeta, 1.0, out)
    if proxy != ENTROPY:
        dual_point(proxy, domain, lam, out, zeta)
