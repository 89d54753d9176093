"""Which members are mixed, their constants, and their weights before the first row.

Nine pairs (kappa, lambda) of Newton steps and three rates of AdaGrad were chosen by measurement, greedily, from 36
pairs and five rates over twenty streams (those of `benchmarks/quality.py`). Three things were added for rare labels,
wide rows and rare 0/1 columns: see docs/online-logistic-regression.md.

- The cautious Newton members, which have kappa = 1 and a strong prior, leave the intercept free: its prior is
  `FREE_INTERCEPT`. A strong one keeps the forecast near 1/K for the first thousand rows. The others already have a weak
  prior, and on small streams a weaker one is worse.
- Each cautious member plays twice, on standardised rows and on the rows in which a column with two values is divided by
  its range (`scaling.py`).
- One member forecasts the frequencies of the labels so far, whatever the row is.

Weights before the first row are in proportion to `parts`, and a member costs ln(1/weight) at most. So what was added
takes its weight from the cautious members and from AdaGrad, which lead on long streams, where a few nats do not count.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.core.rows import validate
from regretless.core.types import Array
from regretless.learners.logistic import effort
from regretless.learners.logistic.effort import Expansion, Sizes
from regretless.learners.logistic.fourier_rows import BASE
from regretless.learners.logistic.newton import KAPPA, LAM, OCTAVE
from regretless.learners.logistic.scaling import RANGED, STANDARDISED

FREE_INTERCEPT = 0.3  # the prior of the intercept in cautious members


class Newton(NamedTuple):
    """The constants of a Newton member."""

    kappa: float  # certainty
    lam: float  # lambda, the prior of a weight
    rho: float = 1.0  # what is kept per row; 1 forgets nothing
    version: float = STANDARDISED  # of the rows on which it plays: see scaling.py
    intercept: float = math.inf  # the prior of the intercept, if it is weaker
    parts: float = 4.0  # of the weight before the first row


class AdaGrad(NamedTuple):
    """The constants of an AdaGrad member."""

    rate: float  # for rows of up to WIDE columns; for wider rows, in proportion to 1/columns
    intercept: float  # the rate of the intercept, for rows of any width
    version: float
    parts: float


def _cautious(lam: float, version: float) -> Newton:
    return Newton(1.0, lam, 1.0, version, FREE_INTERCEPT, parts=2.0)


# Best first, so that wide rows, which have the first alone, have a cautious one: that is for noisy streams. Uncertain
# ones are for separable and changing streams.
NEWTON = (
    Newton(0.3, 0.3),
    _cautious(30.0, RANGED),
    Newton(0.003, 3.0),
    _cautious(10.0, STANDARDISED),
    Newton(0.3, 0.1),
    Newton(1.0, 0.3),
    Newton(0.003, 1.0),
    _cautious(30.0, STANDARDISED),
    _cautious(10.0, RANGED),
    Newton(0.1, 3.0),
    Newton(0.1, 0.1),
    _cautious(100.0, RANGED),
    _cautious(100.0, STANDARDISED),
)
ADAGRAD = (
    AdaGrad(0.1, 0.1, STANDARDISED, 2.0),
    AdaGrad(0.3, 0.3, STANDARDISED, 1.0),
    AdaGrad(1.0, 1.0, STANDARDISED, 1.0),
    AdaGrad(0.1, 0.5, RANGED, 1.0),
)
FREQUENCIES = 2.0  # parts of the weight of the label frequencies
CERTIFIED = 4.0  # parts of AIOLI or FOLKLORE, for each radius
WIDE = 100
RADII = (1.0, 0.25, 4.0)  # of a class's weights on standardised rows; the first is best on long streams
HALF_LIVES = (7.0, 70.0, 700.0, 7000.0)  # of the certainty of forgetful members, in rows
FORGETFUL = (1.0, 0.3)  # their kappa and lambda
VIRTUAL_WEIGHT = 0.5  # of AIOLI

# The most multiplications per row that the Newton members, or AIOLI at all radii, may take in total; beyond, there are
# fewer of them, or none.
BUDGET = 4e6
# The share of it that FOLKLORE may take per radius for all of them to play, and for the first to play. Where there are
# many weights, it adds nothing to the forecasts, and AdaGrad's certificate is as good.
ALL_RADII, ONE_RADIUS = 0.005, 0.5


TREES_AT = Sizes._fields.index("trees")
LINEAR, NO_COLUMNS = Expansion(), np.empty(0, dtype=np.int64)
LEAST_RADIUS, LARGEST_RADIUS = 1e-50, 1e50  # beyond these, squares of radii are too close to overflow


class Members(NamedTuple):
    """The members' constants, as the kernels read them: one row per member."""

    radii: Array  # (M,) of AIOLI (twice these, for the margin) or FOLKLORE: those with the sharper certificate
    regularization: Array  # (M,) their lambda, as the coefficient of |W|^2: that of the margin is half of it
    newton: Array  # (N, 5) the first five entries of `Newton`: their places are named in newton.py
    rates: Array  # (R, 3) the first three entries of `AdaGrad`
    prior: Array  # (total,) weights before the first row, of which the members that are left out have had their part
    splines: Array  # (S, 6) the same for the members on spline rows, with the octave of Fourier rows,
    fourier: Array  # (F, 6) on Fourier rows,
    products: Array  # (Q, 6) on product rows
    sizes: NDArray[np.int64]  # of the expanded rows and of the forest: the entries of `effort.Sizes`
    numbers: NDArray[np.int64]  # the columns that hold numbers, which have splines
    stacks: bool  # whether the last member combines the others

    @property
    def total(self) -> int:
        """The number of members."""
        return len(self.prior)

    @property
    def trees(self) -> int:
        """The number of trees of the forest, which is one member."""
        return int(self.sizes[TREES_AT])

    @property
    def of_each_kind(self) -> list[int]:
        """How many members of each kind there are, in their order."""
        linear = [len(self.radii), len(self.newton), len(self.rates) + 1]  # the last are the label frequencies
        return [*linear, len(self.splines), len(self.fourier), len(self.products), bool(self.trees), self.stacks]

    @property
    def linear(self) -> int:
        """The number of members on rescaled rows, which come first; the last of these is the label frequencies."""
        return len(self.radii) + len(self.newton) + len(self.rates) + 1


