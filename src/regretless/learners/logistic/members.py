"""Which members are mixed, and their constants.

The members were chosen by measurement, greedily, from 36 pairs (kappa, lambda) of Newton steps and five rates of
AdaGrad over twenty streams (those of `benchmarks/quality.py`): the first alone is within 12 % of the best pair of every
stream on average, the first five within 2.3 %, all nine within 2 %. One more member costs ln((N+1)/N), and time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from regretless.core import validate
from regretless.core.types import Array

# (kappa, lambda), best first: certain and slow for noisy streams, uncertain for separable and changing ones
NEWTON = (
    (0.3, 0.3), (0.003, 3.0), (1.0, 10.0), (0.3, 0.1), (1.0, 0.3), (0.003, 1.0), (1.0, 30.0), (0.1, 3.0), (0.1, 0.1),
)  # fmt: skip
ADAGRAD = (0.1, 0.3, 1.0)  # rates for rows of up to WIDE columns; for wider rows, in proportion to 1/columns
WIDE = 100
RADII = (0.25, 1.0, 4.0)  # of a class's weights on standardised rows
HALF_LIVES = (7.0, 70.0, 700.0, 7000.0)  # of the certainty of forgetful members, in rows
FORGETFUL = (1.0, 0.3)  # their kappa and lambda
VIRTUAL_WEIGHT = 0.5  # of AIOLI

# The most multiplications per row that one kind of member may take in total; beyond, there are fewer of them, or none.
BUDGET = 4e6


LEAST_RADIUS, LARGEST_RADIUS = 1e-50, 1e50  # beyond these, squares of radii are too close to overflow


class Members(NamedTuple):
    """The members' constants, as the kernels read them: one row per member."""

    radii: Array  # (M,) of AIOLI (twice these, for the margin) or FOLKLORE: those with the sharper certificate
    regularization: Array  # (M,) their lambda, as the coefficient of |W|^2: that of the margin is half of it
    newton: Array  # (N, 3) kappa, lambda, rho
    rates: Array  # (R,) of AdaGrad

    @property
    def total(self) -> int:
        """The number of members."""
        return len(self.radii) + len(self.newton) + len(self.rates)


class Constants(NamedTuple):
    """What the kernels read besides the state. It changes only when a class or a column is added."""

    radii: Array  # these four as in `Members`
    regularization: Array
    newton: Array
    rates: Array
    helmert: Array  # FOLKLORE's basis of logits; (0, 0) where it is not needed
    shares: bool  # whether the mixture tracks change

    @property
    def members(self) -> Members:
        """The members alone."""
        return Members(self.radii, self.regularization, self.newton, self.rates)


def choose(width: int, n_classes: int, radii: object, forgetful: bool) -> Members:
    """The members for rows of that width. With more classes there are fewer: the first of each kind."""
    width, r = max(width, 1), n_classes - 1
    newton = [(kappa, lam, 1.0) for kappa, lam in NEWTON]
    if forgetful:
        newton[1:1] = [(*FORGETFUL, 0.5 ** (1.0 / rows)) for rows in HALF_LIVES]
    matrices = n_classes if n_classes > 2 else 1
    asked = RADII if isinstance(radii, str) and radii == "auto" else _as_list(radii)
    sizes = [validate.positive("radii", radius) for radius in asked]
    if any(not LEAST_RADIUS <= size <= LARGEST_RADIUS for size in sizes):
        raise ValueError(f"radii={sizes}: give numbers from {LEAST_RADIUS:g} to {LARGEST_RADIUS:g}.")
    affordable = _within(BUDGET, r**3 * width**2) if asked is RADII else len(sizes)
    kept = np.array(sizes[:affordable])
    return Members(
        radii=kept,
        regularization=0.5 / kept**2,
        newton=np.array(newton[: _within(BUDGET, matrices * width**2)]).reshape(-1, 3),
        rates=np.array(ADAGRAD) * min(1.0, WIDE / width),
    )


def names(members: Members, n_classes: int) -> list[str]:
    """A title for each member."""
    kind = "AIOLI" if n_classes == 2 else "FOLKLORE"
    found = [f"{kind}, radius {radius:g}" for radius in members.radii]
    for kappa, lam, rho in members.newton:
        half_life = "" if rho == 1.0 else f", half-life {np.log(0.5) / np.log(rho):.0f} rows"
        found.append(f"Newton, certainty {kappa:g}, prior {lam:g}{half_life}")
    return found + [f"AdaGrad, rate {rate:g}" for rate in members.rates]


def _within(budget: float, cost: float) -> int:
    return int(budget // cost)


def _as_list(radii: object) -> list[float]:
    if isinstance(radii, tuple | list | np.ndarray):
        return list(radii)
    raise ValueError(f'radii={radii!r} is not supported: give "auto", or a sequence of numbers > 0.')
