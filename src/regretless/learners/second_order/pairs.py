"""The loops of FOLKLORE and GAF. Two classes are one margin: AIOLI's loop, and its like for GAF, on rows times sqrt(2).

Scalars take a tenth of the time of the K x K algebra for FOLKLORE at d = 5, and a quarter for GAF.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from regretless.core.kernels.jit import inlined_kernel, kernel
from regretless.core.numbers.links import softmax_of_two
from regretless.core.numbers.tally import SCALE, WIDEST, record
from regretless.core.types import Array
from regretless.learners.second_order import aioli, multiclass
from regretless.learners.second_order.aioli import LOG_2, AIOLIConstants, lengths, move
from regretless.learners.second_order.curvature import kappa_of
from regretless.learners.second_order.expectation import of_margin
from regretless.learners.second_order.forecasts import solve_margin, tanh_of_half
from regretless.learners.second_order.multiclass import QUADRATURE, MulticlassConstants, Sampling, mixed
from regretless.learners.second_order.rounding import MASS, ROOT, begin_root, charge, most_mass
from regretless.learners.second_order.surrogate import (
    SurrogateState,
    end_fold,
    fold_row,
    in_four,
    look_one,
    product_one,
)

ROOT_2 = math.sqrt(2.0)

aioli_run, aioli_forecast = aioli.run, aioli.forecast_block
multiclass_run, multiclass_forecast = multiclass.run, multiclass.forecast_block


class Loops(NamedTuple):
    """The kernels of a game row by row."""

    run: Callable[..., None]
    forecast_block: Callable[..., None]


def loops(n_classes: int, sampling: Sampling | None) -> Loops:
    """Those for this many classes, of FOLKLORE (no sampling) or GAF. (A kernel that chose would compile all again.)"""
    if n_classes > 2:
        return Loops(multiclass.run, multiclass.forecast_block)
    return Loops(run_folklore, forecast_folklore) if sampling is None else Loops(run_gaf, forecast_gaf)


@kernel
def as_margin(c: MulticlassConstants) -> AIOLIConstants:
    """The constants of AIOLI: the largest logits |W x| are the same, and FOLKLORE has half of AIOLI's pull."""
    return AIOLIConstants(ROOT_2 * c.radius, c.regularization, c.code, c.number, ROOT_2 * c.feature_bound, 0.5 * c.pull)


@kernel
def run_folklore(
    state: SurrogateState, X: Array, Y: Array, weight: Array, constants: MulticlassConstants, out: Array
) -> None:
    """Play a block of two classes row by row."""
    before = begin_margin(state.tally)
    aioli_run(state, ROOT_2 * X, Y, weight, as_margin(constants), out)
    end_margin(state.tally, before)


@kernel
def run_gaf(
    state: SurrogateState, X: Array, Y: Array, weight: Array, constants: MulticlassConstants, out: Array
) -> None:
    """`run_folklore` for GAF; its scalars need P, and not a root of it."""
    done, tally = 0, state.tally
    sampling: Any = constants.sampling
    if sampling.method == QUADRATURE and tally[ROOT] == 0.0:
        before = begin_margin(tally)
        done = run_margin(state, ROOT_2 * X, Y, weight, as_margin(constants), sampling.mu, out)
        end_margin(tally, before)
        if done < X.shape[0]:
            begin_root(state.P, tally)
    if done < X.shape[0]:
        multiclass_run(state, X[done:], Y[done:], weight[done:], constants, out[done:])


@inlined_kernel
def begin_margin(tally: Array) -> tuple[float, float]:
    """Set the largest norms aside, which are those of rows and not of rows times sqrt(2)."""
    before = tally[WIDEST], tally[SCALE]
    tally[WIDEST], tally[SCALE] = 0.0, 0.0
    return before


@inlined_kernel
def end_margin(tally: Array, before: tuple[float, float]) -> None:
    """The largest norms, of rows again."""
    tally[WIDEST], tally[SCALE] = max(before[0], tally[WIDEST] / ROOT_2), max(before[1], 0.5 * tally[SCALE])


@kernel
def run_margin(
    state: SurrogateState, X: Array, Y: Array, weight: Array, constants: AIOLIConstants, mu: float, out: Array
) -> int:
    """`aioli.run_rows` with GAF's forecast, and its quadratic at the leader's margin after the label."""
    P, w, tally = state
    per_square = 1.0 / constants.regularization
    v, u, most = np.empty(w.size), np.zeros(w.size), most_mass(P)
    four, done = in_four(P, X.shape[0]), X.shape[0]
    for t in range(X.shape[0]):
        m, square = fold_row(P, four, u, w, X, t, v)
        q = look_one(v, X, t)
        first, second = forecast_margin(m, q, mu)
        out[t, 0] = first
        out[t, 1] = second
        if weight[t] == 0.0:
            u[:] = 0.0
            continue
        y, size = Y[t, 1], math.sqrt(square)
        # the point is m - q g / 2, as in `multiclass.gaf_point`; its curvature and gradient have relative precision
        pulled = m + 0.5 * weight[t] * q * (y - 0.5)
        point, _ = solve_margin(pulled, tanh_of_half(pulled), 0.25 * weight[t] * q)
        p0, p1 = softmax_of_two(0.0, point)
        c = weight[t] * kappa_of(constants, size, 0.5, 2) * (p0 * p1)
        g = weight[t] * (Y[t, 0] * p1 - y * p0)
        step, growth, terms = lengths(q, -0.5 * q * g, c, g)
        mass = c * square * per_square
        if tally[MASS] + mass > most:
            u[:] = 0.0
            done = t
            break
        move(w, v, u, q, c, step)
        loss = -(Y[t, 0] * first + y * second)
        at_point = max(point, 0.0) - y * point - math.log(max(p0, p1))
        record(tally, weight[t], weight[t] * loss, growth + weight[t] * (loss - at_point), size)
        charge(tally, mass, step * step * q, weight[t] * (LOG_2 + abs(m)) + terms)
    end_fold(P, four, u)
    return done


@inlined_kernel
def forecast_margin(m: float, q: float, mu: float) -> tuple[float, float]:
    """The log probabilities of two classes whose margin is N(m, q/2)."""
    first, second = of_margin(m, math.sqrt(max(0.0, 0.5 * q)))
    if mu > 0.0:
        first, second = mixed(first, mu, 2), mixed(second, mu, 2)
    return first, second


@kernel
def forecast_folklore(state: SurrogateState, X: Array, constants: MulticlassConstants, out: Array) -> None:
    """The forecasts of a block of rows of two classes, all from the same state."""
    aioli_forecast(state, ROOT_2 * X, as_margin(constants), out)


@kernel
def forecast_gaf(state: SurrogateState, X: Array, constants: MulticlassConstants, out: Array) -> None:
    """`forecast_folklore` for GAF."""
    P, w, tally = state
    sampling: Any = constants.sampling
    if sampling.method != QUADRATURE or tally[ROOT] != 0.0:
        multiclass_forecast(state, X, constants, out)
        return
    X = ROOT_2 * X
    v = np.empty(w.size)
    for t in range(X.shape[0]):
        m, _ = product_one(P, w, X, t, v)
        out[t, 0], out[t, 1] = forecast_margin(m, look_one(v, X, t), sampling.mu)
