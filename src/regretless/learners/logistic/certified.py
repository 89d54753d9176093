"""Certified members: AIOLI for two classes, FOLKLORE for more, on the state and constants of the mixture."""

from __future__ import annotations

from regretless.core.jit import kernel
from regretless.core.types import Array
from regretless.learners.logistic.members import VIRTUAL_WEIGHT, Constants
from regretless.learners.logistic.state import LogisticState
from regretless.learners.second_order import aioli, multiclass
from regretless.learners.second_order.aioli import AIOLIConstants
from regretless.learners.second_order.curvature import SHARP
from regretless.learners.second_order.multiclass import MulticlassConstants
from regretless.learners.second_order.surrogate import SurrogateState

aioli_run, aioli_forecast = aioli.run, aioli.forecast_block
multiclass_run, multiclass_forecast = multiclass.run, multiclass.forecast_block


@kernel
def run(state: LogisticState, i: int, X: Array, Y: Array, weight: Array, constants: Constants, out: Array) -> None:
    """Play a block with member i; `out` holds the logits forecast."""
    own = SurrogateState(state.P[i], state.w[i], state.tallies[i])
    if Y.shape[1] > 2:
        multiclass_run(own, X, Y, weight, folklore_constants(constants, i), out)
    else:
        aioli_run(own, X, Y, weight, aioli_constants(constants, i), out)


@kernel
def forecast(state: LogisticState, i: int, X: Array, constants: Constants, out: Array) -> None:
    """The logits of member i for a block, all from the same state."""
    own = SurrogateState(state.P[i], state.w[i], state.tallies[i])
    if out.shape[1] > 2:
        multiclass_forecast(own, X, folklore_constants(constants, i), out)
    else:
        aioli_forecast(own, X, aioli_constants(constants, i), out)


@kernel
def folklore_constants(constants: Constants, i: int) -> MulticlassConstants:
    """FOLKLORE at the radius of member i."""
    members = constants.members
    return MulticlassConstants(members.radii[i], members.regularization[i], SHARP, 0.0, 0.0, constants.helmert, None)


@kernel
def aioli_constants(constants: Constants, i: int) -> AIOLIConstants:
    """AIOLI at the radius of member i, which for the margin is twice that of a class's weights."""
    members = constants.members
    return AIOLIConstants(2.0 * members.radii[i], 0.5 * members.regularization[i], SHARP, 0.0, 0.0, VIRTUAL_WEIGHT)
