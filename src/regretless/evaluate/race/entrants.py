"""Who races: the learners of this library that can play a stream, at its radius, and those asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regretless.core.learner import OnlineLearner
from regretless.evaluate.recipe import learner_of
from regretless.learners.first_order.aggregator import MirrorDescentAggregator
from regretless.learners.first_order.base_functions import stumps
from regretless.learners.first_order.exponentiated_gradient import ExponentiatedGradient
from regretless.learners.first_order.linearized_ftrl import LinearizedFTRL
from regretless.learners.first_order.mirror_descent import MirrorDescent
from regretless.learners.first_order.ogd import OGD
from regretless.learners.first_order.perceptron import Perceptron
from regretless.learners.first_order.strongly_convex import StronglyConvexOGD
from regretless.learners.logistic.logistic import OnlineLogisticRegression
from regretless.learners.second_order.aioli import AIOLI
from regretless.learners.second_order.folklore import FOLKLORE
from regretless.learners.second_order.gaf import GAF
from regretless.learners.second_order.ons import ONS
from regretless.learners.second_order.vovk import VovkAzouryWarmuth
from regretless.streams import Stream
from regretless.theory.domains import Ball


def entrants(stream: Stream) -> dict[str, OnlineLearner]:
    """The learners that can play the stream, at the stream's radius."""
    B = stream.radius
    R = float(np.linalg.norm(stream.X, axis=1).max())
    field: dict[str, OnlineLearner] = {
        "OnlineLogisticRegression": OnlineLogisticRegression(),
        "FOLKLORE": FOLKLORE(radius=B),
        "GAF": GAF(radius=B),
        "ONS": ONS(radius=B, feature_bound=R),
        **first_order(stream, R),
    }
    if stream.X.shape[1] * (len(stream.classes) - 1) <= 200:  # its projections cost the cube of this
        field["ONS, gamma = 1/4"] = ONS(radius=B, gamma=0.25, epsilon=1.0)
    if len(stream.classes) == 2:
        field = {
            "AIOLI": AIOLI(radius=B),
            "AIOLI, a = 1/2": AIOLI(radius=B, virtual_weight=0.5),
            **field,
            "Vovk-Azoury-Warmuth": VovkAzouryWarmuth(regularization=1 / B**2),
        }
    return field


def first_order(stream: Stream, R: float) -> dict[str, OnlineLearner]:
    """The first-order learners that can play the stream, whose rows have norms up to R."""
    size = frobenius(stream)
    slope = 1.0 if len(stream.classes) == 2 else 2**0.5  # |p - y| at most
    field: dict[str, OnlineLearner] = {
        "OGD": OGD(radius=size),
        "OGD, adagrad-norm": OGD(radius=size, step="adagrad-norm"),
        "Mirror descent, lazy": MirrorDescent(domain=Ball(size), averaging=False, gradient_bound=slope * R),
        "FTRL-Proximal": LinearizedFTRL(),
        "Online SVM": StronglyConvexOGD(regularization=1 / len(stream.y)),
        "Perceptron": Perceptron(),
    }
    if len(stream.classes) == 2:
        top = float(np.abs(stream.X).max())
        field["EG+-"] = ExponentiatedGradient(scale=size, signed=True, feature_bound=top)
        if np.ptp(stream.X, axis=0).any():
            votes = stumps(stream.X, n_per_feature=5)  # of all rows, as the standardising is: no order has its own
            field["MDA over stumps"] = MirrorDescentAggregator(votes, loss="logit", scale=size, symmetric=True)
    return field


def frobenius(stream: Stream) -> float:
    """The Frobenius norm of comparators with one row of the stream's radius a class (two classes have one row)."""
    K = len(stream.classes)
    return stream.radius * (1.0 if K == 2 else K**0.5)


def field_of(stream: Stream, learners: Sequence[Any] | Mapping[str, Any] | None) -> dict[str, Any]:
    """The learners that were asked for, by name, or else all `entrants`.

    A text that is no more than the name of an entrant, or of its class, is that entrant, at the stream's radius;
    "AIOLI(radius=5)" is what it says. Other texts are the defaults of what they name.
    """
    own = entrants(stream)
    if learners is None:
        return dict(own)
    if isinstance(learners, Mapping):
        return {name: _one(each, own) for name, each in learners.items()}
    return {each if isinstance(each, str) else repr(each): _one(each, own) for each in learners}


def _one(learner: Any, own: dict[str, OnlineLearner]) -> Any:
    if not isinstance(learner, str):
        return learner
    wanted = learner.strip().lower()
    for name, entrant in own.items():
        if wanted in (name.lower(), type(entrant).__name__.lower()):
            return entrant
    return learner_of(learner)
