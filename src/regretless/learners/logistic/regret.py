"""What OnlineLogisticRegression competes with, and what its state and its theorem say about the regret."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from regretless.core.errors import NoBound
from regretless.core.numbers.tally import EXCESS, LOSS, ROWS, WIDEST, require_unit_weights
from regretless.core.rows import validate
from regretless.core.types import Array
from regretless.learners.logistic.adagrad import GRADIENTS
from regretless.learners.logistic.members import RADII, VIRTUAL_WEIGHT, Constants, Members
from regretless.learners.logistic.scaling import STANDARDISED
from regretless.learners.logistic.state import LogisticState
from regretless.learners.second_order.curvature import SHARP, kappa
from regretless.learners.second_order.rounding import allowance, has_digits
from regretless.theory.domains import Ball, Competition, RowBall


def competition(radii: Array, n_classes: int) -> Competition:
    """The best weights in the ball of the largest radius, on the rescaled rows, under the log loss."""
    largest = float(radii.max()) if radii.size else RADII[-1]
    return Competition("softmax", RowBall(largest)) if n_classes > 2 else Competition("logistic", Ball(2.0 * largest))


def certificate(state: LogisticState, members: Members, comparator_norm: float | None) -> float:
    """The least over the members of their own certificate plus the mixture's loss minus theirs.

    AIOLI's and FOLKLORE's certificates come from their quadratics, AdaGrad's from the sum of its gradients.
    """
    n_classes = state.slots.size
    two = n_classes == 2
    domain = competition(members.radii, n_classes).domain
    size = validate.comparator_norm(comparator_norm, domain, domain.largest_norm(n_classes))
    lead = float(state.tally[LOSS]) - state.losses  # of the mixture over each member
    found = []
    for i, radius in enumerate(members.radii):
        reach = 2.0 * radius if two else radius  # of the margin's weights, or of one class's
        inside = size <= reach if comparator_norm is not None else radius == members.radii.max()
        if inside and has_digits(state.P[i], state.tallies[i]):
            lam = (0.5 if two else 1.0) * members.regularization[i]
            excess = state.tallies[i, EXCESS] + allowance(state.P[i], state.tallies[i])
            found.append(lam * size**2 + excess + lead[i])
    first = len(members.radii) + len(members.newton)
    for i in np.flatnonzero(members.rates[:, 2] == STANDARDISED).tolist():  # comparators play on these rows
        gradients = state.tables[i, GRADIENTS]
        if comparator_norm is None and not two:
            radius = float(members.radii.max(initial=0.0) or RADII[-1])
            steepest = float(np.linalg.norm(gradients, axis=1).sum()) * radius
        else:
            steepest = float(np.linalg.norm(gradients)) * size
        found.append(state.slopes[i] + steepest + lead[first + i])
    return float(min(found))


def theorem(state: LogisticState, constants: Constants, n: int | None) -> dict[str, Any]:
    """The arguments of `bounds.aioli` for the rescaled rows, after n of them (default: those so far)."""
    members = constants.members
    require_unit_weights(state.tally)
    if state.slots.size > 2 or not len(members.radii):
        raise NoBound("the theorem is about two classes and a learner with radii: use regret_certificate() instead.")
    radius, R = float(members.radii.max()), float(state.tally[WIDEST])
    return {
        "n": int(state.tally[ROWS]) if n is None else n,
        "n_features": state.tables.shape[3],
        "radius": 2.0 * radius,
        "feature_bound": R,
        "regularization": 0.5 * float(members.regularization[members.radii.argmax()]),
        "curvature": float(kappa(SHARP, 0.0, radius * R, 2)),
        "virtual_weight": VIRTUAL_WEIGHT,
    }


def mixing_cost(n: int, constants: Constants, is_open: bool) -> float:
    """What mixing costs in n rows: ln(1/weight) of the member of the largest radius, ln(n + 1) to track change, ln 2
    for labels never seen.
    """
    prior = float(constants.prior[constants.radii.argmax()])
    mixing = -math.log(prior) + (math.log(n + 1.0) if constants.shares else 0.0)
    return mixing + (math.log(2.0) if is_open else 0.0)
