"""Certified members: AIOLI for two classes, FOLKLORE for more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regretless.core.kernels.jit import inlined_kernel, kernel
from regretless.core.types import Array
from regretless.learners.logistic.members import VIRTUAL_WEIGHT, Constants, Told
from regretless.learners.second_order import aioli, multiclass
from regretless.learners.second_order.aioli import AIOLIConstants
from regretless.learners.second_order.curvature import SHARP
from regretless.learners.second_order.multiclass import MulticlassConstants
from regretless.learners.second_order.surrogate import SurrogateState

if TYPE_CHECKING:
    from regretless.learners.logistic.state import LogisticState

aioli_run, aioli_forecast = aioli.run, aioli.forecast_block
multiclass_run, multiclass_forecast = multiclass.run, multiclass.forecast_block


@inlined_kernel
def run_aioli(s: LogisticState, c: Constants, told: Told, first: int, last: int, logits: Array) -> None:
    """Play a block with some members; `logits` (all members, at least n, K) holds the logits forecast."""
    for i in range(first, last):
        said = logits[i, : told.rows.shape[0]]
        aioli_run(belief(s, i), told.rows, told.Y, told.weight, aioli_constants(c, i), said)


@inlined_kernel
def run_folklore(s: LogisticState, c: Constants, told: Told, first: int, last: int, logits: Array) -> None:
    """The same for more than two classes."""
    for i in range(first, last):
        said = logits[i, : told.rows.shape[0]]
        multiclass_run(belief(s, i), told.rows, told.Y, told.weight, folklore_constants(c, i), said)


@inlined_kernel
def forecast_aioli(s: LogisticState, c: Constants, told: Told, first: int, last: int, logits: Array) -> None:
    """The logits of a block, all from the same state."""
    for i in range(first, last):
        aioli_forecast(belief(s, i), told.rows, aioli_constants(c, i), logits[i, : told.rows.shape[0]])


@inlined_kernel
def forecast_folklore(s: LogisticState, c: Constants, told: Told, first: int, last: int, logits: Array) -> None:
    """The same for more than two classes."""
    for i in range(first, last):
        multiclass_forecast(belief(s, i), told.rows, folklore_constants(c, i), logits[i, : told.rows.shape[0]])


@inlined_kernel
def belief(s: LogisticState, i: int) -> SurrogateState:
    """The state of one member."""
    return SurrogateState(s.P[i], s.w[i], s.tallies[i])


@kernel
def folklore_constants(c: Constants, i: int) -> MulticlassConstants:
    """FOLKLORE with weights of one class in a ball, and lambda as the coefficient of |W|^2."""
    return MulticlassConstants(c.radii[i], c.regularization[i], SHARP, 0.0, 0.0, c.helmert, None, 1.0)


@kernel
def aioli_constants(c: Constants, i: int) -> AIOLIConstants:
    """AIOLI with the margin of these weights, which reaches twice as far and has half of lambda."""
    return AIOLIConstants(2.0 * c.radii[i], 0.5 * c.regularization[i], SHARP, 0.0, 0.0, VIRTUAL_WEIGHT)
