"""Certified members: AIOLI for two classes, FOLKLORE for more, on the state and constants of the mixture."""

from __future__ import annotations

from regretless.core.jit import kernel
from regretless.core.types import Array
from regretless.learners.logistic.members import VIRTUAL_WEIGHT, Constants
from regretless.learners.logistic.state import LogisticState
from regretless.learners.second_order import aioli, folklore
from regretless.learners.second_order.curvature import SHARP
from regretless.learners.second_order.rounding import ROOT
from regretless.learners.second_order.surrogate import four_pay, in_four

aioli_run, aioli_forecast = aioli.run, aioli.forecast_block
folklore_run, folklore_forecast = folklore.run, folklore.forecast_block


@kernel
def run(state: LogisticState, i: int, X: Array, Y: Array, weight: Array, constants: Constants, out: Array) -> None:
    """Play a block with member i; `out` holds the logits forecast."""
    P, w, tally = state.P[i], state.w[i], state.tallies[i]
    lam, radius = constants.members.regularization[i], constants.members.radii[i]
    if Y.shape[1] > 2:
        folklore_run(P, w, tally, X, Y, weight, constants.helmert, lam, radius, SHARP, 0.0, 0.0, out)
        return
    lam, radius, a = 0.5 * lam, 2.0 * radius, VIRTUAL_WEIGHT  # those of the margin
    if four_pay(w.size, X.shape[0]) and tally[ROOT] == 0.0:
        aioli_run(P, w, tally, X, Y, weight, lam, radius, SHARP, 0.0, 0.0, a, in_four(P), out)
    else:
        aioli_run(P, w, tally, X, Y, weight, lam, radius, SHARP, 0.0, 0.0, a, None, out)


@kernel
def forecast(state: LogisticState, i: int, X: Array, constants: Constants, out: Array) -> None:
    """The logits of member i for a block, all from the same state."""
    P, w, tally = state.P[i], state.w[i], state.tallies[i]
    if out.shape[1] > 2:
        folklore_forecast(P, w, tally, X, constants.helmert, out)
    else:
        aioli_forecast(P, w, tally, X, VIRTUAL_WEIGHT, out)
