"""The figures of the texts, one module each, made anew by `regretless figure NAME`.

A module has `SETTINGS` (the text's, or ours where the text is silent), `QUICK` (the same figure in seconds),
`compute(settings, seed, work)`, which returns the numbers as a `Table`, and `draw(table)`, which reads nothing else.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regretless.figures.common import Work

# Name -> what it shows. Nothing is imported before a figure is asked for.
ABOUT = {
    "aioli-1": "forecasts as functions of x: a proper learner's is a line, AIOLI's and the aggregating one's bend",
    "aioli-2": "regret against n on the stream that is hard for proper learners: FTRL, AIOLI, aggregating",
    "gaf-1": "average loss over time of GAF, ONS and OGD on vehicle, shuttle and segment, best of a grid, 20 orders",
    "ogd-erm-fails": "follow the leader loses 1 a round on alternating linear losses; regularized, it does not",
    "perceptron-bound": "the Perceptron's mistakes against their bound: noisy streams, separable ones, the worst one",
    "ogd-rates": "regret of gradient descent: sqrt T on linear losses, ln T on strongly convex ones",
    "mda-dimension": "excess risk of mirror descent with averaging against the number M of base functions",
    "folklore-bandit": "mistakes when only right or wrong is told, and what Theorem 9 allows",
    "folklore-boosting": "error of online boosting against the number of weak learners, and their edges",
    "curvature": "the constants of the quadratic lower bounds against the best possible one",
    "certificate": "regret, certificate and bound over time for each second-order learner",
}


def module(name: str) -> ModuleType:
    """The module of a figure."""
    if name not in ABOUT:
        raise ValueError(f"there is no figure {name!r}: choose one of {', '.join(ABOUT)}.")
    return import_module(f"regretless.figures.{name.replace('-', '_')}")


def make(name: str, folder: str | Path, *, quick: bool = False, seed: int = 0, work: Work | None = None) -> list[Path]:
    """Compute a figure and write its numbers (CSV) and its picture (PNG, SVG); returns the three paths."""
    from regretless.figures.common import Work, save

    figure = module(name)
    table = figure.compute(figure.QUICK if quick else figure.SETTINGS, seed, work or Work())
    return save(name, Path(folder), table, figure.draw(table))
