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
For M >= 3 these are the p and s of the paper. Its s is 1.44 at M = 2, where the curvature of (36) vanishes with theta
(alpha is 1/4 on the simplex and 0 on the octahedron, not M^(-s) = 1/e), and undefined at M = 1: with r = 1 both are
Euclidean there. (35) is printed with theta^p instead of \|theta\|^p, and its least value on the simplex is not 0: the
bounds contain max V - min V.

The p-norm is defined on every closed set. On the ball and the box of radius lam its step is the root of one equation,
and max V - min V is M^((1-s)/(1+s)) / 2 and M^(2/(1+s)) / 2; alpha is the same.

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

from regretless.core.types import Array
from regretless.learners.first_order.mirror_steps import (
    BALL,
    BOX,
    ENTROPY,
    EUCLIDEAN,
    OCTAHEDRON,
    PNORM,
    POWER,
    SIMPLEX,
    SUBSIMPLEX,
    WHOLE,
    common_product,
    dual_point,
    eager_step,
    mirror_step,
)
from regretless.theory.domains import Ball, Box, Domain, RowBall, WholeSpace

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
    "p-norm": ("simplex", "subsimplex", "octahedron", "ball", "box", "whole"),
    "power": ("simplex", "subsimplex", "octahedron"),
}
_WHY_NOT = {
    "entropy": "it is defined for non-negative weights and their differences",
    "power": "it is for sets bounded in the l1 norm: elsewhere its curvature falls to 0 as the weights grow",
}


@dataclass(frozen=True)
class Mirror:
    """A proxy on a set of weights, with the constants that schedules and bounds use.

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
    ValueError: proxy='power' has no step on domain='whole': it is for sets bounded in the l1 norm: elsewhere its \
curvature falls to 0 as the weights grow. Choose one of ('simplex', 'subsimplex', 'octahedron').

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
                f"Choose one of {MIRRORS[self.proxy]}."
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
            raise ValueError(f"domain={domain!r} has no mirror step: choose one of {MIRRORS['euclidean']}.")
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

        For even M no larger alpha holds: the entropy attains it at two equal weights, p-norm and power at equal
        weights that change in alternating directions. (For odd M on the simplex the latter two could be slightly
        larger.)
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
            wide = {"ball": M ** ((1.0 - s) / (1.0 + s)), "box": M ** (2.0 / (1.0 + s))}.get(self.domain, 1.0)
            return 0.5 * (1.0 - M ** (-2.0 * s / (1.0 + s)) if centred else wide)
        return lam * lam / (s * (s + 1.0)) * (1.0 - M**-s if centred else 1.0)

    def spread_from(self, theta: ArrayLike) -> float:
        r"""An upper bound on :math:`D_V(\theta', \theta)` over the set: V* of the proxy whose minimiser is theta.

        The divergence is convex in its first argument, so on sets with few vertices it is the largest at one of them.
        On the ball and box the Euclidean one is exact, and for the p-norm the two parts are bounded separately.

        >>> mirror = Mirror("entropy", "simplex", dimension=2)
        >>> round(mirror.spread_from([0.25, 0.75]), 4)  # ln 4
        1.3863
        """
        x = self._inside(theta)
        M, lam = self.dimension, self.size
        if self.domain == "whole":
            return math.inf
        if self.proxy == "euclidean" and self.domain == "ball":
            return 0.5 * (lam + float(np.linalg.norm(x))) ** 2
        if self.proxy == "euclidean" and self.domain == "box":
            return 0.5 * float(np.sum((lam + np.abs(x)) ** 2))
        slope, here = self.gradient(x), self.value(x)
        highest = self.spread if self.domain in ("ball", "box") else self.value(lam * np.eye(1, M)[0])
        farthest = {
            "ball": lambda: lam * float(np.linalg.norm(slope)),
            "box": lambda: lam * float(np.abs(slope).sum()),
            "octahedron": lambda: lam * float(np.abs(slope).max()),
        }.get(self.domain, lambda: -lam * float(slope.min()))()
        at_corner = highest - here + farthest
        if self.domain == "subsimplex":
            at_corner = max(at_corner, self.value(np.zeros(M)) - here)
        return max(0.0, at_corner + float(slope @ x))

    def start(self) -> Array:
        """The minimiser of V, where the bounds start. (`mda` allows any first weights; its Proposition 2 then fails.)

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
        """The gradient of V at theta (on the simplex up to a constant, which does not change the step).

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

        For the entropy theta must lie inside the set. Learners use `eager_step`, which keeps the dual point.

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
            raise ValueError(f"{name} has shape {x.shape}; the mirror has dimension {self.dimension}.")
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
