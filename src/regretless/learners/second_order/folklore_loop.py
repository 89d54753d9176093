"""The loop of FOLKLORE. Two classes are AIOLI on rows times sqrt(2), whose reduced coordinate is the margin.

AIOLI's scalars take a tenth of the time of the K x K algebra at d = 5.
"""

from __future__ import annotations

import math

from regretless.core.jit import kernel
from regretless.core.tally import SCALE, WIDEST
from regretless.core.types import Array
from regretless.learners.second_order import aioli, multiclass
from regretless.learners.second_order.aioli import AIOLIConstants
from regretless.learners.second_order.multiclass import MulticlassConstants
from regretless.learners.second_order.surrogate import SurrogateState

ROOT_2 = math.sqrt(2.0)

aioli_run, aioli_forecast = aioli.run, aioli.forecast_block
multiclass_run, multiclass_forecast = multiclass.run, multiclass.forecast_block


@kernel
def is_pair(c: MulticlassConstants) -> bool:
    """Whether these are FOLKLORE's, with two classes. (GAF has the same type of constants.)"""
    return c.sampling is None and c.H.shape[0] == 2


@kernel
def as_margin(c: MulticlassConstants) -> AIOLIConstants:
    """The constants of AIOLI: the largest logits |W x| are the same, and FOLKLORE has half of AIOLI's pull."""
    return AIOLIConstants(ROOT_2 * c.radius, c.regularization, c.code, c.number, ROOT_2 * c.feature_bound, 0.5 * c.pull)


@kernel
def run(state: SurrogateState, X: Array, Y: Array, weight: Array, constants: MulticlassConstants, out: Array) -> None:
    """Play a block row by row."""
    if not is_pair(constants):
        multiclass_run(state, X, Y, weight, constants, out)
        return
    tally = state.tally
    widest, scale = tally[WIDEST], tally[SCALE]
    tally[WIDEST], tally[SCALE] = 0.0, 0.0
    aioli_run(state, ROOT_2 * X, Y, weight, as_margin(constants), out)
    tally[WIDEST], tally[SCALE] = max(widest, tally[WIDEST] / ROOT_2), max(scale, 0.5 * tally[SCALE])


@kernel
def forecast_block(state: SurrogateState, X: Array, constants: MulticlassConstants, out: Array) -> None:
    """The forecasts of a block of rows, all from the same state."""
    if is_pair(constants):
        aioli_forecast(state, ROOT_2 * X, as_margin(constants), out)
    else:
        multiclass_forecast(state, X, constants, out)
