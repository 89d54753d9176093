r"""Mirror maps: from a sum of gradients back to a point of the set.

A proxy :math:`V` (strongly convex) on a set :math:`\Theta` of :math:`M` weights defines the mirror step

.. math:: \theta(\zeta, \beta) = \arg\min_{\theta \in \Theta} \; \zeta \cdot \theta + \beta V(\theta)

With :math:`r = \max(1, \ln M)`, :math:`s = 1/r` and :math:`\lambda` the size of the set, the proxies are

=========  ====================================  ================================  ==================================
proxy      V                                     alpha (strong convexity, l1)      max V - min V on the simplex
=========  ====================================  ================================  ==================================
euclidean  \|theta\|_2^2 / 2                       1 (in the l2 norm)                lam^2 (1 - 1/M) / 2
entropy    lam ln(M/lam) + sum theta ln theta    1 / lam                           lam ln M
p-norm     \|theta\|_p^2 / (2 lam^2), p = 1 + s    s M^(-2s/(1+s)) / lam^2           (1 - M^(-2s/(1+s))) / 2
power      C_0 + C_1 sum \|theta\|^(1+s)           M^(-s)                            lam^2 (1 - M^(-s)) / (s(s+1))
=========  ====================================  ================================  ==================================

with :math:`C_1 = \lambda^{1-s}/(s(s+1))` and :math:`C_0` such that the least value is 0: (8), (35) and (36) of `mda`.
For M >= 3 these are the text's p and s. Its s is 1.44 at M = 2, where the curvature of (36) vanishes with theta (alpha
is 1/4 on the simplex and 0 on the octahedron, not M^(-s) = 1/e), and undefined at M = 1: with r = 1 both are Euclidean
there. (35) is printed with theta^p instead of \|theta\|^p, and its least value on the simplex is not 0: what enters a
bound is max V - min V.

On the sub-simplex (theta >= 0, sum <= lam) and the octahedron (\|theta\|_1 <= lam) p-norm and power are the same
formulas with C_0 = 0: their minimiser is 0, alpha is the same, max V - min V loses the subtracted power of M. The
entropy has no slope at 0. There it is the entropy of the simplex that arises when a zero function, or every function
negated, is added to the base functions (M + 1 or 2M weights, the least entropy over those that give theta), and its
constants are those of the larger simplex.

Adding the functions by hand works with every proxy, and the ratio of max V - min V to alpha, on which the bounds
depend, can be smaller: for the power proxy with M = 1000, lam = 1 it is 16.4 on the octahedron and 11.5 on the simplex
with 2M (for the entropy 7.6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from regretless.core.jit import kernel, summing_kernel
from regretless.core.types import Array
from regretless.theory.domains import Ball, Box, Domain, RowBall, WholeSpace

EUCLIDEAN, ENTROPY, PNORM, POWER = range(4)
WHOLE, BALL, SIMPLEX, SUBSIMPLEX, OCTAHEDRON, BOX = range(6)

PROXIES = {"euclidean": EUCLIDEAN, "entropy": ENTROPY, "p-norm": PNORM, "power": POWER}
DOMAINS = {
    "whole": WHOLE,
    "ball": BALL,
    "simplex": SIMPLEX,
    "subsimplex": SUBSIMPLEX,
    "octahedron": OCTAHEDRON,
    "box": BOX,
}

# The sets on which each proxy has a mirror step.
MIRRORS = {
    "euclidean": ("simplex", "subsimplex", "octahedron", "ball", "box", "whole"),
    "entropy": ("simplex", "subsimplex", "octahedron"),
    "p-norm": ("simplex", "subsimplex", "octahedron", "whole"),
    "power": ("simplex", "subsimplex", "octahedron"),
}
_WHY_NOT = {
    "entropy": "it is defined for weights that are non-negative, or are differences of such",
    "p-norm": "it is made for sets bounded in the l1 norm, and on others the step has no simple form",
    "power": "it is made for sets bounded in the l1 norm: elsewhere its curvature falls to 0 as the weights grow",
}

INVERSE_FACTORIALS = tuple(1.0 / math.factorial(i) for i in range(12, -1, -1))
LEAST_EXPONENT = -708.0  # of which e^x has all its digits
TINY = 1e-300  # a temperature below it would turn 0/0 into NaN


@summing_kernel
def total(x: Array) -> float:
    """The sum of x; in as many partial sums as the processor likes, which also rounds less than one."""
    s = 0.0
    for j in range(x.size):
        s += x[j]
    return s


@kernel
def lowest(x: Array) -> float:
    """The least entry; in four running minima, which a processor takes at once."""
    a, b, c, d = x[0], x[0], x[0], x[0]
    whole = x.size - x.size % 4
    for j in range(0, whole, 4):
        a, b, c, d = min(a, x[j]), min(b, x[j + 1]), min(c, x[j + 2]), min(d, x[j + 3])
    for j in range(whole, x.size):
        a = min(a, x[j])
    return min(min(a, b), min(c, d))


@kernel
def exponentials(x: Array) -> None:
    """x = e^x for every x <= 0, to the last digit; below -708 it is 0.

    A call of `exp` an entry would be most of what a row costs. Here e^x = 2^k e^r with |r| <= ln(2)/2, e^r by its
    series and 2^k by its exponent's bits, which a processor does for several entries at once.
    """
    bits = np.empty(x.size, dtype=np.int64)
    powers = bits.view(np.float64)
    for j in range(x.size):
        a = max(x[j], LEAST_EXPONENT)
        k = math.floor(a * 1.4426950408889634 + 0.5)
        r = (a - k * 0.6931471803691238) - k * 1.9082149292705877e-10  # k ln 2, its leading digits first
        p = 1 / 6227020800
        for c in INVERSE_FACTORIALS:
            p = p * r + c
        bits[j] = (int(k) + 1023) << 52 if x[j] >= LEAST_EXPONENT else 0
        x[j] = p
    for j in range(x.size):
        x[j] *= powers[j]


@kernel
def entropy_simplex(zeta: Array, beta: float, lam: float, out: Array) -> None:
    """out = lam softmax(-zeta / beta), eq. (10): differences first, so that nothing overflows."""
    low, heat = lowest(zeta), 1.0 / max(beta, TINY)
    for j in range(zeta.size):
        out[j] = (low - zeta[j]) * heat
    exponentials(out)
    scale = lam / total(out)
    for j in range(zeta.size):
        out[j] *= scale


@kernel
def entropy_subsimplex(zeta: Array, beta: float, lam: float, out: Array) -> None:
    """The first M weights of the simplex with one more base function, 0, whose zeta stays 0."""
    low, heat = min(lowest(zeta), 0.0), 1.0 / max(beta, TINY)
    for j in range(zeta.size):
        out[j] = (low - zeta[j]) * heat
    exponentials(out)
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

    In units of `unit` the optimality conditions read: theta is the weights of d = (mu - zeta)_+, where mu lets them
    add up to lam on the simplex; on the sub-simplex and the octahedron (with -|zeta|, and the signs put back) mu is
    0 if that much is allowed. The Euclidean proxy is the power proxy with s = 1.
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


@kernel
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


@kernel
def eager_step(proxy: int, domain: int, lam: float, zeta: Array, u: Array, rate: float, out: Array) -> None:
    """The eager scheme (22), (24): out = argmin of rate u.theta + D_V(theta, the last out); rate is gamma/beta.

    `zeta` is a dual point of the last `out`, 0 at the start, and becomes one of the new: zeta += rate u, the mirror
    step, then -grad V of it. What the last throws away, the part of zeta that only pressed against the
    boundary, is all that sets this scheme apart from the lazy one. The entropy never touches the boundary, so its zeta
    is kept (this is EG, (23), second line) and a weight too small for floating point can still come back.
    """
    for j in range(zeta.size):
        zeta[j] += rate * u[j]
    mirror_step(proxy, domain, lam, zeta, 1.0, out)
    if proxy != ENTROPY:
        dual_point(proxy, domain, lam, out, zeta)


@dataclass(frozen=True)
class Mirror:
    """A proxy on a set of weights, with the constants that schedules and bounds read.

    Parameters
    ----------
    proxy : {"euclidean", "entropy", "p-norm", "power"}
    domain : {"simplex", "subsimplex", "octahedron", "ball", "box", "whole"}
        `MIRRORS` lists the pairs that have a mirror step.
    dimension : int
        M, the number of weights.
    size : float
        lam: the sum of the weights, or the bound on their l1 norm, or the radius of the ball or box. In the whole space
        it is the scale of (35), and the Euclidean proxy ignores it.

    Examples
    --------
    >>> mirror = Mirror("entropy", "simplex", dimension=3)
    >>> mirror.step([0.0, 1.0, 2.0], beta=1.0).round(4).tolist()
    [0.6652, 0.2447, 0.09]
    >>> round(mirror.spread / mirror.strong_convexity, 4)  # lam^2 ln M
    1.0986
    >>> Mirror("power", "whole", dimension=3)
    Traceback (most recent call last):
    ...
    ValueError: proxy='power' has no step on domain='whole': it is made for sets bounded in the l1 norm: elsewhere its \
