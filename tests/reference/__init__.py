"""Brute-force reference learners: slow, textbook, written from the definitions alone.

Nothing here imports the library. Every learner keeps the list of its past quadratics and minimises
the paper's objective over the full parameter space.
"""

from .aioli import ReferenceAIOLI
from .curvature import best_curvature, curvature, curvature_ratio
from .expectation import log_softmax_normal_expectation, softmax_normal_expectation
from .folklore import ReferenceFOLKLORE
from .gaf import ReferenceGAF
from .newton import minimise
from .ons import ReferenceONS
from .vovk import ReferenceVAW

__all__ = [
    "ReferenceAIOLI",
    "ReferenceFOLKLORE",
    "ReferenceGAF",
    "ReferenceONS",
    "ReferenceVAW",
    "best_curvature",
    "curvature",
    "curvature_ratio",
    "log_softmax_normal_expectation",
    "minimise",
    "softmax_normal_expectation",
]
