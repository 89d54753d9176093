"""Effort: which members learn on expanded rows, and how large these rows are for so many columns and classes.

`effort="low"` has none. Medium adds splines (splines.py) and a member that combines all others (stacking.py); high adds
Fourier features (fourier_rows.py), products of columns (product_rows.py) and a Mondrian forest (forest.py). Their
constants were chosen greedily by measurement: see docs/online-logistic-regression.md. Their weights before the first
row are small, so that what they cost where linear members lead, ln(1/0.95) and ln(1/0.88) in total, does not count on
short streams either.

An expanded row of D columns costs a member D^2 multiplications for its matrix, and 2 K D for the weights of K classes.
The largest sizes are chosen with which no member takes more than the effort's budget; where even the smallest are too
large, there are no such members, and the linear ones remain. The last member on splines, and that on products, plays
where it is cheap: it gains on rows of few columns alone. More columns or classes never add a member.

A tree of the forest takes operations for every node on the path of a row: the distance of the row to the node's box and
an update of its two ends per column, two forecasts per class, and the probabilities of stopping there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from regretless.core.types import Array
from regretless.learners.logistic import fourier_rows, product_rows, splines
from regretless.learners.logistic.scaling import STANDARDISED

EFFORTS = ("low", "medium", "high")
BUDGETS = {"low": 0.0, "medium": 4e4, "high": 1e5}  # multiplications per row and member
CHEAP = 1e4  # multiplications per row of the last member on splines, and on products; with more it is left out
LEVELS = 3  # of hats
DIRECTIONS = (75, 50, 25)
PAIRS, FEWEST_PAIRS = 300, 20


class Pooled(NamedTuple):
    """The constants of a member on expanded rows, and its parts of the weight before the first row."""

    kappa: float  # certainty
    lam: float  # lambda, the prior of a weight
    intercept: float  # the prior of the intercept
    octave: float = 0.0  # of the Fourier rows
    parts: float = 0.5


SPLINES = (
    Pooled(1.0, 1.0, 0.3),
    Pooled(1.0, 10.0, 0.3),
    Pooled(0.1, 0.3, 0.3),
    Pooled(0.3, 0.3, 0.3),
)
FOURIER = (
    Pooled(1.0, 1.0, 0.3, octave=0.0),
    Pooled(1.0, 1.0, 0.3, octave=1.0),
    Pooled(1.0, 3.0, 0.3, octave=1.0),
    Pooled(0.3, 0.3, 0.3, octave=1.0),
    Pooled(1.0, 1.0, 0.3, octave=2.0),
    Pooled(0.3, 1.0, 0.3, octave=2.0),
)
PRODUCTS = (Pooled(1.0, 10.0, 0.3), Pooled(1.0, 1.0, 0.3), Pooled(0.3, 1.0, 0.3))
FOREST = 0.5  # parts
STACK = 1.0
TREES = 10
DEPTH, PER_NODE = 20.0, 40.0  # nodes on a path, and operations of each that depend neither on columns nor on classes


class Sizes(NamedTuple):
    """The sizes of expanded rows."""

    levels: int = 0
    directions: int = 0
    direct: bool = False  # whether Fourier rows contain the rescaled row
    pairs: int = 0
    trees: int = 0  # of the forest


class Expansion(NamedTuple):
    """The members on expanded rows, and whether there is one that combines all others."""

    sizes: Sizes = Sizes()
    splines: tuple[Pooled, ...] = ()
    fourier: tuple[Pooled, ...] = ()
    products: tuple[Pooled, ...] = ()
    stacks: bool = False
    of_all: float = 0.0  # the parts of these members, and of those that are left out because rows are wide


def expansion(effort: str, n_columns: int, n_numbers: int, n_classes: int, intercept: bool) -> Expansion:
    """The largest that the effort's budget allows, for rows of `n_columns`, of which `n_numbers` hold numbers."""
    if effort == "low":
        return Expansion()
    budget = BUDGETS[effort]
    levels = _levels(budget, n_columns, n_numbers, n_classes, intercept)
    width = splines.width(n_columns, n_numbers, LEVELS, intercept)
    found = Expansion(
        Sizes(levels),
        splines=_affordable(SPLINES, width, n_classes) if levels else (),
        stacks=True,
        of_all=STACK + sum(each.parts for each in SPLINES),
    )
    if effort == "medium":
        return found
    directions, direct = _directions(budget, n_columns, n_classes, intercept)
    pairs = _pairs(budget, n_columns, n_classes, intercept)
    width = product_rows.width(product_rows.all_pairs(n_columns), n_columns, intercept)
    trees = TREES if forest_cost(TREES, n_columns, n_classes) <= budget else 0
    return found._replace(
        sizes=Sizes(levels, directions, direct, pairs or 0, trees),
        fourier=FOURIER if directions else (),
        products=_affordable(PRODUCTS, width, n_classes) if pairs is not None else (),
        of_all=found.of_all + sum(each.parts for each in FOURIER + PRODUCTS) + FOREST,
    )


def cost(width: int, n_classes: int) -> float:
    """Multiplications per row of a member on rows of that width."""
    return float(width) * width + 2.0 * n_classes * width


def _affordable(members: tuple[Pooled, ...], width: int, n_classes: int) -> tuple[Pooled, ...]:
    """All members, or all but the last, for rows that have that width at most."""
    return members if cost(width, n_classes) <= CHEAP else members[:-1]


def forest_cost(trees: int, n_columns: int, n_classes: int) -> float:
    """Operations per row of the forest."""
    return trees * DEPTH * (4.0 * n_columns + 2.0 * n_classes + PER_NODE)


def _levels(budget: float, n_columns: int, n_numbers: int, n_classes: int, intercept: bool) -> int:
    for levels in range(LEVELS, 0, -1):
        if cost(splines.width(n_columns, n_numbers, levels, intercept), n_classes) <= budget:
            return levels
    return 0


def _directions(budget: float, n_columns: int, n_classes: int, intercept: bool) -> tuple[int, bool]:
    for direct in (True, False):
        for directions in DIRECTIONS[: 2 if direct else 3]:
            width = fourier_rows.width(directions, n_columns, direct, intercept)
            if cost(width, n_classes) + directions * n_columns <= budget:
                return directions, direct
    return 0, False


def _pairs(budget: float, n_columns: int, n_classes: int, intercept: bool) -> int | None:
    most = min(PAIRS, product_rows.all_pairs(n_columns))
    fewest = min(FEWEST_PAIRS, most)
    while cost(product_rows.width(most, n_columns, intercept), n_classes) > budget:
        most -= 1
        if most < fewest:
            return None
    return most


def constants(members: tuple[Pooled, ...], intercept: bool) -> Array:
    """What the kernels read of each, (members, 6): its places are named in newton.py."""
    rows = [
        (each.kappa, each.lam, 1.0, STANDARDISED, each.intercept if intercept else each.lam, each.octave)
        for each in members
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 6)
