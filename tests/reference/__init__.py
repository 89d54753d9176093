"""Brute-force reference learners: slow, textbook, written from the definitions alone.

Nothing here imports the library. Every second-order learner keeps the list of its past quadratics and
minimises the paper's objective over the full parameter space; the first-order learners keep their past
gradients and weights and solve every step from its definition.
"""

from .aioli import ReferenceAIOLI
from .curvature import best_curvature, curvature, curvature_ratio
from .expectation import log_softmax_normal_expectation, softmax_normal_expectation
from .first_order import ReferenceFTRL, ReferenceOGD, ReferencePerceptron, ReferenceStronglyConvexOGD
from .folklore import ReferenceFOLKLORE
from .gaf import ReferenceGAF
from .losses import loss_and_slope
from .mirror import ReferenceMirror
from .mirror_descent import ReferenceMirrorDescent, largest_slope, theory_schedule
from .mondrian import ReferenceMondrianForest
from .newton import minimise
from .ons import ReferenceONS
from .vovk import ReferenceVAW

__all__ = [
    "ReferenceAIOLI",
    "ReferenceFOLKLORE",
    "ReferenceFTRL",
    "ReferenceGAF",
    "ReferenceMirror",
    "ReferenceMirrorDescent",
    "ReferenceMondrianForest",
    "ReferenceOGD",
    "ReferenceONS",
    "ReferencePerceptron",
    "ReferenceStronglyConvexOGD",
    "ReferenceVAW",
    "best_curvature",
    "curvature",
    "curvature_ratio",
    "largest_slope",
    "log_softmax_normal_expectation",
    "loss_and_slope",
    "minimise",
    "softmax_normal_expectation",
    "theory_schedule",
]
