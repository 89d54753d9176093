"""Reproductions of the figures of the papers, one module each: `regretless figure NAME`.

A module has `SETTINGS` (those of the paper, or ours if the paper gives none), `QUICK` (a version that takes seconds),
`compute(settings, seed, work)`, which returns the numbers as a `Table`, and `draw(table)`, which uses nothing else.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regretless.figures.common import Work

# Name -> what it shows. Figures are imported only when they are requested.
ABOUT = {
    "aioli-1": "forecasts as functions of x: linear for a proper learner, curved for AIOLI and aggregating",
    "aioli-2": "regret against n on the stream that is hard for proper learners: FTRL, AIOLI, aggregating",
    "gaf-1": "average loss over time of GAF, ONS and OGD on vehicle, shuttle and segment, best of a grid, 20 orders",
    "ogd-erm-fails": "follow-the-leader has loss 1 per round on alternating linear losses, unless it is regularized",
    "perceptron-bound": "the Perceptron's mistakes against their bound: noisy streams, separable ones, the worst one",
    "ogd-rates": "regret of gradient descent: sqrt T on linear losses, ln T on strongly convex ones",
    "mda-dimension": "excess risk of mirror descent with averaging against the number M of base functions",
    "mda-lower-bound": "excess risk of mirror descent with averaging, and of the best possible method",
    "folklore-bandit": "mistakes with bandit feedback, and the bound of Theorem 9",
    "folklore-boosting": "error of online boosting against the number of weak learners, and their edges",
    "curvature": "the constants of the quadratic lower bounds against the best possible one",
    "certificate": "regret, certificate and bound over time for each second-order learner",
}


def module(name: str) -> ModuleType:
    """The module of a figure."""
    if name not in ABOUT:
        raise ValueError(f"unknown figure {name!r}: choose one of {', '.join(ABOUT)}.")
    return import_module(f"regretless.figures.{name.replace('-', '_')}")


def make(name: str, folder: str | Path, *, quick: bool = False, seed: int = 0, work: Work | None = None) -> list[Path]:
    """Compute a figure and write its numbers (CSV) and its plot (PNG, SVG); returns the three paths."""
    from regretless.figures.common import Work, save

    figure = module(name)
    table = figure.compute(figure.QUICK if quick else figure.SETTINGS, seed, work or Work())
    return save(name, Path(folder), table, figure.draw(table))
