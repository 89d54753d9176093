r"""Gaussian expectations of the softmax: GAF's forecast
:math:`p = E\,\mathrm{softmax}(\omega),\ \omega \sim N(m, \Sigma)`.

Two classes need one integral, :math:`E\,\sigma(\mu + s t)` with t standard normal, and three classes a double
integral. Both use the trapezoidal rule, which converges geometrically for analytic integrands on the line: its error is
:math:`e^{-2\pi y/h}` for step h and a strip of half-width y without poles. The nearest poles of the sigmoid are
:math:`\pm i\pi`, so in t the half-width is :math:`\pi/s`, which is small for large s (where Gauss-Hermite quadrature
fails). After integration by parts,

.. math:: E\,\sigma(\mu + s t) = \int \sigma'(v)\, \Phi((\mu - v)/s)\, dv,

it is :math:`\pi` for every s. For small s, Gauss-Hermite quadrature needs a quarter of the nodes or fewer. For more
classes the softmax is averaged over points.

All functions return *logarithms* of probabilities: a class of probability 1e-5000 still has a finite loss.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy
from numpy.polynomial.hermite_e import hermegauss

from regretless.core.kernels.borrow import borrowed, keep
from regretless.core.kernels.jit import inlined_kernel, kernel, shared_kernel, summing_kernel
from regretless.core.numbers.exponentials import exponentiate
from regretless.core.numbers.links import sigmoid
from regretless.core.types import Array
from regretless.learners.second_order.smoothed_sigmoid import Smoother, log_normal_cdf, log_smoothed, smoothed, smoother

ROOT2 = math.sqrt(2.0)
ROOT2PI = math.sqrt(2.0 * math.pi)
GRID = 2000.0  # a quarter of the number of nodes up to which a grid is faster than a line
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
REACH = 8.0  # standard deviations on either side of a peak; beyond it the integrand is below e^{-32} of the peak
NOTHING = -30.0  # panels whose logarithm, relative to the peak, is below this are skipped
NEAR = 300.0  # exp(300) times a thousand points is far from overflow
FARTHEST = -600.0  # mean logit whose exponential is computed
SERIES_WITHIN = 0.52  # of `twice_cosh`: all nodes of the smallest Gauss rule
LIKELY = -9.0  # if the logarithm of the peak is larger than this, logarithms are not needed

# The double-exponential rule on the unit interval, for steps 1/2, 1/4, 1/8 and 1/16; each step adds nodes to those of
# the previous one. For each node: its distance from the nearer end (the rule is symmetric), and its weight at step 1.
_LEVELS = [np.arange(6) / 2.0, np.arange(1, 12, 2) / 4.0, np.arange(1, 24, 2) / 8.0, np.arange(1, 48, 2) / 16.0]
_AT = np.concatenate(_LEVELS)
LAST = np.cumsum([len(level) for level in _LEVELS])
FROM_END = 1.0 / (1.0 + np.exp(math.pi * np.sinh(_AT)))
SHARE = 0.25 * math.pi * np.cosh(_AT) / np.cosh(0.5 * math.pi * np.sinh(_AT)) ** 2
SHARE[0] *= 0.5  # the middle node belongs to both halves


# Gauss-Hermite quadrature: nodes and weights of some rules, one after another, and the largest standard deviation of a
# difference of logits for which the error of a rule is below 1e-13 (two classes) and 1e-10 (three).
GAUSS = (4, 6, 10, 16, 24)
PAIR_WITHIN, PLANE_WITHIN = (0.045, 0.155, 0.36, 0.58, 0.81), (0.125, 0.28, 0.54, 0.82, 1.1)
_RULES = [hermegauss(n) for n in GAUSS]
GAUSS_NODES = np.concatenate([nodes for nodes, _ in _RULES])
GAUSS_WEIGHTS = np.concatenate([weights for _, weights in _RULES]) / ROOT2PI


@kernel
def gauss_rule(s: float, within: tuple[float, ...]) -> tuple[int, int]:
    """The first node of a rule that is exact enough for this standard deviation, and the one after its last."""
    first = 0
    for i in range(len(GAUSS)):
        if s <= within[i]:
            return first, first + GAUSS[i]
        first += GAUSS[i]
    return 0, 0


@inlined_kernel
def twice_cosh(x: float) -> float:
    """e^x + e^-x for x >= 0: for small x its series, to 1e-15, in half the time of an exponential."""
    if x > SERIES_WITHIN:
        e = math.exp(x)
        return e + 1.0 / e
    y = x * x
    return 2.0 + y * (1.0 + y / 12.0 * (1.0 + y / 30.0 * (1.0 + y / 56.0 * (1.0 + y / 90.0 * (1.0 + y / 132.0)))))


@kernel
def mean_sigmoid(mu: float, s: float) -> float:
    """E sigmoid(mu + s t), to 1e-13, for every mu and s >= 0; relative to it where the Gauss rules are used."""
    if s < 1e-9:
        return sigmoid(mu)
    total = 0.0
    first, last = gauss_rule(s, PAIR_WITHIN)
    if last > 0:
        rise = math.exp(min(max(mu, FARTHEST), -FARTHEST))
        fall = 1.0 / rise
        for i in range((first + last) // 2, last):  # the nodes t and -t together
            both = twice_cosh(s * GAUSS_NODES[i])
            total += GAUSS_WEIGHTS[i] * (2.0 * rise + both) / (rise + both + fall)
        return min(1.0, total)
    if s <= 1.0:
        for i in range(-19, 20):
            t = 0.5 * i
            total += math.exp(-0.5 * t * t) * sigmoid(mu + s * t)
        return min(1.0, 0.5 * total / ROOT2PI)
    for i in range(-76, 77):
        v = 0.5 * i
        e = math.exp(-abs(v))
        total += e / ((1.0 + e) * (1.0 + e)) * math.erfc((v - mu) / (s * ROOT2))
    return min(1.0, 0.25 * total)


@shared_kernel
def log_mean_sigmoid(mu: float, s: float) -> float:
    """log E sigmoid(mu + s t) for mu <= 0; the expectation has relative precision in the tail too.

    Tilting, E sigmoid(U) = exp(mu + s^2/2) E sigmoid(-U') with U' ~ N(mu + s^2, s^2), maps the far tail mu <= -s^2 to
    the centre. In between, where the tail is Gaussian, all terms are relative to the Gaussian's tail.
    """
    if mu <= -s * s:
        return mu + 0.5 * s * s + math.log(mean_sigmoid(-(mu + s * s), s))
    p = mean_sigmoid(mu, s)
    if p > 1e-9:
        return math.log(p)
    # here s > 1: the same sum of sigma'(v) Phi((mu - v)/s), relative to Phi(mu/s), until both factors are negligible
    theta = -mu / (s * s)
    reach = min(40.0 / (1.0 - theta + 1e-3), 9.0 * s + 40.0)
    lead = log_normal_cdf(mu / s)
    total = 0.0
    v = 40.0
    while v >= -reach:
        e = math.exp(-abs(v))
        total += math.exp(math.log(e / ((1.0 + e) * (1.0 + e))) + log_normal_cdf((mu - v) / s) - lead)
        v -= 0.5
    return lead + math.log(0.5 * total)


@kernel
def two_classes(m: Array, Sigma: Array, log_p: Array) -> None:
    """Exact to 1e-12, by one-dimensional quadrature of the difference of the two logits."""
    variance = Sigma[0, 0] - 2.0 * Sigma[0, 1] + Sigma[1, 1]
    log_p[0], log_p[1] = of_margin(m[1] - m[0], math.sqrt(max(0.0, variance)))


@kernel
def of_margin(mu: float, s: float) -> tuple[float, float]:
    """`two_classes` for a difference N(mu, s^2) of the logits."""
    if s <= PAIR_WITHIN[-1] and abs(mu) < -FARTHEST:
        p = mean_sigmoid(-abs(mu), s)
        rare, common = math.log(p), math.log1p(-p)
    else:
        rare = log_mean_sigmoid(-abs(mu), s)
        common = math.log1p(-math.exp(rare))
    return (common if mu < 0.0 else rare), (rare if mu < 0.0 else common)


@kernel
def add_softmax(z: Array, top: Array, total: Array) -> None:
    """Add softmax(z) to running sums kept as total * exp(top), class by class."""
    high = z[0]
    for a in range(1, z.size):
        high = max(high, z[a])
    lse = 0.0
    for a in range(z.size):
        lse += math.exp(z[a] - high)
    lse = high + math.log(lse)
    for a in range(z.size):
        term = z[a] - lse
        if term > top[a]:
            total[a] = total[a] * math.exp(top[a] - term) + 1.0
            top[a] = term
        else:
            total[a] += math.exp(term - top[a])


@shared_kernel
def over_points(m: Array, Sigma: Array, H: Array, points: Array, log_p: Array) -> None:
    """The mean of softmax over m + C t for the rows t of `points`, C C^T = Sigma."""
    K, r = H.shape
    C = covariance_root(Sigma, H)
    if farthest(C, points) <= NEAR:
        over_near_points(m, C, points, log_p)
        return
    z = np.empty(K)
    top = np.full(K, -np.inf)
    total = np.zeros(K)
    for i in range(points.shape[0]):
        for a in range(K):
            z[a] = m[a]
            for j in range(r):
                z[a] += C[a, j] * points[i, j]
        add_softmax(z, top, total)
    for a in range(K):
        log_p[a] = top[a] + math.log(total[a] / points.shape[0])


@kernel
def farthest(C: Array, points: Array) -> float:
    """A bound of the entries of C t for the rows t of `points`."""
    most = 0.0
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            most = max(most, abs(points[i, j]))
    reach = 0.0
    for a in range(C.shape[0]):
        total = 0.0
        for j in range(C.shape[1]):
            total += abs(C[a, j])
        reach = max(reach, total)
    return most * reach


@kernel
def over_near_points(m: Array, C: Array, points: Array, log_p: Array) -> None:
    """`over_points` where no exponential of C t overflows: one per class and point, and no logarithm.

    The factor exp(m) is outside of the sums, so that the sum of a rare class has relative precision.
    """
    (K, r), n = C.shape, points.shape[0]
    high, across = np.max(m), points.T.copy()  # all points of a coordinate together, for vector instructions
    factors, whole = np.zeros((K, n)), np.zeros(n)
    for a in range(K):
        f, e = factors[a], math.exp(m[a] - high)
        for j in range(r):
            for i in range(n):
                f[i] += C[a, j] * across[j, i]
        exponentiate(f)
        for i in range(n):
            whole[i] += e * f[i]
    for a in range(K):
        log_p[a] = m[a] - high + math.log(sum_of_ratios(factors[a], whole) / n)


@summing_kernel
def sum_of_ratios(a: Array, b: Array) -> float:
    """The sum of a_i / b_i."""
    total = 0.0
    for i in range(a.size):
        total += a[i] / b[i]
    return total


@kernel
def covariance_root(Sigma: Array, H: Array) -> Array:
    """C (K, K-1) with C C^T = H H^T Sigma H H^T: a Cholesky factor in the reduced coordinates, lifted."""
    K, r = H.shape
    half, F = np.zeros((K, r)), np.zeros((r, r))
    for a in range(K):
        for b in range(K):
            for j in range(r):
                half[a, j] += Sigma[a, b] * H[b, j]
    for i in range(r):
        for a in range(K):
            for j in range(i + 1):
                F[i, j] += H[a, i] * half[a, j]
    for j in range(r):
        scale = F[j, j]
        for k in range(j):
            F[j, j] -= F[j, k] * F[j, k]
        if F[j, j] <= 1e-15 * scale:  # a direction without variance
            for i in range(j, r):
                F[i, j] = 0.0
            continue
        F[j, j] = math.sqrt(F[j, j])
        for i in range(j + 1, r):
            for k in range(j):
                F[i, j] -= F[i, k] * F[j, k]
            F[i, j] /= F[j, j]
    C = np.zeros((K, r))
    for a in range(K):
        for j in range(r):
            for k in range(j, r):
                C[a, j] += H[a, k] * F[k, j]
    return C


@shared_kernel
def three_classes(m: Array, Sigma: Array, H: Array, log_p: Array) -> None:
    """Exact to 1e-9, for every covariance."""
    # principal axes of the covariance in the plane of mean-zero logits
    xx = xy = yy = 0.0
    for a in range(3):
        for b in range(3):
            xx += H[a, 0] * Sigma[a, b] * H[b, 0]
            xy += H[a, 0] * Sigma[a, b] * H[b, 1]
            yy += H[a, 1] * Sigma[a, b] * H[b, 1]
    middle, half = 0.5 * (xx + yy), 0.5 * (xx - yy)
    spread = math.hypot(half, xy)
    cos, sin = half_angle(half, xy, spread)
    s1 = math.sqrt(max(0.0, middle + spread))
    # the small eigenvalue is the determinant over the large one: the difference middle - spread would cancel
    large = middle + spread
    s2 = math.sqrt(max(0.0, (xx / large) * yy - (xy / large) * xy)) if s1 > 0.0 else 0.0
    C = np.empty((3, 2))
    for a in range(3):
        C[a, 0] = s1 * (cos * H[a, 0] + sin * H[a, 1])
        C[a, 1] = s2 * (cos * H[a, 1] - sin * H[a, 0])
    width1 = max(abs(C[0, 0] - C[1, 0]), abs(C[0, 0] - C[2, 0]), abs(C[1, 0] - C[2, 0]))
    width2 = max(abs(C[0, 1] - C[1, 1]), abs(C[0, 1] - C[2, 1]), abs(C[1, 1] - C[2, 1]))
    if (7.5 / grid_step(width1) + 1.0) * (7.5 / grid_step(width2) + 1.0) < GRID:
        n1, n2 = rule_size(width1), rule_size(width2)
        own_lines = np.empty(5 * (n1 + n2))  # once: to allocate takes as long as four exponentials
        lines = borrowed(own_lines)
        down, across = line_rule(width1, part(lines, 0, 5, n1)), line_rule(width2, part(lines, 5 * n1, 5, n2))
        on_a_grid(m, C, down, across, log_p)
        keep(own_lines)
    else:
        along_a_line(m, C, log_p)


@kernel
def half_angle(x: float, y: float, size: float) -> tuple[float, float]:
    """Cosine and sine of half the angle of a vector of that size; of 0 where it is 0."""
    if size == 0.0:
        return 1.0, 0.0
    longer = math.sqrt(0.5 * (1.0 + abs(x) / size))
    other = 0.5 * (y / size) / longer
    return (longer, other) if x >= 0.0 else (abs(other), math.copysign(longer, y))


@kernel
def grid_step(width: float) -> float:
    """A trapezoidal step for which the Gaussian and a pole at distance pi/width each add an error below 1e-10."""
    return min(0.65, 0.65 / max(width, 1e-300))


class Rule(NamedTuple):
    """A quadrature rule for a standard normal variable, whose nodes are symmetric about 0."""

    nodes: Array
    weights: Array
    factors: Array  # (3, nodes) room for an exponential of each class at each node


@kernel
def rule_size(width: float) -> int:
    """How many nodes `line_rule` has."""
    first, last = gauss_rule(width, PLANE_WITHIN)
    return last - first if last > 0 else 2 * int(7.5 / grid_step(width)) + 3


@kernel
def line_rule(width: float, lines: Array) -> Rule:
    """A rule for an integrand whose nearest pole has distance pi/width, with an error below 1e-10, in lines (5, n)."""
    rule = Rule(lines[0], lines[1], lines[2:])
    first, last = gauss_rule(width, PLANE_WITHIN)
    for i in range(last - first):
        rule.nodes[i], rule.weights[i] = GAUSS_NODES[first + i], GAUSS_WEIGHTS[first + i]
    if last == 0:
        h, middle = grid_step(width), rule.nodes.size // 2
        for i in range(rule.nodes.size):
            t = (i - middle) * h
            rule.nodes[i], rule.weights[i] = t, h * math.exp(-0.5 * t * t) / ROOT2PI
    return rule


@inlined_kernel
def part(line: Array, first: int, rows: int, columns: int) -> Array:
    """Some entries of a line as a matrix."""
    return line[first : first + rows * columns].reshape(rows, columns)


@kernel
def on_a_grid(m: Array, C: Array, down: Rule, across: Rule, log_p: Array) -> None:
    """Three classes with moderate variance: one rule per direction.

    exp(z) at a node is a product of one factor per direction, so that a node needs no exponential. The factor exp(m) is
    outside of the sums, so that the sum of a rare class has relative precision.
    """
    for a in range(3):
        exponentials(C[a, 1], across.nodes, across.factors[a])
        exponentials(C[a, 0], down.nodes, down.factors[a])
    high = max(m[0], m[1], m[2])
    e0, e1, e2 = math.exp(m[0] - high), math.exp(m[1] - high), math.exp(m[2] - high)
    total0 = total1 = total2 = 0.0
    for i in range(down.nodes.size):
        g0, g1, g2 = down.factors[0, i], down.factors[1, i], down.factors[2, i]
        s0, s1, s2 = along_a_row(across.factors, across.weights, e0 * g0, e1 * g1, e2 * g2)
        total0 += down.weights[i] * g0 * s0
        total1 += down.weights[i] * g1 * s1
        total2 += down.weights[i] * g2 * s2
    shift = high + math.log(e0 * total0 + e1 * total1 + e2 * total2)  # so that the probabilities sum to 1
    log_p[0] = m[0] - shift + math.log(total0)
    log_p[1] = m[1] - shift + math.log(total1)
    log_p[2] = m[2] - shift + math.log(total2)


@kernel
def exponentials(c: float, nodes: Array, found: Array) -> None:
    """exp(c t) at nodes that are symmetric about 0, half of them as reciprocals."""
    last = nodes.size - 1
    for j in range((nodes.size + 1) // 2):
        found[j] = math.exp(c * nodes[j])
        found[last - j] = 1.0 / found[j]


@summing_kernel
def along_a_row(factors: Array, weights: Array, a: float, b: float, c: float) -> tuple[float, float, float]:
    """The weighted sums of f_k / (a f_0 + b f_1 + c f_2) over the columns f of `factors`."""
    s0 = s1 = s2 = 0.0
    for j in range(weights.size):
        f0, f1, f2 = factors[0, j], factors[1, j], factors[2, j]
        share = weights[j] / (a * f0 + b * f1 + c * f2)
        s0 += share * f0
        s1 += share * f1
        s2 += share * f2
    return s0, s1, s2


@kernel
def normalise(log_p: Array) -> None:
    """Make the probabilities sum to 1."""
    total = 0.0
    for a in range(log_p.size):
        total += math.exp(log_p[a])
    shift = math.log(total)
    for a in range(log_p.size):
        log_p[a] -= shift


@kernel
def along_a_line(m: Array, C: Array, log_p: Array) -> None:
    """Three classes with large variance: the two less likely ones by integrals, the likeliest as the complement."""
    likeliest = 0
    for k in range(1, 3):
        if m[k] > m[likeliest]:
            likeliest = k
    left = 1.0
    for k in range(3):
        if k != likeliest:
            log_p[k] = log_against_two(k, m, C)
            left -= math.exp(log_p[k])
    if left > 0.01:
        log_p[likeliest] = math.log(left)
    else:
        log_p[likeliest] = log_against_two(likeliest, m, C)
        normalise(log_p)


@kernel
def log_against_two(k: int, m: Array, C: Array) -> float:
    """The log probability of class k against the other two: one integral along a line.

    With w the difference of the other two logits and u the logit of k above their mean,
    p_k = E sigmoid(u - log 2 cosh(w/2)). Given w, u is Gaussian: the inner integral is a smoothed sigmoid. The outer
    integrand in w bends only at w = 0 and where its argument crosses 0, the more sharply the larger the variances.
    These points are end points of panels, where the double-exponential rule has most of its nodes. The integrand is
    log-concave, and falls on both sides of its peak like a Gaussian or faster: for a rare class the panels are placed
    around the peak, and all values are relative to it.
    """
    i, j = (k + 1) % 3, (k + 2) % 3
    u0 = m[k] - 0.5 * (m[i] + m[j])
    w0 = m[i] - m[j]
    cu1 = C[k, 0] - 0.5 * (C[i, 0] + C[j, 0])
    cu2 = C[k, 1] - 0.5 * (C[i, 1] + C[j, 1])
    cw1, cw2 = C[i, 0] - C[j, 0], C[i, 1] - C[j, 1]
    sw = math.hypot(cw1, cw2)
    slope = 0.0
    tau = math.hypot(cu1, cu2)
    if sw > 0.0:
        slope = cu1 * (cw1 / sw) + cu2 * (cw2 / sw)  # of u in the standardised w
        tau = abs(cu1 * (cw2 / sw) - cu2 * (cw1 / sw))  # the rest of u's standard deviation
    line = Line(u0, w0, slope, sw, smoother(tau))
    # panels end where w = 0, where u0 + slope t - |w|/2 = 0 on either side, and at the peak, which for large variances
    # is near one of these points and narrower than the tolerance of the search
    peak = find_peak(line)
    ends = np.full(6, peak)
    if sw > 0.0:
        ends[1] = -w0 / sw
    if slope != 0.5 * sw:
        ends[2] = -(u0 - 0.5 * w0) / (slope - 0.5 * sw)
    if slope != -0.5 * sw:
        ends[3] = -(u0 + 0.5 * w0) / (slope + 0.5 * sw)
    top = log_integrand(line, peak)
    for e in range(1, 4):
        there = log_integrand(line, ends[e])
        if there > top:
            peak, top = ends[e], there
    ends[4], ends[5] = -np.inf, np.inf
    for e in range(6):
        ends[e] = min(max(ends[e], peak - REACH), peak + REACH)
    ends.sort()
    p = 0.0
    for e in range(5):
        nearer = ends[e + 1] if ends[e + 1] <= peak else ends[e]
        if ends[e + 1] > ends[e] and log_integrand(line, nearer) - top > NOTHING:
            p += outer_panel(ends[e], ends[e + 1], line, top)
    # Jensen: log E softmax_k >= m_k - log sum exp(m + variance/2): a lower bound, in case p is lost to rounding
    high = -np.inf
    for a in range(3):
        high = max(high, m[a] + 0.5 * (C[a, 0] ** 2 + C[a, 1] ** 2))
    floor = m[k] - high - math.log(3.0)
    return max(top + math.log(p), floor) if p > 0.0 else floor


class Line(NamedTuple):
    """One class against the other two, along the standardised difference t of their logits."""

    u0: float
    w0: float
    slope: float
    sw: float
    smoother: Smoother  # for the rest of the standard deviation of u


@kernel
def argument(line: Line, t: float) -> float:
    """The mean of u - log 2 cosh(w/2) at t."""
    w = abs(line.w0 + line.sw * t)
    bend = math.log1p(math.exp(-w)) if w < 37.0 else 0.0
    return line.u0 + line.slope * t - (0.5 * w + bend)


@kernel
def log_integrand(line: Line, t: float) -> float:
    """The logarithm of the integrand at t, without its constant."""
    return log_smoothed(argument(line, t), line.smoother) - 0.5 * t * t


@kernel
def find_peak(line: Line) -> float:
    """The maximum of the integrand's logarithm, which is concave, to 0.1, by golden-section search."""
    # at the peak, t is the slope of the other terms
    far = abs(line.slope) + 0.5 * line.sw
    far = min(far, math.sqrt(-2.0 * min(log_integrand(line, 0.0), 0.0)))
    lower, upper = -far, far
    a, b = upper - GOLDEN * (upper - lower), lower + GOLDEN * (upper - lower)
    at_a = log_integrand(line, a)
    at_b = log_integrand(line, b)
    for _ in range(60):
        if upper - lower < 0.1:
            break
        if at_a > at_b:
            upper, b, at_b = b, a, at_a
            a = upper - GOLDEN * (upper - lower)
            at_a = log_integrand(line, a)
        else:
            lower, a, at_a = a, b, at_b
            b = lower + GOLDEN * (upper - lower)
            at_b = log_integrand(line, b)
    return 0.5 * (lower + upper)


@kernel
def outer_panel(lower: float, upper: float, line: Line, top: float) -> float:
    """The double-exponential rule on a panel, for the integrand divided by exp(top).

    Halving the step squares the error, so the rule ends once a halving changes little.
    """
    width = upper - lower
    total, before, step, first = 0.0, 0.0, 0.5, 0
    for last in LAST:
        for i in range(first, last):
            from_end = width * FROM_END[i]  # exact even when tiny
            for t in (lower + from_end, upper - from_end):
                if top > LIKELY:
                    total += SHARE[i] * math.exp(-0.5 * t * t - top) * smoothed(argument(line, t), line.smoother)
                else:
                    total += SHARE[i] * math.exp(min(log_integrand(line, t) - top, 700.0))
        found = width * step * total / ROOT2PI
        off = abs(found - before)
        if off < 3e-7 * found or (step < 0.25 and off < 1e-7):
            break
        before, step, first = found, 0.5 * step, last
    return found


@kernel
def scramble(x: int) -> int:
    """Mix the bits of a 32-bit number; every product stays below 2^63."""
    x &= 0xFFFFFFFF
    x = (((x >> 16) ^ x) * 0x45D9F3B) & 0xFFFFFFFF
    x = (((x >> 16) ^ x) * 0x45D9F3B) & 0xFFFFFFFF
    return (x >> 16) ^ x


@kernel
def uniform(seed: int, round_: int, draw: int) -> float:
    """A number in (0, 1) that depends only on its three arguments, so that there is no generator to save."""
    return (scramble(scramble(scramble(seed + 1) + round_) + draw) + 0.5) / 4294967296.0


@shared_kernel
def fresh_points(seed: int, round_: int, points: Array) -> None:
    """Standard normal draws of one round, by the Box-Muller transform."""
    n, r = points.shape
    for i in range(n):
        for j in range(r):
            index = 2 * (i * r + j)
            radius = math.sqrt(-2.0 * math.log(uniform(seed, round_, index)))
            points[i, j] = radius * math.cos(2.0 * math.pi * uniform(seed, round_, index + 1))


def sobol_points(n_samples: int, dimension: int, seed: int) -> Array:
    """Scrambled Sobol points, made normal by inversion; the same for all rounds."""
    from scipy.stats import qmc  # half a second, which other learners need not wait

    sampler = qmc.Sobol(dimension, scramble=True, rng=np.random.default_rng(seed))
    exponent = math.ceil(math.log2(n_samples))
    cube = sampler.random_base2(exponent)[:n_samples]
    return np.ascontiguousarray(scipy.special.ndtri(np.clip(cube, 1e-12, 1.0 - 1e-12)))
