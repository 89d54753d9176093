"""Certified members: AIOLI for two classes, FOLKLORE for more."""

from __future__ import annotations

from typing import NamedTuple

from regretless.core.jit import kernel
from regretless.core.types import Array
from regretless.learners.logistic.members import VIRTUAL_WEIGHT
from regretless.learners.second_order import aioli, folklore
from regretless.learners.second_order.curvature import SHARP
from regretless.learners.second_order.rounding import ROOT
from regretless.learners.second_order.surrogate import four_pay, in_four

aioli_run, aioli_forecast = aioli.run, aioli.forecast_block
folklore_run, folklore_forecast = folklore.run, folklore.forecast_block


class Reach(NamedTuple):
    """The constants of one member."""

    radius: float  # of one class's weights; those of the margin reach twice as far
    lam: float  # lambda, the coefficient of |W|^2; that of the margin is half of it
    helmert: Array  # FOLKLORE's basis


@kernel
def run(P: Array, w: Array, tally: Array, reach: Reach, X: Array, Y: Array, weight: Array, out: Array) -> None:
    """Play a block with one member; `out` holds the logits forecast."""
    radius, lam, helmert = reach
    if Y.shape[1] > 2:
        folklore_run(P, w, tally, X, Y, weight, helmert, lam, radius, SHARP, 0.0, 0.0, out)
        return
    lam, radius, a = 0.5 * lam, 2.0 * radius, VIRTUAL_WEIGHT
    if four_pay(w.size, X.shape[0]) and tally[ROOT] == 0.0:
        aioli_run(P, w, tally, X, Y, weight, lam, radius, SHARP, 0.0, 0.0, a, in_four(P), out)
    else:
        aioli_run(P, w, tally, X, Y, weight, lam, radius, SHARP, 0.0, 0.0, a, None, out)


@kernel
def forecast_block(P: Array, w: Array, tally: Array, X: Array, helmert: Array, out: Array) -> None:
    """The logits of a block, all from the same state."""
    if out.shape[1] > 2:
        folklore_forecast(P, w, tally, X, helmert, out)
    else:
        aioli_forecast(P, w, tally, X, VIRTUAL_WEIGHT, out)