class Constants(NamedTuple):
    """What the kernels read besides the state. It changes only when a class or a column is added."""

    radii: Array  # these eleven as in `Members`
    regularization: Array
    newton: Array
    rates: Array
    prior: Array
    splines: Array
    fourier: Array
    products: Array
    sizes: NDArray[np.int64]
    numbers: NDArray[np.int64]
    stacks: bool
    helmert: Array  # FOLKLORE's basis of logits; (0, 0) where it is not needed
    blind: NDArray[np.int64]  # the columns that the second version of the row lacks: see `Schema.singly`
    shares: bool  # whether the mixture tracks change

    @property
    def members(self) -> Members:
        """The members alone."""
        return Members._make(self[: len(Members._fields)])


class Told(NamedTuple):
    """What members are given of some rows."""

    X: Array
    rows: Array  # standardised
    ranged: Array  # the second version: see scaling.py
    counts: Array  # of the values learned before, per column; the members on splines update it
    Y: Array
    weight: Array
    splines: Array  # (at least n, D) room for the spline rows
    places: NDArray[np.int64]  # of one row: see `spline_row`
    ready: bool  # whether one row was just forecast from this state: its spline row is there, and the logits are


def choose(
    width: int,
    n_classes: int,
    radii: object,
    forgetful: bool,
    intercept: bool = True,
    expansion: Expansion = LINEAR,
    numbers: NDArray[np.int64] = NO_COLUMNS,
) -> Members:
    """The members for rows of that width. With more classes there are fewer: the first of each kind.

    `intercept` says whether the last column is one. `numbers` are the columns that have splines, if the expansion does.
    """
    width = max(width, 1)
    newton = list(NEWTON)
    if forgetful:  # their prior is that of a free intercept, to which `forget` returns too
        newton[1:1] = [Newton(*FORGETFUL, rho=0.5 ** (1.0 / rows)) for rows in HALF_LIVES]
    matrices = n_classes if n_classes > 2 else 1
    asked = RADII if isinstance(radii, str) and radii == "auto" else _as_list(radii)
    sizes = [validate.positive("radii", radius) for radius in asked]
    if any(not LEAST_RADIUS <= size <= LARGEST_RADIUS for size in sizes):
        raise ValueError(f"radii={sizes}: give numbers from {LEAST_RADIUS:g} to {LARGEST_RADIUS:g}.")
    affordable = _radii(n_classes, width) if asked is RADII else len(sizes)
    kept, steps = np.array(sizes[:affordable]), newton[: int(BUDGET // (matrices * width**2))]
    narrower = min(1.0, WIDE / width)
    of_rates = [each.parts for each in ADAGRAD]
    of_all = CERTIFIED * len(sizes) + sum(each.parts for each in newton) + sum(of_rates) + FREQUENCIES
    of_all += expansion.of_all
    expanded = expansion.splines + expansion.fourier + expansion.products
    parts = [CERTIFIED] * len(kept) + [each.parts for each in steps] + of_rates + [FREQUENCIES]
    parts += [each.parts for each in expanded]
    parts += [effort.FOREST] * bool(expansion.sizes.trees) + [effort.STACK] * expansion.stacks
    return Members(
        radii=kept,
        regularization=0.5 / kept**2,
        newton=np.array([(*each[:4], _free(each, intercept)) for each in steps]).reshape(-1, 5),
        rates=np.array(
            [
                (each.rate * narrower, each.intercept if intercept else each.rate * narrower, each.version)
                for each in ADAGRAD
            ]
        ),
        prior=np.array(parts) / of_all,
        splines=effort.constants(expansion.splines, intercept),
        fourier=effort.constants(expansion.fourier, intercept),
        products=effort.constants(expansion.products, intercept),
        sizes=np.array(expansion.sizes, dtype=np.int64),
        numbers=numbers,
        stacks=expansion.stacks,
    )


def _free(member: Newton, intercept: bool) -> float:
    """The prior of a member's last weight."""
    return min(member.lam, member.intercept) if intercept else member.lam


def names(members: Members, n_classes: int) -> list[str]:
    """A title for each member."""
    kind = "AIOLI" if n_classes == 2 else "FOLKLORE"
    found = [f"{kind}, radius {radius:g}" for radius in members.radii]
    for kappa, lam, rho, version, intercept in members.newton:
        half_life = "" if rho == 1.0 else f", half-life {np.log(0.5) / np.log(rho):.0f} rows"
        free = "" if intercept == lam else f", of the intercept {intercept:g}"
        found.append(f"Newton steps, {_step_and_prior(kappa, lam)}{free}{half_life}{_on(version)}")
    found += [f"AdaGrad, learning rate {rate:g}{_on(version)}" for rate, _, version in members.rates]
    found.append("label frequencies")
    found += [f"splines, {_pooled(each)}" for each in members.splines]
    found += [
        f"Fourier features, bandwidth {BASE * 2.0 ** each[OCTAVE]:g}, {_pooled(each)}" for each in members.fourier
    ]
    found += [f"products, {_pooled(each)}" for each in members.products]
    found += [f"Mondrian forest, {members.trees} trees"] * bool(members.trees)
    return [*found, "stack of all others"] if members.stacks else found


def _pooled(constants: Array) -> str:
    return _step_and_prior(constants[KAPPA], constants[LAM])


def _step_and_prior(kappa: float, lam: float) -> str:
    """In the words of gradient descent: the curvature counts kappa times, so that steps are 1/kappa times as long."""
    return f"learning rate {1.0 / kappa:.3g}, regularization {lam:g}"


def _on(version: float) -> str:
    return ", 0/1 columns by range" if version == RANGED else ""


def _radii(n_classes: int, width: int) -> int:
    """How many radii play: never more for more classes."""
    if n_classes == 2:
        return int(BUDGET // width**2)
    cost = (n_classes - 1) ** 3 * width**2
    return len(RADII) if cost <= ALL_RADII * BUDGET else int(cost <= ONE_RADIUS * BUDGET)


def _as_list(radii: object) -> list[float]:
    if isinstance(radii, tuple | list | np.ndarray):
        return list(radii)
    raise ValueError(f'radii={radii!r} is not supported: give "auto", or a sequence of numbers > 0.')
