"""Certified members: AIOLI for two classes, FOLKLORE for more."""

from __future__ import annotations

from typing import NamedTuple

from regretless.core.jit import inlined_kernel, kernel
from regretless.core.types import Array
from regretless.learners.logistic.members import VIRTUAL_WEIGHT
from regretless.learners.second_order import aioli, multiclass
from regretless.learners.second_order.aioli import AIOLIConstants
from regretless.learners.second_order.curvature import SHARP
from regretless.learners.second_order.multiclass import MulticlassConstants
from regretless.learners.second_order.surrogate import SurrogateState

aioli_run, aioli_forecast = aioli.run, aioli.forecast_block
multiclass_run, multiclass_forecast = multiclass.run, multiclass.forecast_block


class Reach(NamedTuple):
    """The constants of one member. A forecast depends on `helmert` alone."""

    radius: float  # of one class's weights; those of the margin reach twice as far
    lam: float  # lambda, the coefficient of |W|^2; that of the margin is half of it
    helmert: Array  # FOLKLORE's basis


@inlined_kernel
def run(state: SurrogateState, X: Array, Y: Array, weight: Array, reach: Reach, out: Array) -> None:
    """Play a block with one member; `out` holds the logits forecast."""
    if Y.shape[1] > 2:
        multiclass_run(state, X, Y, weight, folklore_constants(reach), out)
    else:
        aioli_run(state, X, Y, weight, aioli_constants(reach), out)


@inlined_kernel
def forecast_block(state: SurrogateState, X: Array, reach: Reach, out: Array) -> None:
    """The logits of a block, all from the same state."""
    if out.shape[1] > 2:
        multiclass_forecast(state, X, folklore_constants(reach), out)
    else:
        aioli_forecast(state, X, aioli_constants(reach), out)


@kernel
def folklore_constants(reach: Reach) -> MulticlassConstants:
    """FOLKLORE with these weights."""
    return MulticlassConstants(reach.radius, reach.lam, SHARP, 0.0, 0.0, reach.helmert, None, 1.0)


@kernel
def aioli_constants(reach: Reach) -> AIOLIConstants:
    """AIOLI with the margin of these weights."""
    return AIOLIConstants(2.0 * reach.radius, 0.5 * reach.lam, SHARP, 0.0, 0.0, VIRTUAL_WEIGHT)