curvature falls to 0 as the weights grow. Its sets are ('simplex', 'subsimplex', 'octahedron').

    References
    ----------
    `mda`, sections 3.1, 6.1 and 6.2.
    """

    proxy: str
    domain: str
    dimension: int
    size: float = 1.0

    def __post_init__(self) -> None:
        if self.proxy not in MIRRORS:
            raise ValueError(f"proxy={self.proxy!r} is unknown: choose one of {sorted(MIRRORS)}.")
        if self.domain not in DOMAINS:
            raise ValueError(f"domain={self.domain!r} is unknown: choose one of {sorted(DOMAINS)}.")
        if self.domain not in MIRRORS[self.proxy]:
            raise ValueError(
                f"proxy={self.proxy!r} has no step on domain={self.domain!r}: {_WHY_NOT[self.proxy]}. "
                f"Its sets are {MIRRORS[self.proxy]}."
            )
        if self.dimension < 1:
            raise ValueError(f"dimension={self.dimension!r} must be at least 1.")
        if not (math.isfinite(self.size) and self.size > 0.0):
            raise ValueError(f"size={self.size!r} must be positive and finite.")

    @classmethod
    def on(cls, proxy: str, domain: Domain, dimension: int) -> Mirror:
        """The mirror of a set of `regretless.domains`.

        >>> from regretless.theory.domains import Simplex
        >>> Mirror.on("entropy", Simplex(2.0), dimension=3).spread.__round__(4)  # 2 ln 3
        2.1972
        """
        if isinstance(domain, RowBall) or not isinstance(domain, Domain):
            raise ValueError(f"domain={domain!r} has no mirror step: its sets are {MIRRORS['euclidean']}.")
        name = "whole" if isinstance(domain, WholeSpace) else type(domain).__name__.lower()
        size = domain.radius if isinstance(domain, Ball | Box) else getattr(domain, "size", 1.0)
        return cls(proxy, name, dimension, size)

    @property
    def codes(self) -> tuple[int, int]:
        """The integers of proxy and domain that the kernels read."""
        return PROXIES[self.proxy], DOMAINS[self.domain]

    @property
    def exponent(self) -> float:
        """s of (36) and p - 1 of (35): 1/ln M, but at most 1."""
        return 1.0 / max(1.0, math.log(self.dimension))

    @property
    def norm(self) -> str:
        """The norm of the strong convexity; gradients are measured in its dual (l1: the largest entry; l2: l2)."""
        return "l2" if self.proxy == "euclidean" else "l1"

    @property
    def strong_convexity(self) -> float:
        r"""An alpha with :math:`D_V(\theta, \theta') \ge \alpha |\theta - \theta'|^2 / 2`, in `norm`, on the whole set.

        For even M none of them can be larger: entropy at two equal weights, p-norm and power at equal weights, which
        sway alternately. (For odd M on the simplex the latter two could be, a little.)
        """
        M, s = self.dimension, self.exponent
        if self.proxy == "euclidean":
            return 1.0
        if self.proxy == "entropy":
            return 1.0 / self.size
        if self.proxy == "p-norm":
            return s * M ** (-2.0 * s / (1.0 + s)) / self.size**2
        return M**-s

    @property
    def spread(self) -> float:
        """V*: the largest minus the least value of V on the set. Infinite for the whole space."""
        M, s, lam = self.dimension, self.exponent, self.size
        if self.domain == "whole":
            return math.inf
        # On the simplex the least value is not 0 but that of equal weights; p-norm and power are then relative to it.
        centred = self.domain == "simplex"
        if self.proxy == "entropy":
            return lam * math.log({"simplex": M, "subsimplex": M + 1, "octahedron": 2 * M}[self.domain])
        if self.proxy == "euclidean":
            return 0.5 * lam * lam * {"simplex": 1.0 - 1.0 / M, "box": float(M)}.get(self.domain, 1.0)
        if self.proxy == "p-norm":
            return 0.5 * (1.0 - M ** (-2.0 * s / (1.0 + s)) if centred else 1.0)
        return lam * lam / (s * (s + 1.0)) * (1.0 - M**-s if centred else 1.0)

    def start(self) -> Array:
        """The minimiser of V. The bounds need it as first weights (`mda` allows any, and its Proposition 2 then fails).

        >>> Mirror("p-norm", "simplex", dimension=4, size=2.0).start().tolist()
        [0.5, 0.5, 0.5, 0.5]
        """
        weight = 0.0
        if self.domain == "simplex":
            weight = self.size / self.dimension
        elif (self.proxy, self.domain) == ("entropy", "subsimplex"):
            weight = self.size / (self.dimension + 1)
        return np.full(self.dimension, weight)

    def value(self, theta: ArrayLike) -> float:
        """V(theta), for theta in the set; 0 at the start for all but the p-norm and Euclidean proxies on the simplex.

        >>> Mirror("entropy", "octahedron", dimension=2).value([0.0, 0.0])
        0.0
        """
        x = self._vector(theta, "theta")
        M, s, lam = self.dimension, self.exponent, self.size
        if self.proxy == "euclidean":
            return float(0.5 * (x @ x))
        if self.proxy == "p-norm":
            p = 1.0 + s
            return float(0.5 * np.sum(np.abs(x / lam) ** p) ** (2.0 / p))
        if self.proxy == "power":
            least = M**-s if self.domain == "simplex" else 0.0
            return float(lam * lam / (s * (s + 1.0)) * (np.sum(np.abs(x / lam) ** (s + 1.0)) - least))
        if self.domain == "subsimplex":
            x = np.append(x, max(0.0, lam - x.sum()))
        elif self.domain == "octahedron":
            k = common_product(x, lam)
            larger = 0.5 * (np.abs(x) + np.hypot(x, k))
            smaller = np.divide(0.25 * k * k, larger, out=np.zeros(M), where=larger > 0.0)
            x = np.append(larger, smaller)
        return float(lam * np.sum(xlogy(x / lam, x.size * x / lam)))

    def gradient(self, theta: ArrayLike) -> Array:
        """The gradient of V at theta (on the simplex up to a constant, which no step sees).

        >>> Mirror("power", "octahedron", dimension=2).gradient([0.5, -0.25]).tolist()
        [0.5, -0.25]
        """
        out = np.empty(self.dimension)
        dual_point(*self.codes, self.size, self._inside(theta), out)
        return -out

    def step(self, zeta: ArrayLike, beta: float = 1.0) -> Array:
        """The mirror step, argmin of zeta.theta + beta V(theta): the lazy scheme (11) of `mda`.

        >>> Mirror("euclidean", "octahedron", dimension=3).step([3.0, -2.5, 0.0]).tolist()
        [-0.75, 0.25, 0.0]
        """
        if not (math.isfinite(beta) and beta > 0.0):
            raise ValueError(f"beta={beta!r} must be positive and finite.")
        out = np.empty(self.dimension)
        mirror_step(*self.codes, self.size, self._vector(zeta, "zeta"), float(beta), out)
        return out

    def step_from(self, theta: ArrayLike, u: ArrayLike, rate: float = 1.0) -> Array:
        """The argmin of rate u.theta' + D_V(theta', theta): one step of the eager scheme (22) of `mda`.

        For the entropy theta must lie inside the set. A learner goes on with `eager_step`, which keeps the dual point.

        >>> Mirror("entropy", "simplex", dimension=2).step_from([0.5, 0.5], [1.0, 0.0]).round(4).tolist()
        [0.2689, 0.7311]
        """
        zeta, out = np.empty(self.dimension), np.empty(self.dimension)
        dual_point(*self.codes, self.size, self._inside(theta), zeta)
        eager_step(*self.codes, self.size, zeta, self._vector(u, "u"), float(rate), out)
        return out

    def _vector(self, values: ArrayLike, name: str) -> Array:
        x = np.ascontiguousarray(values, dtype=np.float64)
        if x.shape != (self.dimension,):
            raise ValueError(f"{name} has shape {x.shape}, and the mirror is of dimension {self.dimension}.")
        if not np.isfinite(x).all():
            raise ValueError(f"{name} must be finite.")
        return x

    def _inside(self, theta: ArrayLike) -> Array:
        x = self._vector(theta, "theta")
        if self.proxy == "entropy":
            room = self.size if self.domain == "simplex" else self.size - float(np.sum(np.abs(x)))
            if room <= 0.0 or (self.domain != "octahedron" and np.min(x) <= 0.0):
                raise ValueError(f"theta lies on the boundary of the {self.domain}, where the entropy has no gradient.")
        return x
