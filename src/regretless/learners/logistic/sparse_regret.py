"""What the state of wide rows says about the regret."""

from __future__ import annotations

import numpy as np

from regretless.core.numbers.tally import LOSS
from regretless.core.rows import validate
from regretless.learners.logistic.members import RADII
from regretless.learners.logistic.regret import competition
from regretless.learners.logistic.sparse_members import GRADIENT, A
from regretless.learners.logistic.sparse_state import SparseState


def certificate(state: SparseState, comparator_norm: float | None) -> float:
    """The least over the first-order members of their own certificate plus the mixture's loss minus theirs.

    A convex loss lies above its tangents, wherever they are taken: regret against u is at most the sum of g.w less G.u.
    """
    K, radius = state.slots.size, RADII[-1]
    domain = competition(np.array([radius]), K).domain
    size = validate.comparator_norm(comparator_norm, domain, domain.largest_norm(K))
    lead = float(state.tally[LOSS]) - state.losses[:A]  # of the mixture over each member
    gradients = state.table[:, :, GRADIENT:]
    found = []
    for i in range(A):
        if comparator_norm is None and K > 2:
            steepest = float(np.linalg.norm(gradients[:, :, i], axis=0).sum()) * radius
        else:
            steepest = float(np.linalg.norm(gradients[:, :, i])) * size
        found.append(float(state.slopes[i] + steepest + lead[i]))
    return min(found)
